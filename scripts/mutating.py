"""Where mutants are tried: a bench of collected tests, and a fresh child for what cannot be put in place.

Two processes stand by, forked when everything but Quietus has been imported. One has collected the tests of
the core; the other has not imported Quietus yet. Each forks a child for each mutant that it is given.
"""

from __future__ import annotations

import ast
import gc
import os
import pickle
import select
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, TracebackType
from typing import Any, Final

from scripts.mutant_loading import REACHED, Finder, Marked, Swapped, outermost
from scripts.mutants import Mutant

PATIENCE: Final = 120.0
"""Seconds that the tests of one mutant may take: one that never ends is killed, too."""
EXAMPLES: Final = 40
"""Of each property, at most."""
TESTS: Final = ("tests/core", "tests/trial/test_looks.py", "tests/trial/test_standing.py")
TIMED: Final = "test_decision_costs_the_same_among_100_000_erasures"
"""Measures how long something takes: no test of what is right."""

LONG: Final = (
    "test_one_more_erasure_is_never_more_permissive", "test_every_refusal_is_worded_as_a_known_problem",
    "test_screening_only_removes_keeps_order", "agree_with_a_walk", "that_of_a_walk", "that_a_walk_finds",
    "test_verdicts_are_kept_for_one_generation", "test_a_run_of_eight_words_is_always_found",
)  # fmt: skip
"""Tests of a second and more: left out where they are run for a mutant that is not in a function."""

Served = Callable[[str, Mutant], bool]


class Bench:
    """Both processes, as long as it is open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines: dict[str, set[int]] = {}

    def __enter__(self) -> Bench:
        prepare()
        self._fresh = Server(lambda serve: serve(lambda module, mutant: fresh(self._folder, module, mutant)))
        self._placed = Server(lambda serve: collected(self._folder, serve))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        self._fresh.close()
        self._placed.close()

    def survives(self, module: str, mutant: Mutant) -> bool:
        """Whether no test notices it."""
        return (self._placed if self.quick(module, mutant) else self._fresh).ask(module, mutant)

    def quick(self, module: str, mutant: Mutant) -> bool:
        """Whether it can be put in place: it is in the body of a function."""
        if module not in self._lines:
            self._lines[module] = lines_of_functions(self._folder, module)
        return mutant.line in self._lines[module]


class Server:
    """A process that answers whether mutants survive, one after the other."""

    def __init__(self, begin: Callable[[Callable[[Served], None]], None]) -> None:
        ask, told = os.pipe(), os.pipe()
        self._pid = os.fork()
        if not self._pid:
            os.close(ask[1])
            os.close(told[0])
            with suppress(BaseException):
                begin(lambda survives: _serve(ask[0], told[1], survives))
            os._exit(0)
        os.close(ask[0])
        os.close(told[1])
        self._ask, self._told = ask[1], told[0]

    def ask(self, module: str, mutant: Mutant) -> bool:
        """Whether it survives. Raises RuntimeError when the process has ended."""
        data = pickle.dumps((module, mutant))
        os.write(self._ask, struct.pack("!I", len(data)))
        for place in range(0, len(data), 1 << 15):
            os.write(self._ask, data[place : place + (1 << 15)])
        answer = os.read(self._told, 1)
        if not answer:
            raise RuntimeError("the tests cannot be collected, or fail without any mutant")
        return answer == b"1"

    def close(self) -> None:
        """Ends it."""
        os.close(self._ask)
        os.waitpid(self._pid, 0)


def _serve(ask: int, told: int, survives: Served) -> None:
    with os.fdopen(ask, "rb") as asked:
        while size := asked.read(4):
            module, mutant = pickle.loads(asked.read(*struct.unpack("!I", size)))
            os.write(told, b"1" if survives(module, mutant) else b"0")


def prepare() -> None:
    """Imports what every child needs, and forgets Quietus again."""
    from hypothesis import HealthCheck, Phase, settings

    first = settings.__init__

    def capped(self: settings, *given: Any, **named: Any) -> None:
        if named.get("max_examples"):
            named["max_examples"] = min(named["max_examples"], EXAMPLES)
        first(self, *given, **named)

    settings.__init__ = capped  # type: ignore[method-assign]
    # The same examples for each mutant; the first that fails is enough, however large it is.
    settings.register_profile(
        "mutants", max_examples=EXAMPLES, phases=(Phase.explicit, Phase.generate), database=None,
        deadline=None, derandomize=True, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    settings.load_profile("mutants")
    import pytest  # noqa: F401

    import quietus.app
    import quietus.cli  # noqa: F401

    for name in [name for name in sys.modules if name.split(".")[0] in ("quietus", "tests", "scripts")]:
        if name not in ("scripts", "scripts.mutants", "scripts.mutating", "scripts.mutant_loading"):
            del sys.modules[name]


# --- in place: functions ------------------------------------------------------------------------------


def collected(folder: Path, serve: Callable[[Served], None]) -> None:
    """Collects the tests once, learns which functions each calls, and serves."""
    import pytest

    class Loop:
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            items = [item for item in session.items if TIMED not in item.nodeid]
            reach = _in_child(lambda: _reach(items), PATIENCE * 5)
            assert reach, "the tests fail without any mutant"
            held = [f for f in gc.get_objects() if isinstance(f, FunctionType)]
            serve(lambda module, mutant: _placed(folder, items, reach, held, module, mutant))
            return True

    _quiet()
    sys.meta_path.insert(0, Finder(folder, Marked))
    pytest.main(["-q", "-p", "no:cacheprovider", f"--rootdir={folder}", *TESTS], plugins=[Loop()])


def _reach(items: list[Any]) -> dict[tuple[str, int], list[tuple[float, int]]]:
    """For each function of the core, the tests that call it, with the seconds that each takes."""
    found: dict[tuple[str, int], list[tuple[float, int]]] = {}
    for place, item in enumerate(items):
        REACHED.clear()
        began = time.perf_counter()
        passed = _passes(item, items[place + 1] if place + 1 < len(items) else None)
        took = time.perf_counter() - began
        for key in REACHED if passed else ():  # one that fails without any mutant says nothing
            found.setdefault(key, []).append((took, place))
    return {key: sorted(tests) for key, tests in found.items()}


def _placed(
    folder: Path, items: list[Any], reach: Any, held: list[FunctionType], module: str, mutant: Mutant
) -> bool:
    first, last = next(r for r in functions_of(folder, module) if r[0] <= mutant.line <= r[1])
    tests = [items[place] for _, place in reach.get((module, first), ())]

    def tried() -> bool:
        _put(folder, held, module, mutant, first, last)
        return all(_passes(item, None) for item in tests)

    return _in_child(tried, PATIENCE) is True


def _put(
    folder: Path, held: list[FunctionType], module: str, mutant: Mutant, first: int, last: int
) -> None:
    """Gives the function its mutant's code, wherever the function object is known."""
    path = str(folder / "proxy/quietus/core" / f"{module}.py")
    codes = _codes(compile(mutant.tree, path, "exec"))
    new = {code.co_qualname: code for code in codes if first <= code.co_firstlineno <= last}
    changed = 0
    for found in held:
        code = found.__code__
        if code.co_filename == path and first <= code.co_firstlineno <= last and code.co_qualname in new:
            found.__code__ = new[code.co_qualname]
            changed += 1
    assert changed


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _passes(item: Any, following: Any) -> bool:
    from _pytest.runner import runtestprotocol

    return not any(report.failed for report in runtestprotocol(item, nextitem=following, log=False))


