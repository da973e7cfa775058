"""How a mutant, or a module whose statements say that they are reached, gets into the core."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

from scripts.mutants import mutated

REACHED: set[tuple[str, int]] = set()
"""The statements of the core's functions that were reached: module and first line."""


class Marked(SourceFileLoader):
    """Loads a module whose functions note which of their statements are reached."""

    def get_code(self, fullname: str) -> CodeType:
        """The module with a note before each statement of a function."""
        tree = ast.parse(Path(self.path).read_text(encoding="utf-8"))
        module = fullname.rpartition(".")[2]
        for function, _, _ in outermost(tree):
            for node in list(ast.walk(function)):
                for name in ("body", "orelse", "finalbody"):
                    statements = getattr(node, name, None)
                    if isinstance(statements, list):
                        setattr(node, name, [part for one in statements for part in _noted(module, one)])
        builtins.REACHED = REACHED  # type: ignore[attr-defined]
        return compile(ast.fix_missing_locations(tree), str(self.path), "exec")


def _noted(module: str, statement: ast.stmt) -> list[ast.stmt]:
    [note] = ast.parse(f"REACHED.add(({module!r}, {statement.lineno}))").body
    for node in ast.walk(note):
        ast.copy_location(node, statement)
    return [note, statement]


class Finder(MetaPathFinder):
    """Finds the core, or one module of it, before anybody else does."""

    def __init__(self, folder: Path, loader: type[SourceFileLoader], module: str = "") -> None:
        self._folder, self._loader, self._module = folder, loader, module

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Ours for a module of the core; nothing for any other."""
        package, _, module = fullname.rpartition(".")
        if package != "quietus.core" or self._module not in ("", module):
            return None
        file = str(self._folder / "proxy/quietus/core" / f"{module}.py")
        return spec_from_file_location(fullname, file, loader=self._loader(fullname, file))


class Swapped(SourceFileLoader):
    """Loads one module as a mutant instead of as its file."""

    number: int | None
    """None: as its file is."""

    def get_code(self, fullname: str) -> CodeType:
        """The mutant, compiled."""
        text = Path(self.path).read_text(encoding="utf-8")
        tree = ast.parse(text) if self.number is None else mutated(text, self.number)
        return compile(tree, str(self.path), "exec")


def outermost(tree: ast.AST) -> Iterator[tuple[ast.FunctionDef, int, int]]:
    """Each outermost function and method with its first and last line, decorators included."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef):
            lines = [child.lineno, *(d.lineno for d in child.decorator_list)]
            yield child, min(lines), child.end_lineno or child.lineno
        elif isinstance(child, ast.ClassDef):
            yield from outermost(child)


@dataclass(frozen=True, slots=True)
class _Statement:
    module: str
    line: int
    last: int
    inside: bool
    defines: frozenset[str]
    mentions: frozenset[str]


def mentions(folder: Path, module: str, line: int) -> set[tuple[str, int]]:
    """The statements in functions that have to do with what a statement outside of them defines.

    That is, those that mention its name, or the name of another table that mentions it; all of the module
    when nothing does.
    """
    found = _statements(folder)
    [own] = [one for one in found if (one.module, one.line, one.inside) == (module, line, False)][:1]
    names = set(own.defines)
    for _ in range(2):
        names |= {name for one in found if not one.inside and one.mentions & names for name in one.defines}
    keys = {
        (one.module, one.line) for one in found
        if one.inside and (one.mentions & names or one.module == module and own.line < one.line <= own.last)
    }  # fmt: skip
    return keys or {(one.module, one.line) for one in found if one.inside and one.module == module}


@cache
def _statements(folder: Path) -> list[_Statement]:
    return [
        statement
        for path in sorted((folder / "proxy/quietus/core").glob("*.py"))
        for statement in _below(ast.parse(path.read_text(encoding="utf-8")), path.stem, False)
    ]


def _below(tree: ast.AST, module: str, inside: bool) -> Iterator[_Statement]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt):
            around = isinstance(node, ast.FunctionDef | ast.ClassDef)  # what is in it speaks for itself
            names = frozenset(() if around else _names(node))
            last = node.end_lineno or node.lineno
            yield _Statement(module, node.lineno, last, inside, frozenset(_defined(node)), names)
        yield from _below(node, module, inside or isinstance(node, ast.FunctionDef))


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    for target in getattr(node, "targets", [getattr(node, "target", None)]):
        if isinstance(target, ast.Name):
            yield target.id


def _names(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Name | ast.Attribute):
            yield one.id if isinstance(one, ast.Name) else one.attr
