"""Pods and reviews, as Kubernetes sends them."""

from __future__ import annotations

import base64
import json
from typing import Any

from quietus.inject.wishes import InjectorSettings

SETTINGS = InjectorSettings.model_validate({"image": "registry.example/quietus:1.2", "locked": ["store"]})
WISH = {
    "quietus.io/profile": "chroma",
    "quietus.io/upstream": "http://chroma:8000",
    "quietus.io/policy": "default",
    "quietus.io/ledger": "claim/ledger",
    "quietus.io/keys-secret": "keys",
}


def pod(annotations: dict[str, str] | None = None, labelled: bool = True, **spec: Any) -> dict[str, Any]:
    """A pod of one agent."""
    labels = {"app": "agent"} | ({"quietus.io/inject": "enabled"} if labelled else {})
    given = WISH if annotations is None else annotations
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "agent", "labels": labels, **({"annotations": dict(given)} if given else {})},
        "spec": {"containers": [{"name": "agent", "image": "agent"}], **spec},
    }


def asked(found: Any, uid: str = "u-1", operation: str = "CREATE", kind: str = "Pod") -> dict[str, Any]:
    """The review that the API server sends about it."""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": {"group": "", "version": "v1", "kind": kind},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "agents",
            "operation": operation,
            "object": found,
            "oldObject": None,
            "dryRun": False,
        },
    }


def patch_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    """The patch in a response; empty where there is none."""
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    found: list[dict[str, Any]] = json.loads(base64.b64decode(response["patch"]))
    return found
