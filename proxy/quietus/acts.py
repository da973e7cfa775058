"""What an operator may do with erasures. Each act has an actor, mostly a reason, and its place in the ledger.

An act is checked against the state machine before it is written, and written by compare-and-set, so that it
means what the operator saw. Nothing that is written holds a raw identifier: a reason that names the subject
is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from quietus.core.erasure import Erasure
from quietus.core.events import Draft, EventType
from quietus.core.scope import ANY, Scope, covers, split_path
from quietus.core.states import Happening, State, WrongState, step
from quietus.erasures import Erasures
from quietus.ports import Conflict

REASON_MAX: Final = 500
_TRIES: Final = 5
_ENDED: Final = frozenset({State.REFUSED, State.RELEASED})


class NoSuchErasure(LookupError):
    """No erasure of that id, or none that names that subject, is known here."""


class BadAct(ValueError):
    """An act that lacks something, or says what must not be written. The message quotes nothing."""


@dataclass(frozen=True, slots=True)
class Signal:
    """What the store, or whoever runs it, says of its background work."""

    kind: Literal["compaction_complete", "epoch"]
    epoch: int
    incarnation: str | None = None
    scope: Scope | None = None
    """Raw; None: all of the store."""


class Acts:
    """The operators' acts. `wake` makes an erasure due now."""

    def __init__(self, erasures: Erasures, wake: Callable[[str], object]) -> None:
        self._erasures = erasures
        self._wake = wake

    async def verify(self, erasure: str, actor: str) -> Erasure:
        """Has a probe round begun now. Raises NoSuchErasure, WrongState."""
        found = self._get(erasure)
        if found.state in _ENDED:
            raise WrongState(f"nothing is probed any more while {found.state.value}")
        changed = await self._write(erasure, EventType.VERIFY_ASKED, actor, {})
        self._wake(erasure)
        return changed

    async def retry(self, erasure: str, actor: str, reason: str) -> Erasure:
        """Starts the wait anew, with a new bound. Raises NoSuchErasure, WrongState, BadAct."""
        facts = {"reason": stated(reason)}
        changed = await self._write(erasure, EventType.RETRIED, actor, facts, step_=Happening.RETRIED)
        self._wake(erasure)
        return changed

    async def release(self, erasure: str, actor: str, reason: str) -> Erasure:
        """Lifts the restriction although nothing was shown. Raises NoSuchErasure, WrongState, BadAct."""
        facts = {"reason": stated(reason)}
        if self._get(erasure).state in _ENDED:
            raise WrongState(f"there is nothing to release while {self._get(erasure).state.value}")
        return await self._write(erasure, EventType.RELEASED, actor, facts, True, Happening.RELEASED)

    async def escalate(self, erasure: str, actor: str, reason: str) -> Erasure:
        """Says that people have taken it up. Raises NoSuchErasure, BadAct."""
        return await self._write(erasure, EventType.ESCALATED, actor, {"reason": stated(reason)})

    async def extend(self, erasure: str, actor: str, reason: str) -> Erasure:
        """Extends the legal period, once, as the law of its basis allows.

        Raises NoSuchErasure, BadAct.
        """
        if self._get(erasure).dossier.extended:
            raise WrongState("the period was extended before; the law allows it once")
        return await self._write(erasure, EventType.EXTENDED, actor, {"reason": stated(reason)})

    async def readmit(
        self, subject: str, tenant: str | None, reason: str, actor: str, allow_old: bool = False
    ) -> list[Erasure]:
        """Lets an erased subject write again: every tombstone that names them says so from now on.

        Raises NoSuchErasure when none does, BadAct.
        """
        facts = {"reason": stated(reason, subject), "allows_old": allow_old}
        keyring = self._erasures.keyring
        scope = keyring.pseudonymise(_who(subject, tenant))
        # One whose intent is still being written comes after this: nothing yet to let them back from.
        named = [e for e in self._erasures.gate.of_subject(scope) if not e.by_hand and e.version]
        if not named:
            raise NoSuchErasure("no tombstone names this subject")
        changed = []
        for erasure in named:
            if erasure.readmitted and erasure.readmission_allows_old == allow_old:
                changed.append(erasure)
                continue
            changed.append(await self._write(erasure.id, EventType.READMITTED, actor, facts, True))
        return changed

    async def signal(self, signal: Signal, actor: str) -> list[Erasure]:
        """Records a completion signal on every erasure that it speaks for; again: nothing changes.

        It stands for the settling interval, never for the probes. One of an older epoch than the store gave
        the erasure says nothing about it, nor does one for a part of what was erased.
        """
        reach = self._erasures.keyring.pseudonymise(signal.scope if signal.scope is not None else Scope())
        facts: dict[str, Any] = {"kind": signal.kind, "epoch": signal.epoch}
        if signal.incarnation is not None:
            facts["incarnation"] = stated(signal.incarnation)
        changed = []
        for erasure in self._erasures.shelf.awake():
            if erasure.by_hand or not erasure.unsettled or erasure.compacted:
                continue
            if not speaks_for(signal, erasure):
                continue
            if covers(reach, erasure.predicate):
                changed.append(await self._write(erasure.id, EventType.SIGNALLED, actor, facts))
                self._wake(erasure.id)
        return changed

    def _get(self, erasure: str) -> Erasure:
        found = self._erasures.get(erasure)
        if found is None or found.by_hand or not found.version:
            raise NoSuchErasure("no erasure of that id is known here")
        return found

    async def _write(
        self,
        erasure: str,
        type_: EventType,
        actor: str,
        facts: Mapping[str, Any],
        gate: bool = False,
        step_: Happening | None = None,
    ) -> Erasure:
        for attempt in range(_TRIES):
            seen = self._get(erasure)
            if step_ is not None:
                step(seen.state, step_)
            draft = Draft(type_, erasure, self._erasures.clock.now(), actor, dict(facts), gate)
            try:
                await self._erasures.append([draft], expect=seen)
                break
            except Conflict:
                # A probe round came in between: look again whether the act still has a meaning.
                if attempt == _TRIES - 1:
                    raise
        return self._get(erasure)


def speaks_for(signal: Signal, erasure: Erasure) -> bool:
    """Whether a signal's epoch reaches an erasure. Without an epoch of the store's own, a read epoch says
    nothing; a compaction says something only once the store has acknowledged the forget.
    """
    if erasure.store_epoch is None:
        return signal.kind == "compaction_complete" and erasure.acknowledged_at is not None
    return signal.epoch >= erasure.store_epoch


def stated(reason: str, *subjects: str) -> str:
    """A reason as it may be written. Raises BadAct when it is empty, too long, or names a subject."""
    text = " ".join(reason.split())
    if not text:
        raise BadAct("give a reason; it stands in the ledger beside the act")
    if len(text) > REASON_MAX:
        raise BadAct(f"the reason is longer than {REASON_MAX} characters")
    if any(subject and subject.casefold() in text.casefold() for subject in subjects):
        raise BadAct("the reason names the subject; the ledger keeps no names, write a reference instead")
    return text


def _who(subject: str, tenant: str | None) -> Scope:
    if not subject:
        raise BadAct("give the subject")
    return Scope(subject=frozenset({subject}), tenant=ANY if tenant is None else frozenset({tenant}))


def scope_of(given: Mapping[str, str | list[str]]) -> Scope:
    """A raw scope from JSON: `{"tenant": …, "subject": …, "path": "a/b", "key": …, "purpose": …}`."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        atoms = value if isinstance(value, list) else [value]
        found[name] = frozenset(split_path(atom) if name == "path" else atom for atom in atoms)
    return Scope(**found)
