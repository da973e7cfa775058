"""Are the tests of the core able to fail? Every mutant of `proxy/quietus/core`, and whether a test kills it.

    python scripts/mutate.py                   # all of the core, on one processor
    python scripts/mutate.py states due        # some modules
    python scripts/mutate.py --page            # only write docs/mutation.md from what was found before

A copy of the tree is tried, so that somebody may go on working. Tests are collected once; a mutant of a
function is put in its place in a forked child, which runs the tests that call the function, quick ones first,
until one fails. A mutant of anything else (a table, a default) is imported in a fresh child. What is known of
a mutant is kept in `.mutants/`: a killed one is not run again while its module is the same, a survivor always
is. Judgements of survivors stand in docs/mutation.yaml.

The known tools are no fit: one changes nothing outside of functions, and the erasure machine is a table; the
other starts a whole test run for each mutant, which takes a hundred times as long.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.mutants import Mutant, mutants  # noqa: E402
from scripts.mutating import Bench  # noqa: E402

CORE: Final = Path("proxy/quietus/core")
PAGE: Final = ROOT / "docs" / "mutation.md"
JUDGED: Final = ROOT / "docs" / "mutation.yaml"
FOUND: Final = ROOT / ".mutants"


def copied(folder: Path) -> Path:
    """A copy of what is tried, which becomes the place to import from."""
    for source in ROOT.iterdir():
        if source.name in ("proxy", "tests", "scripts", "policies", "docs"):
            shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns(".mypy_cache"))
        elif source.is_file():
            shutil.copy(source, folder / source.name)
    os.chdir(folder)
    sys.path[:] = [str(folder / "proxy"), str(folder)] + [
        place for place in sys.path if not place.startswith(str(ROOT))
    ]
    return folder


def run(names: Sequence[str], most: int | None) -> None:
    """Tries the mutants of these modules and writes down what came of each."""
    FOUND.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="quietus-mutants-") as place:
        folder = copied(Path(place))
        with Bench(folder) as bench:
            for quick in (True, False):  # what is in functions first: the others take ten times as long
                for name in names:
                    _module(bench, folder, name, most, quick)


def _module(bench: Bench, folder: Path, name: str, most: int | None, quick: bool) -> None:
    text = (folder / CORE / f"{name}.py").read_text(encoding="utf-8")
    digest = sha256(text.encode()).hexdigest()[:16]
    known = {found["name"]: found for found in results(name) if found["module"] == digest}
    found = []
    for mutant in list(mutants(text))[:most]:
        if bench.quick(name, mutant) is not quick:
            found += [known[mutant.name]] if mutant.name in known else []
            continue
        before = known.get(mutant.name)
        if before is None or not before["killed"]:
            before = _told(mutant, digest, killed=not bench.survives(name, mutant))
            if not before["killed"]:
                print(f"  survived: {name}.py:{mutant.line}: {mutant.before} -> {mutant.after}", flush=True)
        found.append(before)
        known[mutant.name] = before
        _file(name).write_text(json.dumps(list(known.values())))
    _file(name).write_text(json.dumps(found))
    print(f"{name}: {len(found)} mutants, {sum(one['killed'] for one in found)} killed", flush=True)


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


def page(names: Iterable[str]) -> str:
    """docs/mutation.md: how many were killed, and each survivor with what was judged of it."""
    judged = (yaml.safe_load(JUDGED.read_text(encoding="utf-8")) or {}) if JUDGED.exists() else {}
    rows, survivors, total, dead = [], [], 0, 0
    for name in names:
        found = results(name)
        killed = sum(one["killed"] for one in found)
        total, dead = total + len(found), dead + killed
        share = f"{100 * killed / len(found):.1f} %" if found else "not run"
        rows.append(f"| `{name}` | {len(found)} | {killed} | {len(found) - killed} | {share} |")
        for one in found:
            if not one["killed"]:
                why = judged.get(f"{name}/{one['name']}", "**not judged**")
                survivors.append(
                    f"| `{name}.py` {_cell(one['name'])} | {_code(one['before'])} | {_code(one['after'])} "
                    f"| {_cell(why)} |"
                )
    share = f"{100 * dead / total:.1f} %" if total else "none"
    return "\n".join([
        "# Mutants of the core", "",
        "Written by `make mutate`. A mutant is the core with one change that some test ought to notice; one",
        "that no test of the core notices *survives*, and is judged in `docs/mutation.yaml`: either it",
        "changes nothing that can be seen, or a test is missing.", "",
        f"**{dead} of {total} killed: {share}.**", "",
        "| module | mutants | killed | survived | share |", "|---|---|---|---|---|", *rows, "",
        "## Survivors", "", "| where | as it is | mutant | judged |", "|---|---|---|---|", *survivors, "",
    ])  # fmt: skip


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{_cell(text).replace('`', '')}`"


def main(arguments: Sequence[str]) -> int:
    """Runs mutants; 0 when at least 90 % of all that were tried are dead."""
    parser = argparse.ArgumentParser(description="Mutants of the core")
    parser.add_argument("modules", nargs="*", help="modules of the core; all when none is given")
    parser.add_argument("--page", action="store_true", help="only write docs/mutation.md")
    parser.add_argument("--most", type=int, default=None, help="at most so many mutants of each module")
    given = parser.parse_args(arguments)
    if not given.page:
        run(given.modules or modules(), given.most)
    PAGE.write_text(page(modules()), encoding="utf-8")
    found = [one for name in modules() for one in results(name)]
    return 0 if found and sum(one["killed"] for one in found) >= 0.9 * len(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
