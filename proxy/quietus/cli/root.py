"""The root command, and how everything ends: 0 fine, 1 the answer is "no", 2 usage or configuration."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from quietus.admin.server import running_version
from quietus.admin.tokens import TokenRefused
from quietus.config import no_color
from quietus.documents import DocumentError
from quietus.key_file import KeysRefused
from quietus.ports import LedgerError
from quietus.profiles.faults import Fault, ProfileError

NO = 1
USAGE = 2

STARTING = (LedgerError, KeysRefused, TokenRefused, OSError)
"""What may keep a sidecar from starting; each says what to do."""

class Root(TyperGroup):
    """Takes `--output json` and `--output table` wherever they stand: the first is a command's `--json`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments with `--output` in the words that each command knows."""
        return super().parse_args(ctx, list(_in_words(args)))


def _in_words(args: list[str]) -> Iterator[str]:
    wanted = "table"
    coming = iter(args)
    rest: list[str] = []
    for word in coming:
        if word == "--":
            rest = [word, *coming]
        elif word == "--output" or word.startswith("--output="):
            wanted = word.partition("=")[2] or next(coming, "")
        else:
            yield word
    if wanted not in ("table", "json"):
        fail("--output is table or json")
    yield from ("--json",) if wanted == "json" else ()  # of the last command, wherever it was said
    yield from rest


app = typer.Typer(
    name="quietus",
    cls=Root,
    help="A sidecar in front of an agent's memory store: nobody recalls what was forgotten, and an erasure "
    "is settled only by evidence.",
    epilog="Exit codes: 0 fine; 1 the answer is no; 2 usage or configuration error. "
    "`--output json` says the same as `--json`, `--output table` is how it is else.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback(invoke_without_command=True)
def root(
    version: bool = typer.Option(False, "--version", help="Say which version runs.", is_eager=True),
) -> None:
    """Root of all commands."""
    if version:
        typer.echo(f"quietus {running_version()}")
        raise typer.Exit()


def screen() -> Console:
    """The console for answers. Plain where `NO_COLOR` is set or nobody looks."""
    return Console(no_color=no_color(), highlight=False)


def fail(message: str, code: int = USAGE) -> NoReturn:
    """Says what is wrong, on stderr, and ends."""
    Console(stderr=True, no_color=no_color(), highlight=False, soft_wrap=True).print(
        Text.assemble(("quietus: ", "bold red"), message)
    )
    raise typer.Exit(code)


def say(value: Any) -> None:
    """Prints JSON, for `--json`."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def told(faults: Iterable[Fault]) -> None:
    """Prints faults, one a line, on stderr: file, line, what is wrong, what to do."""
    for fault in faults:
        typer.echo(str(fault), err=True)


def guarded(work: Callable[[], Any]) -> Any:
    """Runs `work`; a fault of configuration ends with 2 and says where it stands."""
    try:
        return work()
    except (DocumentError, ProfileError) as error:
        told(error.faults)
        raise typer.Exit(USAGE) from None
    except STARTING as error:
        fail(str(error) or type(error).__name__)


def run(application: typer.Typer) -> NoReturn:
    """Runs the command line; an interrupt ends quietly."""
    try:
        application(standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)
