"""The intent of an erasure: written before anything happens, with all that it takes to go on after a crash.

A client's forget and an operator's demand become the same intent. A forget that a hold forbids is written as
*deferred*: it shuts nothing, and becomes an intent with its original date when the hold ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from quietus.core.erasure import Erasure
from quietus.core.events import Draft, EventType, scope_to_facts
from quietus.core.exchange import Request
from quietus.core.operations import Call
from quietus.core.orders import Deferred, Hold
from quietus.core.policy import Policy
from quietus.core.scope import Scope
from quietus.core.terms import Terms
from quietus.erasures import Erasures
from quietus.kept import kept_requests
from quietus.profiles.profile import Profile
from quietus.receipts import commit
from quietus.snapshots import PREDICATE, REQUEST, Predicate, predicate_of
from quietus.snapshotter import Snapshotter


@dataclass(frozen=True, slots=True)
class Intent:
    """What is to be forgotten, and how the store is asked."""

    scope: Scope
    """Digested."""
    predicate: Predicate
    requests: tuple[Request, ...]
    """To the store, in this order; none: the store has no way to forget this, and it is suppressed."""
    basis: str = ""
    reference: str = ""
    received_at: float | None = None
    observed: bool = False
    undrained: Mapping[str, float] = field(default_factory=dict)


def intent_of(call: Call, scope: Scope, request: Request, **more: Any) -> Intent:
    """The intent of a client's forget, whose scope is given digested."""
    return Intent(scope, predicate_of(call), (request,), basis=call.basis or "", **more)


class Intents:
    """Writes intents."""

    def __init__(
        self,
        erasures: Erasures,
        profile: Callable[[], Profile],
        policy: Callable[[], Policy],
        snapshotter: Snapshotter,
        new_id: Callable[[], str],
        exempt: Callable[[], bool] = lambda: False,
    ) -> None:
        self._erasures = erasures
        self._profile = profile
        self._policy = policy
        self._snapshotter = snapshotter
        self._new_id = new_id
        self._exempt = exempt

    def terms(self) -> Terms:
        """What an erasure that begins now is judged by."""
        return terms_of(self._profile(), self._policy(), exempt=self._exempt())

    async def write(self, intent: Intent, actor: str) -> Erasure:
        """Shuts the gate of the intent's scope, durably. Raises LedgerError: then nothing has happened."""
        name = self._new_id()
        draft = self._draft(EventType.REQUESTED, name, actor, self._facts(name, intent))
        marks = [(name, mark) for mark in self._snapshotter.first_marks(intent.predicate)]
        # That nothing is there to be joined holds only as of this epoch, where others write as well.
        epoch = self._erasures.gate.epoch if self._erasures.shared is not None else None
        await self._erasures.append([draft], epoch=epoch, marks=marks, secrets=self._secrets(name, intent))
        return self._erasures.gate.erasures[name]

    async def defer(self, intent: Intent, hold: Hold, actor: str) -> Deferred:
        """Records a forget that a hold forbids. The same one again changes nothing. Raises LedgerError."""
        orders = self._erasures.gate.orders
        known = orders.waiting(intent.scope)
        if known is not None:
            return known
        name = self._new_id()
        facts = {"as": name, "hold": hold.id, "intent": self._facts(name, intent)}
        draft = Draft(EventType.DEFERRED, "", self._erasures.clock.now(), actor, facts)
        await self._erasures.append([draft], secrets=self._secrets(name, intent))
        return orders.deferred[name]

    async def resume(self, deferred: Deferred) -> Erasure:
        """Takes up a deferred forget as a new erasure with its original date. Raises LedgerError."""
        name = deferred.erasure
        sealed = await self._erasures.unseal(name, PREDICATE)
        predicate = Predicate() if sealed is None else Predicate.unseal(sealed)
        facts = dict(deferred.facts)
        facts.setdefault("received_at", None)
        if facts["received_at"] is None:
            facts["received_at"] = deferred.asked_at
        draft = self._draft(EventType.REQUESTED, name, deferred.actor, facts)
        marks = [(name, mark) for mark in self._snapshotter.first_marks(predicate)]
        epoch = self._erasures.gate.epoch if self._erasures.shared is not None else None
        await self._erasures.append([draft], epoch=epoch, marks=marks)
        return self._erasures.gate.erasures[name]

    def _draft(self, kind: EventType, name: str, actor: str, facts: dict[str, Any]) -> Draft:
        return Draft(kind, name, self._erasures.clock.now(), actor, facts, gate=True)

    def _facts(self, name: str, intent: Intent) -> dict[str, Any]:
        profile, policy = self._profile(), self._policy()
        return {
            "store": self._erasures.store,
            "predicate": scope_to_facts(intent.scope),
            "terms": asdict(terms_of(profile, policy, exempt=self._exempt())),
            "label": intent.predicate.kind,
            "basis": intent.basis,
            "reference": intent.reference,
            "received_at": intent.received_at,
            "commitment": commit(self._erasures.keyring.salt(name), intent.predicate.named()),
            "suppressed": not intent.requests,
            "observed": intent.observed,
            "undrained": dict(intent.undrained),
            "profile": profile.fingerprint,
            "policy": policy.fingerprint,
        }

    def _secrets(self, name: str, intent: Intent) -> list[tuple[str, str, bytes]]:
        return [
            self._erasures.new_key(name),
            self._erasures.seal(name, PREDICATE, intent.predicate.seal()),
            self._erasures.seal(name, REQUEST, kept_requests(intent.requests)),
        ]


def terms_of(profile: Profile, policy: Policy, *, exempt: bool = False) -> Terms:
    """The terms that an erasure begun now is judged by.

    `exempt`: a passing, unexpired trial has shown that this store forgets at once. Then nothing is waited
    for before the clean rounds; probes and the check at release stay as they are.
    """
    store = profile.store
    return Terms(
        settling_interval=0.0 if exempt else store.settling_interval,
        effectuation_bound=store.bound,
        clean_rounds=store.clean_rounds,
        watch_for=policy.watch.seconds,
        patrol_every=policy.watch.patrol_seconds,
        claims_completion=store.claims_completion,
    )
