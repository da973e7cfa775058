"""Views: every field of the contract, no raw identifier, and a sentence for every state."""

from __future__ import annotations

import json

import pytest

from quietus.core.events import EventType
from quietus.core.states import State
from quietus.core.verdict import verdict_of
from quietus.views import Declared, erasure_view, event_view, status_view
from quietus.whys import span, why
from tests.admin.desk import opened

FIELDS = """
id store state verdict policy_phase read_phase may_assert_erasure may_assert_non_recallability through
missing_for_compliant overdue held predicate tokens epochs requested_at acknowledged_at settled_at bound_at
due_at exposure_seconds basis reference surfaces lineage claim acknowledged primary_removed
reconstruction_paths_severed effective_non_recoverability access_paths suppressed upstream_calls client_calls
why
""".split()
DECLARED = [Declared("record", "primary"), Declared("backups", "unprobeable", "the provider's schedule")]


@pytest.mark.requirement("R4", "R49", "R68", "R73", "R85")
@pytest.mark.parametrize("state", State)
async def test_every_field_is_there_in_every_state(state: State) -> None:
    desk = await opened()
    erasure = await desk.erasure(state, subject="alice", path=("notes", "health"), epoch=7)
    view = erasure_view(erasure, verdict=verdict_of(erasure), now=erasure.requested_at + 5, declared=DECLARED)
    assert set(FIELDS) <= set(view)
    assert view["state"] == state.value
    assert set(view["surfaces"][0]) == {
        "name",
        "kind",
        "outcome",
        "control",
        "residual",
        "probed_at",
        "reason",
    }
    text = json.dumps(view)
    assert "alice" not in text
    assert "notes" not in text
    assert view["predicate"]["subject"][0].startswith("hmac:")
    assert len(view["why"]) > 20


@pytest.mark.requirement("R26", "R47")
async def test_what_cannot_be_probed_is_named_before_the_first_round() -> None:
    desk = await opened()
    erasure = await desk.erasure(State.REQUESTED)
    view = erasure_view(erasure, verdict=verdict_of(erasure), now=erasure.requested_at, declared=DECLARED)
    assert [(s["name"], s["outcome"]) for s in view["surfaces"]] == [
        ("record", "UNPROBED"),
        ("backups", "OUT_OF_SCOPE"),
    ]


@pytest.mark.requirement("R86", "R98")
async def test_nothing_is_claimed_that_was_not_shown() -> None:
    desk = await opened()
    for state in State:
        erasure = await desk.erasure(state)
        view = erasure_view(erasure, verdict=verdict_of(erasure), now=erasure.requested_at)
        assert view["primary_removed"] is None
        assert view["reconstruction_paths_severed"] is False
        assert view["effective_non_recoverability"] is False
        assert view["verdict"] == "unconfirmed"


async def test_surfaces_of_the_newest_round_are_shown() -> None:
    desk = await opened()
    erasure = await desk.erasure(State.SETTLING)
    row = {"name": "record", "kind": "primary", "outcome": "CLEAN", "control": "live", "residual": 0}
    await desk.event(erasure.id, EventType.ROUND, surfaces=[row], outcome="clean", counted=True)
    found = desk.erasures.get(erasure.id)
    assert found is not None
    view = erasure_view(found, verdict=verdict_of(found), now=found.requested_at, declared=DECLARED)
    assert view["surfaces"] == [{**row, "probed_at": None, "reason": None}]
    assert view["primary_removed"] is True


@pytest.mark.requirement("R45")
async def test_epochs_name_their_source() -> None:
    desk = await opened()
    ours, theirs = await desk.erasure(), await desk.erasure(epoch=7)
    view = status_view(ours, verdict=verdict_of(ours))
    assert view["epochs"] == {"erasure": ours.epoch, "read": None, "source": "sidecar"}
    assert status_view(theirs, verdict=verdict_of(theirs))["epochs"]["source"] == "store"


async def test_the_status_tells_nothing_of_the_predicate() -> None:
    desk = await opened()
    erasure = await desk.erasure(State.LEAKING)
    view = status_view(erasure, verdict=verdict_of(erasure))
    assert not {"predicate", "basis", "reference", "tokens", "surfaces"} & set(view)
    assert "hmac:" not in json.dumps(view)


@pytest.mark.requirement("R67")
@pytest.mark.parametrize("state", State)
async def test_no_sentence_says_erased_where_only_an_acknowledgement_is_known(state: State) -> None:
    desk = await opened()
    erasure = await desk.erasure(state)
    text = why(erasure, verdict_of(erasure))
    if state is not State.SETTLED:
        assert "Nobody recalls" not in text
    if state in (State.SETTLING, State.LEAKING):
        assert "acknowledged" in text


@pytest.mark.requirement("R6")
async def test_events_have_their_class() -> None:
    desk = await opened()
    erasure = await desk.erasure(State.SETTLED)
    await desk.acts.verify(erasure.id, "eve")
    classes = [event_view(event)["class"] for event in await desk.events(erasure.id)]
    assert classes == ["policy", "policy", "read", "act"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0s"), (9.96, "10.0s"), (892, "14m 52s"), (3600, "1h"), (90061, "1d 1h")]
)
def test_spans_read_well(seconds: float, text: str) -> None:
    assert span(seconds) == text
