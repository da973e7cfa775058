"""`quietus keys list` and `rotate`: the keys of a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from quietus.cli.asking import Config, Json
from quietus.cli.root import fail, guarded, say, screen
from quietus.cli.running import settings_of
from quietus.key_file import load, rotate
from quietus.keys import Keyring
from quietus.receipts import published_keys


def keys_list(config: Config = None, json: Json = False) -> None:
    """List the keys' public names, and the public key that receipts are checked with."""
    path = _keys_path(config)
    keyring = guarded(lambda: Keyring.load_or_make(path, ledger_is_new=False))
    if json:
        say(published_keys(keyring))
        return
    table = Table(box=None)
    for head in ("use", "id", "public"):
        table.add_column(head)
    public = dict(keyring.signing_keys)
    for kept in guarded(lambda: load(path)):
        table.add_row(kept.use, kept.id, public[kept.id].hex() if kept.id in public else "-")
    screen().print(table)


def keys_rotate(
    use: Annotated[str, typer.Argument(help="signing, or wrapping.")],
    config: Config = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Put a new key in the place of one; the old one still checks and opens what was made with it.

    The sidecar works with it from its next start on. Publish `quietus keys list --json` anew after a new
    signing key, and back the keys file up.

    Example:

      quietus keys rotate signing --config quietus.yaml
    """
    path = _keys_path(config)
    if not yes:
        typer.confirm(f"Put a new {use} key into {path}?", abort=True, err=True)
    old, new = guarded(lambda: rotate(path, use))
    if json:
        say({"use": use, "old": old, "new": new})
    else:
        screen().print(f"{new} takes the place of {old}, once the sidecar has started again")


def _keys_path(config: Path | None) -> Path:
    path = guarded(lambda: settings_of(config, {})).keys_path
    if path is None:
        fail("a ledger in memory keeps no keys; set keys.file")
    return Path(path)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    keys = typer.Typer(help="The keys of the ledger.", no_args_is_help=True)
    keys.command("list")(keys_list)
    keys.command("rotate")(keys_rotate)
    app.add_typer(keys, name="keys")
