"""A profile as a document: the models that a file is checked against, and their JSON Schema."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from pydantic import Field, model_validator

from quietus.core.soundness import Manners, synchronous
from quietus.profiles.call_words import CallGrpc, CallHttp, CallModel, PageModel, RouteModel, Wired
from quietus.profiles.words import (
    AckModel,
    ColumnsModel,
    Duration,
    ItemModel,
    Items,
    Model,
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
        "write_path_audited", "derived_non_reconstructive",
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

    def manners(self, attested: frozenset[str] = frozenset()) -> Manners:
        """What `core.soundness` rates. `attested` are the conditions that hold now."""
        known = None if self.write_path_reads_derived == "unknown" else self.write_path_reads_derived
        lazy = self.erasure_model == "async"
        return Manners(lazy, known, self.settling_interval, frozenset(self.features), attested)

    @property
    def synchronous(self) -> bool:
        """Whether the answer to a forget waits until it is settled."""
        return synchronous(self.manners())

    @property
    def bound(self) -> float:
        """The effectuation bound: as given, or twice the interval and never less than the rounds need."""
        least = self.settling_interval + 2 * self.clean_rounds * ROUND_SECONDS
        return self.effectuation_bound or max(2 * self.settling_interval, least)


class Asked(Wired):
    """A request of our own whose answer holds rows."""

    http: CallHttp | None = None
    grpc: CallGrpc | None = None
    page: PageModel | None = None
    clean: list[When] = []
    requires: When = {}
    """What an answer must say to be read at all, of a store that says its errors in the body of a success."""
    capture: dict[str, SelectorOne] = {}
    """From the answer as a whole, for the captures of its rows."""
    items: Items | None = None
    item: ItemModel | None = None
    columns: ColumnsModel | None = None


class SurfaceModel(Asked):
    """One way to ask the store whether something is still there."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=60)
    kind: Literal["primary", "index", "cache", "derived", "graph", "history", "unprobeable"]
    each: Literal["key", "subject", "text", "vector", "path"] | None = None
    enumerates: bool = False
    note: str = ""

    @model_validator(mode="after")
    def _whole(self) -> SurfaceModel:
        if self.kind == "unprobeable":
            if self.http is not None or self.grpc is not None:
                raise ValueError("an unprobeable surface asks nothing: give it another kind to probe it")
        elif self.http is None and self.grpc is None:
            raise ValueError("a surface needs http or grpc, or kind: unprobeable if nothing can ask it")
        return self

    def _must_be_wired(self) -> bool:
        return False


class ControlsModel(Asked):
    """How any live records of the collection are listed: bystanders for the live control."""


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


class DescriptorsModel(Model):
    """Where the descriptor set of the gRPC routes is: a file beside the profile, or an installed module."""

    file: str | None = Field(None, min_length=1)
    module: str | None = Field(None, pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")

    @model_validator(mode="after")
    def _one(self) -> DescriptorsModel:
        if (self.file is None) == (self.module is None):
            raise ValueError("descriptors are a file or a module")
        return self


class ProfileModel(Model):
    """One store's API."""

    apiVersion: Literal["quietus/v1"]  # noqa: N815
    kind: Literal["Profile"]
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=60)
    summary: str = ""
    store: StoreModel = StoreModel()
    descriptors: DescriptorsModel | None = None
    routes: list[RouteModel] = Field(min_length=1)
    surfaces: list[SurfaceModel] = Field(min_length=1)
    controls: ControlsModel | None = None
    epoch: EpochModel | None = None
    canary: CanaryModel | None = None
    strengthen: list[StrengthenModel] = []
    remedies: dict[str, CallModel] = {}
    forgets: ForgetsModel = ForgetsModel()


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a profile (2020-12), as it ships in policies/profile.schema.json."""
    schema = ProfileModel.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:quietus:profile:v1",
        "title": "Quietus profile",
        **{key: value for key, value in schema.items() if key != "title"},
    }
