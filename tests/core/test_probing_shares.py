"""How many probes a round has, whose turn it is, and which control stood behind an outcome."""

from __future__ import annotations

import pytest

from quietus.core.probing import (
    KEYS_A_ROUND,
    PER_SURFACE,
    Controls,
    Finding,
    Probe,
    SurfaceFacts,
    Witness,
    judge,
    plan,
    share,
)

RECORD = SurfaceFacts("record", "primary", "key")
LIST = SurfaceFacts("list", "index", "subject")


@pytest.mark.parametrize(
    ("witnesses", "rounds", "expected"),
    [
        (0, 3, (PER_SURFACE, False)),
        (24, 3, (PER_SURFACE, False)),
        (25, 3, (9, False)),
        (90, 3, (30, False)),
        (91, 3, (31, False)),
        (90, 0, (90, False)),
        (KEYS_A_ROUND * 3, 3, (KEYS_A_ROUND, False)),
        (KEYS_A_ROUND * 3 + 1, 3, (KEYS_A_ROUND, True)),
    ],
)
def test_rounds_that_count_read_every_record_by_key_as_far_as_that_is_possible(
    witnesses: int, rounds: int, expected: tuple[int, bool]
) -> None:
    assert share(RECORD, witnesses, rounds) == expected
    assert share(LIST, witnesses, rounds) == (PER_SURFACE, False)


def test_each_record_has_its_turn() -> None:
    witnesses = [Witness(key=f"k{number}") for number in range(5)]
    asked = [[probe.witness.key for probe in plan(RECORD, witnesses, turn, 2)] for turn in range(5)]
    assert asked == [["k0", "k1"], ["k2", "k3"], ["k4", "k0"], ["k1", "k2"], ["k3", "k4"]]
    assert len(plan(RECORD, witnesses, 7, 5)) == 5


@pytest.mark.parametrize(
    ("surface", "other", "probes"),
    [
        (RECORD, Witness(key="k1"), 1),
        (RECORD, Witness(key="k1", path=("notes",)), 2),
        (RECORD, Witness(key="k1", tenant="acme"), 2),
        (RECORD, Witness(key="k1", subject="bob"), 2),
        (RECORD, Witness(key="k1", capture={"a": "b"}), 2),
        (RECORD, Witness(key="k2"), 2),
        (RECORD, Witness(), 1),
        (LIST, Witness(subject="bob", path=("notes",)), 1),
    ],
)
def test_same_record_is_asked_for_once(surface: SurfaceFacts, other: Witness, probes: int) -> None:
    first = Witness(key="k1") if surface is RECORD else Witness(subject="bob", path=("diary",))
    found = plan(surface, [first, other])
    assert [probe.surface for probe in found] == [surface.name] * probes


def test_surface_that_asks_with_nothing_is_asked_once() -> None:
    everything = SurfaceFacts("everything", "index", None)
    assert plan(everything, []) == [Probe("everything", Witness())]
    several = [Witness(key="k1"), Witness(key="k2")]
    assert plan(everything, several) == [Probe("everything", several[0])]


def finding(
    found: bool = False, *, control: bool = False, proven: bool = True, readable: bool = True
) -> Finding:
    probe = Probe("record", Witness(key="k1"), proven)
    return Finding(probe, control, readable, found, int(found), "" if readable else "it cannot be read")


@pytest.mark.parametrize(
    ("findings", "controls", "outcome", "control"),
    [
        ([finding()], Controls(True, False), "CLEAN", "positive"),
        ([finding(), finding(True, control=True)], Controls(True, True, "canary"), "CLEAN", "canary"),
        ([finding(proven=False), finding(True, control=True)], Controls(False, True), "CLEAN", "live"),
        ([finding(True)], Controls(True, False), "LEAKING", "positive"),
        ([finding(True), finding(readable=False)], Controls(True, False), "LEAKING", "positive"),
        ([finding(readable=False), finding()], Controls(True, False), "INCONCLUSIVE", "positive"),
        ([finding(proven=False)], Controls(True, False), "INCONCLUSIVE", "none"),
        ([finding(proven=False), finding()], Controls(True, False), "CLEAN", "positive"),
        ([finding(), finding(control=True)], Controls(True, True), "INCONCLUSIVE", "positive"),
        ([finding()], Controls(False, False), "INCONCLUSIVE", "none"),
        ([], Controls(True, False), "UNPROBED", "none"),
        ([finding(True, control=True)], Controls(True, True), "UNPROBED", "live"),
    ],
)
def test_outcome_and_the_control_behind_it(
    findings: list[Finding], controls: Controls, outcome: str, control: str
) -> None:
    found = judge(RECORD, findings, controls)
    assert (found["outcome"], found["control"]) == (outcome, control)
    assert bool(found["reason"]) is (outcome in ("INCONCLUSIVE", "UNPROBED"))
    assert found["residual"] == sum(one.residual for one in findings if not one.control)
    assert (found["name"], found["kind"], found["applies"]) == ("record", "primary", True)
    unasked = judge(RECORD, findings, controls, applicable=False)
    assert unasked["applies"] is False
    assert unasked["outcome"] == ("LEAKING" if outcome == "LEAKING" else "UNPROBED")
