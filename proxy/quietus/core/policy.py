"""Policies: typed, ordered rules; the first that matches wins, and the last one matches everything."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from quietus.core.gate import Relation
from quietus.core.memory import Memory
from quietus.core.operations import Operation
from quietus.core.states import UNSETTLED, State


class Effect(StrEnum):
    """What is done with a call. Which effects fit which operation is in `EFFECTS`."""

    ALLOW = "allow"
    ANNOTATE = "annotate"
    SCREEN = "screen"
    EMPTY = "empty"
    WAIT = "wait"
    BLOCK = "block"
    DELAY = "delay"
    REJECT = "reject"
    FORWARD = "forward"
    REFUSE = "refuse"


class Vector(StrEnum):
    """How a write would bring the erased back."""

    QUARANTINED_PATH = "quarantined_path"
    RESTATED_CONTENT = "restated_content"
    DERIVED_SUBJECT = "derived_subject"
    DEDUP_MERGE = "dedup_merge"
    RACE = "race"


class Mode(StrEnum):
    """ENFORCE acts; OBSERVE changes nothing and says what would have happened."""

    ENFORCE = "enforce"
    OBSERVE = "observe"


_RECALL: Final = (Effect.ALLOW, Effect.ANNOTATE, Effect.SCREEN, Effect.EMPTY, Effect.WAIT, Effect.BLOCK)
EFFECTS: Final[dict[Operation, tuple[Effect, ...]]] = {
    Operation.READ: _RECALL,
    Operation.RECALL: _RECALL,
    Operation.WRITE: (Effect.ALLOW, Effect.ANNOTATE, Effect.DELAY, Effect.REJECT),
    Operation.FORGET: (Effect.FORWARD, Effect.ALLOW, Effect.WAIT, Effect.REFUSE),
    Operation.IGNORE: (Effect.ALLOW,),
}
"""The effects of each operation, from the most permissive to the strictest. An effect that an operation
does not know acts as its most permissive one."""


def strictness(operation: Operation, effect: Effect) -> int:
    """The rank of an effect for an operation: of several erasures the highest wins."""
    known = EFFECTS[operation]
    return known.index(effect) if effect in known else 0


_T = TypeVar("_T")


def _listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


Many = Annotated[list[_T], BeforeValidator(_listed), Field(min_length=1)]
"""One value or a list of them."""

UNSETTLED_WORD: Final = "unsettled"


class When(BaseModel):
    """The conditions of a rule: all that are given must hold; a list holds when one of it does."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    operation: Many[Operation] | None = None
    erasure: Many[Relation] | None = None
    state: Many[State | Literal["unsettled"]] | None = None
    subject: Many[Literal["tombstoned", "readmitted"]] | None = None
    write: Many[Vector] | None = None
    route: Many[str] | None = None
    tenant: Many[str] | None = None
    principal: Many[str] | None = None
    purpose: Many[str] | None = None
    failure: Many[Literal["ledger", "internal"]] | None = None

    @model_validator(mode="after")
    def _can_match(self) -> When:
        if self.state and self.erasure and set(self.erasure) == {Relation.NONE}:
            raise ValueError("a state without an erasure can never match; drop `state` or `erasure: none`")
        if self.write and self.operation and Operation.WRITE not in self.operation:
            raise ValueError("`write` can never match without `operation: write`")
        return self


class Rule(BaseModel):
    """One rule of a policy."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")
    when: When = When()
    effect: Effect
    mode: Mode | None = None

    @model_validator(mode="after")
    def _fits(self) -> Rule:
        for operation in self.when.operation or ():
            if self.effect not in EFFECTS[operation]:
                known = ", ".join(e.value for e in EFFECTS[operation])
                raise ValueError(f"effect {self.effect.value} does not fit {operation.value}; known: {known}")
        return self


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_UNITS: Final = {"ms": 0.001, "s": 1.0, None: 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(text: str | int | float) -> float:
    """Seconds of a duration such as "900s", "1h", "90d" or a bare number. Raises ValueError."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text)
    found = _DURATION.fullmatch(str(text).strip())
    if found is None:
        raise ValueError("not a duration; write a number with ms, s, m, h or d, such as 900s")
    return float(found[1]) * _UNITS[found[2]]


Duration = Annotated[str | int | float, AfterValidator(lambda value: (seconds(value), value)[1])]


