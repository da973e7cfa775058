"""What a sidecar in a pod is to be: the injector's defaults, and what the pod's annotations say otherwise.

The defaults are the block `sidecar` of the chart's values, name for name. A pod changes one of them with an
annotation: `keysSecret` is `quietus.io/keys-secret`. Three of `resources` can be changed:
`quietus.io/cpu-request`, `memory-request` and `memory-limit`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

DOMAIN: Final = "quietus.io"
INJECT: Final = f"{DOMAIN}/inject"
"""Label: `enabled` asks for a sidecar. A label: only by labels does the API server choose what it sends."""
INJECTED: Final = f"{DOMAIN}/injected"
"""Label that a pod with a sidecar carries, for the NetworkPolicies of stores."""
STATUS: Final = f"{DOMAIN}/status"
"""Annotation that says that the sidecar is there."""
ENABLED: Final = "enabled"

_NAME: Final = r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"
_KEPT: Final = re.compile(rf"memory|(claim|volume|secret)/{_NAME}")
_DOCUMENT: Final = re.compile(
    rf"|[A-Za-z0-9][A-Za-z0-9_.-]{{0,62}}|configmap/{_NAME}/[A-Za-z0-9_.-]+\.(yaml|yml|json)"
)
_QUANTITY: Final = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi)?")
_RESOURCES: Final = {
    "cpu-request": ("requests", "cpu"),
    "memory-request": ("requests", "memory"),
    "memory-limit": ("limits", "memory"),
}


class InjectionRefused(Exception):
    """This pod cannot be given a sidecar; the message says what to change."""


def _kept(text: str) -> str:
    if not _KEPT.fullmatch(text):
        raise ValueError("is not a ledger; write memory, claim/NAME, volume/NAME or secret/NAME")
    return text


def _document(text: str) -> str:
    if not _DOCUMENT.fullmatch(text):
        raise ValueError("is neither a name that ships nor configmap/NAME/KEY (KEY ends in .yaml or .json)")
    return text


def _upstream(text: str) -> str:
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/")):
        raise ValueError("is not the address of a store; write it like http://127.0.0.1:8000")
    if "@" in text:
        raise ValueError("holds credentials; put them in a Secret and name it under credentials-secret")
    return text


def _grpc_upstream(text: str) -> str:
    host, _, port = text.rpartition(":")
    if text and (not host or not port.isdigit() or re.search(r"[\s/@]", host)):
        raise ValueError("is not HOST:PORT; write it like 127.0.0.1:19530")
    return text


def _endpoint(text: str) -> str:
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"[\s@]", text)):
        raise ValueError("is not the address of a collector; write it like http://collector:4318")
    return text


Port = Annotated[int, Field(ge=1, le=65535)]
SecretName = Annotated[str, Field(pattern=rf"^(|{_NAME})$")]
Document = Annotated[str, AfterValidator(_document)]


class _Block(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class Resources(_Block):
    """Requests and limits of the sidecar's container, as Kubernetes writes them."""

    requests: dict[str, str | int | float] = {"cpu": "50m", "memory": "96Mi"}
    limits: dict[str, str | int | float] = {"memory": "256Mi"}


class SidecarWish(_Block):
    """One sidecar."""

    native: bool = True
    store: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")] = "memories"
    profile: Document = ""
    policy: Document = "observe"
    upstream: Annotated[str, AfterValidator(_upstream)] = ""
    grpc_upstream: Annotated[str, AfterValidator(_grpc_upstream)] = ""
    listen: Literal["", "loopback", "pod"] = ""
    ledger: Annotated[str, AfterValidator(_kept)] = "memory"
    ledger_password_secret: SecretName = ""
    keys_secret: SecretName = ""
    credentials_secret: SecretName = ""
    port: Port = 8700
    grpc_port: Port = 8701
    admin_port: Port = 8710
    probe_port: Port = 8711
    metrics_port: Port = 8712
    drain_seconds: Annotated[int, Field(ge=1, le=3600)] = 10
    bypass_every: Annotated[str, Field(pattern=r"^(|[0-9]+(s|m|h))$")] = ""
    otlp_endpoint: Annotated[str, AfterValidator(_endpoint)] = ""
    resources: Resources = Resources()

    @property
    def side(self) -> str:
        """`pod` (beside the store: reached from outside) or `loopback` (beside an agent)."""
        if self.listen:
            return self.listen
        host = urlsplit(self.upstream or f"//{self.grpc_upstream}").hostname or ""
        return "pod" if host == "localhost" or host == "::1" or host.startswith("127.") else "loopback"

    @property
    def ports(self) -> tuple[int, ...]:
        """All that it listens on."""
        wires = ((self.port, self.upstream), (self.grpc_port, self.grpc_upstream))
        data = tuple(port for port, upstream in wires if upstream)
        return (*data, self.admin_port, self.probe_port, self.metrics_port)


