"""Verdicts: each kind of surface and each gap in the evidence by itself, and what is said to be missing."""

from __future__ import annotations

from typing import Any

import pytest

from quietus.core.events import EventType
from quietus.core.states import State
from quietus.core.verdict import Evidence, Word, conclude, verdict_of
from tests.core.making import Story, surface
from tests.core.test_verdict import COMPLETE, settled

RECORD, SEARCH = surface("record"), surface("search", "index")
UNASKED, LEAKING = surface("search", "index", "UNPROBED"), surface(outcome="LEAKING")


@pytest.mark.parametrize(
    ("surfaces", "word", "missing", "through"),
    [
        ([RECORD, SEARCH], Word.COMPLIANT, "", ("record", "search")),
        ([RECORD, UNASKED], Word.PARTIAL, "every declared", ("record",)),
        ([RECORD, {**UNASKED, "applies": False}], Word.COMPLIANT, "", ("record",)),
        ([RECORD, {**SEARCH, "applies": False}], Word.COMPLIANT, "", ("record",)),
        ([RECORD, surface("none", "unprobeable", "UNPROBED")], Word.COMPLIANT, "", ("record",)),
        ([RECORD, surface("past", "history")], Word.COMPLIANT, "", ("record",)),
        ([RECORD, surface("past", "history", "LEAKING")], Word.PARTIAL, "every declared", ("record",)),
        ([RECORD, surface("past", "history", "UNPROBED")], Word.PARTIAL, "every declared", ("record",)),
        ([RECORD, {**SEARCH, "sampled": True}], Word.PARTIAL, "every declared", ("record", "search")),
        ([{**RECORD, "sampled": True}, SEARCH], Word.PARTIAL, "every declared", ("record", "search")),
        ([RECORD, surface("search", "index", control="positive")], Word.PARTIAL, "live control",
         ("record", "search")),
        ([surface(control="canary"), SEARCH], Word.COMPLIANT, "", ("record", "search")),
        ([SEARCH], Word.PARTIAL, "every declared", ("search",)),
        ([RECORD, surface("search", "index", "LEAKING")], Word.UNCONFIRMED, "clean probe rounds", ()),
        ([LEAKING, SEARCH], Word.UNCONFIRMED, "the record itself", ()),
        ([LEAKING, surface("other", "primary")], Word.UNCONFIRMED, "the record itself", ()),
        ([RECORD, surface("search", "index", "INCONCLUSIVE")], Word.UNCONFIRMED, "clean probe rounds", ()),
        ([surface(outcome="UNPROBED")], Word.UNCONFIRMED, "clean probe rounds", ()),
        ([], Word.UNCONFIRMED, "clean probe rounds", ()),
    ],
)  # fmt: skip
def test_surfaces(surfaces: list[dict[str, Any]], word: Word, missing: str, through: tuple[str, ...]) -> None:
    verdict = verdict_of(settled(surfaces), COMPLETE)
    assert (verdict.word, verdict.through) == (word, through)
    assert any(missing in said for said in verdict.missing) if missing else verdict.missing == ()
    primary_leaks = any(s["kind"] == "primary" and s["outcome"] == "LEAKING" for s in surfaces)
    assert any("the record itself" in said for said in verdict.missing) is primary_leaks
    unclean = "clean probe rounds" in verdict.missing
    assert unclean is (word is Word.UNCONFIRMED)
    if unclean:
        assert any("live control" in said for said in verdict.missing)


@pytest.mark.parametrize(
    ("snapshot", "word", "missing"),
    [
        ({"witnesses": 0}, Word.UNCONFIRMED, "a record found before the forget"),
        ({"lineage": None}, Word.PARTIAL, "lineage of derived records"),
        ({"lineage": {"complete": False}}, Word.PARTIAL, "lineage of derived records"),
        ({"truncated": True}, Word.PARTIAL, "a probe of every declared surface"),
    ],
)
def test_snapshots(snapshot: dict[str, Any], word: Word, missing: str) -> None:
    verdict = verdict_of(settled(**snapshot), COMPLETE)
    assert (verdict.word, verdict.missing) == (word, (missing,))


@pytest.mark.parametrize(
    ("known", "word", "missing"),
    [
        ({"attested": ()}, Word.PARTIAL, "attestation that the declared surfaces"),
        ({"attested": ("other",)}, Word.PARTIAL, "attestation that the declared surfaces"),
        ({"audited": False}, Word.PARTIAL, "write path was audited"),
        ({"tombstoned": False}, Word.UNCONFIRMED, "a tombstone"),
        ({"overridden": True}, Word.UNCONFIRMED, "an operator's release or override"),
    ],
)
def test_what_is_known_beside(known: dict[str, Any], word: Word, missing: str) -> None:
    verdict = verdict_of(settled(), **{"attested": COMPLETE, **known})
    assert verdict.word is word
    assert len(verdict.missing) == 1
    assert missing in verdict.missing[0]


def test_erasure_that_was_never_looked_at_lacks_what_only_looking_gives() -> None:
    story = Story()
    assert verdict_of(story.erasure).word is Word.UNCONFIRMED
    story.then(EventType.FORWARDED)
    story.then(EventType.ACCEPTED)
    lacking = set(verdict_of(story.erasure, COMPLETE).missing)
    assert "the store's acknowledgement" not in lacking
    assert {"a tombstone against re-ingestion", "a record found before the forget"} <= lacking
    assert {"enough clean rounds in a row, after the settling interval", "clean probe rounds"} <= lacking


def test_released_erasure_lacks_evidence_whatever_else_is_there() -> None:
    released = settled()
    everything = Evidence(*(True for _ in range(11)), released=False)
    assert conclude(everything, ["record"]).word is Word.COMPLIANT
    assert released.state is State.SETTLED
    verdict = conclude(Evidence(*(True for _ in range(11)), released=True), ["record"])
    assert (verdict.word, verdict.through) == (Word.UNCONFIRMED, ())
    assert verdict.missing == ("evidence in place of an operator's release or override",)
    assert conclude(Evidence()).word is Word.UNCONFIRMED
    assert len(conclude(Evidence()).missing) == 11
