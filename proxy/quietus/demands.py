"""An operator's demand to erase: read like a client's forget, asked of the store in the profile's own words.

One person may have several identifiers: the store is then asked once for each, and it is one erasure. A store
that has no way to forget is not asked: what was demanded is *suppressed*, which means kept from every answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from quietus.acts import BadAct
from quietus.core.erasure import Erasure
from quietus.core.exchange import Request
from quietus.core.operations import Operation
from quietus.core.scope import ANY, Scope, Wild, covers, split_path
from quietus.erasures import Erasures
from quietus.forgets import Forgets
from quietus.intents import Intent
from quietus.profiles.faults import CannotQuote, MissingValue, RequestFault
from quietus.profiles.profile import Profile, Reading
from quietus.snapshots import Predicate

NAMES_MAX: Final = 100
"""Identifiers, keys or aliases in one demand."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What is demanded, raw. Exactly one of `subjects`, `keys` and `path` is given."""

    subjects: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    path: str = ""
    tenant: str | None = None
    purposes: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other names of the subject that may stand in texts."""
    basis: str = ""
    reference: str = ""
    received_at: float | None = None
    capture: Mapping[str, str] = field(default_factory=dict)
    """Values of the profile's other placeholders, say a collection's id."""


class Demands:
    """Takes demands in."""

    def __init__(
        self,
        erasures: Erasures,
        forgets: Forgets,
        profile: Callable[[], Profile],
        wake: Callable[[str], object],
    ) -> None:
        self._erasures = erasures
        self._forgets = forgets
        self._profile = profile
        self._wake = wake

    async def create(self, demand: Demand, actor: str) -> tuple[Erasure, bool]:
        """The erasure of a demand, and whether it is new: the gate is shut when this returns.

        Raises BadAct, LedgerError, and HeldBack where a legal hold forbids it.
        """
        checked(demand)
        profile = self._profile()
        if demand.purposes and not profile.store.knows_purposes:
            raise BadAct("this store knows no purposes: it would erase all of them; leave purposes out")
        readings = [_understood(profile, request) for request in self._asking(profile, demand)]
        scope = _scope(demand, readings)
        for reading in readings:
            if not covers(scope, reading.call.scope):
                raise BadAct("the store can only be asked for more than this demand names; widen the demand")
        intent = Intent(
            self._erasures.keyring.pseudonymise(scope), _predicate(demand, scope, readings),
            tuple(reading.request for reading in readings), demand.basis, demand.reference,
            demand.received_at,
        )  # fmt: skip
        erasure, new = await self._forgets.demand(intent, actor)
        self._wake(erasure.id)
        return erasure, new

    @staticmethod
    def _asking(profile: Profile, demand: Demand) -> list[Request]:
        values: dict[str, Any] = dict(demand.capture)
        if demand.tenant is not None:
            values["tenant"] = demand.tenant
        if demand.purposes:
            values |= {"purpose": demand.purposes[0], "purposes": list(demand.purposes)}
        try:
            if demand.subjects:
                asked = [profile.forget("subject", {**values, "subject": each}) for each in demand.subjects]
            elif demand.path:
                asked = [profile.forget("path", {**values, "path": demand.path})]
            else:
                asked = [profile.forget("keys", {**values, "keys": list(demand.keys)})]
                if asked == [None]:
                    name = profile.forget_each_record or "delete_record"
                    asked = [profile.remedy(name, {**values, "key": key}) for key in demand.keys]
        except MissingValue as missing:
            raise BadAct(f"this store needs {missing.name} to forget; give it in capture") from None
        except CannotQuote:
            raise BadAct("a value cannot be written the way this store's API wants it") from None
        return [request for request in asked if request is not None]


def checked(demand: Demand) -> None:
    """Raises BadAct for a demand that names nothing, or too much; its words quote nothing."""
    given = [name for name in ("subjects", "keys", "path") if getattr(demand, name)]
    if len(given) != 1:
        raise BadAct("give exactly one of subject, keys and path")
    for name in ("subjects", "keys", "purposes", "aliases"):
        values = getattr(demand, name)
        if len(values) > NAMES_MAX:
            raise BadAct(f"{name}: at most {NAMES_MAX} at a time")
        if any(not value or value != value.strip() or not value.isprintable() for value in values):
            raise BadAct(f"{name}: a name is empty, has white space around it, or cannot be printed")
    if demand.path and (not split_path(demand.path) or not demand.path.isprintable()):
        raise BadAct("path: it names nothing")
    for name in demand.subjects + demand.aliases:
        if name.casefold() in f"{demand.basis} {demand.reference}".casefold():
            raise BadAct("basis or reference names the subject; the ledger keeps no names")


def _understood(profile: Profile, request: Request) -> Reading:
    try:
        reading = profile.read(request)
    except RequestFault as fault:
        raise BadAct(f"the store's forget could not be read back: {fault.detail}") from None
    if reading.call.operation is not Operation.FORGET:
        raise BadAct("the profile's own forget matches no forget route; `quietus check` says more")
    return reading


def _scope(demand: Demand, readings: list[Reading]) -> Scope:
    """What the demand names; what it leaves open and each request says is taken from those."""

    def values(name: str, given: frozenset[Any]) -> Any:
        if given:
            return given
        said = [getattr(reading.call.scope, name) for reading in readings]
        if said and all(not isinstance(each, Wild) for each in said):
            return frozenset().union(*said)
        return ANY

    return Scope(
        tenant=values("tenant", frozenset({demand.tenant} if demand.tenant is not None else ())),
        subject=frozenset(demand.subjects) or ANY,
        purpose=frozenset(demand.purposes) or ANY,
        path=values("path", frozenset({split_path(demand.path)} if demand.path else ())),
        key=frozenset(demand.keys) or ANY,
    )


def _predicate(demand: Demand, scope: Scope, readings: list[Reading]) -> Predicate:
    def texts(values: Any) -> tuple[str, ...]:
        return () if isinstance(values, Wild) else tuple(sorted(values))

    capture = {**demand.capture, **(readings[0].call.capture if readings else {})}
    return Predicate(
        tenant=texts(scope.tenant),
        subject=tuple(sorted(demand.subjects)),
        purpose=texts(scope.purpose),
        path=() if isinstance(scope.path, Wild) else tuple(sorted(scope.path)),  # type: ignore[arg-type]
        key=tuple(sorted(demand.keys)),
        capture=capture,
        aliases=demand.aliases,
    )