class InjectorSettings(_Block):
    """The injector's configuration."""

    image: Annotated[str, Field(min_length=1)] = "quietus"
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    locked: tuple[str, ...] = ()
    sidecar: SidecarWish = SidecarWish()


KEYS: Final[Mapping[str, str]] = {
    name.replace("_", "-"): name for name in SidecarWish.model_fields if name != "resources"
}
"""Annotations below the domain, and the field that each sets."""


def wish_of(settings: InjectorSettings, annotations: Mapping[str, Any]) -> SidecarWish:
    """What this pod asks for. Raises InjectionRefused."""
    given: dict[str, Any] = settings.sidecar.model_dump()
    for name, text in annotations.items():
        domain, _, key = name.partition("/")
        if domain != DOMAIN or name == STATUS:
            continue
        if not isinstance(text, str):
            raise InjectionRefused(f"the annotation {name} is not text")
        _put(settings, given, key, text)
    try:
        wish = SidecarWish.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = str(first["loc"][0]).replace("_", "-")
        raise InjectionRefused(f"the annotation {DOMAIN}/{field} {_said(first['msg'])}") from None
    check(wish)
    return wish


def _put(settings: InjectorSettings, given: dict[str, Any], key: str, text: str) -> None:
    field = KEYS.get(key) or ("resources" if key in _RESOURCES else None)
    if field is None:
        known = ", ".join(sorted((*KEYS, *_RESOURCES)))
        raise InjectionRefused(f"the annotation {DOMAIN}/{key} is not known; known are {known}")
    if field in settings.locked or to_camel(field) in settings.locked:
        raise InjectionRefused(f"the annotation {DOMAIN}/{key} may not be set: the injector has locked it")
    if field != "resources":
        given[field] = text
        return
    if not _QUANTITY.fullmatch(text):
        raise InjectionRefused(f"the annotation {DOMAIN}/{key} is not a quantity such as 50m or 96Mi")
    block, kind = _RESOURCES[key]
    given["resources"] = {**given["resources"], block: {**given["resources"][block], kind: text}}


def check(wish: SidecarWish) -> None:
    """Refuses what would not be safe, or could not run. Raises InjectionRefused."""
    if not wish.profile:
        raise InjectionRefused(f"set the annotation {DOMAIN}/profile: one that ships, or configmap/NAME/KEY")
    if not wish.upstream and not wish.grpc_upstream:
        raise InjectionRefused(
            f"set the annotation {DOMAIN}/upstream to where the store is, such as http://127.0.0.1:8000"
        )
    if wish.ledger == "memory" and wish.policy != "observe":
        raise InjectionRefused(
            f"a ledger in memory forgets with the pod who was erased: set {DOMAIN}/ledger to claim/NAME, "
            f"volume/NAME or secret/NAME, or {DOMAIN}/policy to observe"
        )
    if wish.ledger != "memory" and not wish.keys_secret:
        raise InjectionRefused(
            f"a ledger that is kept needs its keys in a Secret of their own: set {DOMAIN}/keys-secret "
            "(quietus inject secret NAME makes one)"
        )
    if len(set(wish.ports)) < len(wish.ports):
        raise InjectionRefused("two of the sidecar's ports are the same; change one")
    stores = {urlsplit(wish.upstream).port, urlsplit(f"//{wish.grpc_upstream}").port}
    if wish.side == "pod" and not wish.listen and stores & set(wish.ports):
        raise InjectionRefused(f"the store and the sidecar use the same port; set {DOMAIN}/port to another")


def _said(message: str) -> str:
    text = message.removeprefix("Value error, ").split(" [")[0]
    return text if text.startswith("is ") else f"is wrong: {text[:1].lower()}{text[1:]}"
