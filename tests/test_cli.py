"""The command line: exit codes, what each command says, and that it says it to machines too."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from quietus.admin.server import AdminServer
from quietus.cli import app
from quietus.config import load
from quietus.core.events import Draft, EventType, scope_to_facts
from quietus.core.scope import Scope
from quietus.core.states import State
from quietus.core.terms import Terms
from quietus.erasures import Erasures
from quietus.keys import Keyring
from quietus.ledger.sqlite import SqliteLedger
from quietus.profiles.loader import shipped_names
from tests.admin.desk import Desk, WatchedClock
from tests.virtual_clock import VirtualClock
from tests.world import World

FLAGS = {"store.profile": "memory-tool", "store.http.upstream": "http://127.0.0.1:1"}
CONFIG = """\
store: {profile: memory-tool, http: {upstream: "http://127.0.0.1:1"}}
ledger: "sqlite:///%s/ledger.db"
"""


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "QUIETUS_POLICY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")


def said(*words: str, given: bytes | None = None) -> tuple[int, str, str]:
    """Runs a command; its exit code, what it said, and what it complained of."""
    result = CliRunner().invoke(app, list(words), input=given)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def every(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from every(command, (*before, name))
        else:
            yield (*before, name)


@pytest.mark.parametrize("words", list(every(get_command(app))), ids=" ".join)
def test_every_command_has_help(words: tuple[str, ...]) -> None:
    code, out, _ = said(*words, "--help")
    assert code == 0
    assert "Usage:" in out


def test_version() -> None:
    assert said("--version")[1].startswith("quietus ")


@pytest.mark.parametrize(
    "words", [["nothing"], ["serve", "--moon"], ["erasures", "show"], ["erasures", "retry", "x"]]
)
def test_wrong_usage_is_2(words: list[str]) -> None:
    assert said(*words)[0] == 2


# --- check ----------------------------------------------------------------------------------------


def test_check_what_ships() -> None:
    code, out, err = said("check")
    assert (code, err) == (0, "")
    assert "chroma" in out
    assert "cases" in out
    code, out, _ = said("check", "--json")
    found = json.loads(out)
    assert (code, found["faults"], found["failed"]) == (0, [], [])
    assert {line["kind"] for line in found["checked"]} == {"profile", "policy", "cases"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("store: {profile: mem0, http: {upstream: 'http://h:1'}}\npolcy: strict\n", 2),
        ("apiVersion: quietus/v1\nkind: Policy\nname: n\nrules:\n  - {name: a, effect: moan}\n", 5),
        ("apiVersion: quietus/v1\nkind: Profile\nname: n\nmoon: full\n", 4),
        ("apiVersion: quietus/v1\nkind: Moon\n", 2),
        ("a: [\n", 2),
    ],
)
def test_check_says_where_and_ends_with_2(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    code, _, err = said("check", str(path))
    assert code == 2
    assert f"{path}:{line}: " in err


def test_check_of_a_configuration_looks_at_what_it_names(tmp_path: Path) -> None:
    path = tmp_path / "quietus.yaml"
    path.write_text(CONFIG % tmp_path, encoding="utf-8")
    assert said("check", str(path))[0] == 0
    path.write_text((CONFIG % tmp_path) + "policy: nowhere.yaml\n", encoding="utf-8")
    code, _, err = said("check", str(path))
    assert code == 2
    assert "nowhere.yaml" in err


def test_a_failing_case_is_1(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(
        "apiVersion: quietus/v1\nkind: PolicyCases\npolicy: default\ncases:\n"
        "  - {name: wrong, call: {operation: recall}, expect: {effect: block, rule: otherwise}}\n",
        encoding="utf-8",
    )
    code, out, _ = said("check", str(path))
    assert code == 1
    assert f"{path}:5: wrong" in out
    assert "effect: expected 'block', decided 'allow'" in out
    code, out, _ = said("check", "--json", str(path))
    assert json.loads(out)["failed"][0]["case"] == "wrong"


# --- profile, ledger ------------------------------------------------------------------------------


def test_profiles() -> None:
    code, out, _ = said("profile", "list", "--json")
    assert code == 0
    assert {one["name"] for one in json.loads(out)} == set(shipped_names())
    assert "chroma" in said("profile", "list")[1]
    assert "kind: Profile" in said("profile", "show", "chroma")[1]
    shown = json.loads(said("profile", "show", "chroma", "--json")[1])
    assert any(not surface["probeable"] for surface in shown["surfaces"])
    code, _, err = said("profile", "show", "chrome")
    assert code == 2
    assert "chroma" in err


def ledger_with(folder: Path, *subjects: str) -> Path:
    """A SQLite ledger on which an erasure of each subject is settling, with its keys and configuration."""
    config = folder / "quietus.yaml"
    config.write_text(CONFIG % folder, encoding="utf-8")
    settings = load(config, {}, {})
    assert settings.ledger.path is not None
    assert settings.keys_path is not None
    keyring = Keyring.load_or_make(settings.keys_path, ledger_is_new=True)
    ledger = SqliteLedger(settings.ledger.path)

    async def fill() -> None:
        erasures = Erasures(ledger, keyring, VirtualClock(), "memories")
        await erasures.load()
        for number, subject in enumerate(subjects):
            predicate = scope_to_facts(keyring.pseudonymise(Scope(subject=frozenset({subject}))))
            facts = {"store": "memories", "predicate": predicate, "terms": asdict(Terms())}
            name = f"er_{number}"
            await erasures.append([Draft(EventType.REQUESTED, name, 1.0, facts=facts, gate=True)])
            await erasures.append([Draft(EventType.ACCEPTED, name, 2.0, gate=True)])
        await ledger.close()

    asyncio.run(fill())
    return config


@pytest.mark.requirement("R206")
def test_ledger_verify(tmp_path: Path) -> None:
    config = ledger_with(tmp_path, "alice")
    path = tmp_path / "ledger.db"
    for words in (["--config", str(config)], [f"sqlite://{path}"], [str(path)]):
        code, out, _ = said("ledger", "verify", *words)
        assert (code, out.split()[:3]) == (0, ["ok", "2", "events,"]), words
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE events SET actor = 'mallory' WHERE number = 1")
    code, out, _ = said("ledger", "verify", str(path), "--json")
    found = json.loads(out)
    assert (code, found["ok"], found["at"]) == (1, False, 1)
    assert said("ledger", "verify", str(path))[0] == 1
    code, _, err = said("ledger", "verify", str(tmp_path / "none.db"))
    assert code == 2
    assert "no ledger" in err


# --- explain --------------------------------------------------------------------------------------


def explained(config: Path, *words: str, body: Any = None) -> dict[str, Any]:
    given = [] if body is None else ["--body", "-"]
    data = None if body is None else json.dumps(body).encode()
    code, out, err = said("explain", "--config", str(config), "--json", *words, *given, given=data)
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_explain_decides_by_the_ledger_and_only_reads_it(tmp_path: Path) -> None:
    config = ledger_with(tmp_path, "alice")
    before = (tmp_path / "ledger.db").read_bytes()
    inside = explained(config, "POST", "/v1/recall", body={"query": "q", "subject": "alice"})
    assert (inside["route"], inside["operation"]) == ("recall", "recall")
    assert (inside["effect"], inside["rule"]) == ("block", "recall-in-erased-scope")
    assert (inside["problem"], inside["status"]) == ("erasure-not-settled", 409)
    assert [e["id"] for e in inside["erasures"]] == ["er_0"]
    wider = explained(config, "POST", "/v1/recall", body={"query": "q"})
    assert (wider["effect"], wider["relation"], wider["marked"]) == ("screen", "wider", True)
    other = explained(config, "POST", "/v1/recall", body={"query": "q", "subject": "bob"})
    assert (other["effect"], other["marked"]) == ("allow", False)
    write = explained(config, "POST", "/v1/memories", body={"value": "v", "retention": {"subject": "alice"}})
    assert (write["effect"], write["problem"]) == ("reject", "erased-subject")
    strict = explained(config, "POST", "/v1/recall", "--policy", "strict", body={"query": "q"})
    assert strict["effect"] == "block"
    assert (tmp_path / "ledger.db").read_bytes() == before


def test_explain_beside_a_ledger_that_is_in_use(tmp_path: Path) -> None:
    config = ledger_with(tmp_path, "alice")
    ledger = SqliteLedger(tmp_path / "ledger.db")

    async def beside() -> dict[str, Any]:
        await ledger.open()
        try:
            words = ("GET", "/v1/memories?subject=alice")
            return await asyncio.to_thread(explained, config, *words)
        finally:
            await ledger.close()

    assert asyncio.run(beside())["effect"] == "block"


def test_explain_of_what_cannot_be_read(tmp_path: Path) -> None:
    config = ledger_with(tmp_path)
    found = explained(config, "POST", "/v1/forget", body={})
    assert (found["problem"], found["status"]) == ("unverifiable-forget", 422)
    unmapped = explained(config, "GET", "/nowhere")
    assert (unmapped["route"], unmapped["effect"]) == ("unmapped", "screen")
    code, out, _ = said("explain", "--config", str(config), "GET", "/nowhere")
    assert code == 0
    assert "unmapped-route" in out


def test_explain_with_other_keys_says_so(tmp_path: Path) -> None:
    config = ledger_with(tmp_path, "alice")
    (tmp_path / "ledger.keys.json").unlink()
    code, _, err = said("explain", "--config", str(config), "GET", "/x")
    assert code == 2
    assert "keys" in err


# --- serve ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "'store' is missing"),
        (["--upstream", "nowhere", "--profile", "mem0"], "not the address of a store"),
        (["--upstream", "http://h:1", "--profile", "mem1", "--ledger", "memory:"], "no profile of this name"),
        (["--upstream", "http://h:1", "--profile", "mem0", "--ledger", "memory:", "--policy", "lax"], "lax"),
        (["--config", "none.yaml"], "cannot be read"),
    ],
)
def test_serve_refuses_a_bad_configuration(words: list[str], message: str) -> None:
    code, _, err = said("serve", *words)
    assert code == 2
    assert message in err


# --- the admin API, from the console --------------------------------------------------------------


class Console:
    """A running admin API and the words that lead a command to it."""

    def __init__(self, desk: Desk, server: AdminServer, folder: Path) -> None:
        self.desk = desk
        token = folder / "token"
        token.write_text(server.token, encoding="utf-8")
        self.where = ["--admin", server.url.removeprefix("http://"), "--token-file", str(token)]

    async def said(self, *words: str) -> tuple[int, str, str]:
        return await asyncio.to_thread(said, *words, *self.where)


@pytest.fixture
async def console(tmp_path: Path) -> Any:
    clock = WatchedClock()
    world = World(clock=clock)
    await world.parts.erasures.load()
    settings = load(None, {**FLAGS, "ledger.url": "memory:", "admin.listen": "127.0.0.1:0"}, {})
    server = AdminServer(world.parts, world.metrics, settings)
    await server.start()
    yield Console(Desk(world.parts.erasures, clock), server, tmp_path)
    await server.stop()


async def test_list_and_show(console: Console) -> None:
    assert "no erasures" in (await console.said("erasures", "list"))[1]
    erasure = await console.desk.erasure(State.LEAKING, subject="alice")
    code, out, _ = await console.said("erasures", "list", "--subject", "alice")
    assert code == 0
    assert erasure.id in out
    code, out, _ = await console.said("erasures", "list", "--json")
    assert json.loads(out)["erasures"][0]["state"] == "leaking"
    code, out, _ = await console.said("erasures", "show", erasure.id)
    assert code == 0
    assert "still returns what was erased" in out
    assert "backups" in out
    assert json.loads((await console.said("erasures", "show", erasure.id, "--json"))[1])["id"] == erasure.id


async def test_what_the_sidecar_refuses_is_1_and_says_why(console: Console) -> None:
    code, _, err = await console.said("erasures", "show", "er_none")
    assert code == 1
    assert "no erasure of that id" in err
    settled = await console.desk.erasure(State.SETTLED)
    code, _, err = await console.said("erasures", "retry", settled.id, "--reason", "because")
    assert code == 1
    assert "no meaning while settled" in err


@pytest.mark.parametrize("act", ["verify", "retry", "escalate", "release"])
async def test_acts(console: Console, act: str) -> None:
    erasure = await console.desk.erasure(State.VIOLATION)
    reason = [] if act == "verify" else ["--reason", "looked at"]
    code, out, err = await console.said("erasures", act, erasure.id, *reason, "--json")
    assert code == 0, err
    state = {"verify": "violation", "retry": "settling", "escalate": "violation", "release": "released"}[act]
    assert json.loads(out)["state"] == state


@pytest.mark.requirement("R187")
async def test_readmit(console: Console) -> None:
    erasure = await console.desk.erasure(State.SETTLED, subject="alice")
    code, out, _ = await console.said("readmit", "alice", "--reason", "ticket 4711")
    assert (code, out.strip()) == (0, f"let in again: {erasure.id}")
    code, _, err = await console.said("readmit", "nobody", "--reason", "ticket 4711")
    assert code == 1
    assert "no tombstone" in err


@pytest.mark.parametrize(("state", "code"), [(State.SETTLED, 0), (State.RELEASED, 1), (State.REFUSED, 1)])
async def test_watch_ends_with_the_state(console: Console, state: State, code: int) -> None:
    erasure = await console.desk.erasure(state)
    got, out, _ = await console.said("erasures", "watch", erasure.id)
    assert got == code
    assert state.value in out


async def test_watch_follows(console: Console) -> None:
    erasure = await console.desk.erasure(State.LEAKING)
    watching = asyncio.ensure_future(console.said("erasures", "watch", erasure.id))
    await console.desk.clock.asleep.wait()
    await console.desk.event(erasure.id, EventType.CLEAN)
    code, out, _ = await watching
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")][0] == "leaking"
    assert "settled" in out


def test_no_sidecar_and_no_token_say_what_to_do(tmp_path: Path) -> None:
    code, _, err = said("erasures", "list", "--token-file", str(tmp_path / "none"))
    assert code == 2
    assert "token file" in err
    token = tmp_path / "token"
    token.write_text("x" * 32, encoding="utf-8")
    code, _, err = said("erasures", "list", "--admin", "127.0.0.1:1", "--token-file", str(token))
    assert code == 2
    assert "is it running" in err


async def test_no_color_is_honoured(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    erasure = await console.desk.erasure()
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = (await console.said("erasures", "show", erasure.id))[1]
    monkeypatch.setenv("NO_COLOR", "1")
    plain = (await console.said("erasures", "show", erasure.id))[1]
    assert "\x1b[33m" in coloured
    assert "\x1b[33m" not in plain


# --- the store that lies --------------------------------------------------------------------------


def test_legacy_faults_are_listed_and_checked() -> None:
    code, out, _ = said("legacy", "serve", "--faults")
    assert code == 0
    assert "lazy_index" in out
    code, _, err = said("legacy", "serve", "--fault", "lazy_indx")
    assert code == 2
    assert "did you mean lazy_index" in err
