"""In an incident that is played every panel shows something, and what should fire fires, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deploy.incident import MAY, SHOULD, Evening, Prometheus, panels, told, until
from tests.deploy.tooling import ROOT, tool

BOARDS = tuple(sorted(path.stem for path in (ROOT / "dashboards" / "json").glob("*.json")))
IDLE = {"Forgets and waits", "Detection"}
"""Panels of histograms that this evening may leave empty: they show NaN, which is a line without points."""


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Evening, Prometheus]]:
    tool("prometheus")
    yield from told(tmp_path_factory.mktemp("incident"))


@pytest.mark.timeout(280)
@pytest.mark.requirement("R201", "R199", "R198")
def test_what_should_fire_fires_and_nothing_else(evening: tuple[Evening, Prometheus]) -> None:
    _, prometheus = evening
    seen: set[str] = set()

    def all_there() -> bool:
        seen.update(prometheus.firing())
        return SHOULD <= seen

    try:
        until(all_there, "not all that should fire has fired")
    except AssertionError:
        raise AssertionError(f"never fired: {sorted(SHOULD - seen)}") from None
    assert seen - MAY == SHOULD


@pytest.mark.timeout(280)
@pytest.mark.requirement("R201")
@pytest.mark.parametrize("board", BOARDS)
def test_every_panel_shows_something(evening: tuple[Evening, Prometheus], board: str) -> None:
    _, prometheus = evening
    empty = []
    for title, query in panels(board):
        found = prometheus.query(query)
        values = [each["value"][1] for each in found]
        if not values or (set(values) == {"NaN"} and title not in IDLE):
            empty.append(f"{title}: {query}")
    assert not empty, "\n" + "\n".join(empty)


@pytest.mark.timeout(280)
@pytest.mark.requirement("R198")
def test_no_label_names_anybody(evening: tuple[Evening, Prometheus]) -> None:
    _, prometheus = evening
    text = str(prometheus.ask("series", **{"match[]": '{__name__=~"quietus_.+"}'}))
    assert "quietus_operations_total" in text
    for planted in ("alice", "Alice", "lighthouse", "bob-00001", "carol"):
        assert planted not in text


@pytest.mark.timeout(280)
def test_a_dead_sidecar_is_seen(evening: tuple[Evening, Prometheus]) -> None:
    parts, prometheus = evening
    parts.sidecar.stop()
    until(lambda: "QuietusDown" in prometheus.firing(), "nobody saw that it is gone")
