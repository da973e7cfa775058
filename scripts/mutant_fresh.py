"""Mutants of what is not in a function: tables, defaults, constants. The core is imported anew with each.

A process stands by that has started pytest with its plugins, has collected nothing and not imported Quietus.
For each mutant it forks a child, which imports the tests that have to do with it and runs quick ones first.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from scripts.mutant_loading import Finder, Swapped
from scripts.mutant_server import Answers, in_child, quiet

PATIENCE: Final = 10.0
"""A test may take so many times as long as without a mutant, and a second more: one that never ends is
killed, too."""
IMPORTING: Final = 60.0
"""Seconds that importing the core and its tests may take. It takes about one."""
WORDS: Final = "tests/core/test_words.py"
"""Looks at tables: tried for every mutant that is not in a function."""

OPTIONS: Final = ("-q", "--tb=native", "-p", "no:cacheprovider")
"""Of pytest. Telling at length how a test failed takes longer than running it."""

Test = tuple[float, int, str]
"""Seconds, place among what was collected, and name."""

SURVIVED: Final = ""
NO_END: Final = "no end"
NOT_IMPORTED: Final = "import"
"""What came of a mutant is a word: one of these, or the name of the test that failed."""

SOUND: set[str] = set()
"""What has killed, and was seen not to fail without a mutant."""


def near(folder: Path, module: str) -> list[str]:
    """The files of tests that are tried whatever they reach."""
    own = f"tests/core/test_{module}.py"
    return [WORDS, *([own] if (folder / own).exists() else [])]


def standing_by(folder: Path, serve: Callable[[Answers], None]) -> None:
    """Starts pytest up to where tests are collected, and serves."""
    import pytest

    class Instead:
        def pytest_collection(self, session: pytest.Session) -> bool:
            sys.dont_write_bytecode = False  # in the copy: what does not change is compiled once
            serve(partial(fresh, folder, session))
            return True

    quiet()
    pytest.main([*OPTIONS, f"--rootdir={folder}", WORDS], plugins=[Instead()])


def fresh(folder: Path, session: Any, module: str, asked: tuple[int, Sequence[Test]]) -> str:
    """What comes of a mutant where Quietus is imported with it.

    Raises AssertionError when what fails does so without the mutant, too.
    """
    number, tests = asked
    outcome = in_child(lambda: _first(folder, session, module, number, tests))
    if outcome is None:
        return NO_END
    if outcome and outcome not in SOUND:
        alone = [test for test in tests if test[2] == outcome] or tests
        assert in_child(lambda: _first(folder, session, module, None, alone)) == SURVIVED, outcome
        SOUND.add(outcome)
    return str(outcome)


def _first(folder: Path, session: Any, module: str, number: int | None, tests: Sequence[Test]) -> str:
    """The name of the first test that fails. Ends the process when one takes too long."""
    from _pytest.config import UsageError

    signal.setitimer(signal.ITIMER_PROF, IMPORTING)
    Swapped.number = number
    sys.meta_path.insert(0, Finder(folder, Swapped, module))
    try:
        collected = session.perform_collect(list(dict.fromkeys(_stem(name) for _, _, name in tests)))
    except UsageError:  # a test is not found where its file cannot be imported
        return NOT_IMPORTED
    if session.testsfailed:
        return NOT_IMPORTED
    seconds = {name: took for took, _, name in tests}
    items = {item.nodeid: item for item in collected}
    # A table can be what a test's parameters are named after.
    renamed = {_stem(name) for name in seconds if name not in items}
    chosen = [name for name in seconds if name in items]
    chosen += [name for name in items if name not in seconds and _stem(name) in renamed]
    for name in chosen:
        signal.setitimer(signal.ITIMER_PROF, seconds.get(name, 1) * PATIENCE + 1)
        if not passes(items[name]):
            return name
    return SURVIVED


def _stem(name: str) -> str:
    return name.split("[")[0]


def passes(item: Any) -> bool:
    """Whether a test passes, run as pytest runs it."""
    from _pytest.runner import runtestprotocol

    return not any(report.failed for report in runtestprotocol(item, nextitem=None, log=False))
