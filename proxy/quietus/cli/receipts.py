"""`quietus receipt get` and `verify`, and `quietus keys list`: what an auditor works with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from quietus.cli.asking import Admin, Config, Id, Json, TokenFile, ask
from quietus.cli.client import Client, erasure_path
from quietus.cli.receipt_check import BadKeys, BadReceipt, about, checked
from quietus.cli.root import NO, fail, guarded, say, screen
from quietus.cli.running import settings_of
from quietus.key_file import load, rotate
from quietus.keys import Keyring
from quietus.receipts import published_keys


def get(
    id: Id,
    html: Annotated[bool, typer.Option("--html", help="The same for people to read.")] = False,
    salt: Annotated[bool, typer.Option("--salt", help="What proves whom it is about.")] = False,
    config: Config = None,
    admin: Admin = None,
    token_file: TokenFile = None,
) -> None:
    """Print the signed receipt of an erasure, as it stands now.

    Example:

      quietus receipt get er_01 > receipt.json
    """
    path = erasure_path(id, "/receipt")

    def fetch(client: Client) -> Any:
        if salt:
            return client.get(f"{path}/salt")["salt"]
        return client.page(path) if html else client.get(path)

    found = ask(config, admin, token_file, fetch)
    if isinstance(found, str):
        typer.echo(found)
    else:
        say(found)


Many = list[str] | None


def verify(
    file: Annotated[Path, typer.Argument(help="The receipt.")],
    public_key: Annotated[Path, typer.Option("--public-key", help="PEM, or `quietus keys list --json`.")],
    salt: Annotated[str | None, typer.Option(help="Hexadecimal; proves whom it is about.")] = None,
    subject: Annotated[Many, typer.Option(help="With --salt: who was named; may be repeated.")] = None,
    tenant: Annotated[Many, typer.Option(help="With --salt.")] = None,
    purpose: Annotated[Many, typer.Option(help="With --salt.")] = None,
    key: Annotated[Many, typer.Option(help="With --salt.")] = None,
    path: Annotated[Many, typer.Option(help="With --salt.")] = None,
    json: Json = False,
) -> None:
    """Check a receipt, offline: exit 0 when it holds, 1 when it does not.

    Example:

      quietus receipt verify receipt.json --public-key keys.json
    """
    try:
        raw, published = file.read_bytes(), public_key.read_bytes()
    except OSError as error:
        fail(f"{error.filename} cannot be read: {error.strerror}")
    try:
        receipt = checked(raw, published)
        if salt is not None:
            named = {"subject": subject, "tenant": tenant, "purpose": purpose, "key": key, "path": path}
            about(receipt, salt, {name: values for name, values in named.items() if values})
    except BadKeys as error:
        fail(str(error))
    except BadReceipt as error:
        if json:
            say({"holds": False, "why": str(error)})
            raise typer.Exit(NO) from None
        fail(f"the receipt does not hold: {error}", NO)
    if json:
        say({"holds": True, "receipt": receipt})
        return
    result = receipt["result"]
    console = screen()
    console.print(f"The receipt holds. It was signed by {receipt['signature']['key']}.", markup=False)
    console.print(
        f"{receipt['erasure']} on {receipt['store']}, as of {receipt['issued_at']}: {result['state']}, "
        f"{result['verdict']}. {result['why']}", markup=False,
    )  # fmt: skip
    if salt is not None:
        console.print("It is about what was named.")
    for each in receipt["not_checked"]:
        console.print(f"not shown: {each['name']} ({each['outcome']})", markup=False)


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
    receipt = typer.Typer(help="Signed receipts.", no_args_is_help=True)
    receipt.command("get")(get)
    receipt.command("verify")(verify)
    app.add_typer(receipt, name="receipt")
    keys = typer.Typer(help="The keys of the ledger.", no_args_is_help=True)
    keys.command("list")(keys_list)
    keys.command("rotate")(keys_rotate)
    app.add_typer(keys, name="keys")
