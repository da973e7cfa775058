"""What tests of replicas ask, as a client does who tries again while a replica is not ready."""

from __future__ import annotations

import time
from typing import Final

from tests.e2e.process import Quietus, Response
from tests.replicas.cluster import BAY

PATIENCE: Final = 60.0


def answered(replica: Quietus, name: str | None) -> Response:
    """A recall's answer once the replica answers at all: on a busy machine a lease may lapse for a moment."""
    end = time.monotonic() + PATIENCE
    while (answer := recall(replica, name)).status in (502, 503):
        assert time.monotonic() < end, replica.log()[-2000:]
    return answer


def forget(replica: Quietus, name: str) -> Response:
    """One forget of somebody."""
    return replica.call("POST", "/v1/forget", {"subject": name, "tenant": BAY})


def recall(replica: Quietus, name: str | None, **headers: str) -> Response:
    """One recall of somebody's memories, or of everybody's."""
    body = {"query": "lanterns", "tenant": BAY} | ({"subject": name} if name else {})
    return replica.call("POST", "/v1/recall", body, {k.replace("_", "-"): v for k, v in headers.items()})


def tells(answer: Response, name: str) -> bool:
    """Whether an answer lets out what the erased person's memory says."""
    return answer.status == 200 and name.encode() in answer.body


def acknowledged(replica: Quietus, name: str) -> Response:
    """Forgets, and again after a barrier that could not be reached, as a client does."""
    end = time.monotonic() + PATIENCE
    while (answer := forget(replica, name)).status in (503, 504):
        assert time.monotonic() < end, answer
    return answer


def written(name: str, text: str) -> dict[str, object]:
    """A write about somebody."""
    return {"key": f"{name}-new", "value": text, "tenant": BAY, "retention": {"subject": name}}
