"""The command line: `quietus`."""

from __future__ import annotations

from quietus.cli import (
    asking,
    checking,
    demanding,
    explaining,
    injecting,
    keeping,
    receipts,
    reports,
    running,
)
from quietus.cli.root import app as app
from quietus.cli.root import run

for _part in (running, checking, explaining, asking, demanding, receipts, injecting, keeping, reports):
    _part.register(app)


def main() -> None:
    """Entry point of the `quietus` command."""
    run(app)
