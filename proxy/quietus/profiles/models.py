"""A profile as a document: the models that a file is checked against, and their JSON Schema."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from pydantic import Field, model_validator

from quietus.profiles.words import (
    GRPC_LATER,
    MCP_LATER,
    AckModel,
    CallHttp,
    CallModel,
    ColumnsModel,
    Duration,
    ItemModel,
    Items,
    Model,
    PageModel,
    RouteModel,
    SelectorOne,
    When,
)

ROUND_SECONDS = 0.25
"""The shortest a round of probes takes: the poll interval."""

Known = bool | Literal["unknown"]


class AttestationModel(Model):
    """What somebody vouches for, until when."""

    condition: Literal[
        "surfaces_complete", "same_tombstone_index", "no_derived_reads", "sync_purge", "single_writer",
        "write_path_audited",
    ]  # fmt: skip
    by: str = Field(min_length=1)
    expires: date = Field(strict=False)


class StoreModel(Model):
    """What is known of the store's manners. Every default is the distrustful one."""

    erasure_model: Literal["async", "synchronous_transactional"] = "async"
    settling_interval: Duration = 900.0
    effectuation_bound: Duration | None = None
    clean_rounds: int = Field(3, ge=1, le=100)
    claims_completion: bool = True
    write_path_reads_derived: Known = "unknown"
    knows_purposes: bool = False
    keeps_queries: Known = "unknown"
    features: list[Literal["ttl", "salience", "dedup", "hard_erasure", "completion_signal"]] = []
    refusals: dict[Literal["grpc"], str] = {}
    neutral_query: str = Field("recent notes", min_length=1)
    attestations: list[AttestationModel] = []

    @property
    def bound(self) -> float:
        """The effectuation bound: as given, or twice the interval and never less than the rounds need."""
        least = self.settling_interval + 2 * self.clean_rounds * ROUND_SECONDS
        return self.effectuation_bound or max(2 * self.settling_interval, least)


class SurfaceModel(Model):
    """One way to ask the store whether something is still there."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=60)
    kind: Literal["primary", "index", "cache", "derived", "graph", "history", "unprobeable"]
    each: Literal["key", "subject", "text", "vector", "path"] | None = None
    enumerates: bool = False
    note: str = ""
    http: CallHttp | None = None
    grpc: Any = Field(None, exclude=True)
    mcp: Any = Field(None, exclude=True)
    page: PageModel | None = None
    clean: list[When] = []
    items: Items | None = None
    item: ItemModel | None = None
    columns: ColumnsModel | None = None

    @model_validator(mode="after")
    def _whole(self) -> SurfaceModel:
        if self.grpc is not None:
            raise ValueError(GRPC_LATER)
        if self.mcp is not None:
            raise ValueError(MCP_LATER)
        if self.kind == "unprobeable":
            if self.http is not None:
                raise ValueError("an unprobeable surface has no http: give it another kind to probe it")
        elif self.http is None:
            raise ValueError("a surface needs http, or kind: unprobeable if nothing can ask it")
        return self


class ControlsModel(Model):
    """How any live records of the collection are listed: bystanders for the live control."""

    http: CallHttp
    page: PageModel | None = None
    clean: list[When] = []
    items: Items | None = None
    item: ItemModel | None = None
    columns: ColumnsModel | None = None


class EpochModel(CallModel):
    """The store's own read epoch."""

    value: SelectorOne


class CanaryModel(Model):
    """How a record of our own is written, and where its key is in the answer (else it is `{key}`)."""

    write: CallModel
    key: SelectorOne | None = None
    ack: AckModel = AckModel()


class StrengthenModel(Model):
    """How a route's recall is asked for an answer that has caught up."""

    route: str
    set: dict[str, Any] = Field(min_length=1)


class ForgetsModel(Model):
    """How the sidecar itself asks for a forget. `each_record` names a remedy."""

    subject: CallModel | None = None
    keys: CallModel | None = None
    path: CallModel | None = None
    each_record: str | None = None


class ProfileModel(Model):
    """One store's API."""

    apiVersion: Literal["quietus/v1"]  # noqa: N815
    kind: Literal["Profile"]
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=60)
    summary: str = ""
    store: StoreModel = StoreModel()
    descriptors: Any = Field(None, exclude=True)
    routes: list[RouteModel] = Field(min_length=1)
    surfaces: list[SurfaceModel] = Field(min_length=1)
    controls: ControlsModel | None = None
    epoch: EpochModel | None = None
    canary: CanaryModel | None = None
    strengthen: list[StrengthenModel] = []
    remedies: dict[str, CallModel] = {}
    forgets: ForgetsModel = ForgetsModel()

    @model_validator(mode="after")
    def _no_descriptors(self) -> ProfileModel:
        if self.descriptors is not None:
            raise ValueError(GRPC_LATER)
        return self


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a profile (2020-12), as it ships in policies/profile.schema.json."""
    schema = ProfileModel.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:quietus:profile:v1",
        "title": "Quietus profile",
        **{key: value for key, value in schema.items() if key != "title"},
    }
