"""The command `quietus profile try`: a canary trial against a live store."""

from __future__ import annotations

import asyncio
import random
import secrets
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from quietus import trials
from quietus.app import SystemClock
from quietus.cli.reporting import report
from quietus.cli.root import NO, fail, guarded, say
from quietus.config import load, no_color
from quietus.core.trial_conclusion import Conclusion, conclude_trial, contradicted
from quietus.core.trial_findings import Observed
from quietus.ports import Clock, Upstream, UpstreamError
from quietus.profiles.loader import load_profile
from quietus.profiles.profile import Profile
from quietus.settings import Settings
from quietus.trial.run import Plan, Refused, Trial, dimension_of, lacking
from quietus.trial.watching import Patience
from quietus.trial.watching import Progress as Told
from quietus.wires import StoreClient

_GRPC: Final = "grpc://"
DATES: Final = "days that the result holds"


def profile_try(
    name: Annotated[str, typer.Argument(help="A profile that ships, or a path.")],
    upstream: Annotated[str, typer.Option(help="The store itself: http://HOST:PORT, or grpc://HOST:PORT.")],
    tenant: Annotated[str, typer.Option(help="Whose memories the canaries are put among.")],
    subject_prefix: Annotated[str, typer.Option(help="How canaries' subjects begin.")] = "quietus-canary-",
    trials_: Annotated[int, typer.Option("--trials", min=1, help="Canaries; 10 or more to pass.")] = 20,
    records: Annotated[int, typer.Option(min=0, help="Records that one forget must remove; 0: none.")] = 120,
    watch: Annotated[float, typer.Option(min=0, help="Seconds to wait for what comes back.")] = 60.0,
    patience: Annotated[float | None, typer.Option(help="Seconds to wait until it is gone.")] = None,
    rate: Annotated[float, typer.Option(min=0.1, help="Requests a second, at most.")] = 20.0,
    set_: Annotated[list[str] | None, typer.Option("--set", help="NAME=VALUE: a capture.")] = None,
    vector_dimension: Annotated[int | None, typer.Option(min=1, help="Of the canaries' vectors.")] = None,
    header: Annotated[list[str] | None, typer.Option(help="NAME=FILE: a header, from a file.")] = None,
    days: Annotated[int, typer.Option(min=1, max=365, help=DATES.capitalize() + ".")] = trials.DAYS,
    out: Annotated[Path | None, typer.Option(help="Where the result is written.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Write canaries into a store, forget them, and measure what it really does.

    Only records of its own are written, forgotten and removed. Exit code 0: the store keeps what the profile
    says of it, and no canary is left; 1: it does not.

    Examples:

      quietus profile try memory-tool --upstream http://127.0.0.1:8000 --tenant acme --out trial.json

      quietus profile try chroma --upstream http://127.0.0.1:8000 --tenant default_tenant
        --set database=default_database --set collection_id=ID
    """
    settings = _settings(name, upstream, header)
    profile: Profile = guarded(lambda: load_profile(name, settings.store.wires))
    wait = patience if patience is not None else profile.store.bound
    plan = Plan(
        {"tenant": tenant, **_pairs(set_)}, subject_prefix, trials_, records, rate, vector_dimension,
        Patience(gone=wait, watch=watch),
    )  # fmt: skip
    _confirm(profile, upstream, plan, yes)
    try:
        seen, found = asyncio.run(_tried(profile, settings, plan, json))
    except Refused as error:
        fail(str(error))
    except UpstreamError as error:
        fail(f"the store did not answer: {error}; see --upstream", NO)
    against = contradicted(profile.store.model_dump(), found)
    text = trials.written(profile, upstream, seen, found, SystemClock().now(), days)
    if out is not None:
        guarded(lambda: out.write_text(text, encoding="utf-8"))
    if json:
        say({**_loaded(text), "contradicted": list(against)})
    else:
        report(profile, seen, found, against, out)
    raise typer.Exit(0 if found.complete and not against else NO)


def _loaded(text: str) -> dict[str, Any]:
    import json

    value: dict[str, Any] = json.loads(text)
    return value


def _settings(name: str, upstream: str, header: list[str] | None) -> Settings:
    wire = "grpc" if upstream.startswith(_GRPC) else "http"
    flags = {
        "store.profile": name,
        f"store.{wire}.upstream": upstream.removeprefix(_GRPC),
        f"store.{wire}.headers": {at: {"file": file} for at, file in _pairs(header).items()},
    }
    found: Settings = guarded(lambda: load(None, flags, {}))
    return found


def _pairs(words: list[str] | None) -> dict[str, str]:
    pairs = [word.partition("=") for word in words or ()]
    for name, given, _ in pairs:
        if not given or not name:
            fail(f"{name!r} is not NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _confirm(profile: Profile, upstream: str, plan: Plan, yes: bool) -> None:
    # A dimension may still be read from the store: it is not missing yet.
    missing = lacking(profile, replace(plan, dimension=plan.dimension or 1))
    if missing is not None:
        fail(missing)
    if yes:
        return
    if not sys.stdin.isatty():
        fail("a trial writes into the store: give --yes where nobody can be asked")
    minutes = (plan.patience.gone + plan.patience.watch) / 60
    typer.echo(
        f"This writes about {plan.trials + plan.records + 20} records of its own into {upstream}, under "
        f"subjects that begin with {plan.prefix!r}, forgets them, and removes what is left. It takes a few "
        f"minutes; with a slow store up to {minutes:.0f}, or three times that.",
        err=True,
    )
    if not typer.confirm("Go on?", err=True):
        fail("nothing was written", NO)


async def _tried(
    profile: Profile, settings: Settings, plan: Plan, quiet: bool
) -> tuple[Observed, Conclusion]:
    clock = SystemClock()
    client = StoreClient(settings.store, settings.timeouts, settings.limits.response_bytes_max)
    console = Console(stderr=True, no_color=no_color(), highlight=False)
    columns = (TextColumn("{task.description:<42}"), BarColumn(), TimeElapsedColumn())
    try:
        silent = quiet and not console.is_terminal
        with Progress(*columns, console=console, transient=True, disable=silent) as bar:
            task = bar.add_task("", total=1.0)
            return await tried(
                profile, client, clock, plan,
                lambda part, done, of: bar.update(task, description=part, completed=done, total=of or 1.0),
            )  # fmt: skip
    finally:
        await client.close()


async def tried(
    profile: Profile, upstream: Upstream, clock: Clock, plan: Plan, told: Told
) -> tuple[Observed, Conclusion]:
    """A trial and what follows from it. Raises Refused, UpstreamError."""
    rng = random.Random(secrets.randbits(64))
    if "vector" in (profile.canary_values or ()) and plan.dimension is None:
        plan = replace(plan, dimension=await dimension_of(profile, upstream, clock, plan))
    missing = lacking(profile, plan)
    if missing is not None:
        raise Refused(missing)
    seen = await Trial(profile, upstream, clock, plan, rng, told).run()
    return seen, conclude_trial(seen)
