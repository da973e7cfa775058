"""The admin API against its own description: schemathesis asks every route what it says it takes, and not.

With each role, and with nobody's: whatever comes back must be as described, and no server error.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from quietus.admin.openapi import described
from quietus.admin.routes import ROUTES
from quietus.admin.tokens import Role
from quietus.core.states import State
from tests.admin.desk import WatchedClock, bearer, office

SCHEMA = schemathesis.openapi.from_dict(described(ROUTES))

MEANS_MORE = {
    "POST /v1/erasures": "exactly one of subject, keys and path; no name in a reference; no date ahead",
    "POST /v1/subjects:readmit": "no reason that names the subject",
    "POST /v1/holds": "a date that lies ahead; no name in the reason",
    "POST /v1/overrides": "a duration of at most a day",
    "POST /v1/quarantines": "no name in the reason",
}
"""What these take beyond what a schema can say: a 400 for what fits the schema is no fault there."""


@dataclass
class Served:
    """The admin API on a socket, in a thread of its own."""

    url: str = ""


class HastyClock(WatchedClock):
    """Whoever lies down is up again at once: nobody in this test waits for anything."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    out, ready, stop = Served(), threading.Event(), threading.Event()

    async def serve() -> None:
        async with office(clock=HastyClock()) as (desk, client, _):
            for state in (State.SETTLING, State.LEAKING, State.SETTLED):
                await desk.erasure(state, subject=f"somebody-{state}")
            out.url = str(client.make_url("/")).rstrip("/")
            ready.set()
            await asyncio.get_running_loop().run_in_executor(None, stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(60)
    yield out
    stop.set()
    thread.join(30)


def examples(most: int) -> Any:
    """The same ones each time."""
    return settings(
        max_examples=most, derandomize=True, deadline=None, database=None,
        phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip


def as_described(case: Any, headers: dict[str, str], served: Served) -> None:
    left = [positive_data_acceptance] if case.operation.label in MEANS_MORE else []
    case.call_and_validate(base_url=served.url, headers=headers, timeout=30, excluded_checks=left)


@SCHEMA.parametrize()
@examples(5)
def test_who_may_do_all_is_answered_as_described(case: Any, served: Served) -> None:
    as_described(case, bearer(Role.OPERATOR), served)


@SCHEMA.parametrize()
@examples(1)
def test_who_may_do_less_is_answered_as_described(case: Any, served: Served) -> None:
    for role in (None, Role.VIEWER, Role.PRIVACY):
        as_described(case, bearer(role) if role is not None else {}, served)
