"""Policies: what ships, its cases, and what is refused at load."""

from __future__ import annotations

from pathlib import Path

import pytest

from quietus.core.operations import UNMAPPED, Operation
from quietus.core.policy import Effect, Mode, Policy, strictness
from quietus.core.states import TOMBSTONED, State
from quietus.documents import DocumentError
from quietus.policies import SHIPPED, PolicyError, folder, json_schema, load_policy
from quietus.policy_cases import (
    Case,
    Expected,
    GivenCall,
    GivenErasure,
    Outcome,
    decision_of,
    run,
    shipped_cases,
)

HEAD = "apiVersion: quietus/v1\nkind: Policy\nname: mine\nrules:\n"
OTHERWISE = "  - {name: otherwise, effect: allow}\n"
POLICIES = {name: load_policy(name) for name in SHIPPED}
OUTCOMES = [outcome for path in shipped_cases() for outcome in run(path)]


@pytest.mark.requirement("R17", "R40", "R141", "R202")
@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda o: f"{o.policy}: {o.name}")
def test_shipped_case(outcome: Outcome) -> None:
    assert outcome.holds, f"{outcome.file}:{outcome.line}: {outcome.differences}"


def test_every_shipped_rule_decides_a_case() -> None:
    decided = {
        case.expect.rule
        for path in shipped_cases()
        for case in _cases(path)
    }  # fmt: skip
    for name in SHIPPED:
        rules = {rule.name for rule in load_policy(name).rules}
        # An allowing rule never outweighs `otherwise`, which every call meets too.
        assert rules - decided <= {"write-by-readmitted-subject"}, name


def _cases(path: Path) -> list[Case]:
    from quietus.documents import read, validate
    from quietus.policy_cases import Cases

    return validate(read(path), Cases).cases


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_policies_load(name: str) -> None:
    policy = load_policy(name)
    assert policy.name == name
    assert policy.watch.seconds == 90 * 86400.0
    assert (policy.mode is Mode.OBSERVE) == (name == "observe")


def test_observe_has_the_rules_of_default() -> None:
    assert load_policy("observe").rules == load_policy("default").rules


CALLS = [
    GivenCall(operation=operation, route=route, subject=subject)
    for operation in (Operation.READ, Operation.RECALL, Operation.WRITE, Operation.FORGET)
    for route in ("route", UNMAPPED)
    for subject in (["alice"], ["bob"], None)
    if route != UNMAPPED or operation is Operation.RECALL
]


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("call", CALLS, ids=lambda c: f"{c.operation}-{c.route}-{c.subject}")
def test_strict_is_nowhere_kinder_than_default(call: GivenCall, state: State) -> None:
    def effect(name: str) -> Effect:
        expected = Expected(effect=Effect.ALLOW, rule="any")
        case = Case(
            name="n", erasures=[GivenErasure(subject=["alice"], state=state)], call=call, expect=expected
        )
        return decision_of(case, POLICIES[name]).effect

    strict, default = effect("strict"), effect("default")
    assert strictness(call.operation, strict) >= strictness(call.operation, default)


@pytest.mark.requirement("R60", "R185", "R187")
@pytest.mark.parametrize("state", sorted(TOMBSTONED))
@pytest.mark.parametrize("name", ["default", "strict"])
def test_no_tombstoned_subject_writes(name: str, state: State) -> None:
    case = Case(
        name="n",
        erasures=[GivenErasure(subject=["alice"], state=state)],
        call=GivenCall(operation=Operation.WRITE, subject=["alice"]),
        expect=Expected(effect=Effect.REJECT, rule="any"),
    )
    assert decision_of(case, POLICIES[name]).effect is Effect.REJECT


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("rules", "line", "message"),
    [
        ("  - {name: a, when: {operation: recall}, effect: block}\n", 1, "last rule must match everything"),
        ("  - {name: a, effect: allow}\n" + OTHERWISE, 1, "matches everything"),
        ("  - {name: a, when: {operation: write}, effect: block}\n" + OTHERWISE, 5, "does not fit write"),
        (
            "  - {name: a, when: {operation: brood}, effect: block}\n" + OTHERWISE,
            5,
            "rules[0].when.operation",
        ),
        ("  - {name: a, when: {moon: full}, effect: block}\n" + OTHERWISE, 5, "unknown key"),
        (
            "  - {name: a, when: {erasure: none, state: settled}, effect: allow}\n" + OTHERWISE,
            5,
            "never match",
        ),
        (
            "  - {name: a, when: {operation: read, write: race}, effect: allow}\n" + OTHERWISE,
            5,
            "never match",
        ),
        (
            "  - {name: a, when: {operation: [read, recall], state: unsettled}, effect: block}\n"
            "  - {name: b, when: {operation: read, state: leaking, erasure: inside}, effect: allow}\n"
            + OTHERWISE,
            6,
            "'b' can never match: 'a'",
        ),
        ("  - {name: a, name: b, effect: allow}\n", 5, "twice"),
        ("  - {name: otherwise, effect: allow}\nwatch: {for: ever}\n", 6, "duration"),
    ],
)
def test_a_bad_policy_is_refused_with_its_line(tmp_path: Path, rules: str, line: int, message: str) -> None:
    path = written(tmp_path, HEAD + rules)
    with pytest.raises(PolicyError) as caught:
        load_policy(path)
    faults = [str(fault) for fault in caught.value.faults]
    assert any(f.startswith(f"{path}:{line}:") and message in f for f in faults), faults


def test_a_rule_of_states_that_another_does_not_take_is_no_shadow(tmp_path: Path) -> None:
    rules = (
        "  - {name: a, when: {operation: read, state: unsettled}, effect: block}\n"
        "  - {name: b, when: {operation: read, state: settled}, effect: screen}\n" + OTHERWISE
    )
    assert len(load_policy(written(tmp_path, HEAD + rules)).rules) == 3


def test_a_users_cases_run_against_a_users_policy(tmp_path: Path) -> None:
    written(tmp_path, HEAD + "  - {name: hush, when: {operation: recall}, effect: empty}\n" + OTHERWISE)
    cases = tmp_path / "cases.yaml"
    cases.write_text(
        "apiVersion: quietus/v1\nkind: PolicyCases\npolicy: mine.yaml\ncases:\n"
        "  - {name: holds, call: {operation: recall}, expect: {effect: empty, rule: hush}}\n"
        "  - {name: does not, call: {operation: write},"
        " expect: {effect: reject, rule: hush, reason: LEGAL_HOLD}}\n",
        encoding="utf-8",
    )
    held, failed = run(cases)
    assert held.holds
    assert failed.line == 6
    assert set(failed.differences) == {
        "effect: expected 'reject', decided 'allow'",
        "rule: expected 'hush', decided 'otherwise'",
        "reason: expected 'LEGAL_HOLD', decided ''",
    }


def test_a_case_with_an_unknown_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(
        "apiVersion: quietus/v1\nkind: PolicyCases\npolicy: default\ncases:\n"
        "  - {name: a, call: {operation: recall, subjekt: x}, expect: {effect: allow, rule: otherwise}}\n",
        encoding="utf-8",
    )
    with pytest.raises(DocumentError, match=r":5: unknown key .*subjekt.*did you mean 'subject'"):
        run(path)


def test_the_shipped_schema_is_current() -> None:
    assert (folder() / "policy.schema.json").read_text(encoding="utf-8") == json_schema()


def test_an_unknown_name_says_so() -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        load_policy("defualt")


def test_models_are_frozen() -> None:
    policy: Policy = load_policy("default")
    with pytest.raises(ValueError, match="frozen"):
        policy.name = "other"  # type: ignore[misc]
