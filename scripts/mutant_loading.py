"""How a mutant, or a module whose functions say that they were called, gets into the core."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

from scripts.mutants import Mutant

REACHED: set[tuple[str, int]] = set()
"""The functions of the core that were called: module and first line."""


class Marked(SourceFileLoader):
    """Loads a module whose functions say that they were called."""

    def get_code(self, fullname: str) -> CodeType:
        """The module with a note at the beginning of each function."""
        tree = ast.parse(Path(self.path).read_text(encoding="utf-8"))
        module = fullname.rpartition(".")[2]
        for node, first, _ in outermost(tree):
            place = int(isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant))
            [note] = ast.parse(f"REACHED.add(({module!r}, {first}))").body
            node.body.insert(place, ast.copy_location(note, node))
        builtins.REACHED = REACHED  # type: ignore[attr-defined]
        return compile(ast.fix_missing_locations(tree), str(self.path), "exec")


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
    """Loads one module from a mutant's tree instead of its file."""

    mutant: Mutant

    def get_code(self, fullname: str) -> CodeType:
        """The mutant, compiled."""
        return compile(self.mutant.tree, str(self.path), "exec")


def outermost(tree: ast.AST) -> Iterator[tuple[ast.FunctionDef, int, int]]:
    """Each outermost function and method with its first and last line, decorators included."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef):
            lines = [child.lineno, *(d.lineno for d in child.decorator_list)]
            yield child, min(lines), child.end_lineno or child.lineno
        elif isinstance(child, ast.ClassDef):
            yield from outermost(child)
