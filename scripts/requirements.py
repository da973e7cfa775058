"""Writes docs/requirements.md: every requirement with the tests that carry its id.

Tests are read, never run: the marker `@pytest.mark.requirement("R17", ...)` is found in the syntax tree
of every file under tests/, on a function, on a class (for all of its tests) or, as `pytestmark`, on a
module. An id that docs/requirements.yaml does not have, or one that is not written out, is an error.

    python scripts/requirements.py            # write the page
    python scripts/requirements.py --check    # exit 1 if the page is not current
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "docs" / "requirements.yaml"
PAGE = ROOT / "docs" / "requirements.md"
TESTS = ROOT / "tests"

SIGHT = {
    "V": "visible and enforceable on the wire",
    "P": "partial: needs a probe, a declared capability or a scan of the store",
    "N": "invisible: only an honest statement is possible",
}

HEAD = ("| id | requirement | sight | note | tests |", "|---|---|---|---|---|")

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class MarkerError(ValueError):
    """A marker that names no known requirement, or that cannot be read without running the test."""


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement."""

    id: str
    section: str
    sight: str
    text: str
    note: str


def load(path: Path = ROWS) -> list[Row]:
    """The rows of docs/requirements.yaml, in their order."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [
        Row(row["id"], part["section"], row["sight"], row["text"], row.get("note", ""))
        for part in document
        for row in part["rows"]
    ]


def collect(tests: Path = TESTS) -> dict[str, list[str]]:
    """For each id that a test carries: the tests, as pytest names them, without parameters."""
    found: dict[str, list[str]] = {}
    for file in sorted(tests.rglob("test_*.py")):
        name = file.relative_to(tests.parent).as_posix()
        for test, ids in _marked(ast.parse(file.read_text(encoding="utf-8"), name), name):
            for id_ in ids:
                carriers = found.setdefault(id_, [])
                if test not in carriers:
                    carriers.append(test)
    return found


def render(rows: Sequence[Row], carriers: Mapping[str, Sequence[str]]) -> str:
    """The page. Raises MarkerError when a test carries an id that no row has."""
    unknown = sorted(set(carriers) - {row.id for row in rows})
    if unknown:
        where = ", ".join(f"{id_} ({carriers[id_][0]})" for id_ in unknown)
        raise MarkerError(f"tests carry ids that docs/requirements.yaml does not have: {where}")
    shown = sum(1 for row in rows if row.id in carriers)
    lines = [
        "# Requirements, and the tests that carry them",
        "",
        "Made by `make docs` from [requirements.yaml](requirements.yaml) and the markers in `tests/`; do not",
        "edit.",
        "",
        f"{shown} of {len(rows)} rows are carried by a test. A row without one is not shown to hold: either",
        "its part is not built yet, or it is only stated as a limit.",
        "",
        "Sight: " + "; ".join(f"**{letter}** {meaning}" for letter, meaning in SIGHT.items()) + ".",
    ]
    section = ""
    for row in rows:
        if row.section != section:
            section = row.section
            lines += ["", f"## {section}", "", *HEAD]
        tests = "<br>".join(f"`{test}`" for test in sorted(carriers.get(row.id, ()))) or "none"
        lines.append(f"| {row.id} | {_cell(row.text)} | {row.sight} | {_cell(row.note)} | {tests} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page as it should stand now."""
    return render(load(), collect())


def main(arguments: Sequence[str]) -> int:
    """Writes the page, or with `--check` only compares."""
    wanted = page()
    if "--check" in arguments:
        current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        return 0 if current == wanted else 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


def _marked(module: ast.Module, file: str) -> Iterator[tuple[str, list[str]]]:
    whole = _of_pytestmark(module.body, file)
    for node in module.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            shared = whole + _of_decorators(node, file) + _of_pytestmark(node.body, file)
            yield from _tests(node.body, f"{file}::{node.name}", shared, file)
    yield from _tests(module.body, file, whole, file)


def _tests(
    body: Sequence[ast.stmt], prefix: str, shared: list[str], file: str
) -> Iterator[tuple[str, list[str]]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield f"{prefix}::{node.name}", shared + _of_decorators(node, file)
        elif isinstance(node, ast.Assign) and _is_state_machine(node):
            yield f"{prefix}::{ast.unparse(node.targets[0])}", list(shared)


def _is_state_machine(node: ast.Assign) -> bool:
    """Hypothesis's `TestThing = Machine.TestCase` is a test without a `def`."""
    target = node.targets[0]
    named = isinstance(target, ast.Name) and target.id.startswith("Test")
    return named and isinstance(node.value, ast.Attribute) and node.value.attr == "TestCase"


def _of_decorators(node: Definition, file: str) -> list[str]:
    return [id_ for decorator in node.decorator_list for id_ in _ids(decorator, file)]


def _of_pytestmark(body: Sequence[ast.stmt], file: str) -> list[str]:
    return [
        id_
        for node in body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets)
        for id_ in _ids(node.value, file)
    ]


def _ids(node: ast.AST, file: str) -> list[str]:
    """Ids in every `pytest.mark.requirement(...)` below `node`: also one inside `pytest.param`."""
    found: list[str] = []
    for call in ast.walk(node):
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.requirement"):
            continue
        for argument in call.args:
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise MarkerError(f"{file}:{call.lineno}: write the ids of a requirement out, as strings")
            found.append(argument.value)
        if not call.args:
            raise MarkerError(f"{file}:{call.lineno}: a requirement marker without an id")
    return found


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
