"""Commands that talk to the admin API of a running sidecar: `erasures …`, `readmit`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from quietus.cli.client import Answered, Client, Unreached, erasure_path
from quietus.cli.root import NO, fail, guarded, say, screen
from quietus.config import admin_access
from quietus.whys import span

Config = Annotated[Path | None, typer.Option("--config", "-c", help="Of the sidecar.", show_default=False)]
Admin = Annotated[str | None, typer.Option("--admin", help="HOST:PORT of the admin API.", show_default=False)]
TokenFile = Annotated[Path | None, typer.Option("--token-file", help="Holds the token.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="For machines.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="Of the erasure.")]
Reason = Annotated[str, typer.Option("--reason", help="Stands in the ledger; name nobody in it.")]

ERASURES: Final = typer.Typer(help="Erasures of a running sidecar.", no_args_is_help=True)
"""The group `quietus erasures`."""
_COLOURS: Final = {
    "requested": "yellow", "settling": "yellow", "leaking": "red", "violation": "bold red",
    "settled": "green", "relapsed": "red", "refused": "dim", "released": "magenta",
    "compliant": "green", "partial": "yellow", "unconfirmed": "dim", "CLEAN": "green", "LEAKING": "red",
}  # fmt: skip
_WATCHED: Final = 30
_ENDED: Final = frozenset({"settled", "refused", "released"})


def ask(config: Path | None, admin: str | None, token: Path | None, work: Callable[[Client], Any]) -> Any:
    """Runs `work` with a client; what goes wrong ends the command in words."""
    listen, file = guarded(lambda: admin_access(config, admin, token))
    client = guarded(lambda: Client(listen, file))
    try:
        return work(client)
    except Answered as answer:
        fail(str(answer), NO)
    except Unreached as error:
        fail(str(error))


def erasures_list(
    state: Annotated[str | None, typer.Option(help="One state, several with commas, or unsettled.")] = None,
    verdict: Annotated[str | None, typer.Option(help="compliant, partial or unconfirmed.")] = None,
    subject: Annotated[str | None, typer.Option(help="The raw subject; only its hash is used.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Of a page.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Where the page before ended.")] = None,
    config: Config = None,
    admin: Admin = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """List erasures, newest first.

    Example:

      quietus erasures list --state unsettled
    """
    query = {"state": state, "verdict": verdict, "subject": subject, "limit": str(limit), "cursor": cursor}
    found = ask(config, admin, token_file, lambda c: c.get("/v1/erasures", query))
    if json:
        say(found)
        return
    table = Table(box=None)
    for head in ("id", "state", "verdict", "requested", "why"):
        table.add_column(head, no_wrap=head != "why")
    for one in found["erasures"]:
        table.add_row(one["id"], _word(one["state"]), _word(one["verdict"]), one["requested_at"], one["why"])
    screen().print(table if found["erasures"] else "no erasures")
    if found["next"]:
        screen().print(f"more: --cursor {found['next']}")


def erasures_show(
    id: Id, config: Config = None, admin: Admin = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Show one erasure: its state, its verdict, every surface, and what keeps the gate shut."""
    found = ask(config, admin, token_file, lambda c: c.get(erasure_path(id)))
    if json:
        say(found)
    else:
        show(found)


