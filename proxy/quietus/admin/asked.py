"""What the admin API takes: the queries and bodies of its routes, each field once.

A request is read by these types, and the OpenAPI document is made of them. Where a field is left out it may
as well be null. No message quotes a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from quietus.acts import REASON_MAX, scope_of, stated
from quietus.core.policy import UNSETTLED_WORD, seconds
from quietus.core.scope import Scope
from quietus.core.states import State
from quietus.core.verdict import Word

PAGE: Final = 50
PAGE_MAX: Final = 500
WAIT_MAX: Final = 60
EVENTS_MAX: Final = 10_000
INCARNATION_MAX: Final = 128
SHORT_MAX: Final = 200
_DIGITS: Final = 18
_STATES: Final = "|".join([*State, UNSETTLED_WORD])


def _digits(text: object) -> int:
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        raise ValueError("not a whole number")
    return int(text)


def _whole(value: object) -> object:
    # JSON has one kind of number.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _moment(text: object) -> float:
    try:
        at = datetime.fromisoformat(str(text))
        if at.tzinfo is None:
            raise ValueError
        return at.timestamp()
    except (ValueError, OverflowError):
        raise ValueError("give a date and time with its zone, such as 2027-03-01T00:00:00Z") from None


def _duration(text: object) -> float:
    if not isinstance(text, str):
        raise ValueError("a duration is a string, such as 60m")
    return seconds(text)


Number = Annotated[int, Field(ge=0, le=10**_DIGITS - 1), BeforeValidator(_digits)]
"""A whole number in a query."""
Cursor = Annotated[str, Field(pattern=rf"^[0-9]{{1,{_DIGITS}}}$")]
Epoch = Annotated[int, Field(strict=True, ge=0, le=(1 << 63) - 1), BeforeValidator(_whole)]
Name = Annotated[str, Field(min_length=1)]
Names = Name | Annotated[list[Name], Field(min_length=1)]
Because = Annotated[str, Field(pattern=r"\S", max_length=REASON_MAX), AfterValidator(stated)]
Incarnation = Annotated[str, Field(pattern=r"\S", max_length=INCARNATION_MAX), AfterValidator(stated)]
Short = Annotated[str, Field(max_length=SHORT_MAX), AfterValidator(_spaced)]
Moment = Annotated[
    float, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})
]
"""A point in time with its zone, RFC 3339; as Unix seconds once it is read."""
Lasts = Annotated[
    float, BeforeValidator(_duration),
    WithJsonSchema({"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(ms|s|m|h|d)?\s*$"}),
]  # fmt: skip
"""A duration such as `60m`; seconds once it is read."""


def atoms(names: str | list[str] | None) -> tuple[str, ...]:
    """What is named, each once."""
    if names is None:
        return ()
    return tuple(dict.fromkeys([names] if isinstance(names, str) else names))


class Query(BaseModel):
    """The query of a route; each name at most once, and no other."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Body(BaseModel):
    """The JSON object that a route takes; no field beside these."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


# --- queries -------------------------------------------------------------------------------------


class ErasuresQuery(Query):
    """Which erasures, and how many."""

    state: Annotated[str, Field(pattern=f"^({_STATES})(,({_STATES}))*$")] | None = Field(
        None, description="one state, several with commas, or unsettled")  # fmt: skip
    verdict: Word | None = Field(None, description="one verdict")
    subject: str | None = Field(None, description="the raw subject; it is hashed and kept nowhere")
    tenant: str | None = Field(None, description="the raw tenant")
    limit: Number = Field(PAGE, description=f"of a page; more than {PAGE_MAX} is {PAGE_MAX}")
    cursor: Cursor | None = Field(None, description="`next` of the page before")


class WaitQuery(Query):
    """How long to wait for a change."""

    wait: Number = Field(0, description=f"seconds to wait for a change; more than {WAIT_MAX} is {WAIT_MAX}")


class PageQuery(Query):
    """Which events of an erasure."""

    after: Number = Field(0, description="number of the last event that is known")
    limit: Number = Field(PAGE_MAX, description=f"of a page; more than {EVENTS_MAX} is {EVENTS_MAX}")


class AuditQuery(Query):
    """Which events of the ledger."""

    after: Number = Field(0, description="number of the last event that is known")
    limit: Number = Field(EVENTS_MAX, description=f"lines; more than {EVENTS_MAX} is {EVENTS_MAX}")


# --- bodies --------------------------------------------------------------------------------------


class ReasonBody(Body):
    """Why it is done; it stands in the ledger beside the act."""

    reason: Because


class VerifyBody(Body):
    """Nothing is needed."""

    reason: Because | None = None


class EndBody(Body):
    """Which order ends, and why."""

    id: Name
    reason: Because


def _given(schema: dict[str, Any], word: str, names: tuple[str, ...]) -> None:
    """Adds that one of these fields is there (`oneOf`), or at least one (`anyOf`), and is not null."""
    schema[word] = []
    for name in names:
        options = [one for one in schema["properties"][name]["anyOf"] if one != {"type": "null"}]
        schema[word].append({"required": [name], "properties": {name: {"anyOf": options}}})


_REQUEST: Final = ("subject", "keys", "path")


class DemandBody(Body):
    """An operator's demand: whom or what, on what ground, since when."""

    model_config = ConfigDict(json_schema_extra=lambda schema: _given(schema, "oneOf", _REQUEST))

    subject: Names | None = None
    keys: Names | None = None
    path: Name | None = None
    tenant: Name | None = None
    purposes: Names | None = None
    aliases: Names | None = Field(None, description="other names of the subject, as they stand in texts")
    basis: Short | None = None
    reference: Short | None = None
    received_at: Moment | None = Field(None, description="not ahead")
    capture: dict[str, Name] | None = Field(
        None, description="values of the profile's other placeholders, say a collection's id")  # fmt: skip


