"""The command line: `quietus`."""

from __future__ import annotations

from quietus.cli import (
    asking,
    checking,
    demanding,
    explaining,
    injecting,
    keeping,
    keys,
    ordering,
    policing,
    receipts,
    reports,
    running,
    scanning,
)
from quietus.cli.root import app as app
from quietus.cli.root import run

_PARTS = (
    running, checking, explaining, asking, demanding, ordering, receipts, keys, scanning, injecting, keeping,
    reports, policing,
)  # fmt: skip
for _part in _PARTS:
    _part.register(app)


def main() -> None:
    """Entry point of the `quietus` command."""
    run(app)
