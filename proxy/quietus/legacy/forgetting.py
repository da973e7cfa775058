"""How the legacy store forgets: what a predicate matches, when it is done, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from quietus.legacy.records import Predicate, Record
from quietus.legacy.world import World

TOKENS: Final = ("del_9f3a", "del_b7c1")
"""The first two deletion tokens of the third founding scenario; later ones come from the seed."""


class NoAnswer(Exception):
    """The store never answers this request. `done` says whether it did what was asked."""

    def __init__(self, *, done: bool) -> None:
        super().__init__("the legacy store gives no answer")
        self.done = done


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a document, not yet encoded."""

    status: int
    document: Any


def forget(world: World, predicate: Predicate) -> Answer:
    """A forget by subject, keys or scope. Raises NoAnswer under `lost_answer`."""
    faults = world.faults
    victims = _victims(world, predicate)
    failed: list[Record] = []
    if faults.failures:
        failed = victims[faults.failures - 1 :: faults.failures]
        victims = [record for record in victims if record not in failed]
    elif faults.page_limit:
        victims = victims[: faults.page_limit]
    done = _lose(world)
    if done is False:
        raise NoAnswer(done=False)
    # A cascade is complete before the source goes: a walk afterwards could not pass the gap.
    cascade = _descendants(world, victims) if faults.dangling_provenance == "off" else []
    if not victims and not failed and not faults.same_ack:
        if done:
            raise NoAnswer(done=True)
        return Answer(404, {"error": "not_found", "message": "nothing matches the predicate"})
    token = _act(world, predicate, [*victims, *cascade])
    if done:
        raise NoAnswer(done=True)
    return _acknowledge(world, len(victims) + len(cascade), failed, token)


def delete(world: World, tenant: str | None, key: str) -> Answer:
    """A delete by key: the same path and the same faults, another acknowledgement."""
    victims = [row for row in world.rows.values() if row.key == key and tenant in (None, row.tenant)]
    if not victims and not world.faults.same_ack:
        return Answer(404, {"error": "not_found", "message": "there is no memory with this key"})
    cascade = _descendants(world, victims) if world.faults.dangling_provenance == "off" else []
    _act(world, Predicate(tenant=tenant, keys=frozenset({key})), [*victims, *cascade])
    if world.faults.negative_ack:
        return Answer(200, {"status": "ok", "deleted": 0})
    return Answer(200, {"status": "deleted"})


def reset(world: World, predicate: Predicate) -> Answer:
    """Empties a tenant, or a subject of it; under `reset_wipes` everything goes."""
    wipes = world.faults.reset_wipes
    victims = [row for row in world.rows.values() if wipes or predicate.matches(row)]
    count = world.drop(victims)
    world.caught_up()
    return Answer(200, {"status": "reset", "keys": count})


def _victims(world: World, predicate: Predicate) -> list[Record]:
    prefixes = world.faults.sibling_prefixes
    return sorted(
        (row for row in world.rows.values() if predicate.matches(row, prefixes=prefixes)),
        key=lambda row: row.uid,
    )


def _descendants(world: World, sources: list[Record]) -> list[Record]:
    """Everything derived from `sources`, transitively, within their tenant, oldest first."""
    found: dict[int, Record] = {}
    lost = {source.place for source in sources}
    seen = set(lost)
    while lost:
        children = [
            row
            for row in world.rows.values()
            if row.place not in seen and any((row.tenant, parent) in lost for parent in row.derived_from)
        ]
        lost = {child.place for child in children}
        seen |= lost
        found.update((child.uid, child) for child in children)
    return [found[uid] for uid in sorted(found)]


def _lose(world: World) -> bool | None:
    """None: this forget is answered. Else it is not, and True says that it is done all the same."""
    mode = world.faults.lost_answer
    if mode == "off" or world.lost >= world.faults.lost_count:
        return None
    world.lost += 1
    return mode == "done" or (mode == "either" and world.rng.random() < 0.5)


def _act(world: World, predicate: Predicate, victims: list[Record]) -> str:
    """Does what was asked, now or later or never; returns the deletion token."""
    faults = world.faults
    world.epoch += 1
    epoch = world.epoch
    if faults.swallow_prefix and predicate.scope is not None:
        world.swallowed.append((predicate.tenant, predicate.scope, world.now + faults.swallow_prefix))
    delay = faults.async_effect or faults.negative_ack
    job = f"effect:{predicate!r}"
    repeated = delay > 0 and world.schedule.waits(job)
    token = world.tokens.get(predicate)
    if token is None or not repeated or faults.fresh_tokens:
        token = _token(world)
        if len(world.tokens) < 10_000:
            world.tokens[predicate] = token
    if faults.idle_ack:
        return token

    def effect() -> None:
        world.drop(victims)
        if world.epoch == epoch:
            world.caught_up()

    if not delay:
        effect()
    elif not repeated or faults.fresh_tokens:
        world.later(job, delay, effect, again=True)
    return token


def _token(world: World) -> str:
    world.issued += 1
    return TOKENS[world.issued - 1] if world.issued <= len(TOKENS) else f"del_{world.rng.getrandbits(32):08x}"


def _acknowledge(world: World, count: int, failed: list[Record], token: str) -> Answer:
    faults = world.faults
    document: dict[str, Any]
    if faults.negative_ack:
        document = {"status": "ok", "deleted": 0}
    elif faults.ack == "accepted":
        document = {"status": "accepted", "token": token, "effectuation": "async"}
    elif faults.same_ack or faults.ack == "deleted":
        document = {"status": "deleted" if faults.ack == "deleted" else "erased"}
    elif faults.ack == "ok":
        document = {"status": "ok", "records_removed": count}
    else:
        document = {"status": "erased", "keys": count}
    if failed:
        document["failures"] = [{"key": record.key, "error": "timeout"} for record in failed]
    if faults.epochs or faults.epoch_regresses:
        document["erasure_epoch"] = world.epoch
    return Answer(200, document)
