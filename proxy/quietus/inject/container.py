"""The sidecar's container and volumes. The chart's template `quietus.sidecar.container` makes the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from quietus.inject.wishes import InjectorSettings, SidecarWish

NAME: Final = "quietus"
OWNER: Final = 65532
"""User and group of the image."""
KEYS: Final = "/var/run/quietus/keys"
CREDENTIALS: Final = "/var/run/quietus/credentials"
PASSWORD: Final = "/var/run/quietus/ledger"
LEDGER: Final = "/var/lib/quietus"
DOCUMENTS: Final = "/etc/quietus"
_CONFIG_MAP: Final = "configmap/"

Json = dict[str, Any]


def container(settings: InjectorSettings, wish: SidecarWish) -> Json:
    """The container, fit for Pod Security "restricted"."""
    made: Json = {
        "name": NAME,
        "image": settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "args": ["serve"],
        "env": _environment(wish),
        "ports": [
            {"name": f"quietus-{name}", "containerPort": port, "protocol": "TCP"}
            for name, port, there in (
                ("data", wish.port, wish.upstream),
                ("grpc", wish.grpc_port, wish.grpc_upstream),
                ("probes", wish.probe_port, "always"),
                ("metrics", wish.metrics_port, "always"),
            )
            if there
        ],
        **_probes(wish),
        "resources": wish.resources.model_dump(),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsGroup": OWNER,
            "runAsNonRoot": True,
            "runAsUser": OWNER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _mounts(wish),
    }  # fmt: skip
    if wish.native:
        made["restartPolicy"] = "Always"
    return made


def volumes(wish: SidecarWish) -> list[Json]:
    """What it mounts, but for a volume that the pod has itself."""
    kind, _, name = wish.ledger.partition("/")
    made: list[Json] = [{"name": "quietus-tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}]
    if kind == "claim":
        made.append({"name": "quietus-ledger", "persistentVolumeClaim": {"claimName": name}})
    for use, secret in _secrets(wish):
        if secret:
            made.append({"name": f"quietus-{use}", "secret": {"secretName": secret, "defaultMode": 0o440}})
    for use, document in (("profile", wish.profile), ("policy", wish.policy)):
        if document.startswith(_CONFIG_MAP):
            made.append({"name": f"quietus-{use}", "configMap": {"name": document.split("/")[1]}})
    return made


def needs_group(wish: SidecarWish) -> bool:
    """Whether something is mounted that only the pod's group may read."""
    return any(secret for _, secret in _secrets(wish))


def _secrets(wish: SidecarWish) -> tuple[tuple[str, str], ...]:
    return (
        ("password", wish.ledger_password_secret),
        ("keys", wish.keys_secret),
        ("credentials", wish.credentials_secret),
    )


def _upstreams(wish: SidecarWish) -> Iterator[tuple[str, str, int]]:
    if wish.upstream:
        yield "HTTP", wish.upstream, wish.port
    if wish.grpc_upstream:
        yield "GRPC", wish.grpc_upstream, wish.grpc_port


def _environment(wish: SidecarWish) -> list[Json]:
    kind, _, name = wish.ledger.partition("/")
    host = "0.0.0.0" if wish.side == "pod" else "127.0.0.1"
    plain = {
        "STORE__NAME": wish.store,
        "STORE__PROFILE": _document("profile", wish.profile),
        **{
            f"STORE__{wire}__{key}": value
            for wire, upstream, port in _upstreams(wish)
            for key, value in (("UPSTREAM", upstream), ("LISTEN", f"{host}:{port}"))
        },
        "POLICY": _document("policy", wish.policy),
        "ADMIN__LISTEN": f"127.0.0.1:{wish.admin_port}",
        "HEALTH__LISTEN": f"0.0.0.0:{wish.probe_port}",
        "METRICS__LISTEN": f"0.0.0.0:{wish.metrics_port}",
        "TIMEOUTS__DRAIN": f"{wish.drain_seconds}s",
    }
    if wish.bypass_every:
        plain["BYPASS__EVERY"] = wish.bypass_every
    if kind != "secret":
        plain["LEDGER__URL"] = "memory:" if kind == "memory" else f"sqlite:///{LEDGER}/ledger.db"
    made: list[Json] = [{"name": f"QUIETUS_{key}", "value": value} for key, value in plain.items()]
    if wish.otlp_endpoint:
        made.append({"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": wish.otlp_endpoint})
    if kind == "secret":
        reference = {"secretKeyRef": {"name": name, "key": "url"}}
        made.append({"name": "QUIETUS_LEDGER__URL", "valueFrom": reference})
    if wish.ledger_password_secret:
        made.append({"name": "QUIETUS_LEDGER__PASSWORD_FILE", "value": f"{PASSWORD}/password"})
    if wish.keys_secret:
        made.append({"name": "QUIETUS_KEYS__FILE", "value": f"{KEYS}/keys.json"})
        made.append({"name": "QUIETUS_ADMIN__TOKEN_FILE", "value": f"{KEYS}/admin.token"})
    if wish.credentials_secret:
        for wire, _, _ in _upstreams(wish):
            # Names of metadata are lower case in gRPC.
            name = "Authorization" if wire == "HTTP" else "authorization"
            header = json.dumps({name: {"file": f"{CREDENTIALS}/authorization"}}, separators=(",", ":"))
            made.append({"name": f"QUIETUS_STORE__{wire}__HEADERS", "value": header})
            made.append({"name": f"QUIETUS_STORE__{wire}__INJECT_HEADERS", "value": header})
    return made


def _document(use: str, name: str) -> str:
    return f"{DOCUMENTS}/{use}/{name.split('/')[2]}" if name.startswith(_CONFIG_MAP) else name


def _probes(wish: SidecarWish) -> Json:
    def probe(path: str, period: int, timeout: int, failures: int) -> Json:
        return {
            "httpGet": {"path": path, "port": "quietus-probes"},
            "periodSeconds": period,
            "timeoutSeconds": timeout,
            "failureThreshold": failures,
        }

    made = {
        # As a native sidecar this holds the application back until the ledger and the policy are loaded.
        "startupProbe": probe("/startupz", 1, 2, 300),
        "livenessProbe": probe("/healthz", 10, 5, 3),
    }
    if wish.side == "pod":
        # Beside an agent it would take the agent out of its Service whenever the gate is shut.
        made["readinessProbe"] = probe("/readyz", 5, 2, 2)
    return made


def _mounts(wish: SidecarWish) -> list[Json]:
    kind, _, name = wish.ledger.partition("/")
    made: list[Json] = [{"name": "quietus-tmp", "mountPath": "/tmp"}]
    if kind in ("claim", "volume"):
        made.append({"name": "quietus-ledger" if kind == "claim" else name, "mountPath": LEDGER})
    places = {"password": PASSWORD, "keys": KEYS, "credentials": CREDENTIALS}
    read = [(use, places[use], secret != "") for use, secret in _secrets(wish)]
    read += [(use, f"{DOCUMENTS}/{use}", document.startswith(_CONFIG_MAP))
             for use, document in (("profile", wish.profile), ("policy", wish.policy))]  # fmt: skip
    for use, path, there in read:
        if there:
            made.append({"name": f"quietus-{use}", "mountPath": path, "readOnly": True})
    return made
