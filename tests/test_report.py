"""`quietus report`: what is counted is what happened; what was not looked at is told; nobody is named."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from quietus.cli.report_sums import Spread, summed
from quietus.cli.reports import bars, markdown, page
from quietus.core.states import State
from quietus.core.verdict import verdict_of
from quietus.views import Declared, erasure_view
from tests.admin.desk import opened

DECLARED = [Declared("record", "primary"), Declared("backups", "unprobeable", "the provider's schedule")]
UNTIL = "2026-11-10T01:00:00.000Z"


async def report() -> dict[str, Any]:
    desk = await opened()
    for state in (State.SETTLED, State.SETTLED, State.LEAKING, State.REFUSED, State.RELEASED):
        await desk.erasure(state, subject="alice|<b>")
    views = [
        erasure_view(e, verdict=verdict_of(e), now=desk.clock.now(), declared=DECLARED)
        for e in desk.erasures.all()
    ]
    return summed(views, "2026-11-01T00:00:00+00:00", UNTIL)


async def test_it_counts_what_happened() -> None:
    found = await report()
    assert found["erasures"] == 5
    assert found["states"] == {"leaking": 1, "refused": 1, "released": 1, "settled": 2}
    assert found["verdicts"] == {"unconfirmed": 5} and found["bases"] == {"gdpr_art17": 5}
    assert [each["state"] for each in found["open"]] == ["leaking"]
    assert found["recalled_after_acknowledgement"] == 1 and found["released_by_people"] == 1
    assert {"surface": "backups", "outcome": "OUT_OF_SCOPE", "erasures": 5} in found["not_checked"]
    assert found["past_their_legal_date"] == []


async def test_what_is_late_is_named() -> None:
    desk = await opened()
    for state in (State.SETTLED, State.LEAKING):
        await desk.erasure(state)
    views = [erasure_view(e, verdict=verdict_of(e), now=0.0) for e in desk.erasures.all()]
    assert summed(views, "x", "2027-11-10T00:00:00Z")["past_their_legal_date"] == ["er_002"]


async def test_it_is_readable_in_each_form_and_nothing_is_taken_for_mark_up() -> None:
    found = await report()
    text, html = markdown(found), page(found)
    assert "| settled | 2 |" in text and "## Not checked" in text and "None." in text
    assert "alice" not in text + html + json.dumps(found)
    for chart in html.split("<svg")[1:]:
        ElementTree.fromstring("<svg" + chart.split("</svg>")[0] + "</svg>")  # noqa: S314
    assert html.count("<svg") == 2 and "<script" not in html and "http" not in html
    assert "&lt;b&gt;" in bars("x", {"<b>": 1}) and bars("x", {}) == ""


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([], (0, None, None, None)),
        ([4.0], (1, 4.0, 4.0, 4.0)),
        ([float(n) for n in range(1, 101)], (100, 50.5, 95.0, 100.0)),
        ([1.0, 2.0], (2, 1.5, 2.0, 2.0)),
    ],
)
def test_how_seconds_lie(values: list[float], told: tuple[Any, ...]) -> None:
    found = Spread.of(values)
    assert (found.count, found.median, found.p95, found.most) == told
