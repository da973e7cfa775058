"""What becomes of one pod: a patch, nothing, or a refusal that says what to change."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quietus.inject.container import NAME, OWNER, Json, container, needs_group, volumes
from quietus.inject.wishes import (
    DOMAIN,
    ENABLED,
    INJECT,
    INJECTED,
    STATUS,
    InjectionRefused,
    InjectorSettings,
    SidecarWish,
    wish_of,
)

GRACE: Final = 30
"""Kubernetes's default of terminationGracePeriodSeconds."""


@dataclass(frozen=True, slots=True)
class Injection:
    """What is to be done with a pod. An empty patch leaves it as it is."""

    outcome: str
    """`injected`, `already`, `unlabelled`."""
    patch: tuple[Json, ...] = ()
    warnings: tuple[str, ...] = ()


def judge(pod: Any, settings: InjectorSettings) -> Injection:
    """Looks at a pod (its JSON). Raises InjectionRefused."""
    metadata, spec = _read(pod)
    labels, annotations = _texts(metadata, "labels"), _texts(metadata, "annotations")
    if labels.get(INJECT) != ENABLED:
        if STATUS in annotations and not _named(spec):
            raise InjectionRefused(f"the annotation {STATUS} says that there is a sidecar: remove it")
        return Injection("unlabelled")
    if spec.get("hostNetwork"):
        raise InjectionRefused(
            "a pod with a Quietus sidecar must not use the host's network: every process of the node could "
            "go round it; remove hostNetwork"
        )
    if (spec.get("os") or {}).get("name") == "windows":
        raise InjectionRefused("the sidecar runs on Linux only")
    wish = wish_of(settings, annotations)
    wanted = container(settings, wish)
    if STATUS in annotations:
        _genuine(spec, wanted)
        return Injection("already")
    if _named(spec):
        raise InjectionRefused(f"a container is called {NAME} and is not this injector's: rename it")
    _fits(spec, wish)
    return Injection("injected", tuple(_patch(metadata, spec, wish, wanted)), tuple(_warnings(spec, wish)))


def patched(pod: Json, patch: Sequence[Json]) -> Json:
    """The pod with the patch, as the API server would make it. Knows `add` only, all that is used here."""
    made: Json = copy.deepcopy(pod)
    for step in patch:
        place = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        node: Any = made
        for part in place[:-1]:
            node = node[int(part)] if isinstance(node, list) else node[part]
        value = copy.deepcopy(step["value"])
        if isinstance(node, list):
            node.insert(len(node) if place[-1] == "-" else int(place[-1]), value)
        else:
            node[place[-1]] = value
    return made


