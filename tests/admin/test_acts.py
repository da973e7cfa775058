"""The operators' acts: each is checked, done once, and stands in the ledger with actor and reason."""

from __future__ import annotations

import json

import pytest

from quietus.acts import BadAct, NoSuchErasure, Signal, scope_of
from quietus.core.events import EventType
from quietus.core.scope import Scope
from quietus.core.states import TABLE, Happening, State, WrongState
from tests.admin.desk import opened


@pytest.mark.parametrize("state", State)
async def test_retry_follows_the_table(state: State) -> None:
    desk = await opened()
    erasure = await desk.erasure(state)
    target = TABLE[state, Happening.RETRIED]
    if target is None:
        before = len(await desk.events())
        with pytest.raises(WrongState):
            await desk.acts.retry(erasure.id, "eve", "because")
        assert len(await desk.events()) == before
        return
    changed = await desk.acts.retry(erasure.id, "eve", "because")
    assert changed.state is target
    assert desk.woken == [erasure.id]


@pytest.mark.parametrize("state", State)
async def test_release_lifts_the_restriction_and_the_tombstone_stays(state: State) -> None:
    desk = await opened()
    erasure = await desk.erasure(state)
    if state in (State.REFUSED, State.RELEASED):
        with pytest.raises(WrongState):
            await desk.acts.release(erasure.id, "eve", "because")
        return
    epoch = desk.erasures.gate.epoch
    changed = await desk.acts.release(erasure.id, "eve", "court order 12")
    assert changed.state is State.RELEASED
    assert changed.tombstoned
    assert not changed.unsettled
    assert desk.erasures.gate.epoch > epoch
    last = (await desk.events(erasure.id))[-1]
    assert (last.type, last.actor, last.facts["reason"]) == (EventType.RELEASED, "eve", "court order 12")


async def test_verify_makes_it_due_and_changes_no_state() -> None:
    desk = await opened()
    erasure = await desk.erasure(State.SETTLED)
    changed = await desk.acts.verify(erasure.id, "eve")
    assert changed.state is State.SETTLED
    assert desk.woken == [erasure.id]
    assert (await desk.events(erasure.id))[-1].type is EventType.VERIFY_ASKED
    ended = await desk.erasure(State.REFUSED)
    with pytest.raises(WrongState):
        await desk.acts.verify(ended.id, "eve")


async def test_escalate_is_a_fact_in_every_state() -> None:
    desk = await opened()
    for state in State:
        erasure = await desk.erasure(state)
        changed = await desk.acts.escalate(erasure.id, "eve", "told the controller")
        assert (changed.state, changed.escalated) == (state, True)


async def test_an_unknown_id_is_not_found() -> None:
    desk = await opened()
    for act in (desk.acts.retry, desk.acts.release, desk.acts.escalate):
        with pytest.raises(NoSuchErasure):
            await act("er_none", "eve", "because")


@pytest.mark.requirement("R187")
async def test_readmission_reaches_every_tombstone_of_the_subject_and_nobody_elses() -> None:
    desk = await opened()
    mine = [
        await desk.erasure(state, subject="alice") for state in (State.SETTLED, State.LEAKING, State.RELEASED)
    ]
    refused = await desk.erasure(State.REFUSED, subject="alice")
    other = await desk.erasure(State.SETTLED, subject="bob")
    changed = await desk.acts.readmit("alice", None, "asked to be back", "eve")
    assert {e.id for e in changed} == {e.id for e in mine}
    assert all(e.readmitted and not e.readmission_allows_old for e in changed)
    for untouched in (refused, other):
        found = desk.erasures.get(untouched.id)
        assert found is not None
        assert not found.readmitted
    last = (await desk.events())[-1]
    assert last.gate
    assert last.facts == {"reason": "asked to be back", "allows_old": False}
    assert "alice" not in json.dumps([dict(e.facts) for e in await desk.events()])


