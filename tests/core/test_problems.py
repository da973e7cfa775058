"""Refusals: the table of the contract once more, and what no sentence may say."""

from __future__ import annotations

import re

import pytest

from quietus.core.problems import PROBLEMS, Reason, Retry

# name, status, reason, Retry-After
TABLE = """
erasure-not-settled     409 ERASURE_EPOCH_NOT_SETTLED   yes
consistency-violation   409 FORGET_EFFECTUATION_TIMEOUT no
scope-laundering        409 SCOPE_LAUNDERING            while_unsettled
erased-subject          409 ERASURE_ORDERING_VIOLATION  no
record-quarantined      409 INCOMPLETE_ERASURE          no
suppressed-by-erasure   409 ERASURE_EPOCH_NOT_SETTLED   yes
legal-hold              409 LEGAL_HOLD                  no
unverifiable-forget     422 ERASURE_AUDIT               no
ambiguous-request       400 -                           no
malformed-request       400 -                           no
too-large               413 -                           no
overloaded              429 -                           yes
unscreenable            502 -                           no
unmapped-route          403 -                           no
internal                500 -                           no
upstream-unavailable    502 -                           yes
outcome-unknown         504 -                           yes
ledger-unavailable      503 -                           yes
barrier-unreachable     503 -                           yes
reviews-unavailable     503 -                           yes
unauthenticated         401 -                           no
forbidden               403 -                           no
not-found               404 -                           no
wrong-state             409 -                           no
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]


@pytest.mark.requirement("R151", "R185")
@pytest.mark.parametrize(("name", "status", "reason", "retry"), ROWS)
def test_row_of_the_contract(name: str, status: str, reason: str, retry: str) -> None:
    problem = PROBLEMS[name]
    assert problem.status == int(status)
    assert problem.reason is (Reason.NONE if reason == "-" else Reason(reason))
    assert problem.retry is Retry(retry)
    assert problem.type == f"urn:quietus:problem:{name}"


CODES = {
    "INVALID_ARGUMENT": "unverifiable-forget ambiguous-request malformed-request",
    "RESOURCE_EXHAUSTED": "too-large overloaded",
    "PERMISSION_DENIED": "unmapped-route forbidden",
    "INTERNAL": "internal",
    "UNAVAILABLE": "upstream-unavailable ledger-unavailable barrier-unreachable reviews-unavailable",
    "DEADLINE_EXCEEDED": "outcome-unknown",
    "UNAUTHENTICATED": "unauthenticated",
    "NOT_FOUND": "not-found",
}
"""Over gRPC; whatever the state of an erasure refuses is FAILED_PRECONDITION."""


@pytest.mark.parametrize("name", PROBLEMS)
def test_code_over_grpc(name: str) -> None:
    codes = [code for code, names in CODES.items() if name in names.split()]
    assert [PROBLEMS[name].code] == (codes or ["FAILED_PRECONDITION"])


def test_there_is_no_other() -> None:
    assert set(PROBLEMS) == {row[0] for row in ROWS}


@pytest.mark.requirement("R145")
def test_a_violation_is_no_passing_fault() -> None:
    assert PROBLEMS["consistency-violation"].retry is Retry.NO
    assert "operator" in PROBLEMS["consistency-violation"].title


@pytest.mark.requirement("R67")
@pytest.mark.parametrize("name", PROBLEMS)
def test_no_sentence_takes_an_acknowledgement_for_proof(name: str) -> None:
    title = PROBLEMS[name].title
    assert not re.search(r"\b(delet|remov|gone|unrecoverable|no longer|permanently|complete)", title)
    assert not re.search(r"\bwas erased\b", title) or name in ("erased-subject", "record-quarantined")
    assert title.endswith(".")


@pytest.mark.parametrize("name", PROBLEMS)
def test_names_are_fit_for_a_urn(name: str) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