def _read(pod: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    if not isinstance(pod, dict):
        raise InjectionRefused("this is not a pod")
    metadata, spec = pod.get("metadata") or {}, pod.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        raise InjectionRefused("this is not a pod: it has no spec")
    for name in ("containers", "initContainers", "volumes"):
        parts = spec.get(name) or []
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            raise InjectionRefused(f"this is not a pod: its {name} are no list")
    if not spec.get("containers"):
        raise InjectionRefused("this is not a pod: it has no containers")
    return metadata, spec


def _texts(metadata: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = metadata.get(name) or {}
    if not isinstance(found, dict):
        raise InjectionRefused(f"this is not a pod: its {name} are no mapping")
    return found


def _all(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def _named(spec: Mapping[str, Any]) -> bool:
    return any(each.get("name") == NAME for each in _all(spec))


def _genuine(spec: Mapping[str, Any], wanted: Json) -> None:
    """Whoever says that the sidecar is there must have it, as we would put it there.

    A webhook after ours may have added to it (variables, mounts); it may not have taken away or changed.
    """
    native = "restartPolicy" in wanted
    among = spec.get("initContainers" if native else "containers") or ()
    there = [each for each in among if each.get("name") == NAME]
    forged = f"the annotation {STATUS} says that the sidecar is there, and "
    if len(there) != 1 or sum(each.get("name") == NAME for each in _all(spec)) != 1:
        raise InjectionRefused(f"{forged}it is not: remove the annotation")
    found = there[0]
    for field in sorted(wanted.keys() | {"command", "envFrom", "lifecycle", "workingDir"}):
        if not _covered(wanted.get(field), found.get(field), field):
            raise InjectionRefused(f"{forged}its {field} is not what would be set: remove the annotation")


def _covered(wanted: Any, found: Any, field: str) -> bool:
    if field in ("env", "volumeMounts", "ports"):
        if not isinstance(found, list):
            return False
        ours = [each for each in found if each in wanted]
        added = [each for each in found if each not in wanted]
        variables = {str(each.get("name", "")).upper() for each in added if field == "env"}
        places = {each.get("mountPath") for each in added} & {each.get("mountPath") for each in wanted}
        steered = any(name.startswith(("QUIETUS_", "PYTHON", "LD_")) for name in variables)
        return len(ours) >= len(wanted) and not steered and not places - {None}
    if field in ("startupProbe", "livenessProbe", "readinessProbe", "resources"):
        # A mesh rewrites probes, a LimitRange resources; the gate does not rest on them.
        return (wanted is None) or found is not None
    return bool(wanted == found) or (not wanted and not found)


def _fits(spec: Mapping[str, Any], wish: SidecarWish) -> None:
    for each in _all(spec):
        for port in each.get("ports") or ():
            if isinstance(port, dict) and port.get("containerPort") in wish.ports:
                number = port["containerPort"]
                raise InjectionRefused(
                    f"the port {number} is another container's: set {DOMAIN}/port, {DOMAIN}/admin-port, "
                    f"{DOMAIN}/probe-port or {DOMAIN}/metrics-port to one that is free"
                )
    if not wish.native and spec.get("restartPolicy", "Always") != "Always":
        raise InjectionRefused(f"beside a plain sidecar a Job never ends: set {DOMAIN}/native to true")
    kind, _, name = wish.ledger.partition("/")
    present = {each.get("name") for each in spec.get("volumes") or ()}
    if kind == "volume" and name not in present:
        raise InjectionRefused(f"the pod has no volume called {name}; {DOMAIN}/ledger names one that it has")
    taken = present & {each["name"] for each in volumes(wish)}
    if taken:
        raise InjectionRefused(f"the pod has a volume called {sorted(map(str, taken))[0]}: rename it")


def _patch(
    metadata: Mapping[str, Any], spec: Mapping[str, Any], wish: SidecarWish, wanted: Json
) -> Iterator[Json]:
    def add(path: str, value: Any) -> Json:
        return {"op": "add", "path": path, "value": value}

    where = "initContainers" if wish.native else "containers"
    # The first of the init containers: those after it may already ask the store for something.
    yield add(f"/spec/{where}/0", wanted) if spec.get(where) else add(f"/spec/{where}", [wanted])
    if spec.get("volumes"):
        yield from (add("/spec/volumes/-", each) for each in volumes(wish))
    else:
        yield add("/spec/volumes", volumes(wish))
    security = spec.get("securityContext") or {}
    if needs_group(wish) and "fsGroup" not in security:
        group = {"fsGroup": OWNER, "fsGroupChangePolicy": "OnRootMismatch"}
        yield add("/spec/securityContext", {**security, **group})
    yield add(f"/metadata/labels/{INJECTED.replace('/', '~1')}", "true")
    if metadata.get("annotations"):
        yield add(f"/metadata/annotations/{STATUS.replace('/', '~1')}", "injected")
    else:
        yield add("/metadata/annotations", {STATUS: "injected"})


def _warnings(spec: Mapping[str, Any], wish: SidecarWish) -> Iterator[str]:
    if wish.policy == "observe":
        yield f"quietus: this sidecar only observes; set {DOMAIN}/policy to enforce"
    if spec.get("shareProcessNamespace"):
        yield "quietus: with shareProcessNamespace a process of the same user can read the sidecar's keys"
    grace = spec.get("terminationGracePeriodSeconds")
    if wish.drain_seconds >= (GRACE if grace is None else grace):
        yield f"quietus: terminationGracePeriodSeconds is not above {DOMAIN}/drain-seconds: answers are cut"
    if needs_group(wish) and "fsGroup" not in (spec.get("securityContext") or {}):
        yield f"quietus: the pod's fsGroup was set to {OWNER}, so that the sidecar can read its Secrets"
