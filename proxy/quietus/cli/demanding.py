"""Commands of the privacy office and of the night shift: demands, holds, overrides, quarantines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.table import Table

from quietus.cli.asking import ERASURES, Admin, Config, Id, Json, Reason, TokenFile, ask, show
from quietus.cli.client import Client, erasure_path
from quietus.cli.root import fail, say, screen

Many = Annotated[list[str] | None, typer.Option(help="May be repeated.")]
Subject = Annotated[
    list[str] | None, typer.Option(help="Raw; kept only as a hash. Several are one person's identifiers.")
]
Key = Annotated[list[str] | None, typer.Option(help="Of a record; may be repeated.")]
PathOf = Annotated[str | None, typer.Option("--path", help="All below it, such as org/team.")]
Tenant = Annotated[str | None, typer.Option(help="Only there.")]


def _scope(
    subject: list[str] | None, key: list[str] | None, path: str | None, tenant: str | None
) -> dict[str, Any]:
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
    body = _scope(subject, key, path, tenant)
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


def override(
    reason: Reason,
    length: Annotated[str, typer.Option("--for", help="At most 24h; it ends by itself.")],
    effect: Annotated[str, typer.Option(help="annotate: recalls pass, marked.")] = "annotate",
    tenant: Tenant = None,
    config: Config = None,
    admin: Admin = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Break glass: recalls that erasures would have blocked pass, marked and counted. Probes go on.

    Example:

      quietus override --effect annotate --for 60m --reason "incident 12: clinicians need the notes"
    """
    body = {"effect": effect, "for": length, "reason": reason, **({"tenant": tenant} if tenant else {})}
    found = ask(config, admin, token_file, lambda c: c.post("/v1/overrides", body))
    if json:
        say(found)
    else:
        screen().print(f"{found['id']}: recalls pass, marked, until {found['until']}")


def hold(
    reason: Reason,
    exception: Annotated[str, typer.Option(help="The ground, such as gdpr_art17_3_e.")],
    until: Annotated[str, typer.Option(help="2027-03-01T00:00:00Z; a hold ends.")],
    subject: Subject = None,
    key: Key = None,
    path: PathOf = None,
    tenant: Tenant = None,
    config: Config = None,
    admin: Admin = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Forbid to erase: forgets in the scope are refused, recorded, and taken up when the hold ends."""
    body = {"exception": exception, "until": until, "reason": reason, **_scope(subject, key, path, tenant)}
    _placed("/v1/holds", body, config, admin, token_file, json)


def quarantine(
    reason: Reason,
    subject: Subject = None,
    key: Key = None,
    path: PathOf = None,
    tenant: Tenant = None,
    config: Config = None,
    admin: Admin = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Shut a scope by hand, as an unsettled erasure would."""
    body = {"reason": reason, **_scope(subject, key, path, tenant)}
    _placed("/v1/quarantines", body, config, admin, token_file, json)


def _placed(
    path: str, body: dict[str, Any], config: Path | None, admin: str | None, token: Path | None, json: bool
) -> None:
    found = ask(config, admin, token, lambda c: c.post(path, body))
    if json:
        say(found)
    else:
        screen().print(f"{found['id']} stands")


def _listing(kind: str) -> Any:
    def listed(
        config: Config = None, admin: Admin = None, token_file: TokenFile = None, json: Json = False
    ) -> None:
        found = ask(config, admin, token_file, lambda c: c.get(f"/v1/{kind}"))
        if json:
            say(found)
            return
        table = Table(box=None)
        for head in ("id", "what", "reason", "by", "until"):
            table.add_column(head)
        for one in found[kind]:
            what = ", ".join(f"{name} {value}" for name, value in one["predicate"].items()) or "everything"
            table.add_row(one["id"], what, one["reason"], one["actor"], one.get("until") or "lifted by hand")
        screen().print(table if found[kind] else f"no {kind}")

    listed.__doc__ = f"List {kind}."
    return listed


def _ending(kind: str, one: str) -> Any:
    def end(
        id: Annotated[str, typer.Argument(metavar="ID", help="Of what is ended.")],
        reason: Reason,
        config: Config = None,
        admin: Admin = None,
        token_file: TokenFile = None,
    ) -> None:
        def work(client: Client) -> None:
            client.delete(f"/v1/{kind}/{quote(id, safe='')}", {"reason": reason})

        ask(config, admin, token_file, work)
        screen().print(f"{id} stands no more")

    end.__doc__ = f"End an {one}." if one[0] in "aeiou" else f"End a {one}."
    return end


def register(app: typer.Typer) -> None:
    """Adds these commands; those about one erasure to its own group."""
    ERASURES.command("create")(create)
    ERASURES.command("extend")(extend)
    overrides = typer.Typer(help="Break glass: recalls pass, marked.", no_args_is_help=True)
    overrides.command("list")(_listing("overrides"))
    overrides.command("end")(_ending("overrides", "override"))
    app.command("override")(override)
    app.add_typer(overrides, name="overrides")
    for name, one, command in (("holds", "hold", hold), ("quarantines", "quarantine", quarantine)):
        group = typer.Typer(help=f"{name.capitalize()} that people place.", no_args_is_help=True)
        group.command("place")(command)
        group.command("list")(_listing(name))
        group.command("lift")(_ending(name, one))
        app.add_typer(group, name=name)
