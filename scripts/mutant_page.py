"""The page of mutants: what was killed, what survived and why, and what was not run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from scripts.mutant_fresh import NO_END

ENOUGH: Final = 0.9
"""The share of mutants that has to be dead."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of one module as it is now."""

    name: str
    total: int
    found: list[dict[str, Any]]
    stale: bool
    """Whether something was found of the module as it was before, and nothing since."""

    @property
    def killed(self) -> int:
        """How many of its mutants are dead."""
        return sum(one["killed"] for one in self.found)


def page(core: Sequence[Row], judged: dict[str, str], seed: int) -> str:
    """docs/mutation.md: how many were killed, and each survivor with what was judged of it.

    `seed` is that of the order in which mutants were tried.
    """
    table, survivors = [], []
    for row in core:
        tried = len(row.found)
        share = _share(row.killed, tried) if tried else "changed since" if row.stale else "not run"
        table.append(
            f"| `{row.name}` | {row.total} | {row.total - tried} "
            f"| {row.killed} | {tried - row.killed} | {share} |"
        )
        survivors += [
            f"| `{row.name}.py` {_cell(one['name'])} | {_code(one['before'])} | {_code(one['after'])} "
            f"| {_cell(_judgement(judged, row.name + '/' + one['name']))} |"
            for one in row.found if not one["killed"]
        ]  # fmt: skip
    return "\n".join([
        "# Mutants of the core", "",
        "Written by `make mutate`. A mutant is the core with one change that some test ought to notice; one",
        "that no test of the core notices *survives*, and is judged in `docs/mutation.yaml`: either it",
        "changes nothing that can be seen, or a test is missing. Each is given some seconds of tests, quick",
        "ones first (`--budget`): one that only a slower test would notice counts as a survivor.", "",
        *summary(core, seed), "",
        "| module | mutants | not run | killed | survived | killed of those run |",
        "|---|---|---|---|---|---|",
        *table, "",
        "## Survivors", "", "| where | as it is | mutant | judged |", "|---|---|---|---|", *survivors, "",
    ])  # fmt: skip


def summary(core: Sequence[Row], seed: int) -> list[str]:
    """How many were killed, and what was not run."""
    total, tried = sum(row.total for row in core), sum(len(row.found) for row in core)
    dead = sum(row.killed for row in core)
    told = [f"**{dead} of {tried} killed: {_share(dead, tried)}.**"]
    endless = sum(one.get("by") == NO_END for row in core for one in row.found)
    if endless:
        told += ["", f"{endless} of them without end, by a test that took ten times its processor time."]
    if tried < total:
        told += [
            "",
            f"{total - tried} of {total} mutants were not run. They are tried in an order drawn at random",
            f"(seed {seed}), those in functions first: what was run of a module is a sample of it.",
        ]  # fmt: skip
        if stale := [f"`{row.name}`" for row in core if row.stale]:
            told += [f"Changed since they were run: {', '.join(stale)}."]
    return told


def verdict(core: Sequence[Row]) -> int:
    """0 when all were run and 90 % are dead, 1 when fewer are, 2 when not all were run."""
    total = sum(row.total for row in core)
    if sum(len(row.found) for row in core) < total:
        return 2
    return 0 if sum(row.killed for row in core) >= ENOUGH * total else 1


def _judgement(judged: dict[str, str], name: str) -> str:
    return judged.get(name) or next(
        (why for pattern, why in judged.items() if fnmatchcase(name, pattern)), "**not judged**"
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{_cell(text).replace('`', '')}`"
