"""What goes back to a client: the store's answer with its marks, or a problem."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from quietus.core.decision import Decision
from quietus.core.erasure import Erasure
from quietus.core.exchange import Headers, Reply, without
from quietus.core.problems import PROBLEMS, Reason, Retry

_FORGOTTEN_MAX = 5
FRAMING = frozenset({"content-length", "transfer-encoding", "connection", "keep-alive"})
"""Headers that the wire itself writes anew."""


def _nothing() -> None:
    """Most answers have nothing to tell anybody when they are written."""


@dataclass(slots=True)
class Refused:
    """What a refusal says, before a wire puts it into its form. It quotes neither the call nor the store."""

    name: str
    detail: str = ""
    rule: str = ""
    reason: str = ""
    retry_after: float | None = None
    """Seconds; None: asking again is of no use, or nobody knows when."""
    members: dict[str, Any] = field(default_factory=dict)
    code: str = ""
    """The gRPC code, where it is not the usual one of this problem."""


@dataclass(slots=True, eq=False)
class Answer:
    """One answer on its way out. A stream's bytes are decided one by one before they are yielded."""

    status: int
    headers: Headers = ()
    body: bytes | AsyncIterator[bytes] = b""
    reason: str = ""
    """Of gRPC: the status message of the store."""
    code: str | None = None
    """Of gRPC: the name of the store's status code."""
    trailers: Headers = ()
    refused: Refused | None = None
    """Set on a refusal: `body` says the same in HTTP's form."""
    overtaken: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a fence has landed in its scope: the connection must be aborted at once."""
    finish: Callable[[], None] = _nothing

    def done(self) -> None:
        """Must be called once the last byte is written, or the connection is gone."""
        self.finish()


def passed(reply: Reply, *more: tuple[str, str], status: int | None = None) -> Answer:
    """The store's answer, less what frames it on its connection, with headers of our own behind its own."""
    headers = (*without(reply.headers, FRAMING), *more)
    return Answer(
        status or reply.status, headers, reply.body,
        reason=reply.reason, code=reply.code, trailers=reply.trailers,
    )  # fmt: skip


def problem(
    name: str,
    detail: str = "",
    *,
    rule: str = "",
    reason: str = "",
    retry_after: float | None = None,
    members: dict[str, Any] | None = None,
    headers: Headers = (),
) -> Answer:
    """A refusal as RFC 9457 has it. `detail` and `members` must not quote the request or the store."""
    kind = PROBLEMS[name]
    body: dict[str, Any] = {"type": kind.type, "title": kind.title, "status": kind.status}
    if detail:
        body["detail"] = detail
    said = reason or kind.reason.value
    if said:
        body["reason"] = said
    if rule:
        body["rule"] = rule
    body.update(members or {})
    extra: list[tuple[str, str]] = [("Content-Type", "application/problem+json")]
    again = None
    if kind.retry is Retry.YES or (kind.retry is Retry.WHILE_UNSETTLED and retry_after is not None):
        again = max(1, round(retry_after or 1))
        extra.append(("Retry-After", str(again)))
    written = json.dumps(body, separators=(",", ":")).encode()
    refused = Refused(name, detail, rule, said, again, dict(members or {}))
    return Answer(kind.status, (*extra, *headers), written, refused=refused)


def too_large() -> Answer:
    """The refusal of an answer that is larger than is held."""
    answer = problem("unscreenable", "the answer is larger than response_bytes_max; ask for less")
    assert answer.refused is not None
    answer.refused.code = "RESOURCE_EXHAUSTED"
    return answer


def decision_header(decision: Decision, reason: str = "") -> tuple[str, str]:
    """`Quietus-Decision`, a structured field."""
    value = f'{decision.effect.value};rule="{decision.rule}"'
    if reason:
        value += f";reason={reason}"
    return "Quietus-Decision", value


def marks(decision: Decision, dropped: int, disclose: bool) -> Headers:
    """The marks of an answer that an unsettled erasure overlaps: the same, dropped rows or not."""
    found: list[tuple[str, str]] = [
        decision_header(decision, Reason.ERASURE_EPOCH_NOT_SETTLED.value),
        ("Quietus-Candidate-Set", "contaminated"),
    ]
    if disclose:
        found.append(("Quietus-Dropped", str(dropped)))
        names = [f'"{erasure.id}"' for erasure in decision.erasures[:_FORGOTTEN_MAX]]
        more = len(decision.erasures) - len(names)
        if more > 0:
            names[-1] += f";more={more}"
        if names:
            found.append(("Quietus-Erasure", ", ".join(names)))
    return tuple(found)


def erasure_headers(erasure: Erasure, verdict: str, reason: str = "") -> Headers:
    """`Quietus-Erasure` and `Link` on the answer to a forget."""
    value = (
        f'"{erasure.id}";state={erasure.state.value};verdict={verdict};epoch={erasure.epoch}'
        f";assurance={'read_path' if erasure.may_assert_non_recallability else 'policy_only'}"
    )
    if reason:
        value += f";reason={reason}"
    link = f'</.well-known/quietus/erasures/{erasure.id}>; rel="monitor"'
    return (("Quietus-Erasure", value), ("Link", link))
