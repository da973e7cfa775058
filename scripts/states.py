"""Writes the erasure machine's table into ARCHITECTURE.md, between its two markers.

The table in `quietus.core.states` is the machine; the page only shows it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from quietus.core.states import diagram

PAGE = Path(__file__).resolve().parent.parent / "ARCHITECTURE.md"
BEGIN = "<!-- states -->"
END = "<!-- /states -->"


def shown(text: str) -> str:
    """What stands between the markers of the page."""
    before, _, rest = text.partition(BEGIN)
    inside, mark, _ = rest.partition(END)
    if not before or not mark:
        raise ValueError(f"ARCHITECTURE.md has no {BEGIN} ... {END}")
    return inside.strip()


def with_diagram(text: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{diagram()}\n{END}{after}"


def main() -> int:
    """Writes the page."""
    text = PAGE.read_text(encoding="utf-8")
    shown(text)
    PAGE.write_text(with_diagram(text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
