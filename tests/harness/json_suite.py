"""Runs JSONTestSuite against the strict decoder: python tests/harness/json_suite.py FOLDER

The folder holds the suite's files (`y_*.json` must be accepted, `n_*.json` refused, `i_*.json` are
free). The suite is somebody else's data and not part of this project. Exit 1 if a count is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from quietus.profiles.codec import decode_exact, decode_json
from quietus.profiles.faults import NotJson

REFUSED_ON_PURPOSE = frozenset({"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"})
"""Valid by the grammar, and yet two parsers may read two things from them."""


def accepts(data: bytes) -> bool:
    """Whether both decoders take the bytes. They must agree."""
    verdicts = set()
    for decode in (decode_json, decode_exact):
        try:
            decode(data)
            verdicts.add(True)
        except NotJson:
            verdicts.add(False)
    if len(verdicts) != 1:
        raise AssertionError("the fast and the exact decoder disagree")
    return verdicts.pop()


def run(folder: Path) -> tuple[Counter[str], list[str]]:
    """Counts by kind and verdict, and the names of the files that went wrong."""
    counts: Counter[str] = Counter()
    wrong = []
    for path in sorted(folder.glob("*.json")):
        kind, taken = path.name[0], accepts(path.read_bytes())
        counts[f"{kind} {'accepted' if taken else 'refused'}"] += 1
        expected = kind == "y" and path.name not in REFUSED_ON_PURPOSE
        if kind in "yn" and taken != expected:
            wrong.append(path.name)
    return counts, wrong


def main() -> int:
    """Prints the counts as a line and as JSON."""
    parser = argparse.ArgumentParser(description="JSONTestSuite against the strict decoder")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    counts, wrong = run(folder)
    total = sum(counts.values())
    print(f"{total} files: {total - len(wrong)} passed, {len(wrong)} failed", *wrong)
    print(json.dumps(dict(sorted(counts.items()))))
    return 1 if wrong or not total else 0


if __name__ == "__main__":
    sys.exit(main())
