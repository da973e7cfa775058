"""Where mutants are tried: a bench of collected tests, and a fresh child for what cannot be put in place.

Two processes stand by, forked when everything but Quietus has been imported. One has collected the tests and
knows which statements of the core each reaches; the other (`scripts/mutant_fresh.py`) has not imported
Quietus yet. Each forks a child for each mutant that it is given. Time is that of the processor: a machine may
be busy with something else.
"""

from __future__ import annotations

import gc
import pickle
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType, TracebackType
from typing import Any, Final

from scripts.mutant_fresh import NO_END, OPTIONS, PATIENCE, SURVIVED, Test, near, passes, standing_by
from scripts.mutant_loading import REACHED, Finder, Marked, mentions, outermost
from scripts.mutant_server import Answers, Server, in_child, quiet
from scripts.mutants import Module, Mutant

EXAMPLES: Final = 40
"""Of each property, at most."""
BUDGET: Final = 8.0
"""Seconds of tests for one mutant. What no test of them notices survives: it is not said to be killed."""
TESTS: Final = ("tests/core", "tests/trial/test_looks.py", "tests/trial/test_standing.py")
LEFT_OUT: Final = ("test_decision_costs_the_same_among_100_000_erasures",)
"""What measures how long something takes: no test of what is right."""

ALIVE, NOT_PLACED = -1, -2
"""Instead of the place of a test that killed: no test did; the function cannot be given the mutant's code."""

Reached = set[tuple[str, int]]
"""Statements: module and first line."""


