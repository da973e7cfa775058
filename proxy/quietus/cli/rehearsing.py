"""The command `quietus profile test`: recorded calls held against a profile."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from quietus.cli.root import NO, fail, guarded, say, screen
from quietus.describing.pairs import NoPair, Pair, pairs_of, written
from quietus.describing.rehearsing import Rehearsed, expectation, never_met, rehearse
from quietus.profiles.loader import load_profile
from quietus.profiles.profile import Profile


def profile_test(
    name: Annotated[str, typer.Argument(help="A profile that ships, or a path.")],
    pairs: Annotated[Path, typer.Argument(help="Recorded calls, as `quietus profile record` writes them.")],
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Write what was found into the recording, to be expected from now on."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Hold recorded calls against a profile: operation, scope, rows, and each answer less each of its rows.

    Nothing is sent. Exit code 1: a call has no route, cannot be read, a row cannot be taken out without
    changing something else, or what was expected is not what was found.

    Examples:

      quietus profile test mine.yaml calls.jsonl

      quietus profile test mine.yaml calls.jsonl --accept
    """
    try:
        with guarded(lambda: pairs.open(encoding="utf-8")) as lines:
            given = list(pairs_of(lines))
    except (NoPair, UnicodeDecodeError) as error:
        fail(f"{pairs}: {error if isinstance(error, NoPair) else 'it is not UTF-8'}")
    if not given:
        fail(f"{pairs} holds no recorded call: record some with `quietus profile record`")
    wires = frozenset(pair.request.wire for pair in given)
    profile: Profile = guarded(lambda: load_profile(name, wires))
    seen = rehearse(profile, given)
    unmet = never_met(profile, seen)
    failed = sum(bool(each.faults) for each in seen)
    if accept and not failed:
        guarded(lambda: _accept(pairs, given, seen))
    if json:
        say({"profile": profile.name, "pairs": len(seen), "failed": failed, "routes_without_a_pair": unmet,
             "found": [_told(each) for each in seen]})  # fmt: skip
    else:
        _report(seen, unmet, failed)
    raise typer.Exit(NO if failed else 0)


def _told(each: Rehearsed) -> dict[str, Any]:
    return {"pair": each.number, **each.found, "rows_taken_out": each.dropped, "faults": each.faults,
            "notes": each.notes}  # fmt: skip


def _accept(path: Path, given: list[Pair], seen: list[Rehearsed]) -> None:
    lines = [
        written(replace(pair, expect=expectation(each.found))) for pair, each in zip(given, seen, strict=True)
    ]
    new = path.with_name(path.name + ".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    new.replace(path)


def _report(seen: list[Rehearsed], unmet: list[str], failed: int) -> None:
    console = screen()
    table = Table(box=None)
    for head in ("", "pair", "operation", "route", "scope", "rows", "taken out"):
        table.add_column(head, no_wrap=head != "scope")
    for each in seen:
        found = each.found
        word = Text("no", "red") if each.faults else Text("ok", "green")
        out = str(each.dropped) if "items" in found else ""
        row = (found.get("operation", ""), found.get("route", ""), _named(found), str(found.get("items", "")))
        table.add_row(word, str(each.number), *row, out)
    console.print(table)
    for each in seen:
        for fault in each.faults:
            console.print(Text.assemble(("no  ", "red"), f"pair {each.number}: {fault}"), soft_wrap=True)
    for note in sorted({note for each in seen for note in each.notes}):
        pairs = ", ".join(str(each.number) for each in seen if note in each.notes)
        console.print(Text.assemble(("note ", "yellow"), f"pairs {pairs}: {note}"), soft_wrap=True)
    if unmet:
        console.print(f"no call was recorded of: {', '.join(unmet)}", markup=False, soft_wrap=True)
    console.print(f"{len(seen)} calls, {failed} failed")


def _named(found: dict[str, Any]) -> str:
    scope = found.get("scope", {})
    return " ".join(f"{name}={','.join(value) if isinstance(value, list) else value}"
                    for name, value in scope.items() if value != "any") or "any"  # fmt: skip


def register(group: typer.Typer) -> None:
    """Adds the command to the group `quietus profile`."""
    group.command("test")(profile_test)
