"""Commands that look at documents: `check`, `profile`."""

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
from quietus.cli import describing, recording, rehearsing
from quietus.cli.root import NO, USAGE, guarded, say, screen, told
from quietus.cli.trying import profile_try
from quietus.config import load
from quietus.documents import DocumentError, read
from quietus.profiles.faults import Fault, ProfileError
from quietus.profiles.loader import find_profile, load_profile, shipped_names
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


def register(app: typer.Typer) -> None:
    """Adds these commands."""
    app.command()(check)
    profile = typer.Typer(help="What is known of stores.", no_args_is_help=True)
    profile.command("list")(profile_list)
    profile.command("show")(profile_show)
    profile.command("try")(profile_try)
    for part in (describing, recording, rehearsing):
        part.register(profile)
    app.add_typer(profile, name="profile")