def functions_of(folder: Path, module: str) -> list[tuple[int, int]]:
    """First and last line of each."""
    text = (folder / "proxy/quietus/core" / f"{module}.py").read_text(encoding="utf-8")
    return [(first, last) for _, first, last in outermost(ast.parse(text))]


def lines_of_functions(folder: Path, module: str) -> set[int]:
    """The lines inside of bodies: what stands in a signature is no part of a function's code."""
    found: set[int] = set()
    tree = ast.parse((folder / "proxy/quietus/core" / f"{module}.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            found |= set(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
    return found


# --- fresh: tables, defaults, constants ---------------------------------------------------------------


def fresh(folder: Path, module: str, mutant: Mutant) -> bool:
    """Whether the tests pass where Quietus is imported with the mutant."""
    own = f"tests/core/test_{module}.py"
    near = ["tests/core/test_words.py", *([own] if (folder / own).exists() else [])]

    rest = [str(p.relative_to(folder)) for p in sorted((folder / "tests/core").glob("test_*.py"))]
    turns = ((near, (TIMED,)), ([name for name in rest if name not in near], (TIMED, *LONG)))

    def tried(tests: Sequence[str], skipped: Sequence[str]) -> bool:
        import pytest

        _quiet()
        Swapped.mutant = mutant
        sys.meta_path.insert(0, Finder(folder, Swapped, module))
        left_out = f"not ({' or '.join(skipped)})"
        return not pytest.main(
            ["-x", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}", "-k", left_out, *tests]
        )

    return all(_in_child(partial(tried, *turn), PATIENCE) is True for turn in turns)


def _quiet() -> None:
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)


def _in_child(work: Callable[[], Any], seconds: float) -> Any:
    """What `work` returns in a child; None when it fails or takes too long."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(ours)
        data = b""
        with suppress(BaseException):
            data = pickle.dumps(work())
        with os.fdopen(theirs, "wb") as out:
            out.write(data)
        os._exit(0)
    os.close(theirs)
    data, end = b"", time.monotonic() + seconds
    with os.fdopen(ours, "rb", buffering=0) as told:
        while (left := end - time.monotonic()) > 0 and select.select([told], [], [], left)[0]:
            part = told.read(1 << 16)
            if not part:
                break
            data += part
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None