class Bench:
    """Both processes, as long as it is open."""

    def __init__(
        self, folder: Path, known: Path, budget: float = BUDGET, jobs: int = 1, tests: Sequence[str] = TESTS
    ) -> None:
        """`known` is a folder for what was found out of the tests; `jobs` mutants are tried at once."""
        self._folder, self._known, self._budget, self._jobs, self._tests = folder, known, budget, jobs, tests

    def __enter__(self) -> Bench:
        prepare()
        self._fresh = Server(lambda serve: standing_by(self._folder, serve), self._jobs)
        self._placed = Server(
            lambda serve: collected(self._folder, self._known, self._budget, self._jobs, self._tests, serve),
            self._jobs,
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        self._placed.close()  # first: it holds the other's pipe, too
        self._fresh.close()

    def outcome(self, module: str, mutant: Mutant, job: int = 0) -> str:
        """What came of it: a word of `mutant_fresh`. Each job asks for one at a time."""
        answer = self._placed.ask(job, module, mutant)
        if isinstance(answer, list):
            answer = self._fresh.ask(job, module, (mutant.number, answer))
        return str(answer)


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

    import quietus.app  # noqa: F401

    for name in [name for name in sys.modules if name.split(".")[0] in ("quietus", "tests", "scripts")]:
        if name != "scripts" and not name.startswith("scripts.mut"):
            del sys.modules[name]


# --- in place: functions ------------------------------------------------------------------------------


def collected(
    folder: Path, known: Path, budget: float, jobs: int, tests: Sequence[str],
    serve: Callable[[Answers], None],
) -> None:  # fmt: skip
    """Collects the tests once, learns which statements each reaches, and serves."""
    import pytest

    class Loop:
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            items = [item for item in session.items if not any(name in item.nodeid for name in LEFT_OUT)]
            file = known / f"reached-{_tree(folder, tests)}"
            if not file.exists():
                reach = _reach(items, jobs)
                assert reach, "the tests fail without any mutant"
                for old in known.glob("reach*-*") if tests == TESTS else ():
                    old.unlink()
                file.write_bytes(pickle.dumps(reach))
            serve(Placed(folder, items, pickle.loads(file.read_bytes()), budget))
            return True

    quiet()
    sys.meta_path.insert(0, Finder(folder, Marked))
    pytest.main([*OPTIONS, f"--rootdir={folder}", *tests], plugins=[Loop()])


def _tree(folder: Path, tests: Sequence[str]) -> str:
    """A digest of the code and its tests."""
    paths = sorted(path for place in ("proxy", "tests") for path in (folder / place).rglob("*.py"))
    read = (path.read_bytes() for path in paths)
    return sha256(b"".join([*read, *(test.encode() for test in tests)])).hexdigest()[:16]


def _reach(items: list[Any], jobs: int) -> list[tuple[Test, Reached]]:
    """The tests that pass, and the statements in the core's functions that each reaches."""
    with ThreadPoolExecutor(jobs) as pool:  # each waits for a child of its own
        parts = list(pool.map(lambda job: in_child(lambda: _reached(items, job, jobs)), range(jobs)))
    assert None not in parts, "the tests cannot be run"
    return [one for part in parts for one in part]


def _reached(items: list[Any], job: int, jobs: int) -> list[tuple[Test, Reached]]:
    found = []
    for place in range(job, len(items), jobs):
        REACHED.clear()
        began = time.process_time()
        passed = passes(items[place])
        took = time.process_time() - began
        if passed:  # one that fails without any mutant says nothing
            found.append(((took, place, items[place].nodeid), set(REACHED)))
    return found


class Placed:
    """Tries mutants in functions; of any other, says which tests have to do with it."""

    def __init__(
        self, folder: Path, items: list[Any], reach: list[tuple[Test, Reached]], budget: float
    ) -> None:
        self._folder, self._items, self._budget = folder, items, budget
        self._all = [test for test, _ in reach]
        # What reaches no function can only look at a table.
        self._tables = {test for test, keys in reach if not keys}
        self._reach: dict[tuple[str, int], list[Test]] = {}
        for test, keys in reach:
            for key in keys:
                self._reach.setdefault(key, []).append(test)
        core = str(folder / "proxy/quietus/core")
        self._held = [
            one for one in gc.get_objects()
            if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(core)
        ]  # fmt: skip
        self._modules: dict[str, Module] = {}
        self._killers: Counter[tuple[str, int]] = Counter()
        gc.freeze()

    def __call__(self, module: str, mutant: Mutant) -> str | list[Test]:
        """What comes of a mutant in a function; of any other, the tests to try in a fresh child."""
        if mutant.inside:
            if module not in self._modules:
                self._modules[module] = Module(self._path(module).read_text(encoding="utf-8"))
            tests = self._ordered(module, self._reach.get((module, mutant.statement), []))
            killer = in_child(lambda: self._tried(module, mutant, tests))
            if killer is None:
                return NO_END
            if killer >= 0:
                self._killers[module, killer] += 1
                return str(self._items[killer].nodeid)
            if killer == ALIVE:
                return SURVIVED
        around = {(module, mutant.statement)}
        keys = around if mutant.inside else mentions(self._folder, module, mutant.statement)
        files = near(self._folder, module)
        chosen = {test for key in keys for test in self._reach.get(key, ())} | self._tables
        return self._ordered(module, chosen | {test for test in self._all if test[2].split("::")[0] in files})

    def _ordered(self, module: str, tests: Iterable[Test]) -> list[Test]:
        """Those that fit the budget: what has killed a neighbour, and what is quick, goes first."""
        killed = self._killers
        order = sorted(tests, key=lambda test: (-killed[module, test[1]] / (0.02 + test[0]), *test))
        return _within(order, self._budget)

    def _tried(self, module: str, mutant: Mutant, tests: Sequence[Test]) -> int:
        """The place of the test that notices. Ends the process when one takes too long."""
        try:
            self._put(module, mutant)
        except (AssertionError, ValueError):
            return NOT_PLACED
        for took, place, _ in tests:
            signal.setitimer(signal.ITIMER_PROF, took * PATIENCE + 1)
            if not passes(self._items[place]):
                return place
        return ALIVE

    def _path(self, module: str) -> Path:
        return self._folder / "proxy/quietus/core" / f"{module}.py"

    def _put(self, module: str, mutant: Mutant) -> None:
        """Gives the function its mutant's code, wherever the function object is known."""
        path, tree = self._path(module), self._modules[module].changed(mutant.number)
        first, last = next((a, b) for _, a, b in outermost(tree) if a <= mutant.line <= b)
        codes = _codes(compile(tree, str(path), "exec"))
        new = {code.co_qualname: code for code in codes if first <= code.co_firstlineno <= last}
        changed = 0
        for found in self._held:
            code = found.__code__
            if code.co_filename == str(path) and first <= code.co_firstlineno <= last:
                found.__code__ = new.get(code.co_qualname, code)
                changed += 1
        assert changed


def _within(tests: Sequence[Test], budget: float) -> list[Test]:
    """The first of them that fit the budget."""
    spent = 0.0
    fit: list[Test] = []
    for test in tests:
        spent += test[0]
        if fit and spent > budget:
            break
        fit.append(test)
    return fit


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
