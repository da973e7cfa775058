"""`quietus inject -f FILE`: the same patch without a cluster, on pods and on what makes pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

from quietus.inject.pods import judge, patched
from quietus.inject.wishes import DOMAIN, ENABLED, INJECT, InjectionRefused, InjectorSettings, wish_of

_TEMPLATE: Final = ("spec", "template")
PLACES: Final[dict[str, tuple[str, ...]]] = {
    "Pod": (),
    "Deployment": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
    "DaemonSet": _TEMPLATE,
    "ReplicaSet": _TEMPLATE,
    "ReplicationController": _TEMPLATE,
    "Job": _TEMPLATE,
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""Where the pod of each kind stands."""
MANY: Final = ("Deployment", "ReplicaSet", "ReplicationController")
"""Kinds whose pods all mount the same claim."""


def injected(text: str, settings: InjectorSettings) -> tuple[str, list[str]]:
    """The documents with their sidecars, as YAML, and what to warn of. Raises InjectionRefused."""
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise InjectionRefused(f"not YAML{f', line {mark.line + 1}' if mark else ''}: correct it") from None
    warnings: list[str] = []
    made = [_one(document, settings, warnings) for document in documents if document is not None]
    return yaml.safe_dump_all(made, sort_keys=False, allow_unicode=True, width=1000), warnings


def _one(document: Any, settings: InjectorSettings, warnings: list[str]) -> Any:
    if isinstance(document, dict) and str(document.get("kind")).endswith("List") and "items" in document:
        items = document.get("items") or []
        return {**document, "items": [_one(item, settings, warnings) for item in items]}
    place = PLACES.get(str(document.get("kind"))) if isinstance(document, dict) else None
    if place is None:
        return document
    try:
        _alone(document, settings)
        return _at(document, place, settings, warnings)
    except InjectionRefused as error:
        raise InjectionRefused(f"{'/'.join(_name(document))}: {error}") from None


def _at(document: Any, place: tuple[str, ...], settings: InjectorSettings, warnings: list[str]) -> Any:
    if not place:
        found = judge(document, settings)
        warnings.extend(found.warnings)
        return patched(document, found.patch)
    if not isinstance(document, dict) or place[0] not in document:
        raise InjectionRefused(f"it has no {'.'.join(place)}")
    return {**document, place[0]: _at(document[place[0]], place[1:], settings, warnings)}


def _alone(document: Any, settings: InjectorSettings) -> None:
    """A ledger on a claim is one pod's: refuses a Deployment of several, which a webhook cannot see."""
    spec = document.get("spec")
    if document["kind"] not in MANY or not isinstance(spec, dict):
        return
    metadata = (spec.get("template") or {}).get("metadata") or {}
    if (metadata.get("labels") or {}).get(INJECT) != ENABLED:
        return
    ledger = wish_of(settings, metadata.get("annotations") or {}).ledger
    replicas = spec.get("replicas", 1)
    if ledger.startswith("claim/") and isinstance(replicas, int) and replicas > 1:
        raise InjectionRefused(
            f"its {replicas} replicas cannot share a ledger on one claim: set {DOMAIN}/ledger to "
            "secret/NAME, or use one replica"
        )


def _name(document: Any) -> Iterator[str]:
    yield str(document.get("kind"))
    metadata = document.get("metadata")
    if isinstance(metadata, dict) and metadata.get("name"):
        yield str(metadata["name"])