class ReadmitBody(Body):
    """Who may write again, and what of their old content may come back."""

    subject: Name
    reason: Because
    tenant: Name | None = None
    old_content: Literal["refuse", "allow_own"] | None = None


class SignalScope(Body):
    """The part of the store that a signal speaks for, raw."""

    tenant: Names | None = None
    subject: Names | None = None
    purpose: Names | None = None
    path: Names | None = None
    key: Names | None = None

    def scope(self) -> Scope | None:
        """As a scope; None: all of the store."""
        return _scope(self.model_dump())


class SignalBody(Body):
    """What the store says of its background work."""

    kind: Literal["compaction_complete", "epoch"]
    epoch: Epoch
    incarnation: Incarnation | None = None
    scope: SignalScope | None = None


_SCOPED: Final = {
    "subject": "subject", "keys": "key", "path": "path", "tenant": "tenant", "purposes": "purpose",
}  # fmt: skip


class ScopeBody(Body):
    """A raw scope that names something; a tenant alone is one, too."""

    model_config = ConfigDict(json_schema_extra=lambda schema: _given(schema, "anyOf", tuple(_SCOPED)))

    subject: Names | None = None
    keys: Names | None = None
    path: Names | None = None
    tenant: Name | None = None
    purposes: Names | None = None

    @model_validator(mode="after")
    def _named(self) -> ScopeBody:
        if self.scope() == Scope():
            raise ValueError(f"give at least one of {', '.join(_SCOPED)}")
        return self

    def scope(self) -> Scope:
        """As a scope, raw."""
        return _scope({word: getattr(self, name) for name, word in _SCOPED.items()}) or Scope()


class HoldBody(ScopeBody):
    """A scope in which nothing may be erased: on what ground, until when."""

    exception: Name
    until: Moment
    reason: Because


class QuarantineBody(ScopeBody):
    """A scope that is shut by hand."""

    reason: Because


class OverrideBody(Body):
    """Recalls that erasures would have blocked pass, marked, for a time."""

    effect: Literal["annotate"]
    lasts: Lasts = Field(alias="for", description="at most a day")
    reason: Because
    tenant: Name | None = None


def _scope(named: Mapping[str, str | list[str] | None]) -> Scope | None:
    given = {word: names for word, names in named.items() if names is not None}
    return scope_of(given) if given else None
