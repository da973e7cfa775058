"""Refusals as gRPC has them: a code, a sentence, and details that a program can read.

The details are google.rpc's: ErrorInfo says the reason, PreconditionFailure what would have to be so,
RetryInfo when to ask again. They hold what the problem holds, and nothing of the store's.
"""

from __future__ import annotations

from typing import Any, Final

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import ErrorInfo, PreconditionFailure, RetryInfo
from google.rpc.status_pb2 import Status

from quietus.answers import Answer, Refused
from quietus.core.exchange import Headers
from quietus.core.problems import PROBLEMS

DETAILS: Final = "grpc-status-details-bin"
DOMAIN: Final = "quietus"
_BY_STATE: Final = frozenset({"FAILED_PRECONDITION", "ABORTED"})

Trailers = tuple[tuple[str, str | bytes], ...]


def code_of(refused: Refused, of_store: str | None = None) -> grpc.StatusCode:
    """The status code of a refusal.

    `of_store` names the one that this store's clients do not answer by asking again and again; it takes the
    place of those that say that an erasure stands in the way.
    """
    name = refused.code or PROBLEMS[refused.name].code
    if of_store is not None and name in _BY_STATE:
        name = of_store
    return grpc.StatusCode[name]


def sentence_of(refused: Refused) -> str:
    """The status message: the problem's title, and its detail where there is one."""
    title = PROBLEMS[refused.name].title
    return f"{title} ({refused.detail})" if refused.detail else title


def details_of(refused: Refused, code: grpc.StatusCode) -> bytes:
    """The `google.rpc.Status` of a refusal, as bytes."""
    kind = PROBLEMS[refused.name]
    facts = {"problem": kind.type, "rule": refused.rule}
    facts |= {name: _written(value) for name, value in refused.members.items()}
    reason = refused.reason or refused.name.replace("-", "_").upper()
    status = Status(code=code.value[0], message=sentence_of(refused))
    info = ErrorInfo(reason=reason, domain=DOMAIN)
    info.metadata.update({name: value for name, value in facts.items() if value})
    status.details.add().Pack(info)
    if kind.code in _BY_STATE:
        failure = PreconditionFailure()
        failure.violations.add(type=reason, subject=kind.type, description=kind.title)
        status.details.add().Pack(failure)
    if refused.retry_after is not None:
        delay = Duration(seconds=int(refused.retry_after))
        status.details.add().Pack(RetryInfo(retry_delay=delay))
    written: bytes = status.SerializeToString(deterministic=True)
    return written


def split(headers: Headers) -> tuple[Headers, Headers]:
    """The store's own headers, and ours as trailing metadata.

    gRPC's keys are all in lower case, so a name that begins with a capital is one that we have put there.
    """
    theirs = tuple(pair for pair in headers if not pair[0][:1].isupper())
    if len(theirs) == len(headers):
        return headers, ()
    ours: list[tuple[str, str]] = []
    for name, value in headers:
        if name.startswith("Quietus-"):
            ours.append((name.lower(), value))
        elif name == "Retry-After":
            ours.append(("quietus-retry-after", value))
    return theirs, tuple(ours)


def refusal_trailers(answer: Answer, code: grpc.StatusCode) -> Trailers:
    """The trailing metadata of a refusal."""
    assert answer.refused is not None
    return (*split(answer.headers)[1], (DETAILS, details_of(answer.refused, code)))


def _written(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
