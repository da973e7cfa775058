"""`quietus ledger verify`, `backup`, `restore` and `migrate`: what is done to a ledger on day two."""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from quietus.cli.root import NO, fail, guarded, say, screen
from quietus.config import load, no_color
from quietus.ledger.archive import archived, back_up
from quietus.ledger.archive import restore as put_back
from quietus.ledger.sqlite import SqliteLedger
from quietus.ledger.verify import schema_of, verify_chain
from quietus.ports import LedgerError
from quietus.settings import sqlite_path

Config = Annotated[Path | None, typer.Option("--config", "-c", help="Takes the ledger from it.")]
Ledger = Annotated[str | None, typer.Option("--ledger", help="sqlite:///PATH, or the path itself.")]
HeadFile = Annotated[Path | None, typer.Option("--head-file", help="Where its newest head is kept.")]
Json = Annotated[bool, typer.Option("--json", help="For machines.")]
_TOGETHER: Final = 256
_ANY_STORE: Final = {"store.profile": "none", "store.http.upstream": "http://localhost"}


def ledger_of(ledger: str | None, config: Path | None, head: Path | None) -> tuple[Path, Path | None]:
    """The file that is meant, and its head file. Ends the command where there is none."""
    if ledger is not None:
        return (sqlite_path(ledger) if ledger.startswith("sqlite:") else Path(ledger)), head
    settings = guarded(lambda: load(config, {} if config else _ANY_STORE)).ledger
    if settings.path is None:
        fail("only a SQLite ledger is a file; name one, or keep the others by their servers' own means")
    return settings.path, head or settings.head_file


def verify(
    ledger: Annotated[str | None, typer.Argument(help="sqlite:///PATH, or the path itself.")] = None,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="Takes the ledger from it.")] = None,
    head_file: Annotated[Path | None, typer.Option(help="Where its newest head is kept.")] = None,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Check the hash chain of a ledger, offline and read-only.

    Examples:

      quietus ledger verify sqlite:///quietus.db

      quietus ledger verify --config quietus.yaml
    """
    path, head = ledger_of(ledger, config, head_file)
    try:
        report = verify_chain(path, head_file=head)
    except LedgerError as error:
        fail(str(error))
    if json:
        told_head = {"number": report.head.number, "hash": report.head.hash} if report.head else None
        found = {"ok": report.ok, "events": report.events, "head": told_head}
        say({**found, "at": report.at, "fault": report.fault})
    elif report.ok and report.head is not None:
        screen().print(
            Text.assemble(("ok  ", "green"), f"{report.events} events, head {report.head.hash[:16]}, {path}")
        )
    else:
        screen().print(Text.assemble(("no  ", "red"), f"event {report.at}: {report.fault}"))
    raise typer.Exit(0 if report.ok else NO)


def backup(
    target: Annotated[Path, typer.Argument(help="The file to write; it must not exist.")],
    config: Config = None,
    ledger: Ledger = None,
    without_secrets: Annotated[
        bool, typer.Option("--without-secrets", help="Leave out what is sealed for probing.")
    ] = False,
    json: Json = False,
) -> None:
    """Copy a ledger, also while a sidecar writes to it. Keep the keys file apart from it.

    Example:

      quietus ledger backup --config quietus.yaml /backups/ledger-2027-03-01.db
    """
    path, _ = ledger_of(ledger, config, None)
    with Progress(console=Console(stderr=True, no_color=no_color()), transient=True) as bar:
        task = bar.add_task("copying", total=None)
        try:
            report = back_up(
                path, target, secrets=not without_secrets,
                progress=lambda done, of: bar.update(task, completed=done, total=of),
            )  # fmt: skip
        except LedgerError as error:
            fail(str(error), NO)
    assert report.head is not None
    if json:
        say({"backup": str(target), "events": report.events, "head": report.head.hash})
    else:
        screen().print(f"{target}: {report.events} events, verified, head {report.head.hash[:16]}")


def restore(
    source: Annotated[Path, typer.Argument(help="A backup.")],
    config: Config = None,
    ledger: Ledger = None,
    head_file: HeadFile = None,
    events: Annotated[Path | None, typer.Option("--events", help="JSON lines of GET /v1/audit.")] = None,
    accept_older: Annotated[
        bool, typer.Option("--accept-older", help="Take one older than the head file knows.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Put a backup where the ledger was; what stood there is moved aside. The sidecar must not run.

    Example:

      quietus ledger restore --config quietus.yaml ledger-2027-03-01.db --accept-older --events audit.jsonl
    """
    path, head = ledger_of(ledger, config, head_file)
    if not yes:
        typer.confirm(f"Put {source} in the place of {path}?", abort=True, err=True)
    try:
        found, aside = put_back(source, path, head_file=head, accept_older=accept_older)
        added = asyncio.run(_again(path, head, events, found.number)) if events is not None else 0
    except LedgerError as error:
        fail(str(error), NO)
    except OSError as error:
        fail(f"{error.filename} cannot be read: {error.strerror}")
    if json:
        told = {"ledger": str(path), "events": found.number, "appended": added}
        say({**told, "moved_aside": str(aside) if aside else None})
        return
    screen().print(f"{path}: {found.number} events from the backup, {added} from the archive")
    if aside is not None:
        screen().print(f"what stood there is {aside}")


async def _again(path: Path, head: Path | None, events: Path, after: int) -> int:
    ledger = SqliteLedger(path, head_file=head)
    await ledger.open()
    count = 0
    try:
        with events.open("rb") as lines:
            coming = archived(lines, after)
            while batch := list(islice(coming, _TOGETHER)):
                marks = [mark for _, its in batch for mark in its]
                await ledger.append([draft for draft, _ in batch], marks=marks)
                count += len(batch)
    finally:
        await ledger.close()
    return count


def migrate(config: Config = None, ledger: Ledger = None, json: Json = False) -> None:
    """Bring a ledger to the newest schema that this Quietus knows; say which one it has."""
    path, _ = ledger_of(ledger, config, None)
    try:
        found, newest = schema_of(path)
    except LedgerError as error:
        fail(str(error), NO)
    # There has been one schema so far. A ledger of a newer one is refused above.
    if json:
        say({"schema": found, "newest": newest, "migrated": False})
    else:
        screen().print(f"schema {found} is the newest: nothing to do")


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    group = typer.Typer(help="The ledger: checked, copied, put back. Offline.", no_args_is_help=True)
    for name, command in (("verify", verify), ("backup", backup), ("restore", restore), ("migrate", migrate)):
        group.command(name)(command)
    app.add_typer(group, name="ledger")
