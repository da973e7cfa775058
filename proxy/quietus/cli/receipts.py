"""`quietus receipt get` and `verify`: what an auditor works with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from quietus.cli.asking import Admin, Config, Id, Json, TokenFile, ask
from quietus.cli.client import Client, erasure_path
from quietus.cli.receipt_check import BadKeys, BadReceipt, about, checked
from quietus.cli.root import NO, fail, say, screen


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


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    receipt = typer.Typer(help="Signed receipts.", no_args_is_help=True)
    receipt.command("get")(get)
    receipt.command("verify")(verify)
    app.add_typer(receipt, name="receipt")
