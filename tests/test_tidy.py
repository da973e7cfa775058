"""The house rules, as tests. What each rule is for stands beside it in `house.py`."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from quietus.core.problems import PROBLEMS
from quietus.metrics import FAMILIES
from scripts.tables import TABLES, commands, settings, shown
from tests import house

ROOT = house.ROOT


def none(faults: Iterator[str] | list[str]) -> None:
    found = list(faults)
    assert not found, "\n" + "\n".join(found)


# Direction


def test_imports_go_one_way() -> None:
    def faults() -> Iterator[str]:
        for module in house.modules():
            if not module.part:
                continue
            if module.part not in house.LAYERS:
                yield f"{module.name}: no layer; say in tests/house.py and ARCHITECTURE.md what it may import"
                continue
            allowed = house.LAYERS[module.part] | {module.part}
            for name, line in house.imports(module.tree):
                if name.startswith("."):
                    yield f"{module.name}:{line}: relative import; write it out"
                elif name.startswith("quietus.") and name.split(".")[1] not in allowed:
                    yield f"{module.name}:{line}: {module.part} must not import {name}"

    none(faults())


def test_architecture_names_every_part() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    parts = sorted({module.part for module in house.modules()} - {""})
    none(
        f"{part}: ARCHITECTURE.md does not say what it is"
        for part in parts
        if not re.search(rf"`{part}(\.py|/)?`", page)
    )


def test_no_module_imports_itself_round_a_corner() -> None:
    known = {module.dotted for module in house.modules()}
    left = {}
    for module in house.modules():
        idle = house.for_types_only(module.tree)
        named = {name for name, line in house.imports(module.tree) if line not in idle}
        below = {name if name in known else name.rpartition(".")[0] for name in named}
        left[module.dotted] = below & known - {module.dotted, "quietus"}
    while free := {name for name, below in left.items() if not below & left.keys()}:
        left = {name: below for name, below in left.items() if name not in free}
    assert not left, f"a circle among {sorted(left)}"


def test_core_is_pure() -> None:
    def faults() -> Iterator[str]:
        for module in house.modules():
            if module.part != "core":
                continue
            for name, line in house.imports(module.tree):
                if name.split(".")[0] in house.IMPURE:
                    yield f"{module.name}:{line}: the core does no I/O, tells no time, rolls no dice: {name}"
            for number, text in enumerate(module.lines, 1):
                if re.match(r"\s*(async |.*\bawait )", text):
                    yield f"{module.name}:{number}: the core waits for nothing"

    none(faults())


def test_what_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[<>=\[ ]", line)[0].lower() for line in project["dependencies"]}
    extras = project["optional-dependencies"]
    for extra in ("speed", "redis", "postgresql", "otel"):
        declared |= {re.split(r"[<>=\[ ]", line)[0].lower() for line in extras[extra]}
    named = {"yaml": "pyyaml", "google": "protobuf", "jsonpath": "python-jsonpath", "yarl": "aiohttp",
             "multidict": "aiohttp", "grpc": "grpcio", "grpc_health": "grpcio-health-checking",
             "grpc_reflection": "grpcio-reflection", "prometheus_client": "prometheus-client",
             "opentelemetry": "opentelemetry-sdk", "typing_extensions": "typing-extensions"}  # fmt: skip
    none(
        f"{module.name}:{line}: {name} is not among the dependencies of pyproject.toml"
        for module in house.modules()
        for name, line in house.imports(module.tree)
        if (top := name.split(".")[0]) not in sys.stdlib_module_names | {"quietus", ""}
        and named.get(top, top) not in declared
    )


# Size


def test_files_fit_in_the_head() -> None:
    none(
        f"{module.name}: {len(module.lines)} lines, {house.LINES_PER_FILE} at most"
        for module in house.modules()
        if len(module.lines) > house.LINES_PER_FILE
    )


def test_functions_fit_on_a_page() -> None:
    none(
        f"{module.name}:{line}: {name} has {length} lines, {house.LINES_PER_FUNCTION} at most"
        for module in house.modules()
        for name, line, length in house.functions(module.tree)
        if length > house.LINES_PER_FUNCTION
    )


# What is not used, and how things are not called


def broken(modules: tuple[house.Module, ...], bans: tuple[house.Ban, ...]) -> Iterator[str]:
    for module in modules:
        idle = house.zero_sleeps(module.tree)
        for dotted, node in house.uses(module.tree):
            for ban in bans:
                if ban.holds(dotted, module) and id(node) not in idle:
                    yield f"{module.name}:{node.lineno}: {dotted}: {ban.reason}"


def test_banned_calls() -> None:
    none(broken(house.modules(), house.BANNED))


def test_banned_calls_in_tests() -> None:
    none(broken(house.test_modules(), house.IN_TESTS))


def test_bans_are_seen_through_aliases() -> None:
    text = "import time as t\nfrom asyncio import sleep\nt.sleep(1)\nsleep(0)\nsleep(0.1)\nx.sleep(2)\n"
    module = house.Module(ROOT / "tests/x.py", ast.parse(text), tuple(text.splitlines()))
    found = [fault.split(": ")[:2] for fault in broken((module,), house.IN_TESTS)]
    assert found == [["tests/x.py:3", "time.sleep"], ["tests/x.py:5", "asyncio.sleep"]]


def test_every_ban_has_a_reason() -> None:
    assert all(len(ban.reason) > 10 for ban in (*house.BANNED, *house.IN_TESTS))


def test_silenced_checks_name_what_they_silence() -> None:
    blanket = re.compile(r"#\s*(type:\s*ignore(?!\[)|noqa(?!:\s*[A-Z]))")
    none(
        f"{module.name}:{number}: say which error is silenced"
        for module in (*house.modules(), *house.test_modules())
        for number, text in enumerate(module.lines, 1)
        if blanket.search(text) and "re.compile" not in text
    )


def test_names_say_something() -> None:
    def faults() -> Iterator[str]:
        for module in (*house.modules(), *house.test_modules()):
            for part in module.path.relative_to(ROOT).with_suffix("").parts:
                if house.VAGUE.match(part):
                    yield f"{module.name}: the name says nothing"
            for number, text in enumerate(module.lines, 1):
                found = re.match(r"\s*class (\w+)", text)
                if found and house.VAGUE_CLASS.search(found[1]):
                    yield f"{module.name}:{number}: {found[1]} says nothing"

    none(faults())


# What is written is documented


def documentation() -> str:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return "\n".join(page.read_text(encoding="utf-8") for page in pages if page.name != "requirements.md")


def undocumented(names: list[str]) -> Iterator[str]:
    text = documentation()
    assert names, "nothing was found to look for"
    for name in names:
        if not re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text):
            yield f"{name}: neither README.md nor docs/*.md says what it is"


@pytest.mark.parametrize("name", TABLES)
def test_tables_made_from_code_are_current(name: str) -> None:
    assert shown(name) == TABLES[name][1](), "run: make docs"


def test_every_problem_is_documented() -> None:
    none(undocumented(list(PROBLEMS)))


def test_every_metric_is_documented() -> None:
    none(undocumented(list(FAMILIES)))
    assert all(family.help for family in FAMILIES.values())


def test_every_setting_is_documented() -> None:
    none(undocumented([key for key, _, _ in settings()]))
    none(f"{key}: no sentence says what it means" for key, _, says in settings() if not says)


def test_every_command_is_documented() -> None:
    none(undocumented([name for name, _ in commands()]))
    none(f"{name}: no sentence says what it does" for name, does in commands() if not does)


# What is installed, and what is tracked


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-image.lock", "requirements-test.lock"])
def test_lock_pins_with_hashes_and_names_no_index(name: str) -> None:
    text = (ROOT / name).read_text()
    entries = re.split(r"\n(?=[a-z0-9])", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).strip())
    assert all(re.match(r"[\w.-]+==\S+", entry) and "--hash=sha256:" in entry for entry in entries)
    assert not re.search(r"://|^\s*--(?!hash)", text, flags=re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["speed"]
    if "image" in name:
        wanted = [*wanted, *(line for extra in ("redis", "postgresql", "otel")
                             for line in project["optional-dependencies"][extra])]  # fmt: skip
    if "test" in name:
        wanted = wanted + project["optional-dependencies"]["test"]
    locked = {re.split("==", entry)[0].lower() for entry in entries}
    assert {re.split(r"[<>=\[ ]", line)[0].lower() for line in wanted} <= locked, "run: make lock"


def test_tracked_files_name_no_machine_and_no_registry() -> None:
    # Spelled so that this line is not what it looks for.
    places = re.compile(
        r"(?<![\w.])/(work|home|root|tmp/[a-z]/bin)/"
        r"|[p]ypi[.]org|[p]ythonhosted|[n]pmjs[.]|[d]eb(ian)?[.]debian|[d]ebian[.]org|[.][.]/shared"
    )
    none(
        f"{name}:{number}: {line.strip()[:80]}"
        for name in tracked()
        for number, line in enumerate(_lines(ROOT / name), 1)
        if places.search(line)
    )


def tracked() -> list[str]:
    told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if told.returncode == 0:
        return [name for name in told.stdout.split("\0") if name]
    return [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.*") if ".venv" not in path.parts]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
        return []
