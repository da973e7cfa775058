"""What came of each seed, kept as it comes: a long run goes on where it ended, and a failure costs one seed.

A file belongs to one state of the code. Whoever changes the product or the simulator begins anew, so that the
figures of a run are of one thing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.simulation.calls import Finding
from tests.simulation.run import Outcome

_ROOT: Final = Path(__file__).resolve().parents[2]
_PLAYED: Final = ("proxy/quietus/**/*.py", "policies/**/*.yaml", "tests/simulation/*.py")
"""What decides how a seed ends."""


@cache
def code() -> str:
    """A digest of what is played: the product, its policies and profiles, and the simulator."""
    found = hashlib.sha256()
    for path in sorted(path for pattern in _PLAYED for path in _ROOT.glob(pattern)):
        found.update(f"{path.relative_to(_ROOT)}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


class Kept:
    """A file of outcomes, one a line, and the seconds that each took of the run."""

    def __init__(self, folder: Path, family: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{code()}-{family}.jsonl"

    def outcomes(self) -> Iterator[tuple[Outcome, float]]:
        """What was played already. A line that a kill cut off is played again."""
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                kept: dict[str, Any] = json.loads(line)
            except ValueError:
                continue
            findings = [Finding(**finding) for finding in kept["findings"]]
            counts = Counter(kept["counts"])
            outcome = Outcome(kept["seed"], findings, counts, kept["virtual"], kept["spent"])
            yield outcome, float(kept["seconds"])

    def add(self, outcome: Outcome, seconds: float) -> None:
        """Keeps an outcome, and the seconds since the one before."""
        line = {
            "seed": outcome.seed, "seconds": round(seconds, 3), "spent": round(outcome.spent, 3),
            "virtual": outcome.virtual,
            "findings": [asdict(finding) for finding in outcome.findings], "counts": dict(outcome.counts),
        }  # fmt: skip
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
