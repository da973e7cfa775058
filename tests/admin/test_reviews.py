"""Kubernetes says who may use the admin API: a real HTTPS server answers, or does not: then nobody may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from structlog.testing import capture_logs

from quietus.adapters import api_server as client_side
from quietus.admin.reviews import KEPT, WAITING, Reviews
from quietus.admin.server import build
from quietus.admin.tokens import Role, load_tokens
from quietus.app import Sidecar
from quietus.config import ConfigError, load
from quietus.core.events import EventType
from quietus.settings import AdminSettings, ReviewSettings
from tests.admin.desk import Desk, WatchedClock, bearer, tokens
from tests.harness.api_server import ACCESS, TOKENS, ApiServer, api_server
from tests.harness.papers import paper
from tests.world import World

GOOD = "a-token-of-the-privacy-officers"
ACCOUNT = "system:serviceaccount:people:officer"


class Office:
    """The admin API, the API server that it asks, and a clock that a test moves."""

    def __init__(self, api: ApiServer, client: TestClient[Any, Any], world: World, reviews: Reviews) -> None:
        self.api, self.client, self.world, self.reviews = api, client, world, reviews

    async def status(self, token: str = GOOD, method: str = "GET", path: str = "/v1/erasures") -> int:
        body = {"reason": "because"} if method == "POST" else None
        headers = {"Authorization": f"Bearer {token}"}
        async with self.client.request(method, path, json=body, headers=headers) as answer:
            return answer.status

    def counted(self, outcome: str) -> float:
        return self.world.sample("quietus_admin_reviews_total", outcome=outcome)


@asynccontextmanager
async def office(folder: Path, **more: Any) -> AsyncIterator[Office]:
    async with api_server(folder) as api:
        # Patient, but where impatience is what is shown: a loaded machine is slow to shake hands.
        wanted = ReviewSettings(server=api.url, account=api.account, **{"timeout": "30s", **more})
        world = World(clock=WatchedClock())
        await world.parts.erasures.load()
        asks = client_side.ApiServer(api.url, wanted.account, wanted.timeout)
        reviews = Reviews(asks, wanted, wanted.resource_namespace(), "memories", world.clock, world.metrics)
        app = build(world.parts, world.metrics, tokens(), AdminSettings(), reviews)
        async with TestClient(TestServer(app)) as client:
            yield Office(api, client, world, reviews)
        await reviews.close()


@pytest.mark.requirement("R200")
@pytest.mark.parametrize(
    ("verbs", "expected"),
    [
        ((), (403, 403, 403)),
        (("viewer",), (200, 403, 403)),
        (("privacy",), (200, 404, 403)),
        (("operator",), (200, 404, 404)),
        (("viewer", "privacy", "operator"), (200, 404, 404)),
        (("get", "list", "update", "Operator"), (403, 403, 403)),
    ],
)
async def test_a_verb_is_a_role(tmp_path: Path, verbs: tuple[str, ...], expected: tuple[int, ...]) -> None:
    async with office(tmp_path) as here:
        here.api.user(GOOD, ACCOUNT, *verbs)
        asked = [
            await here.status(),
            await here.status(method="POST", path="/v1/erasures/er_404:extend"),
            await here.status(method="POST", path="/v1/erasures/er_404:verify"),
        ]
        # An act on an erasure that is not there gets as far as that: 404 is "you may".
        assert tuple(404 if status == 400 else status for status in asked) == expected
        spec = here.api.asked[-1][1]["spec"]
        assert spec["user"] == ACCOUNT and spec["groups"] == ["system:authenticated"] and spec["extra"]
        assert here.api.count(TOKENS) == 1 and here.api.count(ACCESS) == 3, "each act asked anew"


@pytest.mark.requirement("R200")
async def test_the_actor_is_who_kubernetes_says_it_is(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        desk = Desk(here.world.parts.erasures, here.world.clock)  # type: ignore[arg-type]
        erasure = await desk.erasure()
        here.api.user(GOOD, ACCOUNT, "operator")
        assert await here.status(method="POST", path=f"/v1/erasures/{erasure.id}:verify") == 202
        assert ACCOUNT in {event.actor for event in await desk.events(erasure.id)}


@pytest.mark.requirement("R200")
async def test_forged_and_foreign_tokens_are_nobodys(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        here.api.user(GOOD, ACCOUNT, "operator")
        here.api.user("meant-for-another", "system:node:n", "operator", audience="https://kubernetes")
        for token in (GOOD + "x", GOOD[:-1], "meant-for-another", "ü" * 20):
            assert await here.status(token) == 401, token[:20]
        assert await here.reviews.identify(f"Bearer {'x' * 20_000}") is None
        assert here.counted("unauthenticated") == 3, "what cannot be a token is not even asked about"
        # An authenticator that knows no audiences answers without them.
        here.api.answers[TOKENS] = {
            "kind": "TokenReview", "status": {"authenticated": True, "user": {"username": "root"}},
        }  # fmt: skip
        assert await here.status("some-other-token") == 401
        here.api.answers[TOKENS]["status"]["audiences"] = ["somebody-else"]
        assert await here.status("some-third-token") == 401
        here.api.answers[TOKENS]["status"] = {"authenticated": "true", "audiences": ["quietus"]}
        assert await here.status("some-fourth-token") == 401
        assert here.api.count(ACCESS) == 0


async def test_a_name_that_does_not_fit_the_ledger_is_nobodys(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        for number, name in enumerate(("line\nfeed", "x" * 321, "sneaky\x00", "ünï")):
            here.api.user(f"{GOOD}-{number}", name, "operator")
            assert await here.status(f"{GOOD}-{number}") == 401


@pytest.mark.requirement("R200")
async def test_what_is_revoked_is_gone_when_the_answer_has_expired(tmp_path: Path) -> None:
    async with office(tmp_path, cache="10s") as here:
        here.api.user(GOOD, ACCOUNT, "viewer")
        assert await here.status() == 200
        del here.api.users[GOOD]
        here.world.clock.move(9.9)
        assert await here.status() == 200
        here.world.clock.move(0.2)
        assert await here.status() == 401
        here.api.user(GOOD, ACCOUNT, "viewer")
        assert await here.status() == 401, "a no holds as long as a yes"
        here.world.clock.move(10)
        assert await here.status() == 200
        assert here.api.count(TOKENS) == 3 and here.counted("kept") == 2


def status(code: int, text: str = "{}") -> Callable[[], web.Response]:
    return lambda: web.Response(status=code, text=text, content_type="application/json")


def away() -> web.Response:
    raise web.HTTPFound("https://127.0.0.1:1/elsewhere")


GARBAGE = [
    status(500), status(403), status(401), status(429), status(201, "no JSON"), status(201, "[]"),
    status(201, "x" * 300_000), status(201, "{" * 200_000), status(204), away,
    {"kind": "TokenReview"}, {"kind": "TokenReview", "status": []}, {"kind": "Status", "status": "Success"},
    {"kind": "SubjectAccessReview", "status": {"authenticated": True, "allowed": True}},
    {"kind": "TokenReview", "status": {"authenticated": True, "audiences": ["quietus"]}},
    {"kind": "TokenReview", "status": {"authenticated": True, "audiences": ["quietus"], "user": "root"}},
    {"kind": "TokenReview",
     "status": {"authenticated": True, "audiences": ["quietus"], "user": {"username": "a", "groups": "b"}}},
]  # fmt: skip


@pytest.mark.requirement("R200")
@pytest.mark.parametrize("answer", GARBAGE, ids=range(len(GARBAGE)))
async def test_an_answer_that_is_none_lets_nobody_in(tmp_path: Path, answer: Any) -> None:
    async with office(tmp_path) as here:
        here.api.user(GOOD, ACCOUNT, "operator")
        here.api.answers[TOKENS] = answer
        with capture_logs() as logs:
            headers = {"Authorization": f"Bearer {GOOD}"}
            async with here.client.get("/v1/erasures", headers=headers) as refused:
                assert refused.status == 503 and refused.headers["Retry-After"]
                assert (await refused.json())["type"] == "urn:quietus:problem:reviews-unavailable"
                assert GOOD not in await refused.text()
        assert here.counted("unavailable") == 1
        assert [line["event"] for line in logs] == ["reviews_unavailable"]
        assert GOOD not in str(logs) and here.api.own not in str(logs)
        here.api.answers.clear()
        assert await here.status() == 200, "it is asked again at once"


@pytest.mark.requirement("R200")
@pytest.mark.parametrize("answer", [status(500), {"kind": "SubjectAccessReview"}, status(201, "no JSON")])
async def test_a_role_that_nobody_can_tell_is_none(tmp_path: Path, answer: Any) -> None:
    async with office(tmp_path) as here:
        here.api.user(GOOD, ACCOUNT, "operator")
        here.api.answers[ACCESS] = answer
        assert await here.status() == 503
        both = {"allowed": True, "denied": True}
        here.api.answers[ACCESS] = {"kind": "SubjectAccessReview", "status": both}
        assert await here.status() == 403, "what is denied is not allowed"


@pytest.mark.requirement("R200")
async def test_while_the_api_server_is_away_nobody_is_let_in(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        here.api.user(GOOD, ACCOUNT, "operator")
        assert await here.status() == 200
        port = here.api.port
        await here.api.stop()
        assert await here.status() == 200, "for as long as its last answer holds"
        here.world.clock.move(11)
        assert await here.status() == 503
        async with here.client.get("/v1/erasures", headers=bearer(Role.VIEWER)) as answer:
            assert answer.status == 200, "a token of the settings does not need it"
        await here.api.start(port)
        assert await here.status() == 200
        events = [event async for event in here.world.parts.erasures.events(None)]
        assert not [e for e in events if e.type is EventType.ACCESSED], "nobody was refused for what they are"


@pytest.mark.requirement("R200")
async def test_one_that_does_not_answer_in_time_is_away(tmp_path: Path) -> None:
    async with office(tmp_path, timeout="200ms") as here:
        here.api.user(GOOD, ACCOUNT, "operator")
        here.api.hold = asyncio.Event()
        with capture_logs() as logs:
            assert await here.status() == 503
        assert [line["cause"] for line in logs] == ["no_answer_in_time"]


@pytest.mark.requirement("R200")
async def test_a_server_that_another_authority_vouches_for_is_not_told_the_token(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        here.api.user(GOOD, ACCOUNT, "viewer")
        real = (here.api.account / "ca.crt").read_text()
        (here.api.account / "ca.crt").write_bytes(paper("somebody-else").cert)
        assert await here.status() == 503
        assert not here.api.asked
        (here.api.account / "ca.crt").write_text(real)
        assert await here.status() == 200, "the files of the account are read anew"
        here.world.clock.move(11)
        here.api.own = "the-token-has-rotated"
        assert await here.status() == 503
        (here.api.account / "token").write_text(here.api.own)
        assert await here.status() == 200


async def test_many_at_once_are_one_question_and_too_many_are_sent_away(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        here.api.user(GOOD, ACCOUNT, "viewer")
        here.api.hold = asyncio.Event()
        same = [asyncio.ensure_future(here.status()) for _ in range(20)]
        others = [asyncio.ensure_future(here.status(f"guess-{n}")) for n in range(WAITING + 16)]
        sent_away = await asyncio.wait_for(_first(others, 17), 30)
        assert sent_away == {503}
        here.api.hold.set()
        assert set(await asyncio.gather(*same)) == {200}
        await asyncio.gather(*others)
        assert sum(d["spec"]["token"] == GOOD for path, d in here.api.asked if path == TOKENS) == 1


async def _first(tasks: list[asyncio.Task[int]], count: int) -> set[int]:
    found: list[int] = []
    for each in asyncio.as_completed(tasks):
        found.append(await each)
        if len(found) == count:
            break
    return set(found)


async def test_answers_that_are_kept_are_bounded(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        for number in range(KEPT + 40):
            assert await here.reviews.identify(f"Bearer guess-{number}") is None
        assert len(here.reviews._kept) == KEPT


FLAGS: dict[str, Any] = {"store.profile": "memory-tool", "store.http.upstream": "http://127.0.0.1:1",
                         "store.http.listen": "127.0.0.1:0", "admin.listen": "127.0.0.1:0"}  # fmt: skip


def test_no_token_is_made_where_kubernetes_decides(tmp_path: Path) -> None:
    settings = load(None, FLAGS | {"ledger.url": f"sqlite:///{tmp_path}/l.db", "admin.reviews": {}}, {})
    known, made = load_tokens(settings)
    assert made == "" and not (tmp_path / "admin.token").exists()
    assert known.identify("Bearer ") is None


@pytest.mark.requirement("R200")
async def test_the_sidecar_asks_the_cluster_that_its_pod_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import aiohttp

    async with api_server(tmp_path) as api:
        api.user(GOOD, ACCOUNT, "viewer")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(api.port))
        reviews = {"account": str(api.account), "timeout": "30s"}
        sidecar = Sidecar(load(None, FLAGS | {"ledger.url": "memory:", "admin.reviews": reviews}, {}))
        await sidecar.start()
        try:
            async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {GOOD}"}) as session:
                async with session.get(f"{sidecar.admin_url}/v1/erasures") as answer:
                    assert answer.status == 200
        finally:
            await sidecar.stop()


def test_outside_of_a_pod_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    settings = load(None, FLAGS | {"ledger.url": "memory:", "admin.reviews": {"account": str(tmp_path)}}, {})
    with pytest.raises(ConfigError, match=r"admin\.reviews\.server"):
        Sidecar(settings)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    with pytest.raises(OSError, match="admin.reviews"):
        Sidecar(settings)


def test_settings_that_would_not_be_safe_are_refused() -> None:
    for bad in ({"cache": "61s"}, {"audiences": []}, {"server": "http://k:1"}, {"server": "https://u:p@k"}):
        with pytest.raises(ConfigError):
            load(None, FLAGS | {"admin.reviews": bad}, {})


