"""One suite for all ledgers: what `ports.Ledger` promises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from quietus.core.events import Draft, Event, EventType
from quietus.ledger.chain import LEDGER, event_hash, genesis
from quietus.ledger.memory import MemoryLedger
from quietus.ledger.sqlite import SqliteLedger
from quietus.ledger.verify import verify_events
from quietus.ports import Conflict, LedgerRefused, LedgerUnavailable, Mark, SharedLedger

AnyLedger = MemoryLedger | SqliteLedger | SharedLedger
Make = Callable[[], AnyLedger]

KEYS = frozenset({"hmac-1", "wrapping-1", "signing-1"})
TEXT = Mark("text", b"t" * 16)
SHINGLE = Mark("shingle:8", b"s" * 16)


def draft(erasure: str = "e1", kind: EventType = EventType.ROUND, **more: Any) -> Draft:
    return Draft(kind, erasure, at=more.pop("at", 1700000000.25), **more)


async def all_events(ledger: AnyLedger, after: int = 0, erasure: str | None = None) -> list[Event]:
    return [event async for event in ledger.events(after, erasure)]


async def all_marks(ledger: AnyLedger) -> list[tuple[str, Mark]]:
    return [marked async for marked in ledger.marks()]


async def test_a_new_ledger_is_empty(ledger: AnyLedger) -> None:
    head = await ledger.head()
    assert (head.number, head.gate_epoch) == (0, 0)
    assert await ledger.key_ids() == frozenset()
    assert await all_events(ledger) == []
    assert await all_marks(ledger) == []
    assert await ledger.secret("e1", "key") is None
    assert await ledger.secret_names("e1") == []
    await ledger.destroy_secrets("e1")


async def test_appended_events_come_back_as_they_were_returned(ledger: AnyLedger) -> None:
    facts = {
        "n": 1,
        "big": 2**63 - 1,
        "f": 0.1,
        "s": 'é\u2028\x00"',
        "l": [1, [None, True]],
        "d": {"b": 1, "a": 2},
    }
    written = await ledger.append(
        [
            draft("e1", EventType.REQUESTED, facts=facts, gate=True, actor="operator:é"),
            draft("", EventType.ACCESSED, at=-0.0),
        ]
    )
    assert [event.number for event in written] == [1, 2]
    assert written[0].facts == facts
    assert (written[0].type, written[0].actor, written[0].gate) == (EventType.REQUESTED, "operator:é", True)
    assert (written[0].at, written[1].at) == (1700000000.25, 0.0)
    assert await all_events(ledger) == written


async def test_a_tuple_of_facts_comes_back_as_a_list_at_once(ledger: AnyLedger) -> None:
    [event] = await ledger.append([draft(facts={"surfaces": ("a", "b")})])
    assert event.facts == {"surfaces": ["a", "b"]}


async def test_events_of_one_erasure_and_after_a_number(ledger: AnyLedger) -> None:
    await ledger.append([draft(erasure) for erasure in ("e1", "e2", "e1", "", "e1")])
    assert [event.number for event in await all_events(ledger, erasure="e1")] == [1, 3, 5]
    assert [event.number for event in await all_events(ledger, after=1, erasure="e1")] == [3, 5]
    assert [event.number for event in await all_events(ledger, after=3)] == [4, 5]
    assert await all_events(ledger, after=5) == []
    assert await all_events(ledger, after=99) == []
    assert await all_events(ledger, erasure="nobody") == []


async def test_more_events_than_a_page(ledger: AnyLedger) -> None:
    for _ in range(5):
        await ledger.append([draft(f"e{n % 7}") for n in range(1000)])
    assert [event.number for event in await all_events(ledger)] == list(range(1, 5001))
    assert len(await all_events(ledger, erasure="e0")) == 5 * 143


async def test_events_are_read_while_others_are_appended(ledger: AnyLedger) -> None:
    await ledger.append([draft() for _ in range(2500)])
    seen = 0
    async for event in ledger.events():
        seen += 1
        assert event.number == seen
        if seen == 10:
            await ledger.append([draft()])
    assert seen == 2501


@pytest.mark.requirement("R206")
async def test_the_chain_can_be_computed_from_the_events_alone(ledger: AnyLedger) -> None:
    await ledger.bind_keys(KEYS)
    head = await ledger.head()
    assert head.hash == genesis(head.incarnation, KEYS).hex()
    await ledger.append([draft(facts={"n": n}) for n in range(3)], marks=[("e1", TEXT)])
    previous = head.hash
    for event in await all_events(ledger):
        assert event.hash == event_hash(previous, event)
        previous = event.hash
    report = verify_events(await all_events(ledger), head.incarnation, KEYS)
    assert report.ok
    assert report.head == await ledger.head()


async def test_the_gate_epoch_is_the_number_of_the_last_event_of_the_gate(ledger: AnyLedger) -> None:
    await ledger.append([draft(gate=True), draft(gate=True), draft()])
    assert ((await ledger.head()).number, (await ledger.head()).gate_epoch) == (3, 2)
    await ledger.append([draft()])
    assert ((await ledger.head()).number, (await ledger.head()).gate_epoch) == (4, 2)


async def test_compare_and_set(ledger: AnyLedger) -> None:
    await ledger.append([draft("e1", EventType.REQUESTED)], expect=("e1", 0))
    await ledger.append([draft("e2")])
    await ledger.append([draft("e1", EventType.CLEAN)], expect=("e1", 1))
    for stale in (0, 1, 2, 4):
        with pytest.raises(Conflict):
            await ledger.append(
                [draft("e1")], expect=("e1", stale), marks=[("e1", TEXT)], secrets=[("e1", "key", b"x")]
            )
    assert (await ledger.head()).number == 3
    assert await all_marks(ledger) == []
    assert await ledger.secret("e1", "key") is None


async def test_compare_and_set_on_the_gate_epoch(ledger: AnyLedger) -> None:
    await ledger.append([draft(gate=True)], epoch=0)
    await ledger.append([draft()], epoch=1)
    for stale in (0, 2):
        with pytest.raises(Conflict):
            await ledger.append([draft(gate=True)], epoch=stale, marks=[("e1", TEXT)])
    outcomes = await asyncio.gather(
        *(ledger.append([draft(f"e{n}", gate=True)], epoch=1) for n in range(20)), return_exceptions=True
    )
    assert sum(isinstance(outcome, list) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 19
    assert ((await ledger.head()).number, (await ledger.head()).gate_epoch) == (3, 3)
    assert await all_marks(ledger) == []


async def test_of_racing_appends_with_one_expectation_one_wins(ledger: AnyLedger) -> None:
    outcomes = await asyncio.gather(
        *(ledger.append([draft("e1", facts={"n": n})], expect=("e1", 0)) for n in range(50)),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, list) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 49
    assert len(await all_events(ledger)) == 1


async def test_racing_appends_get_every_number_once_and_in_order(ledger: AnyLedger) -> None:
    found = await asyncio.gather(*(ledger.append([draft(f"e{n}"), draft(f"e{n}")]) for n in range(100)))
    assert [event.number for events in found for event in events] == list(range(1, 201))


async def test_marks_are_kept_once_and_sorted(ledger: AnyLedger) -> None:
    await ledger.append([draft()], marks=[("e2", TEXT), ("e1", TEXT), ("e1", SHINGLE), ("e1", TEXT)])
    await ledger.append([draft()], marks=[("e1", TEXT)])
    assert await all_marks(ledger) == [("e1", SHINGLE), ("e1", TEXT), ("e2", TEXT)]


async def test_more_marks_than_a_page(ledger: AnyLedger) -> None:
    marks = [(f"e{n % 3}", Mark("text", n.to_bytes(16, "big"))) for n in range(4500)]
    await ledger.append([draft()], marks=marks)
    assert set(await all_marks(ledger)) == set(marks)
    assert len(await all_marks(ledger)) == 4500


async def test_unmark_takes_back_every_mark_of_an_erasure(ledger: AnyLedger) -> None:
    await ledger.append([draft()], marks=[("e1", TEXT), ("e2", TEXT)])
    await ledger.append([draft()], marks=[("e1", SHINGLE)])
    await ledger.append([draft("e1", EventType.REFUSED)], unmark=["e1"])
    assert await all_marks(ledger) == [("e2", TEXT)]


async def test_unmark_comes_before_the_marks_of_the_same_append(ledger: AnyLedger) -> None:
    await ledger.append([draft()], marks=[("e1", TEXT)])
    await ledger.append([draft()], unmark=["e1"], marks=[("e1", SHINGLE)])
    assert await all_marks(ledger) == [("e1", SHINGLE)]


async def test_secrets_are_replaced_listed_and_destroyed(ledger: AnyLedger) -> None:
    await ledger.append(
        [draft()], secrets=[("e1", "key", b"\x00k1"), ("e1", "a", b""), ("e2", "key", b"other")]
    )
    await ledger.append([], secrets=[("e1", "key", b"k2")])
    assert await ledger.secret("e1", "key") == b"k2"
    assert await ledger.secret("e1", "a") == b""
    assert await ledger.secret_names("e1") == ["a", "key"]
    await ledger.destroy_secrets("e1")
    await ledger.destroy_secrets("e1")
    assert await ledger.secret("e1", "key") is None
    assert await ledger.secret_names("e1") == []
    assert await ledger.secret("e2", "key") == b"other"


@pytest.mark.parametrize(
    ("drafts", "more"),
    [
        ([], {"marks": [("e1", TEXT)]}),
        ([], {"unmark": ["e1"]}),
        ([draft(facts={LEDGER: {}})], {}),
        ([draft(facts={"x": float("nan")})], {}),
        ([draft(facts={"x": 2**70})], {}),
        ([draft(facts={"x": "\ud800"})], {}),
        ([draft(facts={"x": b"raw"})], {}),
        ([draft(at=float("inf"))], {}),
        ([draft(actor="\udfff")], {}),
    ],
)
async def test_an_append_that_cannot_be_kept_exactly_is_refused_whole(
    ledger: AnyLedger, drafts: list[Draft], more: dict[str, Any]
) -> None:
    with pytest.raises((ValueError, TypeError)):
        await ledger.append([draft(), *drafts] if drafts else [], **more)
    assert (await ledger.head()).number == 0


async def test_keys_are_bound_once(ledger: AnyLedger) -> None:
    await ledger.bind_keys(KEYS)
    await ledger.bind_keys(KEYS)
    assert await ledger.key_ids() == KEYS
    with pytest.raises(LedgerRefused, match="other keys"):
        await ledger.bind_keys(frozenset({"hmac-2"}))
    with pytest.raises(LedgerRefused):
        await ledger.bind_keys(frozenset())
    await ledger.append([draft()])
    await ledger.bind_keys(KEYS)
    assert await ledger.key_ids() == KEYS


async def test_keys_are_bound_before_the_first_event(ledger: AnyLedger) -> None:
    await ledger.append([draft()])
    with pytest.raises(LedgerRefused, match="before the first event"):
        await ledger.bind_keys(KEYS)


async def test_everything_is_there_after_a_restart(make_ledger: Make) -> None:
    ledger = make_ledger()
    first = await ledger.open()
    await ledger.bind_keys(KEYS)
    await ledger.append([draft(gate=True)], marks=[("e1", TEXT)], secrets=[("e1", "key", b"sealed")])
    head, events = await ledger.head(), await all_events(ledger)
    await ledger.close()
    await ledger.close()

    again = make_ledger()
    assert await again.open() == head
    assert head.incarnation == first.incarnation
    assert await all_events(again) == events
    assert await all_marks(again) == [("e1", TEXT)]
    assert await again.secret("e1", "key") == b"sealed"
    assert await again.key_ids() == KEYS
    [event] = await again.append([draft()], expect=("e1", 1))
    assert event.number == 2
    await again.close()


async def test_a_closed_ledger_is_unavailable(make_ledger: Make) -> None:
    ledger = make_ledger()
    for _ in range(2):
        for call in (ledger.head, ledger.key_ids):
            with pytest.raises(LedgerUnavailable):
                await call()
        with pytest.raises(LedgerUnavailable):
            await ledger.append([draft()])
        with pytest.raises(LedgerUnavailable):
            await all_events(ledger)
        with pytest.raises(LedgerUnavailable):
            await all_marks(ledger)
        await ledger.open()
        await ledger.close()


async def test_an_open_ledger_is_not_opened_twice(ledger: AnyLedger, make_ledger: Make) -> None:
    with pytest.raises(LedgerRefused):
        await ledger.open()
    if isinstance(ledger, SharedLedger):  # it is there to be opened by others
        other = make_ledger()
        assert (await other.open()).incarnation == (await ledger.head()).incarnation
        await other.close()
        return
    with pytest.raises(LedgerRefused):
        await make_ledger().open()


async def test_what_was_asked_before_close_is_written(make_ledger: Make) -> None:
    ledger = make_ledger()
    await ledger.open()
    asked = [asyncio.ensure_future(ledger.append([draft()])) for _ in range(20)]
    await asyncio.sleep(0)
    await ledger.close()
    assert [events[0].number for events in await asyncio.gather(*asked)] == list(range(1, 21))


async def test_a_cancelled_append_leaves_the_ledger_in_order(ledger: AnyLedger) -> None:
    task = asyncio.ensure_future(ledger.append([draft()]))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await ledger.append([draft()])
    assert [event.number for event in await all_events(ledger)] in ([1], [1, 2])
