"""What a million marks cost: `python -m bench.marks [--marks N]`: memory, taking in, and looking texts up.

No store and no wire: the table of marks and the screener alone, with the keyed digests of the sidecar. CPU is
the process's own; memory is resident memory. Texts that are looked up are new, of nobody who was erased.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

from bench.erased import text_of
from quietus.core.events import Event, EventType, scope_to_facts
from quietus.core.fingerprint import Mark, alias_mark, marks_of
from quietus.core.gate import Gate
from quietus.core.marks import Loading
from quietus.core.scope import Scope
from quietus.core.screening import Screener
from quietus.core.terms import Terms
from quietus.keys import Keyring

KEYS = Keyring.fresh()
ROUNDS = 5
KB = 200
"""Kilobytes of new text in a round."""


def marked(most: int) -> Iterator[tuple[str, Mark]]:
    """Marks of erasures, one subject each, until there are so many."""
    number = found = 0
    while found < most:
        number += 1
        name, subject = f"er_bench{number:09d}", f"person-{number}"
        alias = alias_mark(subject, KEYS.digest)
        marks = [Mark("subject", KEYS.pseudonym("subject", subject)), *marks_of(text_of(number), KEYS.digest)]
        for mark in [*marks, *([alias] if alias is not None else [])]:
            found += 1
            yield name, mark


def gate_of(marks: Iterable[tuple[str, Mark]]) -> tuple[Gate, float]:
    """A gate that took these in as a ledger gives them, and the CPU seconds of the taking in alone."""
    gate = Gate()
    taken = 0.0
    loading = Loading(gate.marks)
    for owner, mark in marks:
        began = time.process_time()
        loading.take(owner, mark)
        taken += time.process_time() - began
    began = time.process_time()
    loading.done()
    taken += time.process_time() - began
    # One of the erasures is enough: the texts that are looked up are of none of them.
    scope = KEYS.pseudonymise(Scope(subject=frozenset({"person-1"})))
    facts = {"store": "bench", "terms": asdict(Terms()), "predicate": scope_to_facts(scope)}
    gate.apply(Event(1, EventType.REQUESTED, f"er_bench{1:09d}", 0.0, "bench", facts, True, ""))
    return gate, taken


def new_texts(chance: random.Random) -> list[str]:
    """Texts of a kilobyte each that nobody has said before: words from a small dictionary, in any order."""
    known = [f"{chance.choice('bcdfghlmnprst')}{chance.choice('aeiou')}{n:x}" for n in range(4000)]
    return [" ".join(chance.choices(known, k=180))[:1024] for _ in range(KB)]


def looked_up(screener: Screener, texts: list[str]) -> float:
    """CPU microseconds for each kilobyte of new text."""
    began = time.process_time()
    for text in texts:
        screener.look(text)
    return (time.process_time() - began) / len(texts) * 1e6


def resident() -> int:
    """Resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main() -> int:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.marks", description=__doc__)
    parser.add_argument("--marks", type=int, default=1_000_000, help="how many (1,000,000)")
    options = parser.parse_args()
    few, _ = gate_of(marked(1))
    gc.collect()
    before = resident()
    gate, taken = gate_of(marked(options.marks))
    gc.collect()
    memory = resident() - before
    chance = random.Random(1)
    screeners = [Screener(each, KEYS.pseudonym, KEYS.digest, KEYS.digests) for each in (few, gate)]
    rounds = []
    for _ in range(ROUNDS):
        texts = new_texts(chance)
        rounds.append([looked_up(screener, texts) for screener in screeners])
    one, many = (sorted(column)[ROUNDS // 2] for column in zip(*rounds, strict=True))
    print("| measure | value |\n|---|---|")
    print(f"| marks | {len(gate.marks):,} |")
    print(f"| resident memory | {memory / 1e6:.0f} MB, {memory / len(gate.marks):.0f} bytes a mark |")
    print(f"| taking them in | {taken:.1f} s of CPU |")
    print(f"| looking up 1 KB of new text, the marks of one erasure | {one:.0f} us of CPU |")
    print(f"| the same beside all | {many:.0f} us of CPU, {many / one:.2f} times |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
