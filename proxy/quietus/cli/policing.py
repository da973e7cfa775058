"""Commands that ask a policy about decisions that were made: `policy record`, `diff` and `observed`."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from quietus.cli.asking import Admin, Config, Json, TokenFile, ask
from quietus.cli.policy_sums import NotRecorded, Recorded, difference, enforced, observed
from quietus.cli.root import NO, fail, guarded, say, screen
from quietus.core.policy import Policy
from quietus.policies import load_policy

From = Annotated[
    list[Path] | None,
    typer.Option("--from", help="Files of `policy record`, added up; else the running sidecar is asked."),
]
Named = Annotated[str, typer.Argument(metavar="POLICY", help="default, strict, observe, or a path.")]


def policy_record(config: Config = None, admin: Admin = None, token_file: TokenFile = None) -> None:
    """Print what a sidecar has decided, counted, as JSON, for `diff` and `observed`.

    It holds what policies look at: routes, tenants, principals, purposes, states; no subject and no content.

    Example:

      quietus policy record > monday.json
    """
    say(ask(config, admin, token_file, lambda c: c.get("/v1/decisions")))


def policy_diff(
    policy: Named,
    recorded: From = None,
    config: Config = None,
    admin: Admin = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Ask another policy about the calls that were decided: what would change, by route, rule and tenant.

    Exit code 1: something would.

    Examples:

      quietus policy diff house.yaml

      quietus policy diff strict --from monday.json --from tuesday.json
    """
    wanted = policy_of(policy)
    found = difference(record_of(recorded, config, admin, token_file), wanted)
    if json:
        say(found)
    else:
        _differences(found)
    raise typer.Exit(NO if found["changed"] else 0)


def policy_observed(
    policy: Annotated[str, typer.Argument(metavar="[POLICY]", help="As if it were enforced.")] = "default",
    recorded: From = None,
    config: Config = None,
    admin: Admin = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Say what enforcing a policy would have refused, and what of the store is not described yet.

    By route, rule and tenant; routes that nobody mapped, fields that the profile could not read, and how many
    recalls overlapped an erasure that was not settled.

    Examples:

      quietus policy observed

      quietus policy observed strict --from monday.json
    """
    wanted = policy_of(policy)
    found = observed(record_of(recorded, config, admin, token_file), enforced(wanted))
    if json:
        say(found)
    else:
        _observations(found)


def policy_of(name: str) -> Policy:
    """The policy of that name or path; faults end the command."""
    found: Policy = guarded(lambda: load_policy(name))
    return found


def record_of(files: list[Path] | None, config: Any, admin: str | None, token: Path | None) -> Recorded:
    """The decisions of those files, or of the sidecar that runs."""
    if not files:
        return Recorded([ask(config, admin, token, lambda c: c.get("/v1/decisions"))])
    records = []
    for path in files:
        try:
            records.append(json_module.loads(guarded(path.read_bytes)))
            Recorded(records[-1:])
        except (NotRecorded, ValueError):
            fail(f"{path}: it holds no decisions; write it with `quietus policy record`")
    return Recorded(records)


def _differences(found: dict[str, Any]) -> None:
    console = screen()
    if found["changes"]:
        table = Table(box=None)
        for head in ("calls", "operation", "route", "tenant", "before", "after"):
            table.add_column(head)
        for row in found["changes"]:
            before, after = _word(row["before"]), _word(row["after"])
            table.add_row(str(row["count"]), row["operation"], row["route"], row["tenant"], before, after)
        console.print(table)
    _sums(found)
    console.print(f"{found['changed']} of {found['calls']} calls would be decided otherwise", soft_wrap=True)
    _missing(found)


def _word(said: dict[str, str]) -> str:
    seen = "" if said["mode"] == "enforce" else " (observed)"
    return f"{said['effect']}{seen} by {said['rule']}"


def _observations(found: dict[str, Any]) -> None:
    console = screen()
    console.print(
        f"Enforced, {found['policy']} would have refused {found['would_refuse']} of {found['calls']} calls, "
        f"and screened or marked {found['would_screen_or_mark']}. "
        f"{found['recalls_that_overlap_an_unsettled_erasure']} of {found['recalls']} recalls overlapped an "
        "erasure that was not settled.", markup=False, soft_wrap=True,
    )  # fmt: skip
    _sums(found)
    for title, counts in (
        ("refused as unreadable", found["would_refuse_as_unreadable"]),
        ("no route describes", found["unmapped"]),
        ("fields not read", {f"{e['route']}: {e['field']}": e["count"] for e in found["unreadable_fields"]}),
    ):
        for name, count in counts.items():
            console.print(f"{title:<24}{name}  {count}", markup=False, soft_wrap=True)
    _missing(found)


def _sums(found: dict[str, Any]) -> None:
    console = screen()
    for title in ("by_route", "by_rule", "by_tenant"):
        for name, count in found[title].items():
            console.print(f"{title.replace('_', ' '):<12}{name:<32}{count}", markup=False, soft_wrap=True)


def _missing(found: dict[str, Any]) -> None:
    if found["left_out"]:
        screen().print(f"{found['left_out']} calls were not recorded: too many kinds of them", soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    group = typer.Typer(help="Policies, asked about decisions that were made.", no_args_is_help=True)
    for name, command in (("record", policy_record), ("diff", policy_diff), ("observed", policy_observed)):
        group.command(name)(command)
    app.add_typer(group, name="policy")
