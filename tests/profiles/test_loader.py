import json
from pathlib import Path

import pytest

from quietus.profiles.compiled import CompileFaults
from quietus.profiles.faults import ProfileError
from quietus.profiles.loader import load_profile, parse_profile, shipped_directory, shipped_names
from quietus.profiles.models import json_schema

GOOD = """apiVersion: quietus/v1
kind: Profile
name: tried
store: {settling_interval: 10s, effectuation_bound: 60s}
routes:
  - name: read
    operation: read
    http: {method: GET, path: "/m/{key}"}
    request: {key: $.path.key}
    response: {items: $.body, item: {key: $.id}}
surfaces:
  - {name: record, kind: primary, each: key, http: {method: GET, path: "/m/{key}"}}
  - {name: backups, kind: unprobeable}
"""


def faults(text: str) -> list[tuple[int, str]]:
    with pytest.raises(ProfileError) as caught:
        parse_profile(text, "p.yaml")
    return [(fault.line, f"{fault.message} {fault.hint}") for fault in caught.value.faults]


def test_the_shipped_profiles_load() -> None:
    assert {"memory-tool", "chroma", "mem0"} <= set(shipped_names())
    for name in shipped_names():
        made = load_profile(name)
        assert made.name == name and len(made.fingerprint) == 64 and made.route_names
        assert load_profile(shipped_directory() / f"{name}.yaml").fingerprint == made.fingerprint


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("name: tried", "name: tried\nnmae: x", 4, "'nmae' is not known"),
        ("    operation: read", "    operation: peek", 7, "routes.0.operation"),
        ("item: {key: $.id}", "item: {kee: $.id}", 10, "'kee' is not known"),
        ("key: $.path.key", 'key: "path.key"', 9, "JSONPath"),
        ("  - {name: backups, kind: unprobeable}\n", "", 11, "unprobeable"),
        ("60s", "10s", 4, "effectuation_bound"),
        ("60s", "soon", 4, "duration"),
        ("name: tried", "name: tried\nname: again", 4, "twice"),
        ("operation: read", "operation: ignore", 7, "ignored"),
        (
            "operation: read\n",
            "operation: read\n    grpc: {method: /a/B}\n",
            8,
            "nothing describes the messages",
        ),
        ("kind: Profile", "kind: Profile\ndescriptors: {file: a.pb}", 3, "descriptor set cannot be read"),
        ('path: "/m/{key}"}}', 'path: "/m/{kee}"}}', 12, "{kee}"),
        ("kind: unprobeable}", "kind: unprobeable, each: nothing}", 13, "each"),
        (
            "request: {key: $.path.key}",
            "request: {filter: {select: $.body.f, dialect: sql, fields: {a: subject}}}",
            9,
            "milvus",
        ),
        ('path: "/m/{key}"}\n', 'path: "/m/x{key}"}\n', 8, "segment"),
        ("surfaces:", "strengthen: [{route: nope, set: {$.body.a: 1}}]\nsurfaces:", 11, "nope"),
        ("surfaces:", "forgets: {each_record: nope}\nsurfaces:", 11, "nope"),
        (
            "{settling_interval: 10s, effectuation_bound: 60s}",
            "{write_path_reads_derived: false}",
            4,
            "settling_interval",
        ),
        ("surfaces:", "surfaces: [", 12, "not YAML"),
        ("name: tried", "name: !!python/name:os.system tried", 3, "tags"),
    ],
)
def test_a_bad_profile_is_refused_with_its_line(old: str, new: str, line: int, said: str) -> None:
    assert old in GOOD
    found = faults(GOOD.replace(old, new, 1))
    assert any(said in message for _, message in found), found
    assert any(at == line for at, message in found if said in message), found


def test_every_fault_is_reported_at_once() -> None:
    text = GOOD.replace("$.path.key", '"$.["').replace('"/m/{key}"}}', '"/m/{kee}"}}').replace("60s", "1s")
    assert [line for line, _ in faults(text)] == [4, 9, 12, 12]


def test_files_that_are_no_profile_are_refused() -> None:
    for text in ("", "[]", "7", "a: &a [*a]", "a: b: c", "\ufeff\x00"):
        assert faults(text)
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    assert faults(bomb)
    for name in ("nobody", "./nobody.yaml"):
        with pytest.raises(ProfileError):
            load_profile(name)


def test_a_route_that_another_takes_is_refused() -> None:
    again = GOOD.replace(
        "surfaces:", '  - {name: b, operation: read, http: {method: GET, path: "/m/{id}"}}\nsurfaces:'
    )
    assert any("takes all of its requests" in message for _, message in faults(again))


def test_intervals_can_be_shortened_and_still_must_hold_together() -> None:
    short = load_profile("memory-tool").with_store(settling_interval=2.0, effectuation_bound=9.0)
    assert (short.store.settling_interval, short.store.bound, short.store.knows_purposes) == (2.0, 9.0, True)
    with pytest.raises(CompileFaults):
        load_profile("memory-tool").with_store(settling_interval=9.0, effectuation_bound=2.0)


@pytest.mark.requirement("R178")
def test_who_need_not_wait_for_writes_states_how_long_the_store_takes() -> None:
    store = "store: {settling_interval: 10s, effectuation_bound: 60s"
    assert store in GOOD
    parse_profile(GOOD.replace(store, f"{store}, write_path_reads_derived: false"), "p.yaml")
    silent = "store: {effectuation_bound: 2000s, write_path_reads_derived: false"
    [(line, said)] = faults(GOOD.replace(store, silent))
    assert (line, "needs a stated settling_interval" in said) == (4, True)


def test_unsound_declarations_are_said() -> None:
    assert any("UNSOUND" in lint for lint in load_profile("mem0").lints)


def test_the_json_schema_that_ships_is_current() -> None:
    shipped = json.loads((shipped_directory().parent / "profile.schema.json").read_text(encoding="utf-8"))
    assert shipped == json.loads(json.dumps(json_schema()))
    assert Path(shipped_directory()).is_dir()
