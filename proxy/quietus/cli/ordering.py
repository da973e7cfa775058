"""Commands of standing orders: break-glass overrides, legal holds, scopes quarantined by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.table import Table

from quietus.cli.asking import Admin, Config, Json, Reason, TokenFile, ask
from quietus.cli.client import Client
from quietus.cli.demanding import Key, PathOf, Subject, Tenant, scope_of
from quietus.cli.root import say, screen


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
    body = {"exception": exception, "until": until, "reason": reason, **scope_of(subject, key, path, tenant)}
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
    body = {"reason": reason, **scope_of(subject, key, path, tenant)}
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
        for head in ("id", "what", "reason", "by", "until", *(["waiting"] if kind == "holds" else [])):
            table.add_column(head)
        for one in found[kind]:
            what = ", ".join(f"{name} {value}" for name, value in one["predicate"].items()) or "everything"
            waiting = [str(one["waiting"])] if kind == "holds" else []
            until = one.get("until") or "lifted by hand"
            table.add_row(one["id"], what, one["reason"], one["actor"], until, *waiting)
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
    """Adds these commands."""
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
