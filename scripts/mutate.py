"""Are the tests of the core able to fail? Every mutant of `proxy/quietus/core`, and whether a test kills it.

    python scripts/mutate.py                   # all of the core, on one processor
    python scripts/mutate.py states due        # some modules
    python scripts/mutate.py --minutes 30      # so long: of each module a sample, in functions first
    python scripts/mutate.py --new             # what was never tried, and no survivor again
    python scripts/mutate.py --tests tests/core/test_new.py    # survivors, with these tests alone
    python scripts/mutate.py --page            # only write docs/mutation.md from what was found before

A copy of the tree is tried, so that somebody may go on working. Tests are collected once; a mutant of a
function is put in its place in a forked child, which runs the tests that reach the statement, those that
killed its neighbours and quick ones first, until one fails. A mutant of anything else (a table, a default) is
imported in a fresh child. What is known of a mutant is kept in `.mutants/`: a killed one is not run again
while its module is the same, a survivor always is. Judgements of survivors stand in docs/mutation.yaml, each
for one mutant or for all whose names a pattern fits.

Ends with 0 when every mutant was run and at least 90 % are dead, with 1 when fewer are, and with 2 when some
were not run, whatever came of the others.

The known tools are no fit: one changes nothing outside of functions, and the erasure machine is a table; the
other starts a whole test run for each mutant, which takes a hundred times as long.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import chain, takewhile, zip_longest
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.mutant_fresh import SURVIVED  # noqa: E402
from scripts.mutant_page import Row, page, summary, verdict  # noqa: E402
from scripts.mutants import Mutant, mutants  # noqa: E402
from scripts.mutating import BUDGET, TESTS, Bench  # noqa: E402

CORE: Final = Path("proxy/quietus/core")
PAGE: Final = ROOT / "docs" / "mutation.md"
JUDGED: Final = ROOT / "docs" / "mutation.yaml"
FOUND: Final = ROOT / ".mutants"
SEED: Final = 1
"""Of the order in which the mutants of a module are tried."""


def copied(folder: Path) -> Path:
    """A copy of what is tried, which becomes the place to import from."""
    for source in ROOT.iterdir():
        if source.name in ("proxy", "tests", "scripts", "policies", "docs"):
            shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns(".mypy_cache"))
        elif source.is_file():
            shutil.copy(source, folder / source.name)
    os.chdir(folder)
    sys.path[:] = [str(folder / "proxy"), str(folder)] + [
        place for place in sys.path if not place.startswith(str(ROOT)) or "site-packages" in place
    ]
    return folder


def run(names: Sequence[str], given: argparse.Namespace) -> None:
    """Tries the mutants of these modules and writes down what came of each, until the time is over."""
    FOUND.mkdir(exist_ok=True)
    end = time.monotonic() + given.minutes * 60
    with tempfile.TemporaryDirectory(prefix="quietus-mutants-") as place:
        folder = copied(Path(place))
        books = [Book(name, _text(folder, name)) for name in names]
        left: deque[tuple[Book, Mutant]] = deque()
        for inside in (True, False):  # what is in functions first: the others take a few times as long
            each = ([(book, one) for one in book.order if one.inside is inside] for book in books)
            left.extend(filter(None, chain.from_iterable(zip_longest(*each))))
        if given.new or given.tests:
            left = deque(pair for pair in left if pair[0].knows(pair[1]) is not given.new)
        # Survivors of before come first: a test may have been written since.
        left = deque(sorted(left, key=lambda pair: not pair[0].knows(pair[1])))
        with Bench(folder, FOUND, given.budget, given.jobs, given.tests or TESTS) as bench:

            def work(job: int) -> None:
                while left and time.monotonic() < end:
                    book, mutant = left.popleft()
                    if not book.dead(mutant):
                        book.note(mutant, bench.outcome(book.name, mutant, job))

            with ThreadPoolExecutor(given.jobs) as pool:
                list(pool.map(work, range(given.jobs)))


class Book:
    """What is known of the mutants of one module, in the order in which they are tried."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.order = drawn(name, text)
        self._digest = _digest(text)
        self._lock = Lock()
        self._known = {found["name"]: found for found in results(name) if found["module"] == self._digest}

    def dead(self, mutant: Mutant) -> bool:
        """Whether it was killed before."""
        return bool(self._known.get(mutant.name, {}).get("killed"))

    def knows(self, mutant: Mutant) -> bool:
        """Whether it was tried before."""
        return mutant.name in self._known

    def note(self, mutant: Mutant, killer: str) -> None:
        """Writes down what became of it."""
        if killer == SURVIVED:
            print(f"  survived: {self.name}.py:{mutant.line}: {mutant.before} -> {mutant.after}", flush=True)
        with self._lock:
            self._known[mutant.name] = {
                "name": mutant.name, "line": mutant.line, "before": mutant.before, "after": mutant.after,
                "killed": killer != SURVIVED, "by": killer, "module": self._digest,
            }  # fmt: skip
            _file(self.name).write_text(json.dumps(list(self._known.values())))


def drawn(name: str, text: str) -> list[Mutant]:
    """A module's mutants as they are tried, at random: what was run of them before the end is a sample."""
    order = list(mutants(text))
    random.Random(f"{SEED} {name}").shuffle(order)
    return sorted(order, key=lambda mutant: not mutant.inside)


def _text(folder: Path, name: str) -> str:
    return (folder / CORE / f"{name}.py").read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _file(name: str) -> Path:
    return FOUND / f"{name}.json"


def results(name: str) -> list[dict[str, Any]]:
    """What is known of a module's mutants; nothing where it was never tried."""
    path = _file(name)
    return json.loads(path.read_text()) if path.exists() else []


def modules() -> list[str]:
    """The core's modules."""
    return sorted(path.stem for path in (ROOT / CORE).glob("*.py") if path.stem != "__init__")


def rows() -> list[Row]:
    """One for each module of the core: of one that was run in part, what was run without a gap."""
    made = []
    for name in modules():
        text = _text(ROOT, name)
        order = drawn(name, text)
        known = {one["name"]: one for one in results(name) if one["module"] == _digest(text)}
        found = [known[one.name] for one in takewhile(lambda one: one.name in known, order)]  # noqa: B023
        found.sort(key=lambda one: int(one["line"]))
        made.append(Row(name, len(order), found, stale=bool(results(name) and not known)))
    return made


def main(arguments: Sequence[str]) -> int:
    """Runs mutants, writes the page, and says what was not run; the exit code is `verdict`'s."""
    parser = argparse.ArgumentParser(description="Mutants of the core")
    parser.add_argument("modules", nargs="*", help="modules of the core; all when none is given")
    parser.add_argument("--page", action="store_true", help="only write docs/mutation.md")
    parser.add_argument("--minutes", type=float, default=inf, help="then what was run is a sample")
    parser.add_argument("--new", action="store_true", help="not what survived before, which is known already")
    parser.add_argument("--tests", nargs="+", help="with these alone, and only what survived the others")
    parser.add_argument("--jobs", type=int, default=1, help="mutants that are tried at once")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds of tests for each mutant")
    given = parser.parse_args(arguments)
    if not given.page:
        run(given.modules or modules(), given)
    core, judged = rows(), yaml.safe_load(JUDGED.read_text(encoding="utf-8")) or {}
    PAGE.write_text(page(core, judged, SEED), encoding="utf-8")
    print("\n".join(summary(core, SEED)))
    return verdict(core)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
