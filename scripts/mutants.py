"""Mutants: small wrong versions of a module, each with one change that some test ought to notice.

What is changed: comparisons, boolean and arithmetic operators, conditions (also turned round), constants,
what is returned, what is called for its effect, filters of comprehensions, `break` and `continue`. What is
not: annotations, decorators, docstrings, and the wording of errors.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

_COMPARED: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_COUNTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_NAMED: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong version: its name is the same as long as the function around it is."""

    number: int
    """Among the mutants of its module: what `mutated` makes it from."""
    name: str
    line: int
    statement: int
    """The line at which the statement around it begins."""
    inside: bool
    """Whether it is in the body of a function: then it can be put in place while the tests are loaded."""
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class _Change:
    kind: str
    old: ast.AST
    new: ast.AST


@dataclass(frozen=True, slots=True)
class _Place:
    where: str = ""
    statement: int = 0
    inside: bool = False


def mutants(text: str) -> Iterator[Mutant]:
    """Every mutant of a module's text, in the order of its lines."""
    counted: Counter[str] = Counter()
    for number, (place, change) in enumerate(_ordered(ast.parse(text))):
        stem = f"{place.where or 'module'}/{change.kind}"
        counted[stem] += 1
        yield Mutant(
            number, f"{stem}/{counted[stem]}", _line(change.old), place.statement, place.inside,
            _said(change.old), _said(change.new),
        )  # fmt: skip


def mutated(text: str, number: int) -> ast.Module:
    """The module's tree with the change of one mutant made."""
    return Module(text).changed(number)


class Module:
    """A module's tree and its mutants, looked for once. One of them can be made of it, and no second."""

    def __init__(self, text: str) -> None:
        self._tree = ast.parse(text)
        self._changes = [change for _, change in _ordered(self._tree)]

    def changed(self, number: int) -> ast.Module:
        """The tree with the change of that mutant made."""
        return _changed(self._tree, self._changes[number])


def _changed(tree: ast.Module, change: _Change) -> ast.Module:
    new = ast.copy_location(change.new, change.old)
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if value is change.old:
                setattr(node, name, new)
                return ast.fix_missing_locations(tree)
            if isinstance(value, list) and any(one is change.old for one in value):
                value[:] = [new if one is change.old else one for one in value]
                return ast.fix_missing_locations(tree)
    raise AssertionError(f"no place for {_said(change.old)}")


def _ordered(tree: ast.Module) -> list[tuple[_Place, _Change]]:
    return sorted(_walk(tree, _Place()), key=lambda pair: _line(pair[1].old))


def _line(node: ast.AST) -> int:
    return int(getattr(node.target if isinstance(node, ast.comprehension) else node, "lineno", 0))


def _said(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else f"{text[:87]}..."


def _walk(node: ast.AST, place: _Place) -> Iterator[tuple[_Place, _Change]]:
    """Every change below a node with the function and the statement that it is in."""
    if isinstance(node, ast.Raise):
        return  # the wording of an error, and what kind it is: tests of behaviour see that it is raised
    if isinstance(node, ast.stmt):
        place = replace(place, statement=node.lineno)
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        place = replace(place, where=f"{place.where}.{node.name}".lstrip("."))
    for change in _changes(node):
        yield place, change
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        below = replace(place, inside=True) if isinstance(node, ast.FunctionDef) and name == "body" else place
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_text(child):  # a docstring says, and does, nothing
                yield from _walk(child, below)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changes(node: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.Compare):
        yield from _compared(node)
    elif isinstance(node, ast.BoolOp):
        turned = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield _Change("junction", node, ast.BoolOp(turned, node.values))
        for place in range(len(node.values)):
            rest = [value for other, value in enumerate(node.values) if other != place]
            yield _Change("part", node, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))
    elif isinstance(node, ast.BinOp) and type(node.op) in _COUNTED:
        yield _Change("operator", node, ast.BinOp(node.left, _COUNTED[type(node.op)](), node.right))
    elif isinstance(node, ast.AugAssign) and type(node.op) in _COUNTED:
        yield _Change("operator", node, ast.AugAssign(node.target, _COUNTED[type(node.op)](), node.value))
        yield _Change("dropped", node, ast.Pass())
    elif isinstance(node, ast.UnaryOp):
        yield _Change("sign", node, node.operand)
    elif isinstance(node, ast.Constant):
        yield from _constant(node)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NAMED:
        other = ast.Name(_NAMED[node.func.id], ast.Load())
        yield _Change("call", node, ast.Call(other, node.args, node.keywords))
    else:
        yield from _statements(node)


def _compared(node: ast.Compare) -> Iterator[_Change]:
    for place, op in enumerate(node.ops):
        for other in _COMPARED[type(op)]:
            ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield _Change("comparison", node, ast.Compare(node.left, ops, node.comparators))


def _constant(node: ast.Constant) -> Iterator[_Change]:
    value = node.value
    if isinstance(value, bool):
        yield _Change("constant", node, ast.Constant(not value))
    elif isinstance(value, int | float):
        yield _Change("constant", node, ast.Constant(value + 1))
    elif isinstance(value, str):
        yield _Change("constant", node, ast.Constant(f"{value}!"))
    elif isinstance(value, bytes):
        yield _Change("constant", node, ast.Constant(value + b"!"))


def _statements(node: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        turned = copy.copy(node)
        turned.test = ast.UnaryOp(ast.Not(), node.test)
        yield _Change("condition", node, turned)
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield _Change("returned", node, ast.Return(ast.Constant(None)))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.YieldFrom):
        yield _Change("dropped", node, ast.Pass())
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield _Change("filter", node, ast.comprehension(node.target, node.iter, [], node.is_async))
    elif isinstance(node, ast.Continue):
        yield _Change("jump", node, ast.Break())
    elif isinstance(node, ast.Break):
        yield _Change("jump", node, ast.Continue())


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
