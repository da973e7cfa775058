"""What a settled erasure keeps in memory, part by part: `python -m bench.tombstones [--erasures N]`.

The gate alone, with what a sidecar folds out of its ledger: no store, no wire, no file. Each way of keeping
erasures is measured in a process of its own, as the growth of its resident memory. Every erasure is of one
subject with one record of two sentences, was settled, and has been watched to the end.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import asdict
from sys import intern

from bench.erased import TERMS, text_of
from bench.marks import KEYS, resident
from quietus.core.erasure import Erasure, advance
from quietus.core.events import Event, EventType, scope_to_facts
from quietus.core.fingerprint import Mark, alias_mark, marks_of
from quietus.core.index import Index
from quietus.core.marks import Loading, Marks
from quietus.core.scope import Scope
from quietus.shelf import Shelf

STEPS = (
    EventType.SNAPSHOTTED, EventType.FORWARDED, EventType.ACCEPTED, EventType.CLEAN, EventType.WATCH_ENDED,
)  # fmt: skip
FORMS = ("whole", "folded")
CALLS = 2000


def name_of(number: int) -> str:
    """The id of an erasure, as long as a real one."""
    return f"er_{number:024x}"


def settled(number: int) -> Erasure:
    """One erasure as its events make it, each with facts of its own as a ledger reads them."""
    scope = KEYS.pseudonymise(
        Scope(tenant=frozenset({f"tenant-{number % 50}"}), subject=frozenset({f"person-{number}"}))
    )
    facts = {
        "store": "memories", "predicate": scope_to_facts(scope), "terms": asdict(TERMS), "label": "subject",
    }  # fmt: skip
    name, at = name_of(number), 1.7e9 + number
    erasure = advance(None, Event(number * 6 + 1, EventType.REQUESTED, name, at, "", facts, True, ""))
    for place, kind in enumerate(STEPS, 2):
        its = {"witnesses": 1, "marks": 9} if kind is EventType.SNAPSHOTTED else {}
        event = Event(number * 6 + place, kind, erasure.id, at + place * 60.0, "quietus", its, False, "")
        erasure = advance(erasure, event)
    return erasure


def marks(count: int) -> Iterator[tuple[str, Mark]]:
    """The marks of so many erasures, those of one together, as a ledger gives them."""
    for number in range(count):
        name, subject = intern(name_of(number)), f"person-{number}"
        alias = alias_mark(subject, KEYS.digest)
        yield name, Mark("subject", KEYS.pseudonym("subject", subject))
        yield name, Mark("id", KEYS.pseudonym("key", f"note-{number:08d}"))
        for mark in [*marks_of(text_of(number), KEYS.digest), *([alias] if alias is not None else [])]:
            yield name, mark


def measured(form: str, count: int) -> dict[str, float]:
    """Bytes an erasure, by what keeps them, and microseconds of CPU for a look at one."""
    kept: MutableMapping[str, Erasure] = Shelf() if form == "folded" else {}
    index, table, found = Index(), Marks(), dict[str, float]()
    gc.collect()
    before = resident()
    for number in range(count):
        kept[name_of(number)] = settled(number)
    before = _grown(found, "the erasures", before, count)
    for erasure in kept.values():
        index.add(erasure)
    before = _grown(found, "the index", before, count)
    loading = Loading(table)
    for owner, mark in marks(count):
        loading.take(owner, mark)
    loading.done()
    _grown(found, f"the marks, {len(table) / count:.1f} each", before, count)
    found["asked for"] = _asked(kept, count)
    return found


def _grown(found: dict[str, float], name: str, before: int, count: int) -> int:
    gc.collect()
    now = resident()
    found[name] = (now - before) / count
    return now


def _asked(kept: MutableMapping[str, Erasure], count: int) -> float:
    names = [name_of(number * 7919 % count) for number in range(min(CALLS, count))]
    began = time.process_time()
    for name in names:
        kept[name]
    return (time.process_time() - began) / len(names) * 1e6


def table_of(whole: dict[str, float], folded: dict[str, float]) -> Iterable[str]:
    """Both ways beside each other, as a Markdown table."""
    yield "| resident bytes a settled erasure | whole | folded |"
    yield "|---|---|---|"
    for name in whole:
        if name != "asked for":
            yield f"| {name} | {whole[name]:.0f} | {folded[name]:.0f} |"
    sums = [sum(value for name, value in each.items() if name != "asked for") for each in (whole, folded)]
    yield f"| together | {sums[0]:.0f} | {sums[1]:.0f} |"
    yield f"| microseconds of CPU to look at one | {whole['asked for']:.1f} | {folded['asked for']:.1f} |"


def main() -> int:
    """Measures each way in a process of its own and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.tombstones", description=__doc__)
    parser.add_argument("--erasures", type=int, default=100_000, help="how many (100,000)")
    parser.add_argument("--form", choices=FORMS, help="one way alone, as JSON")
    options = parser.parse_args()
    if options.form:
        print(json.dumps(measured(options.form, options.erasures)))
        return 0
    command = [sys.executable, "-m", "bench.tombstones", "--erasures", str(options.erasures), "--form"]
    said = [subprocess.run([*command, form], check=True, capture_output=True).stdout for form in FORMS]
    print("\n".join(table_of(*map(json.loads, said))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
