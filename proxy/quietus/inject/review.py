"""The AdmissionReview that the API server sends, and the one that it gets back."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, Final

from quietus.inject.pods import judge
from quietus.inject.wishes import InjectionRefused, InjectorSettings

VERSION: Final = "admission.k8s.io/v1"
OUTCOMES: Final = ("injected", "already", "unlabelled", "refused", "malformed")


class ReviewMalformed(Exception):
    """This is no AdmissionReview that can be answered."""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """An answer, and what to count."""

    outcome: str
    body: bytes


def review(text: bytes, settings: InjectorSettings) -> Reviewed:
    """Answers one AdmissionReview. Raises ReviewMalformed where not even its uid can be read."""
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise ReviewMalformed("the body is not JSON") from None
    request = document.get("request") if isinstance(document, dict) else None
    if not isinstance(request, dict) or document.get("apiVersion") != VERSION:
        raise ReviewMalformed(f"the body is not an AdmissionReview of {VERSION}")
    uid = request.get("uid")
    if not isinstance(uid, str) or not uid:
        raise ReviewMalformed("the review has no uid")
    if request.get("operation") != "CREATE" or (request.get("kind") or {}).get("kind") != "Pod":
        return _told("unlabelled", {"uid": uid, "allowed": True})
    try:
        found = judge(request.get("object"), settings)
    except InjectionRefused as error:
        status = {"code": 403, "reason": "Forbidden", "message": f"quietus: {error}"}
        return _told("refused", {"uid": uid, "allowed": False, "status": status})
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if found.patch:
        patch = json.dumps(found.patch, separators=(",", ":")).encode()
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch).decode()}
    if found.warnings:
        response["warnings"] = list(found.warnings)
    return _told(found.outcome, response)


def _told(outcome: str, response: dict[str, Any]) -> Reviewed:
    whole = {"apiVersion": VERSION, "kind": "AdmissionReview", "response": response}
    return Reviewed(outcome, json.dumps(whole).encode())
