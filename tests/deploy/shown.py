"""What the dashboards show: plays the incident and prints the result of every query of every panel.

    make panels                         # or: python -m tests.deploy.shown [DASHBOARD…]

A Grafana cannot be had everywhere; its panels draw these numbers.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.deploy.incident import Prometheus, panels, told
from tests.deploy.tooling import ROOT

BOARDS = tuple(sorted(path.stem for path in (ROOT / "dashboards" / "json").glob("*.json")))
HIDDEN = {"__name__", "job", "instance"}


def lines(prometheus: Prometheus, board: str) -> Iterator[str]:
    """Each panel of a dashboard, its queries, and every series with its value."""
    yield f"# {board}"
    last = ""
    for title, query in panels(board):
        if title != last:
            yield f"\n## {title}"
            last = title
        yield f"  {' '.join(query.split())}"
        found = prometheus.query(query)
        yield from (f"    {_series(each)} {_number(each['value'][1])}" for each in found[:12])
        if not found:
            yield "    nothing"
        elif len(found) > 12:
            yield f"    and {len(found) - 12} more"
    yield ""


def _series(each: dict[str, Any]) -> str:
    labels = {name: value for name, value in sorted(each["metric"].items()) if name not in HIDDEN}
    return "{" + ", ".join(f"{name}={value}" for name, value in labels.items()) + "}"


def _number(text: str) -> str:
    return text if text == "NaN" else f"{float(text):.4g}"


def main(arguments: Sequence[str]) -> int:
    """Prints the dashboards that are named, or all of them, and what fires."""
    unknown = set(arguments) - set(BOARDS)
    if unknown:
        sys.stderr.write(f"no dashboard is called {sorted(unknown)[0]}; there are {', '.join(BOARDS)}\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="quietus-panels-") as folder:
        for _, prometheus in told(Path(folder)):
            for board in arguments or BOARDS:
                sys.stdout.write("\n".join(lines(prometheus, board)) + "\n")
            sys.stdout.write("# firing\n" + "".join(f"{each}\n" for each in sorted(prometheus.firing())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
