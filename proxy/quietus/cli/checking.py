"""Commands that look at documents and ledgers: `check`, `profile`, `ledger verify`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.table import Table
from rich.text import Text

from quietus import policies, policy_cases
from quietus.app import SystemClock
from quietus.cli.root import NO, USAGE, fail, guarded, say, screen, told
from quietus.cli.trying import profile_try
from quietus.config import load
from quietus.documents import DocumentError, read
from quietus.ledger.verify import verify_chain
from quietus.ports import LedgerError
from quietus.profiles.faults import Fault, ProfileError
from quietus.profiles.loader import find_profile, load_profile, shipped_names
from quietus.settings import sqlite_path
from quietus.trials import TrialFault, as_dict, found_trial, standing

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_SCHEMAS: Final = ".schema.json"


@dataclass(slots=True)
class Report:
    """What a check has found."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    failed: list[policy_cases.Outcome] = field(default_factory=list)

    @property
    def code(self) -> int:
        """How the command ends."""
        return USAGE if self.faults else NO if self.failed else 0


def check(
    paths: Annotated[list[Path] | None, typer.Argument(help="Files, folders; none: what ships.")] = None,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Validate configurations, profiles and policies, and run policy cases.

    Examples:

      quietus check

      quietus check quietus.yaml my-profile.yaml my-policy.yaml my-cases.yaml
    """
    report = Report()
    for path in _files(paths or _shipped()):
        try:
            _check(path, report)
        except (DocumentError, ProfileError) as error:
            report.faults += error.faults
    if json:
        say({
            "checked": report.lines,
            "faults": [
                {"file": f.file, "line": f.line, "message": f.message, "hint": f.hint} for f in report.faults
            ],
            "failed": [
                {"file": o.file, "line": o.line, "case": o.name, "differences": list(o.differences)}
                for o in report.failed
            ],
        })  # fmt: skip
    else:
        _print(report)
    raise typer.Exit(report.code)


def _shipped() -> list[Path]:
    # Of a checkout or of the package alike: the folder of what ships.
    return [policies.folder() / name for name in ("profiles", "rules", "cases")]


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(
                p for p in path.rglob("*") if p.suffix in _SUFFIXES and not p.name.endswith(_SCHEMAS)
            )
        else:
            yield path


def _check(path: Path, report: Report) -> None:
    document = read(path)
    kind = document.value.get("kind") if isinstance(document.value, dict) else None
    if kind == "Profile":
        profile = load_profile(path if "/" in str(path) else Path(".") / path)
        report.lines.append({"file": str(path), "kind": "profile", "name": profile.name,
                             "notes": list(profile.lints)})  # fmt: skip
    elif kind == "Policy":
        policy = policies.judged(document)
        report.lines.append({"file": str(path), "kind": "policy", "name": policy.name})
    elif kind == "PolicyCases":
        outcomes = policy_cases.run_document(document, path.parent)
        report.failed += [outcome for outcome in outcomes if not outcome.holds]
        report.lines.append({"file": str(path), "kind": "cases", "name": f"{len(outcomes)} cases"})
    elif kind is None:
        settings = load(path, environ={})
        profile = load_profile(settings.store.profile, settings.store.wires)
        policies.load_policy(settings.policy)
        stands = standing(profile, found_trial(settings.store.trial), SystemClock().now())
        notes = [] if stands.word == "none_declared" and settings.store.trial is None else [stands.says]
        report.lines.append({"file": str(path), "kind": "configuration", "name": settings.store.name,
                             "notes": notes, "exemption": as_dict(stands)})  # fmt: skip
    elif kind == "Trial":
        trial = found_trial(path)
        if isinstance(trial, TrialFault):
            raise DocumentError([Fault(str(path), 1, "is no result of a trial", "run `quietus profile try`")])
        shown = ", ".join(sorted(trial.conditions)) if trial and trial.conditions else "nothing"
        report.lines.append({"file": str(path), "kind": "trial", "name": trial.profile if trial else "",
                             "notes": [f"shown: {shown}"]})  # fmt: skip
    else:
        line = document.line(("kind",))
        hint = "it is Profile, Policy, PolicyCases or Trial; a configuration has no kind"
        raise DocumentError([Fault(document.file, line, "this kind is not known", hint)])


def _print(report: Report) -> None:
    console = screen()
    for line in report.lines:
        console.print(Text.assemble(("ok  ", "green"), f"{line['kind']:<14}{line['name']:<20}{line['file']}"))
        for note in line.get("notes", ()):
            console.print(Text.assemble(("    note: ", "yellow"), str(note)))
    for outcome in report.failed:
        console.print(Text.assemble(("no  ", "red"), f"{outcome.file}:{outcome.line}: {outcome.name}"))
        for difference in outcome.differences:
            console.print(f"      {difference}", markup=False)
    told(report.faults)


def profile_list(json: Annotated[bool, typer.Option("--json", help="For machines.")] = False) -> None:
    """List the profiles that ship."""
    found = guarded(lambda: [load_profile(name) for name in shipped_names()])
    if json:
        say([{"name": p.name, "summary": p.summary, "routes": len(p.route_names)} for p in found])
        return
    table = Table(box=None)
    for head in ("name", "routes", "surfaces", "summary"):
        table.add_column(head)
    for one in found:
        surfaces = ", ".join(s.name for s in one.surfaces)
        table.add_row(one.name, str(len(one.route_names)), surfaces, one.summary)
    screen().print(table)


def profile_show(
    name: Annotated[str, typer.Argument(help="A profile that ships, or a path.")],
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Show what a profile says: its store, routes and surfaces.

    Example:

      quietus profile show chroma
    """
    profile = guarded(lambda: load_profile(name))
    if not json:
        typer.echo(find_profile(name).read_text(encoding="utf-8"), nl=False)
        return
    say({
        "name": profile.name,
        "summary": profile.summary,
        "fingerprint": profile.fingerprint,
        "settling_interval": profile.store.settling_interval,
        "routes": [{"name": r.name, "operation": r.operation.value} for r in profile.routes],
        "surfaces": [
            {"name": s.name, "kind": s.kind, "probeable": s.probeable, "blocking": s.blocking, "note": s.note}
            for s in profile.surfaces
        ],
    })  # fmt: skip


def ledger_verify(
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
    path, head = _ledger(ledger, config, head_file)
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


def _ledger(ledger: str | None, config: Path | None, head: Path | None) -> tuple[Path, Path | None]:
    if ledger is not None:
        return (sqlite_path(ledger) if ledger.startswith("sqlite:") else Path(ledger)), head
    settings = guarded(lambda: load(config, {} if config else _ANY_STORE)).ledger
    if settings.path is None:
        fail("a ledger in memory leaves nothing to verify; name a file")
    return settings.path, head or settings.head_file


_ANY_STORE: Final = {"store.profile": "none", "store.http.upstream": "http://localhost"}


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.command()(check)
    profile = typer.Typer(help="What is known of stores.", no_args_is_help=True)
    profile.command("list")(profile_list)
    profile.command("show")(profile_show)
    profile.command("try")(profile_try)
    app.add_typer(profile, name="profile")
    ledger = typer.Typer(help="The ledger, offline.", no_args_is_help=True)
    ledger.command("verify")(ledger_verify)
    app.add_typer(ledger, name="ledger")
