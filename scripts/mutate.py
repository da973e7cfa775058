"""Are the tests of the core able to fail? Every mutant of `proxy/quietus/core`, and whether a test kills it.

    python scripts/mutate.py                   # all of the core, on one processor
    python scripts/mutate.py states due        # some modules
    python scripts/mutate.py --sample 200      # all in functions, and so many of the others, drawn by --seed
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
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.mutant_page import Row, page, summary, verdict  # noqa: E402
from scripts.mutants import Mutant, mutants  # noqa: E402
from scripts.mutating import BUDGET, Bench  # noqa: E402

CORE: Final = Path("proxy/quietus/core")
PAGE: Final = ROOT / "docs" / "mutation.md"
JUDGED: Final = ROOT / "docs" / "mutation.yaml"
FOUND: Final = ROOT / ".mutants"
DRAWN: Final = FOUND / "drawn"


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
    """Tries the mutants of these modules and writes down what came of each."""
    FOUND.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="quietus-mutants-") as place:
        folder = copied(Path(place))
        wanted = {name: list(mutants(_text(folder, name)))[: given.most] for name in names}
        outside = [(name, one.number) for name in names for one in wanted[name] if not one.inside]
        if given.sample is not None and given.sample < len(outside):
            outside = random.Random(given.seed).sample(outside, given.sample)
            DRAWN.write_text(json.dumps({"sample": given.sample, "seed": given.seed}))
        with Bench(folder, FOUND, given.budget) as bench:
            for inside in (True, False):  # what is in functions first: the others take ten times as long
                for name in names:
                    chosen = [
                        one for one in wanted[name]
                        if one.inside is inside and (inside or (name, one.number) in outside)
                    ]  # fmt: skip
                    _module(bench, folder, name, chosen)


def _text(folder: Path, name: str) -> str:
    return (folder / CORE / f"{name}.py").read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _module(bench: Bench, folder: Path, name: str, chosen: Sequence[Mutant]) -> None:
    digest = _digest(_text(folder, name))
    known = {found["name"]: found for found in results(name) if found["module"] == digest}
    for mutant in chosen:
        before = known.get(mutant.name)
        if before is None or not before["killed"]:
            known[mutant.name] = _told(mutant, digest, killed=not bench.survives(name, mutant))
            if not known[mutant.name]["killed"]:
                print(f"  survived: {name}.py:{mutant.line}: {mutant.before} -> {mutant.after}", flush=True)
            _file(name).write_text(json.dumps(list(known.values())))
    killed = sum(known[one.name]["killed"] for one in chosen)
    print(f"{time.strftime('%H:%M')} {name}: {len(chosen)} mutants, {killed} killed", flush=True)


def _told(mutant: Mutant, digest: str, *, killed: bool) -> dict[str, Any]:
    return {
        "name": mutant.name, "line": mutant.line, "before": mutant.before, "after": mutant.after,
        "killed": killed, "module": digest,
    }  # fmt: skip


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
    """One for each module of the core."""
    made = []
    for name in modules():
        text = _text(ROOT, name)
        names = {one.name for one in mutants(text)}
        known = results(name)
        found = [one for one in known if one["module"] == _digest(text) and one["name"] in names]
        found.sort(key=lambda one: int(one["line"]))
        made.append(Row(name, len(names), found, stale=bool(known and not found)))
    return made


def main(arguments: Sequence[str]) -> int:
    """Runs mutants, writes the page, and says what was not run; the exit code is `verdict`'s."""
    parser = argparse.ArgumentParser(description="Mutants of the core")
    parser.add_argument("modules", nargs="*", help="modules of the core; all when none is given")
    parser.add_argument("--page", action="store_true", help="only write docs/mutation.md")
    parser.add_argument("--most", type=int, default=None, help="at most so many mutants of each module")
    parser.add_argument("--sample", type=int, default=None, help="so many of those that are not in functions")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds of tests for each mutant")
    given = parser.parse_args(arguments)
    if not given.page:
        run(given.modules or modules(), given)
    core, drawn = rows(), json.loads(DRAWN.read_text()) if DRAWN.exists() else None
    judged = yaml.safe_load(JUDGED.read_text(encoding="utf-8")) or {}
    PAGE.write_text(page(core, judged, drawn), encoding="utf-8")
    print("\n".join(summary(core, drawn)))
    return verdict(core)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