async def test_readmission_twice_writes_once() -> None:
    desk = await opened()
    await desk.erasure(State.SETTLED, subject="alice")
    await desk.acts.readmit("alice", None, "back", "eve")
    before = len(await desk.events())
    await desk.acts.readmit("alice", None, "back", "eve")
    assert len(await desk.events()) == before
    await desk.acts.readmit("alice", None, "with the old", "eve", allow_old=True)
    assert len(await desk.events()) == before + 1


async def test_readmission_in_one_tenant_leaves_another_alone() -> None:
    desk = await opened()
    here = await desk.erasure(State.SETTLED, subject="alice", tenant="acme")
    there = await desk.erasure(State.SETTLED, subject="alice", tenant="globex")
    changed = await desk.acts.readmit("alice", "acme", "back", "eve")
    assert [e.id for e in changed] == [here.id]
    assert there.id not in {e.id for e in changed}


async def test_a_subject_that_nothing_names_is_not_found() -> None:
    desk = await opened()
    with pytest.raises(NoSuchErasure):
        await desk.acts.readmit("nobody", None, "back", "eve")


@pytest.mark.requirement("R205")
@pytest.mark.parametrize("reason", ["", "  ", "x" * 501, "Alice asked for it", "for ALICE"])
async def test_a_reason_is_given_short_and_names_nobody(reason: str) -> None:
    desk = await opened()
    await desk.erasure(State.SETTLED, subject="alice")
    before = len(await desk.events())
    with pytest.raises(BadAct) as caught:
        await desk.acts.readmit("alice", None, reason, "eve")
    assert "alice" not in str(caught.value).lower()
    assert len(await desk.events()) == before


@pytest.mark.requirement("R31")
@pytest.mark.parametrize(("epoch", "heard"), [(6, False), (7, True), (8, True)])
async def test_a_signal_of_an_older_epoch_is_ignored(epoch: int, heard: bool) -> None:
    desk = await opened()
    erasure = await desk.erasure(State.SETTLING, epoch=7)
    changed = await desk.acts.signal(Signal("compaction_complete", epoch), "store")
    assert [e.id for e in changed] == ([erasure.id] if heard else [])
    found = desk.erasures.get(erasure.id)
    assert found is not None
    assert found.compacted is heard
    assert found.state is State.SETTLING


@pytest.mark.requirement("R31")
async def test_a_signal_is_idempotent_and_recorded_with_its_source() -> None:
    desk = await opened()
    erasure = await desk.erasure(State.SETTLING, epoch=7)
    signal = Signal("compaction_complete", 7, "inc-1")
    await desk.acts.signal(signal, "store@example")
    before = len(await desk.events())
    assert await desk.acts.signal(signal, "store@example") == []
    assert len(await desk.events()) == before
    last = (await desk.events(erasure.id))[-1]
    assert (last.type, last.actor) == (EventType.SIGNALLED, "store@example")
    assert last.facts == {"kind": "compaction_complete", "epoch": 7, "incarnation": "inc-1"}
    assert desk.woken == [erasure.id]


async def test_a_signal_for_a_part_says_nothing_about_the_whole() -> None:
    desk = await opened()
    everywhere = await desk.erasure(State.SETTLING, subject="alice")
    here = await desk.erasure(State.SETTLING, subject="alice", tenant="acme")
    part = Signal("compaction_complete", 1, scope=scope_of({"tenant": "acme"}))
    assert [e.id for e in await desk.acts.signal(part, "store")] == [here.id]
    whole = Signal("compaction_complete", 1, scope=Scope())
    assert [e.id for e in await desk.acts.signal(whole, "store")] == [everywhere.id]


async def test_a_signal_before_the_acknowledgement_or_after_the_end_is_ignored() -> None:
    desk = await opened()
    for state in (State.REQUESTED, State.SETTLED, State.REFUSED, State.RELEASED):
        await desk.erasure(state)
    assert await desk.acts.signal(Signal("compaction_complete", 1), "store") == []


async def test_an_epoch_says_nothing_where_the_store_gave_none() -> None:
    desk = await opened()
    await desk.erasure(State.SETTLING)
    mine = await desk.erasure(State.SETTLING, subject="bob", epoch=4)
    assert [e.id for e in await desk.acts.signal(Signal("epoch", 5), "store")] == [mine.id]
