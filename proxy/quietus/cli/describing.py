"""The command `quietus profile init`: a first profile out of an OpenAPI file or a descriptor set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from quietus.cli.root import NO, fail, guarded, say, screen
from quietus.describing import openapi, services
from quietus.describing.drafting import Draft, NothingToProbe, draft
from quietus.describing.nodes import Endpoint
from quietus.documents import read
from quietus.profiles.descriptors import SET_MAX, NoDescriptors
from quietus.profiles.loader import parse_profile
from quietus.profiles.profile import Profile

_TEXT: Final = (".yaml", ".yml", ".json")


def profile_init(
    source: Annotated[Path, typer.Argument(help="An OpenAPI 3 file, or a protobuf descriptor set.")],
    out: Annotated[Path, typer.Option(help="The profile to write; it must not exist.")] = Path(
        "profile.yaml"
    ),
    name: Annotated[str | None, typer.Option(help="The profile's name; else the file's.")] = None,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Draft a profile from a description of the store's API; every guess in it is marked.

    A descriptor set must lie beside the profile. Exit code 1: nothing could be drafted.

    Examples:

      quietus profile init openapi.yaml --out mine.yaml

      protoc --include_imports --descriptor_set_out=mine.pb mine.proto

      quietus profile init mine.pb --out mine.yaml
    """
    if out.exists():
        fail(f"{out} exists, and a draft overwrites nothing: give another --out")
    calls, descriptors = _calls(source, out)
    title = re.sub(r"[^a-z0-9._-]+", "-", (name or out.stem).lower()).strip("-._") or "store"
    try:
        made = draft(title[:60], calls, source.name, descriptors)
    except NothingToProbe as error:
        fail(str(error), NO)
    guarded(lambda: out.write_text(made.text, encoding="utf-8"))
    profile: Profile = guarded(lambda: parse_profile(made.text, str(out)))
    if json:
        say(_told(out, made, profile))
    else:
        _report(out, made)


def _calls(source: Path, out: Path) -> tuple[list[Endpoint], str | None]:
    try:
        if source.suffix.lower() in _TEXT:
            return openapi.endpoints(guarded(lambda: read(source)).value), None
        with guarded(lambda: source.open("rb")) as file:
            data = file.read(SET_MAX + 1)
        found = services.endpoints(data)
    except openapi.NotDescribed as error:
        fail(f"{source}: {error}")
    except NoDescriptors as error:
        fail(f"{source}: {error}; make it with protoc --include_imports --descriptor_set_out")
    if source.resolve().parent != out.resolve().parent:
        fail(f"a profile names a descriptor set that lies beside it: copy {source.name} to {out.parent}")
    return found, source.name


def _told(out: Path, made: Draft, profile: Profile) -> dict[str, Any]:
    return {
        "profile": str(out), "name": profile.name, "guesses": made.guesses,
        "routes": [{"name": n, "operation": o, "call": c} for n, o, c in made.routes],
        "surfaces": [{"name": s.name, "kind": s.kind} for s in profile.surfaces],
        "left_out": [{"call": call, "why": why} for call, why in made.left],
    }  # fmt: skip


def _report(out: Path, made: Draft) -> None:
    console = screen()
    for name, operation, call in made.routes:
        console.print(f"{operation:<8}{name:<28}{call}", markup=False, soft_wrap=True)
    for call, why in made.left:
        console.print(f"{'-':<8}{'no route':<28}{call}: {why}", markup=False, soft_wrap=True)
    console.print(
        f"{out}: {len(made.routes)} routes, {made.guesses} guesses, each marked `# guess`; look at them, "
        "then: quietus profile record", markup=False, soft_wrap=True,
    )  # fmt: skip


def register(group: typer.Typer) -> None:
    """Adds the command to the group `quietus profile`."""
    group.command("init")(profile_init)
