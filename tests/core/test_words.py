"""Words that are kept in ledgers, sent to clients and written in policies: none may change once it is out."""

from __future__ import annotations

from enum import StrEnum

import pytest

from quietus.core.decision import Decision, Question, Screening
from quietus.core.due import Due, Work
from quietus.core.erasure import PolicyPhase, ReadPhase, advance
from quietus.core.events import Draft, EventType
from quietus.core.gate import Relation
from quietus.core.operations import Call, Item, Operation
from quietus.core.policy import Effect, Facts, Mode, Vector
from quietus.core.probing import Controls, Finding, Probe, Witness
from quietus.core.problems import Problem, Reason
from quietus.core.scope import ANY, Scope, Wild
from quietus.core.states import Happening, State
from quietus.core.terms import Terms
from quietus.core.verdict import Evidence, Outcome, Verdict, Word
from tests.core.making import requested, scope

WORDS: dict[type[StrEnum], str] = {
    State: "requested settling leaking violation settled relapsed refused released",
    Happening: "accepted refused unclear clean leaked leaked_late retried released",
    PolicyPhase: "none committed",
    ReadPhase: "unsettled settled",
    Relation: "inside wider none",
    Operation: "read recall write forget ignore",
    Effect: "allow annotate screen empty wait block delay reject forward refuse",
    Mode: "enforce observe",
    Vector: "quarantined_path restated_content derived_subject dedup_merge race",
    Word: "compliant partial unconfirmed",
    Outcome: "CLEAN LEAKING INCONCLUSIVE UNPROBED OUT_OF_SCOPE",
    Reason: "ERASURE_EPOCH_NOT_SETTLED FORGET_EFFECTUATION_TIMEOUT SCOPE_LAUNDERING INCOMPLETE_ERASURE "
    "ERASURE_ORDERING_VIOLATION ERASURE_AUDIT LEGAL_HOLD KEY_IS_NOT_ERASURE_UNIT",
    EventType: "accepted refused unclear clean leaked leaked_late retried released requested snapshotted "
    "forwarded round restarted remedied overdue watch_ended write_opened write_closed readmitted signalled "
    "escalated held hold_lifted overridden quarantined quarantine_lifted verify_asked keys_bound accessed",
}


@pytest.mark.parametrize("kind", WORDS, ids=lambda kind: kind.__name__)
def test_a_word_that_is_out_stays(kind: type[StrEnum]) -> None:
    assert {word: kind[word.upper()].value for word in WORDS[kind].split()} == {
        word: word for word in WORDS[kind].split()
    }


def test_what_is_any_and_what_is_unknown() -> None:
    assert (Wild.ANY.value, Wild.UNKNOWN.value) == ("any", "unknown")


def test_an_erasure_begins_with_nothing_shown() -> None:
    born = advance(None, requested(1, scope(subject="alice")))
    nothing = {
        "state": State.REQUESTED, "policy_phase": PolicyPhase.NONE, "acknowledged_at": None, "claim": {},
        "tokens": (), "store_epoch": None, "read_epoch": None, "settled_at": None, "settled_once": False,
        "snapshot": {}, "snapshotted": False, "forwards": 0, "answered": False, "unclear": False,
        "clean_streak": 0, "streak_base": 0, "surfaces": (), "first_leak_at": None, "last_leak_at": None,
        "leaked_surfaces": frozenset(), "remedies": 0, "client_calls": 1, "overdue": False, "held": False,
        "readmitted_at": None, "readmission_allows_old": False, "compacted": False, "escalated": False,
        "watch_ended": False,
    }  # fmt: skip
    assert {name: getattr(born, name) for name in nothing} == nothing
    assert (born.unsettled, born.tombstoned, born.readmitted) == (True, True, False)
    assert (born.may_assert_erasure, born.may_assert_non_recallability) == (False, False)


def test_what_nobody_says_is_the_careful_answer() -> None:
    assert Terms() == Terms(900.0, 1800.0, 3, 90 * 86400.0, 3600.0, True)
    assert Scope() == Scope(ANY, ANY, ANY, ANY, ANY)
    draft = Draft(EventType.ROUND)
    assert (draft.erasure, draft.at, draft.actor, draft.facts, draft.gate) == ("", 0.0, "quietus", {}, False)
    nothing_shown = Evidence()
    assert not any(getattr(nothing_shown, name) for name in nothing_shown.__slots__)
    finding = Finding(Probe("list", Witness()))
    assert (finding.control, finding.readable, finding.found, finding.residual) == (False, True, False, 0)
    assert (finding.probe.proven, finding.reason) == (False, "")
    assert Controls(True, True).kind == "live"
    assert Verdict(Word.PARTIAL).missing == Verdict(Word.PARTIAL).through == ()
    problem = Problem("p", 409, "x")
    assert (problem.reason, problem.retry.value) == (Reason.NONE, "no")
    assert (Reason.NONE.value, Item(0).provenance_resolved, Item(0).score) == ("", None, None)


def test_a_call_without_more_is_nobodys() -> None:
    call = Call(Operation.RECALL)
    assert (call.route, call.scope, call.query, call.texts, call.items) == ("unmapped", Scope(), (), (), ())
    assert (call.derived_from, call.basis, call.min_epoch) == ((), None, None)
    question = Question(call, scope())
    assert (question.principal, question.vectors, question.named) == ("anonymous", frozenset(), ())
    assert (question.owned, question.failure) == ((), None)
    decision = Decision(Effect.BLOCK, "rule")
    assert (decision.mode, decision.problem, decision.erasures) == (Mode.ENFORCE, "", ())
    assert (decision.relation, decision.vectors) == (Relation.NONE, frozenset())
    assert (Screening().dropped, Screening().outside, Screening().erased) == (frozenset(), False, ())
    facts = Facts(Operation.READ)
    assert (facts.erasure, facts.state, facts.subject) == (Relation.NONE, None, None)
    assert (facts.write, facts.purpose) == (frozenset(), frozenset())
    assert (facts.failure, facts.route, facts.principal, facts.tenant) == (None, "", "", frozenset())
    assert (Due(Work.PROBE, 0.0).counted, Due(Work.PROBE, 0.0).overdue) == (False, False)