class Tombstones(BaseModel):
    """How long tombstones are kept, and on what ground."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    retain: Duration = "400d"
    basis: str = "legal obligation"


class Watch(BaseModel):
    """How long, and how often, a settled erasure is looked at again."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    for_: Duration = Field(default="90d", alias="for")
    patrol_every: Duration = "1h"

    @property
    def seconds(self) -> float:
        """How long the watch lasts after settling."""
        return seconds(self.for_)

    @property
    def patrol_seconds(self) -> float:
        """Between two patrol rounds."""
        return seconds(self.patrol_every)


class Policy(BaseModel):
    """A policy document (`kind: Policy`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    apiVersion: Literal["quietus/v1"]
    kind: Literal["Policy"]
    name: str = Field(min_length=1)
    mode: Mode = Mode.ENFORCE
    ack: Literal["accepted", "transparent"] = "accepted"
    readmission: Literal["explicit", "on_settled"] = "explicit"
    cascade: Literal["plan", "execute"] = "plan"
    disclose: bool = False
    tombstones: Tombstones = Tombstones()
    watch: Watch = Watch()
    rules: list[Rule] = Field(min_length=1)

    @model_validator(mode="after")
    def _total(self) -> Policy:
        last = self.rules[-1]
        if last.when != When():
            raise ValueError(
                "the last rule must match everything: add {name: otherwise, effect: allow} or a stricter one"
            )
        names = [rule.name for rule in self.rules]
        for rule in self.rules[:-1]:
            if rule.when == When():
                raise ValueError(f"no rule after {rule.name!r} can ever match: it matches everything")
        double = {name for name in names if names.count(name) > 1}
        if double:
            raise ValueError(f"two rules are named {sorted(double)[0]!r}")
        for later, rule in enumerate(self.rules):
            for earlier in self.rules[:later]:
                if earlier.when == rule.when:
                    raise ValueError(f"rule {rule.name!r} can never match: {earlier.name!r} stands before it")
        return self

    def first(self, facts: Facts) -> Rule:
        """The first rule that matches."""
        memory = self.memory
        key = (
            facts.operation, facts.erasure, facts.state, facts.subject, facts.write, facts.route,
            facts.failure, *memory.told_apart(facts.tenant, facts.principal, facts.purpose),
        )  # fmt: skip
        found: Rule | None = memory.firsts.get(key)
        if found is None:
            found = next(rule for rule in self.rules if matches(rule.when, facts))
            memory.keep(memory.firsts, key, found)
        return found

    @cached_property
    def fingerprint(self) -> str:
        """Hexadecimal SHA-256 of what it says, whatever file it came from."""
        said = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(said.encode()).hexdigest()

    @property
    def memory(self) -> Memory:
        """What this policy has answered before."""
        found = self._memory
        if found.policy is not self:  # a changed copy of a policy has taken it along
            found = self.__dict__["_memory"] = Memory(self)
        return found

    @cached_property
    def _memory(self) -> Memory:
        return Memory(self)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the conditions of a rule are held against: one call beside one erasure, or beside none."""

    operation: Operation
    erasure: Relation = Relation.NONE
    state: State | None = None
    subject: str | None = None
    write: frozenset[Vector] = frozenset()
    route: str = ""
    tenant: frozenset[str] = frozenset()
    principal: str = ""
    purpose: frozenset[str] = frozenset()
    failure: str | None = None


def matches(when: When, facts: Facts) -> bool:
    """Whether every condition that is given holds."""
    if when.operation is not None and facts.operation not in when.operation:
        return False
    if when.erasure is not None and facts.erasure not in when.erasure:
        return False
    if when.state is not None and not _state(when.state, facts.state):
        return False
    if when.subject is not None and facts.subject not in when.subject:
        return False
    if when.write is not None and facts.write.isdisjoint(when.write):
        return False
    if when.failure is not None and facts.failure not in when.failure:
        return False
    if when.route is not None and facts.route not in when.route:
        return False
    if when.principal is not None and facts.principal not in when.principal:
        return False
    if when.tenant is not None and facts.tenant.isdisjoint(when.tenant):
        return False
    return when.purpose is None or not facts.purpose.isdisjoint(when.purpose)


def _state(wanted: list[State | Literal["unsettled"]], state: State | None) -> bool:
    if state is None:
        return False
    return state in wanted or (UNSETTLED_WORD in wanted and state in UNSETTLED)
