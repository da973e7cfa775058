"""What was asked to be forgotten, as the plan and the ledger's own events say: the judge's memory.

Written apart from the core: another idea of scopes, of states and of what belongs to an erasure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from quietus.core.events import Event
from tests.simulation.plan import Step
from tests.simulation.rows import Row, split

Path = tuple[str, ...]


@dataclass(frozen=True)
class Where:
    """A scope: None leaves a dimension open."""

    tenant: str | None = None
    subject: str | None = None
    keys: frozenset[str] | None = None
    path: Path | None = None

    @classmethod
    def of(cls, step: Step) -> Where:
        keys = step.get("keys") or ([step["key"]] if "key" in step else None)
        named = frozenset(keys) if keys else None
        return cls(step.get("tenant"), step.get("subject"), named, split(step.get("path")))

    def touches(self, other: Where) -> bool:
        """Whether something may lie in both."""
        if self.tenant is not None and other.tenant is not None and self.tenant != other.tenant:
            return False
        if self.subject is not None and other.subject is not None and self.subject != other.subject:
            return False
        if self.keys is not None and other.keys is not None and not self.keys & other.keys:
            return False
        if self.path is None or other.path is None:
            return True
        short, long = sorted((self.path, other.path), key=len)
        return long[: len(short)] == short

    def contains(self, other: Where) -> bool:
        """Whether all of the other lies in it."""
        if self.tenant is not None and self.tenant != other.tenant:
            return False
        if self.subject is not None and self.subject != other.subject:
            return False
        if self.keys is not None and not (other.keys and other.keys <= self.keys):
            return False
        return self.path is None or (other.path is not None and other.path[: len(self.path)] == self.path)

    def has(self, tenant: str | None, subject: str | None, key: str | None, path: Path | None) -> bool:
        """Whether a record with these attributes lies in it."""
        if self.tenant is not None and self.tenant != tenant:
            return False
        if self.subject is not None and self.subject != subject:
            return False
        if self.keys is not None and key not in self.keys:
            return False
        return self.path is None or (path is not None and path[: len(self.path)] == self.path)


@dataclass
class Written:
    """One memory that a client asked to be written."""

    token: str
    where: Where
    key: str | None
    generation: int
    step: int = -1
    sent_at: int = 0
    reused: bool = False
    """The store gave it the key of a record that is gone."""
    orphan: bool = False
    """The process that sent it died before it had an answer."""

    def lies_in(self, erased: Erased) -> bool:
        w = self.where
        if not erased.where.has(w.tenant, w.subject, self.key, w.path):
            return False
        if erased.where.subject is not None:
            return self.generation <= erased.generation
        if self.reused and erased.where.keys is not None:
            return False
        return erased.cleared is None or self.sent_at <= erased.cleared  # later ones were let in


@dataclass
class Erased:
    """One erasure, from the moment at which its process knew of it. Ticks count what the judge was told."""

    id: str
    step: int
    where: Where
    generation: int
    spans: list[list[int | None]] = field(default_factory=list)
    """When it was unsettled."""
    accepted: bool = False
    over: bool = False
    """Refused by the store or released by an operator: nothing is held back for it any more."""
    readmitted: bool = False
    cleared: int | None = None
    """When it was settled for the first time: what is written into its path later is not of it."""
    snapshotted: int | None = None
    whole: bool = True
    """Its snapshot reached everything; where it did not, only an operator can end it."""
    seen: set[str] = field(default_factory=set)
    """Tokens that the snapshot can have met in its own rows."""
    bearers: set[str | None] = field(default_factory=set)
    """Keys of whatever told of it when its snapshot was taken: they are held back for good."""

    def open(self, since: int, until: int) -> bool:
        """Whether it was unsettled at some time between two ticks."""
        if self.over:
            return False
        return any(
            (a is None or a <= until) and (b is None or b >= since) for a, b in self.spans
        )

    @property
    def unsettled(self) -> bool:
        return not self.over and bool(self.spans) and self.spans[-1][1] is None

    def owns(self, row: Row) -> bool:
        return self.where.has(row.tenant, row.subject, row.key, row.path)


class Truth:
    """Everything that was written and everything that was erased."""

    def __init__(self) -> None:
        self.tick = 0
        self.carried: dict[str, list[Written]] = {}
        self.erased: dict[str, Erased] = {}
        self.steps: dict[int, Step] = {}
        self.generations: dict[tuple[str | None, str], int] = {}
        self.pending: dict[int, tuple[Where, int]] = {}
        """What is being asked to be forgotten: its gate may be shut before the ledger has it."""
        self.past: list[tuple[Where, int]] = []
        """The same when it is over, with the tick at which it was: answers begun before are older."""
        self._known = 0

    def next(self) -> int:
        self.tick += 1
        return self.tick

    # --- what clients do -------------------------------------------------------------------------

    def writing(self, step: Step, token: str) -> Written:
        """A write leaves for the store."""
        where = Where.of({k: step[k] for k in ("tenant", "subject", "path") if k in step})
        born = self.generations.get((where.tenant, where.subject or ""), 0)
        written = Written(token, where, step.get("key"), born, step["n"], self.next())
        self.carried.setdefault(token, []).append(written)
        return written

    # --- what the ledger says --------------------------------------------------------------------

    def known(self, events: Sequence[Event]) -> None:
        """A process has learned of these events."""
        tick = self.next()
        for event in events:
            self._known = max(self._known, event.number)
            self._fold(event, tick)

    def durable(self, event: Event) -> None:
        """An intent is in the ledger: from here on it holds, whether its process has heard of it or not."""
        self._fold(event, self.next())

    def reload(self, events: Iterable[Event]) -> None:
        """A new process has read the ledger."""
        self.known([event for event in events if event.number > self._known])

    def _fold(self, event: Event, tick: int) -> None:
        kind = event.type.value
        if kind == "requested":
            if event.erasure in self.erased:
                return
            step = int(event.actor.removeprefix("step-"))
            where = Where.of(self.steps[step])
            same = {t: g for (t, s), g in self.generations.items() if s == where.subject}
            born = max((g for t, g in same.items() if where.tenant in (None, t)), default=0)
            self.erased[event.erasure] = Erased(event.erasure, step, where, born, [[tick, None]])
            return
        erased = self.erased.get(event.erasure)
        if erased is not None:
            self._change(erased, kind, event, tick)

    def _change(self, erased: Erased, kind: str, event: Event, tick: int) -> None:
        if kind == "accepted":
            erased.accepted = True
        elif kind == "snapshotted":
            erased.snapshotted = tick
            if event.facts["failed"] or event.facts["truncated"]:
                erased.seen, erased.whole = set(), False
        elif kind == "refused" and not erased.accepted and erased.unsettled:
            erased.over = True
        elif kind == "released":
            erased.over = True
        elif kind == "clean" and erased.accepted and erased.unsettled:
            erased.spans[-1][1] = tick
            erased.cleared = tick if erased.cleared is None else erased.cleared
        elif kind in ("leaked", "leaked_late") and erased.spans[-1][1] is not None:
            erased.spans.append([tick, None])
        elif kind == "readmitted":
            erased.readmitted = True
            if erased.where.subject is not None:
                for tenant in self._tenants(erased):
                    place = (tenant, erased.where.subject)
                    self.generations[place] = self.generations.get(place, 0) + 1

    def _tenants(self, erased: Erased) -> list[str | None]:
        if erased.where.tenant is not None:
            return [erased.where.tenant]
        return sorted({w.where.tenant for ws in self.carried.values() for w in ws}, key=str)

    # --- asking ----------------------------------------------------------------------------------

    def tells_of(self, token: str, erased: Erased) -> bool:
        """Whether a token stands in some record of the erased."""
        return any(written.lies_in(erased) for written in self.carried.get(token, ()))

    def alike(self, token: str, erased: Erased) -> bool:
        """Whether a text is another's but for its token: nobody can tell who copied whom."""
        return any(self.worded(self.steps[w.step], erased) for w in self.carried.get(token, ()))

    def worded(self, step: Step, erased: Erased) -> bool:
        """Whether some record of the erased was written in the very words of that step."""
        return any(
            self.steps[w.step]["words"] == step["words"] and w.lies_in(erased)
            for records in self.carried.values()
            for w in records
        )

    def asks(self, step: int, where: Where) -> None:
        """A forget comes in."""
        self.pending[step] = (where, self.tick)

    def asked_no_more(self, step: int) -> None:
        """It has been answered, or nobody is left who could."""
        where, _ = self.pending.pop(step, (None, 0))
        if where is not None:
            self.past.append((where, self.tick))

    def asked(self, since: int) -> list[Where]:
        """What was being asked for at some time since."""
        now = [where for where, _ in self.pending.values()]
        return now + [where for where, until in self.past if until >= since]

    def droppable(self, row: Row, since: int) -> bool:
        """Whether a row may be missing without a mark: it is of the erased, or tells of them."""
        if (row.subject or "").startswith("quietus-canary") or row.resolved is not True:
            return True
        if any(self._is_pending(where, row) for where in self.asked(since)):
            return True
        for erased in self.erased.values():
            if any(self.tells_of(token, erased) for token in row.tokens) or erased.seen & row.tokens:
                return True
            if any(self.alike(token, erased) for token in row.tokens):
                return True
            by_subject = erased.where.subject is not None and not erased.readmitted
            if by_subject and (erased.owns(row) or erased.unsettled):
                if erased.owns(row) or (erased.where.subject or "") in row.text:
                    return True
            kin = self.kin_of(erased)
            if row.key in kin or row.key in erased.bearers or kin & set(row.sources):
                return True
        return False

    def _is_pending(self, where: Where, row: Row) -> bool:
        return where.has(row.tenant, row.subject, row.key, row.path) or (
            where.subject is not None and where.subject in row.text
        )

    def kin_of(self, erased: Erased) -> frozenset[str]:
        """Keys of the erased, of their near copies, and of whatever says that it was derived from these."""
        found, before = set(self.keys_of(erased)), 0
        for token, records in self.carried.items():
            if self.alike(token, erased):
                found |= {w.key for w in records if w.key is not None}
        derived = [step for step in self.steps.values() if "derived_from" in step and "key" in step]
        while len(found) > before:
            before = len(found)
            found |= {step["key"] for step in derived if step["derived_from"] in found}
        return frozenset(found)

    def keys_of(self, erased: Erased) -> frozenset[str]:
        found = set(erased.where.keys or ())
        for records in self.carried.values():
            found |= {w.key for w in records if w.key is not None and w.lies_in(erased)}
        return frozenset(found)
