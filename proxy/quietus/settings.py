"""What can be set, with defaults, bounds and a sentence on each: the schema of the configuration."""

# ruff: noqa: E501 -- one setting a line: it reads like the table that the documentation has
from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from quietus.core.exchange import Wire
from quietus.profiles.words import Duration
from quietus.settings_ledger import LedgerSettings as LedgerSettings
from quietus.settings_ledger import sqlite_path as sqlite_path
from quietus.settings_reviews import ReviewSettings as ReviewSettings
from quietus.settings_tls import ListenerTls as ListenerTls
from quietus.settings_tls import UpstreamTls as UpstreamTls


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535 or re.search(r"[\s/@]", host):
        raise ValueError("is not HOST:PORT; write it like 127.0.0.1:8700 or [::1]:8700")
    return text


def _upstream(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("is not the address of a store; write it like http://127.0.0.1:8000")
    if parts.username or parts.password:
        raise ValueError("holds credentials; put them in a file and name it under `headers`")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("has a path; paths are forwarded as they come, give scheme, host and port only")
    try:
        _ = parts.port
    except ValueError:
        raise ValueError("has a port that is not a number below 65536; correct it") from None
    return text.rstrip("/")


def address(text: str) -> tuple[str, int]:
    """Host and port of a `HOST:PORT` setting."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


Listen = Annotated[str, AfterValidator(_address)]
Positive = Annotated[int, Field(gt=0)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FileValue(_Section):
    """A value that stands in a file, so that it does not stand in the configuration."""

    file: Path = Field(description="the file; white space around its text is left out")

    def read(self) -> str:
        """The text of the file without the white space around it. Raises OSError."""
        return self.file.read_text(encoding="utf-8").strip()


Files = dict[Annotated[str, Field(pattern=r"^[!#$%&'*+.^`|~0-9A-Za-z-]+$")], FileValue]


class HttpSettings(_Section):
    """The HTTP wire."""

    listen: Listen = Field(default="127.0.0.1:8700", description="where agents connect")
    upstream: Annotated[str, AfterValidator(_upstream)] = Field(description="the store: scheme, host, port")
    tls: ListenerTls | None = None
    upstream_tls: UpstreamTls | None = None
    headers: Files = Field(default_factory=dict, description="sent with the sidecar's own calls (probes, remedies): `{Authorization: {file: PATH}}`")
    inject_headers: Files = Field(default_factory=dict, description="put on every forwarded request, so that only the sidecar holds the store's credentials")
    replicas: Positive = Field(default=1, description="how many servers stand behind the address; probes spread accordingly")


class GrpcSettings(_Section):
    """The gRPC wire."""

    listen: Listen = Field(default="127.0.0.1:8701", description="where agents connect; the same as `store.http.listen`: one port takes both wires")
    upstream: Annotated[str, AfterValidator(_address)] = Field(description="the store: HOST:PORT")
    tls: ListenerTls | None = None
    upstream_tls: UpstreamTls | None = None
    headers: Files = Field(default_factory=dict, description="metadata of the sidecar's own calls (probes, remedies)")
    inject_headers: Files = Field(default_factory=dict, description="metadata put on every forwarded call")
    replicas: Positive = Field(default=1, description="how many servers stand behind the address; probes spread accordingly")


class StoreSettings(_Section):
    """The store behind the sidecar."""

    name: str = Field(default="memories", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$", description="value of the metric label `store`")
    profile: str = Field(min_length=1, description="a profile that ships, or a path")
    trial: Path | None = Field(default=None, description="what `quietus profile try --out` has written: an exemption of the profile holds only with it, passing and unexpired")
    http: HttpSettings | None = None
    grpc: GrpcSettings | None = None

    @model_validator(mode="after")
    def _reached(self) -> StoreSettings:
        if self.http is None and self.grpc is None:
            raise ValueError("'store.http' is missing, and 'store.grpc' too; say how the store is reached: give the upstream of one")
        if self.http and self.grpc and self.http.listen == self.grpc.listen and self.http.tls != self.grpc.tls:
            raise ValueError("has one port for both wires; give store.http.tls and store.grpc.tls the same files, or none")
        return self

    @property
    def wires(self) -> frozenset[Wire]:
        """The wires that the store is reached by."""
        return frozenset[Wire]({"http"} if self.http else ()) | frozenset[Wire]({"grpc"} if self.grpc else ())

    @property
    def replicas(self) -> int:
        """The servers behind the store's addresses: the larger number counts, for probes that spread."""
        return max(each.replicas for each in (self.http, self.grpc) if each is not None)


class TokenSettings(_Section):
    """One more token of the admin API."""

    file: Path = Field(description="file that holds the token on one line")
    role: Literal["viewer", "privacy", "operator"] = Field(description="`viewer` reads, `privacy` also re-admits, `operator` does everything")
    actor: str = Field(pattern=r"^[\w.@:-]{1,64}$", description="the name under which its acts stand in the ledger")


class AdminSettings(_Section):
    """The admin API."""

    listen: Listen = Field(default="127.0.0.1:8710", description="where the admin API listens")
    token_file: Path | None = Field(default=None, description="one operator's token on a line; without it one is made beside the keys as `admin.token`, 0600")
    hosts: tuple[str, ...] = Field(default=(), description="names under which it may be asked for (`Host`), beside addresses, `localhost` and the host it listens on")
    tokens: tuple[TokenSettings, ...] = Field(default=(), description="more tokens, each with a role and an actor")
    reviews: ReviewSettings | None = Field(default=None, description="ask Kubernetes who may do what, by TokenReview and SubjectAccessReview (docs/kubernetes.md); no token is made then, those that are named still hold. `{}` for the defaults")


class KeySettings(_Section):
    """The sidecar's keys."""

    file: Path | None = Field(default=None, description="made, 0600, for a new and empty ledger only; beside the ledger as `NAME.keys.json` when not given")


def _webhook(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("is not an address; write it like https://host/path")
    if parts.username or parts.password:
        raise ValueError("holds credentials; events are signed with the secret, leave them out")
    return text


class WebhookSettings(_Section):
    """Where the life of erasures is told, as signed CloudEvents."""

    url: Annotated[str, AfterValidator(_webhook)] = Field(description="where events are posted to")
    secret: FileValue = Field(description="`{file: PATH}`: what they are signed with; `whsec_…`, or 24 characters and more")
    position: Path | None = Field(default=None, description="file that keeps how far events were delivered; beside the ledger as `NAME.webhook` when not given")


class HealthSettings(_Section):
    """A second listener for the kubelet."""

    listen: Listen | None = Field(default=None, description="where only `/startupz`, `/healthz` and `/readyz` are answered; nowhere when not given")


class MetricsSettings(_Section):
    """A listener for Prometheus, which comes from another pod and has no business with the admin API."""

    listen: Listen | None = Field(default=None, description="where only `/metrics` is answered; nowhere but on the admin port when not given")


class ReachSettings(_Section):
    """One place of the store that the by-pass probe goes through."""

    tenant: str | None = Field(default=None, description="a tenant; whatever the listing returns when not given")
    path: str | None = Field(default=None, description="the path of all that is listed there, where rows do not say theirs: segments with `/` between them")
    values: dict[str, str] = Field(default_factory=dict, description="what else the profile's `controls` asks for, as `quietus scan --set` takes it: `{collection: notes}`")

    @property
    def segments(self) -> tuple[str, ...] | None:
        """The path by its segments."""
        return None if self.path is None else tuple(self.path.split("/"))


class BypassSettings(_Section):
    """The by-pass probe: does the store hold records that never passed the sidecar?"""

    every: Duration | None = Field(default=None, description="how often the by-pass probe looks; null: it does not. More than a write may take")
    pages_max: Positive = Field(default=20, description="pages of the listing that one look of it reads; the next one goes on there")
    reach: tuple[ReachSettings, ...] = Field(default=(), description="where it looks; wherever the listing goes when not given")


class Limits(_Section):
    """What is bounded, and where."""

    request_bytes_max: Positive = Field(default=4 << 20, description="body of a request; larger: 413")
    response_bytes_max: Positive = Field(default=8 << 20, description="body of an answer that must be screened; larger: `unscreenable`")
    probes_in_flight_max: Positive = Field(default=8, description="probes at one time")
    probe_rate_per_second: Annotated[float, Field(gt=0)] = Field(default=5.0, description="probes a second, over all erasures")
    snapshot_records_max: Positive = Field(default=100_000, description="records that a snapshot reads; beyond, the verdict is capped")
    lineage_records_max: Positive = Field(default=100_000, description="records whose owner and lineage are remembered, about 1.6 kB of memory each; beyond, the oldest goes and the verdict is capped")
    snapshot_seconds_max: Annotated[float, Field(gt=0)] = Field(default=10.0, description="seconds that a snapshot may take; beyond, the verdict is capped")


class Timeouts(_Section):
    """Deadlines of each phase."""

    header: Duration = Field(default=5.0, description="for a request's head to arrive")
    body: Duration = Field(default=15.0, description="for its body to arrive")
    connect: Duration = Field(default=3.0, description="to reach the store")
    upstream: Duration = Field(default=60.0, description="for the store's answer")
    barrier: Duration = Field(default=5.0, description="for writes in flight to drain before a forget is forwarded")
    drain: Duration = Field(default=10.0, description="for calls in flight at shutdown")
    wait: Duration = Field(default=120.0, description="the longest that `Prefer: wait` and the effect `wait` hold a call")


class Settings(_Section):
    """Everything that can be set."""

    store: StoreSettings
    policy: str = Field(default="default", min_length=1, description="`default`, `strict`, `observe`, or a path")
    ledger: Annotated[LedgerSettings, BeforeValidator(lambda given: {"url": given} if isinstance(given, str) else given)] = LedgerSettings()
    admin: AdminSettings = AdminSettings()
    keys: KeySettings = KeySettings()
    limits: Limits = Limits()
    timeouts: Timeouts = Timeouts()
    health: HealthSettings = HealthSettings()
    webhook: WebhookSettings | None = None
    metrics: MetricsSettings = MetricsSettings()
    bypass: BypassSettings = BypassSettings()
    workers: Annotated[int, Field(ge=1, le=64)] = Field(default=1, description="processes that take calls, on one port and over one ledger; more than one need a ledger that outlives them, not `memory:`")

    @model_validator(mode="after")
    def _workers_share(self) -> Settings:
        if self.workers > 1 and self.ledger.path is None and not self.ledger.shared:
            raise ValueError("workers: several need a ledger that they can share; set ledger.url to sqlite:///PATH")
        return self

    @property
    def keys_path(self) -> Path | None:
        """The keys file; None when nothing is to be kept (a ledger in memory, and no file named)."""
        if self.keys.file is not None:
            return self.keys.file
        ledger = self.ledger.path
        return None if ledger is None else ledger.with_suffix(".keys.json")

    @property
    def webhook_position(self) -> Path | None:
        """Where the webhook's position is kept; None when nothing is to be kept."""
        if self.webhook is not None and self.webhook.position is not None:
            return self.webhook.position
        ledger = self.ledger.path
        return None if ledger is None else ledger.with_suffix(".webhook")

    @property
    def token_path(self) -> Path | None:
        """The operator's token file; None when nothing is to be kept."""
        if self.admin.token_file is not None:
            return self.admin.token_file
        keys = self.keys_path
        return None if keys is None else keys.with_name("admin.token")
