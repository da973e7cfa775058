"""Commands of the privacy office: demands to erase, and the period that the law gives for them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from quietus.cli.asking import ERASURES, Admin, Config, Id, Json, Reason, TokenFile, ask, show
from quietus.cli.client import erasure_path
from quietus.cli.root import fail, say, screen

Many = Annotated[list[str] | None, typer.Option(help="May be repeated.")]
Subject = Annotated[
    list[str] | None, typer.Option(help="Raw; kept only as a hash. Several are one person's identifiers.")
]
Key = Annotated[list[str] | None, typer.Option(help="Of a record; may be repeated.")]
PathOf = Annotated[str | None, typer.Option("--path", help="All below it, such as org/team.")]
Tenant = Annotated[str | None, typer.Option(help="Only there.")]


def scope_of(
    subject: list[str] | None, key: list[str] | None, path: str | None, tenant: str | None
) -> dict[str, Any]:
    """The members of a request that name a scope, as the options gave them."""
    given = {"subject": subject, "keys": key, "path": path, "tenant": tenant}
    return {name: value for name, value in given.items() if value}


def create(
    subject: Subject = None,
    key: Key = None,
    path: PathOf = None,
    tenant: Tenant = None,
    purpose: Many = None,
    alias: Annotated[list[str] | None, typer.Option(help="Another name, as texts may have it.")] = None,
    basis: Annotated[str | None, typer.Option(help="The law, such as gdpr_art17 or ccpa_1798_105.")] = None,
    reference: Annotated[str | None, typer.Option(help="Your ticket; name nobody in it.")] = None,
    received: Annotated[str | None, typer.Option(help="When it was received: 2027-03-01T09:00:00Z.")] = None,
    capture: Annotated[list[str] | None, typer.Option(help="NAME=VALUE that the store needs.")] = None,
    config: Config = None,
    admin: Admin = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Demand an erasure; exactly one of --subject, --key and --path.

    Example:

      quietus erasures create --subject alice --basis gdpr_art17 --reference ticket-4711
    """
    body = scope_of(subject, key, path, tenant)
    more = {"purposes": purpose, "aliases": alias, "basis": basis, "reference": reference,
            "received_at": received}  # fmt: skip
    body |= {name: value for name, value in more.items() if value}
    if capture:
        if not all("=" in pair for pair in capture):
            fail("--capture is NAME=VALUE")
        body["capture"] = dict(pair.split("=", 1) for pair in capture)
    found = ask(config, admin, token_file, lambda c: c.post("/v1/erasures", body))
    if json:
        say(found)
    else:
        show(found)
        screen().print(f"salt for its receipts: {found['receipt_salt']}")


def extend(
    id: Id, reason: Reason, config: Config = None, admin: Admin = None, token_file: TokenFile = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Extend its legal period, once, as the law of its basis allows."""
    found = ask(config, admin, token_file, lambda c: c.post(erasure_path(id, ":extend"), {"reason": reason}))
    if json:
        say(found)
    else:
        show(found)


def register(_app: typer.Typer) -> None:
    """Adds these commands to the group of erasures."""
    ERASURES.command("create")(create)
    ERASURES.command("extend")(extend)
