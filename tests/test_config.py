"""Settings: where each may come from, and that every fault says where it stands and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quietus.config import ConfigError, admin_access, flag_name, load, no_color
from quietus.settings import Settings, address, sqlite_path

STORE = "store: {profile: mem0, http: {upstream: 'http://127.0.0.1:8000'}}\n"
FLAGS = {"store.profile": "mem0", "store.http.upstream": "http://127.0.0.1:8000"}


def written(folder: Path, text: str, name: str = "quietus.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path | None, environ: dict[str, str] | None = None, **flags: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(path, {key.replace("__", "."): value for key, value in flags.items()}, environ or {})
    return [str(fault) for fault in caught.value.faults]


def test_defaults_are_the_contracts() -> None:
    settings = load(None, FLAGS, {})
    assert settings.store.name == "memories"
    assert settings.policy == "default"
    assert settings.store.http.listen == "127.0.0.1:8700"
    assert settings.admin.listen == "127.0.0.1:8710"
    assert settings.limits.request_bytes_max == 4194304
    assert settings.limits.response_bytes_max == 8388608
    assert settings.limits.probes_in_flight_max == 8
    assert (settings.timeouts.header, settings.timeouts.wait, settings.ledger.lease) == (5.0, 120.0, 10.0)


def test_flag_beats_environment_beats_file(tmp_path: Path) -> None:
    path = written(tmp_path, STORE + "policy: strict\ntimeouts: {body: 1m}\nadmin: {listen: '127.0.0.1:1'}\n")
    environ = {"QUIETUS_POLICY": "observe", "QUIETUS_ADMIN__LISTEN": "127.0.0.1:2"}
    settings = load(path, {"policy": "default", "admin.listen": None}, environ)
    assert settings.policy == "default"
    assert settings.admin.listen == "127.0.0.1:2"
    assert settings.timeouts.body == 60.0


def test_json_is_accepted(tmp_path: Path) -> None:
    text = '{"store": {"profile": "mem0", "http": {"upstream": "http://h:1"}}, "ledger": "memory:"}'
    settings = load(written(tmp_path, text, "quietus.json"), {}, {})
    assert settings.ledger.path is None
    assert settings.keys_path is None
    assert settings.token_path is None


def test_a_mapping_in_the_environment_is_json(tmp_path: Path) -> None:
    environ = {"QUIETUS_STORE__HTTP__HEADERS": '{"Authorization": {"file": "/run/token"}}'}
    settings = load(written(tmp_path, STORE), {}, environ)
    assert settings.store.http.headers["Authorization"].file == Path("/run/token")
    assert refused(None, {"QUIETUS_ADMIN__TOKENS": "[{"}) == [
        "QUIETUS_ADMIN__TOKENS:1: is not JSON (write a plain value, or valid JSON)"
    ]


def test_unknown_key_is_refused_with_file_line_and_hint(tmp_path: Path) -> None:
    path = written(tmp_path, STORE + "ledgr: 'memory:'\nlimits:\n  request_bytes_maxx: 4\n")
    faults = refused(path)
    assert faults == [
        f"{path}:2: unknown key 'ledgr' (did you mean 'ledger'?)",
        f"{path}:4: unknown key 'limits.request_bytes_maxx' (did you mean 'request_bytes_max'?)",
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("policy: a\npolicy: b\n", 2, "twice"),
        ("store: [\n", 2, "not YAML"),
        ("- a\n", 1, "not a mapping"),
        ("store: {profile: mem0}\n", 1, "'store.http' is missing"),
        (STORE + "timeouts:\n  header: 5 parsecs\n", 3, "not a duration"),
        (STORE + "admin: {listen: 8710}\n", 2, "admin.listen"),
        (STORE + "admin: {listen: 'here'}\n", 2, "HOST:PORT"),
        (STORE + "ledger: {url: 'mysql://h'}\n", 2, "sqlite:///PATH, redis://HOST"),
        (STORE + "ledger: {url: 'redis://u:secret@h'}\n", 2, "password_file"),
        (STORE + "ledger: {url: 'postgresql:///'}\n", 2, "ledger"),
        (STORE + "limits: {probes_in_flight_max: 0}\n", 2, "greater than 0"),
        (STORE + "store: {name: 'a b'}\n", 2, "twice"),
        ("store: {profile: mem0, http: {upstream: 'http://h/path'}}\n", 1, "has a path"),
        ("store: {profile: mem0, http: {upstream: 'ftp://h'}}\n", 1, "not the address"),
        ("store: {profile: mem0, http: {upstream: 'http://h:99999'}}\n", 1, "port"),
    ],
)
def test_bad_values_are_refused_where_they_stand(tmp_path: Path, text: str, line: int, message: str) -> None:
    path = written(tmp_path, text)
    faults = refused(path)
    assert any(f.startswith(f"{path}:{line}:") and message in f for f in faults), faults


def test_credentials_in_an_upstream_are_refused_and_not_repeated(tmp_path: Path) -> None:
    path = written(tmp_path, "store: {profile: mem0, http: {upstream: 'http://user:hunter2@h'}}\n")
    faults = refused(path)
    assert "holds credentials" in faults[0]
    assert "hunter2" not in "".join(faults)


def test_faults_name_the_variable_or_flag_they_came_from() -> None:
    environ = {"QUIETUS_TIMEOUTS__BODY": "soon"}
    faults = refused(None, environ, store__profile="mem0", store__http__upstream="nowhere")
    assert any(f.startswith("QUIETUS_TIMEOUTS__BODY:") for f in faults)
    assert any(f.startswith("(flag for store.http.upstream):") for f in faults)


def test_names_that_kubernetes_makes_are_left_alone_and_typing_mistakes_are_not() -> None:
    load(None, FLAGS, {"QUIETUS_PORT": "tcp://10.0.0.1:80", "QUIETUS_SERVICE_HOST": "10.0.0.1"})
    assert refused(None, {"QUIETUS_STROE__NAME": "x"}) == [
        "QUIETUS_STROE__NAME:1: is no setting (did you mean QUIETUS_STORE__…?)"
    ]


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    assert "cannot be read" in refused(tmp_path / "none.yaml")[0]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///var/lib/quietus/ledger.db", "/var/lib/quietus/ledger.db"),
        ("sqlite:////var/lib/quietus/ledger.db", "/var/lib/quietus/ledger.db"),
        ("sqlite:////ledger.db", "/ledger.db"),
        ("sqlite:///quietus.db", "quietus.db"),
        ("sqlite:data/quietus.db", "data/quietus.db"),
    ],
)
def test_sqlite_takes_three_slashes_or_four(url: str, path: str) -> None:
    assert sqlite_path(url) == Path(path)
    assert load(None, FLAGS | {"ledger.url": url}, {}).ledger.path == Path(path)


def test_keys_and_token_lie_beside_the_ledger() -> None:
    settings = load(None, FLAGS | {"ledger.url": "sqlite:////srv/q/ledger.db"}, {})
    assert settings.keys_path == Path("/srv/q/ledger.keys.json")
    assert settings.token_path == Path("/srv/q/admin.token")
    moved = load(None, FLAGS | {"keys.file": "/etc/q/keys.json"}, {})
    assert moved.token_path == Path("/etc/q/admin.token")


def test_a_console_needs_no_store() -> None:
    listen, token = admin_access(None, None, None, {"QUIETUS_ADMIN__LISTEN": "127.0.0.1:9"})
    assert (listen, token) == ("127.0.0.1:9", Path("admin.token"))


def test_small_readers() -> None:
    assert address("[::1]:80") == ("::1", 80)
    assert flag_name("store.http.listen") == "QUIETUS_STORE__HTTP__LISTEN"
    assert no_color({"NO_COLOR": "1"})
    assert not no_color({"NO_COLOR": ""})


def test_several_workers_need_a_ledger_that_they_can_share() -> None:
    flags = {"store.profile": "mem0", "store.http.upstream": "http://127.0.0.1:1", "workers": 3}
    with pytest.raises(ConfigError, match="workers: several need a ledger that they can share"):
        load(None, {**flags, "ledger.url": "memory:"}, {})
    assert load(None, {**flags, "ledger.url": "sqlite:///l.db"}, {}).workers == 3
    assert load(None, {**flags, "ledger.url": "redis://127.0.0.1"}, {}).workers == 3
    with pytest.raises(ConfigError, match="workers"):
        load(None, {**flags, "workers": 0, "ledger.url": "sqlite:///l.db"}, {})


def test_settings_reach_a_worker_as_they_are(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s")
    given = {
        "store.profile": "mem0", "store.http.upstream": "http://127.0.0.1:1", "workers": 2,
        "store.http.headers": {"Authorization": {"file": str(secret)}},
        "ledger.url": "sqlite:///l.db", "ledger.lease": "3s", "timeouts.wait": "2m",
    }  # fmt: skip
    settings = load(None, given, {})
    sent = json.loads(json.dumps(settings.model_dump(mode="json", exclude_none=True)))
    assert Settings.model_validate(sent) == settings
