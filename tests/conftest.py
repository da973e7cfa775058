"""What holds for every test: a marker must name something that exists.

The time limit of a test (60 s), the mode of asyncio and the markers stand in pyproject.toml. Whoever
needs longer says so on the test: `@pytest.mark.timeout(180)`.
"""

from __future__ import annotations

import pytest

from scripts.requirements import load


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses a `requirement` that docs/requirements.yaml does not have and a `case` that is no number."""
    known = {row.id for row in load()}
    faults = []
    for item in items:
        for marker in item.iter_markers("requirement"):
            faults += [f"{item.nodeid}: no requirement {id_!r}" for id_ in marker.args if id_ not in known]
        for marker in item.iter_markers("case"):
            wrong = [number for number in marker.args if not isinstance(number, int) or number < 1]
            faults += [f"{item.nodeid}: no case {number!r}" for number in wrong]
    if faults:
        raise pytest.UsageError("\n".join(faults))