def erasures_watch(
    id: Id, config: Config = None, admin: Admin = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Follow one erasure until it is settled; exit 1 when it ended otherwise.

    Example:

      quietus erasures watch er_01
    """

    def follow(client: Client) -> Any:
        seen: Any = None
        found = client.get(erasure_path(id))
        while True:
            if (now := (found["state"], found["why"])) != seen:
                seen = now
                if not json:
                    screen().print(Text.assemble(_word(found["state"]), f"  {found['why']}"))
            if found["state"] in _ENDED:
                return found
            found = client.get(erasure_path(id), {"wait": str(_WATCHED)}, _WATCHED + 15.0)

    found = ask(config, admin, token_file, follow)
    if json:
        say(found)
    raise typer.Exit(0 if found["state"] == "settled" else NO)


def erasures_verify(
    id: Id, config: Config = None, admin: Admin = None, token_file: TokenFile = None, json: Json = False
) -> None:
    """Have a probe round begin now."""
    _act(id, "verify", {}, config, admin, token_file, json)


def erasures_retry(
    id: Id, reason: Reason, config: Config = None, admin: Admin = None, token_file: TokenFile = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Start the wait anew, with a new bound."""
    _act(id, "retry", {"reason": reason}, config, admin, token_file, json)


def erasures_release(
    id: Id, reason: Reason, config: Config = None, admin: Admin = None, token_file: TokenFile = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Lift the restriction although nothing was shown; the verdict stays unconfirmed."""
    _act(id, "release", {"reason": reason}, config, admin, token_file, json)


def erasures_escalate(
    id: Id, reason: Reason, config: Config = None, admin: Admin = None, token_file: TokenFile = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Record that people have taken it up."""
    _act(id, "escalate", {"reason": reason}, config, admin, token_file, json)


def _act(
    id: str, name: str, body: dict[str, Any], config: Path | None, admin: str | None, token: Path | None,
    json: bool,
) -> None:  # fmt: skip
    found = ask(config, admin, token, lambda c: c.post(erasure_path(id, f":{name}"), body))
    if json:
        say(found)
    else:
        show(found)


def readmit(
    subject: Annotated[str, typer.Argument(help="The raw subject; it is hashed, and kept nowhere.")],
    reason: Reason,
    tenant: Annotated[str | None, typer.Option(help="Only there.")] = None,
    old_content: Annotated[str, typer.Option(help="refuse, or allow_own: what they wrote.")] = "refuse",
    config: Config = None,
    admin: Admin = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Let an erased subject write again: the audited exit from a tombstone.

    Example:

      quietus readmit alice --reason "asked to be remembered again, ticket 4711"
    """
    body = {"subject": subject, "reason": reason, "old_content": old_content}
    if tenant is not None:
        body["tenant"] = tenant
    found = ask(config, admin, token_file, lambda c: c.post("/v1/subjects:readmit", body))
    if json:
        say(found)
        return
    names = ", ".join(one["id"] for one in found["erasures"])
    screen().print(f"let in again: {names}")


def _word(text: str) -> Text:
    return Text(text, style=_COLOURS.get(text, ""))


def show(found: dict[str, Any]) -> None:
    """Prints one erasure for people."""
    console = screen()
    head = Text.assemble((found["id"], "bold"), "  ", _word(found["state"]), "  ", _word(found["verdict"]))
    console.print(head)
    console.print(found["why"], markup=False)
    facts = Table(box=None, show_header=False)
    for name in ("requested_at", "acknowledged_at", "settled_at", "bound_at", "due_at", "exposure_seconds"):
        if found[name] is not None:
            facts.add_row(name.replace("_", " "), str(found[name]))
    if found.get("estimate_seconds") is not None:
        facts.add_row("may settle in about", span(found["estimate_seconds"]))
    facts.add_row("may say “erased”", "yes" if found["may_assert_erasure"] else "no")
    facts.add_row("may say “nobody recalls it”", "yes" if found["may_assert_non_recallability"] else "no")
    if found["missing_for_compliant"]:
        facts.add_row("missing", ", ".join(found["missing_for_compliant"]))
    console.print(facts)
    surfaces = Table(box=None)
    for name in ("surface", "kind", "outcome", "control", "left", "reason"):
        surfaces.add_column(name)
    for one in found["surfaces"]:
        left = str(one["residual"] or "")
        outcome, said = _word(one["outcome"]), one["reason"] or ""
        surfaces.add_row(one["name"], one["kind"], outcome, str(one["control"]), left, Text(said))
    console.print(surfaces)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    for name, command in (
        ("list", erasures_list), ("show", erasures_show), ("watch", erasures_watch),
        ("verify", erasures_verify), ("retry", erasures_retry), ("release", erasures_release),
        ("escalate", erasures_escalate),
    ):  # fmt: skip
        ERASURES.command(name)(command)
    app.add_typer(ERASURES, name="erasures")
    app.command()(readmit)
