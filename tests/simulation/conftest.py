"""How many seeds a run of these tests plays: `pytest tests/simulation --seeds 5000 --recalls 235`."""

from __future__ import annotations

import pytest

from tests.simulation.plan import RECALLS

SEEDS = 500


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("simulation")
    group.addoption("--seeds", type=int, default=SEEDS, help="seeds that the simulator plays")
    group.addoption("--recalls", type=int, default=RECALLS, help="recalls in each seed")


@pytest.fixture(scope="session")
def seeds(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.getoption("--seeds", SEEDS))


@pytest.fixture(scope="session")
def recalls(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.getoption("--recalls", RECALLS))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The figures, after a run that passed as well as after one that did not."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    lines = [text for report in reports for name, text in report.user_properties if name == "simulation"]
    if lines:
        terminalreporter.section("simulation")
    for line in lines:
        terminalreporter.write_line(line)
