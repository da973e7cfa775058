"""The words that routes, selectors and calls are written with, as types. `models` puts them together.

Nothing here runs: `routes`, `answers` and `surface` compile it. What requests are written with is in
`call_words`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

_DURATION = re.compile(r"^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(value: Any) -> Any:
    """The seconds of `900s`, `15m`, `1.5h`, `2d`, `250ms` or a plain number."""
    if isinstance(value, str):
        found = _DURATION.match(value.strip())
        if found is None:
            raise ValueError("not a duration; write it like 900s, 15m, 2h or 1d")
        return float(found[1]) * _UNIT[found[2] or "s"]
    return value


Duration = Annotated[float, BeforeValidator(seconds, json_schema_input_type=float | str), Field(gt=0)]


class Model(BaseModel):
    """A mapping that knows all of its keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SelectorModel(Model):
    """A selector with steps, applied in the order of these fields."""

    select: str | None = None
    decode: Literal["json"] | None = None
    split: str | None = Field(None, min_length=1)
    match: str | None = None
    on_mismatch: Literal["unknown", "skip"] = "unknown"
    join: str | None = Field(None, min_length=1)
    template: str | None = None
    then: str | None = None

    @model_validator(mode="after")
    def _something(self) -> SelectorModel:
        if self.select is None and self.template is None:
            raise ValueError("a selector needs select, or template over captures alone")
        return self


SelectorOne = str | SelectorModel
Selectors = str | SelectorModel | list[str | SelectorModel]
Dimension = Literal["tenant", "subject", "purpose", "path", "key", "narrows"]


def _dialect(name: str) -> str:
    if name not in DIALECT_NAMES:
        raise ValueError(f"not a dialect; the dialects are {', '.join(DIALECT_NAMES)}")
    return name


DIALECT_NAMES = ("chroma", "etcd", "milvus", "plain")
Dialect = Annotated[str, AfterValidator(_dialect), Field(json_schema_extra={"enum": list(DIALECT_NAMES)})]


class FilterModel(Model):
    """A filter in a store's own language, and what its fields mean. `"*"` is every other field."""

    select: str
    dialect: Dialect
    decode: Literal["json"] | None = None
    fields: dict[str, Dimension]
    match: str | None = None
    """etcd: a pattern with a group `value` that finds whose a key is; its finding is the field `owner`."""


class ItemModel(Model):
    """What the parts of one row are; selectors start at the row."""

    key: Selectors | None = None
    subject: Selectors | None = None
    tenant: Selectors | None = None
    purpose: Selectors | None = None
    path: Selectors | None = None
    content: Selectors | None = None
    vector: Selectors | None = None
    derived_from: Selectors | None = None
    score: Selectors | None = None
    provenance_resolved: Selectors | None = None
    salience: Selectors | None = None
    ttl: Selectors | None = None
    capture: dict[str, SelectorOne] = {}


class ColumnsModel(Model):
    """Rows that are written as parallel arrays, nested `depth` deep."""

    depth: int = Field(1, ge=1, le=4)
    key: str
    content: str | None = None
    meta: str | None = None
    vector: str | None = None
    score: str | None = None
    also: list[str] = []


class GroupModel(Model):
    """One of several groups of rows in one answer. One at least must be there, unless all are optional."""

    items: SelectorOne
    item: ItemModel = ItemModel()
    optional: bool = False


class FieldColumnsModel(Model):
    """Rows that are columns by name beside their ids, as Milvus writes them."""

    dialect: Literal["milvus"]
    select: str


Items = str | SelectorModel | FieldColumnsModel | list[GroupModel]


class RequestModel(Model):
    """Where a request says what it is about."""

    tenant: Selectors | None = None
    subject: Selectors | None = None
    purpose: Selectors | None = None
    basis: Selectors | None = None
    path: Selectors | None = None
    key: Selectors | None = None
    query: Selectors | None = None
    content: Selectors | None = None
    vector: Selectors | None = None
    derived_from: Selectors | None = None
    salience: Selectors | None = None
    ttl: Selectors | None = None
    filter: FilterModel | list[FilterModel] | None = None
    narrows: Selectors | None = None
    needs: list[Literal["subject", "path", "key"]] = []
    """Of a forget: one of these must be named; the others alone would mean everything."""
    items: Items | None = None
    item: ItemModel | None = None
    columns: ColumnsModel | None = None


class FoundModel(Model):
    """Of a condition: whether its path finds anything at all."""

    found: bool


Expected = str | int | float | bool | None | list[str | int | float | bool | None] | FoundModel
When = dict[str, Expected]


class OutcomeModel(Model):
    """One reading of an answer: the first whose `when` fits is taken."""

    when: When
    is_: Literal["accepted", "not_found", "refused", "unclear", "queued"] = Field(alias="is")


class AckModel(Model):
    """How the answer of a forget or a write is read."""

    outcomes: list[OutcomeModel] = []
    token: SelectorOne | None = None
    count: SelectorOne | None = None
    epoch: SelectorOne | None = None


class EventModel(Model):
    """Where the rows stand in one server-sent event or one message of a stream, where that differs."""

    items: Items
    item: ItemModel | None = None


class ResponseModel(Model):
    """Where an answer holds its rows, its epoch and its acknowledgement."""

    epoch: SelectorOne | None = None
    items: Items | None = None
    item: ItemModel | None = None
    columns: ColumnsModel | None = None
    counts: str | None = None
    """gRPC: the field beside a list of rows that says how many there are."""
    event: EventModel | None = None
    ack: AckModel = AckModel()
