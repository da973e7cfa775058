"""The command `quietus scan`: what a store held before the sidecar came, and what a backup brought back."""

from __future__ import annotations

import asyncio
import random
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from prometheus_client import CollectorRegistry
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from quietus.app import SystemClock
from quietus.assembly import Active, Parts, Surroundings, assemble
from quietus.cli.explaining import Mute, no_id
from quietus.cli.replay import replay
from quietus.cli.root import NO, STARTING, fail, guarded, say
from quietus.config import load, no_color
from quietus.core.screening import Screener
from quietus.keys import Keyring
from quietus.ledger.memory import MemoryLedger
from quietus.metrics import Metrics
from quietus.opening import bounds_of, lineage_file
from quietus.policies import load_policy
from quietus.ports import LineageFault, Upstream, UpstreamError
from quietus.profiles.loader import load_profile
from quietus.scan import CannotScan, Reach, Scan, Seen
from quietus.settings import Settings
from quietus.views import status_view
from quietus.wires import StoreClient

RATE_HELP = "Requests a second, at most; else limits.probe_rate_per_second."


def scan(
    config: Annotated[Path, typer.Option(help="The sidecar's configuration.")],
    tenant: Annotated[str | None, typer.Option(help="One tenant; else whatever the listing returns.")] = None,
    path: Annotated[str | None, typer.Option(help="The path of what is listed, unless rows say it.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="NAME=VALUE: a capture.")] = None,
    reapply: Annotated[bool, typer.Option(help="Remove what is erased and is back.")] = False,
    restart: Annotated[bool, typer.Option(help="Begin anew where a scan was broken off.")] = False,
    rate: Annotated[float | None, typer.Option(min=0.1, help=RATE_HELP)] = None,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Learn what the store holds: whose each record is, and what it was derived from.

    Reads only, while the sidecar runs or not; a scan that was broken off goes on where it was. With --reapply
    it removes what the ledger knows as erased and a restored store has brought back. Exit code 1: the scan
    did not reach everything, or something erased could not be removed.
    """
    settings: Settings = guarded(lambda: load(config, {}, None))
    reach = Reach(tenant, _pairs(set_), None if path is None else tuple(path.split("/")))
    try:
        seen = asyncio.run(_scanned(settings, reach, reapply, restart, rate, json))
    except (CannotScan, LineageFault) as error:
        fail(str(error))
    except STARTING as error:
        fail(str(error) or type(error).__name__)
    except UpstreamError as error:
        fail(f"the store did not answer: {error}; what was read is kept, run it again to go on", NO)
    if json:
        say({**asdict(seen), "returned": dict(seen.returned), "coverage": coverage(seen)})
    else:
        _report(seen, reapply)
    raise typer.Exit(0 if seen.complete and not seen.refused else NO)


def _pairs(words: list[str] | None) -> dict[str, str]:
    pairs = [word.partition("=") for word in words or ()]
    for name, given, _ in pairs:
        if not given or not name:
            fail(f"{name!r} is not NAME=VALUE")
    return {name: value for name, _, value in pairs}


async def _scanned(
    settings: Settings, reach: Reach, reapply: bool, restart: bool, rate: float | None, quiet: bool
) -> Seen:
    client = StoreClient(settings.store, settings.timeouts, settings.limits.response_bytes_max)
    console = Console(stderr=True, no_color=no_color(), highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    parts = guarded(lambda: parts_for(settings, client, rate))
    try:
        silent = quiet and not console.is_terminal
        with Progress(*columns, console=console, transient=True, disable=silent) as bar:
            task = bar.add_task("scanning")
            return await scanned(
                parts, settings, reach, reapply, restart,
                lambda seen: bar.update(
                    task, description=f"{seen.records} records, {seen.derived} derived, {seen.pages} pages"
                ),
            )  # fmt: skip
    finally:
        await client.close()


def parts_for(settings: Settings, upstream: Upstream, rate: float | None = None) -> Parts:
    """The parts of a sidecar that serves nobody: for asking the store. Raises KeysRefused."""
    path, keys = settings.ledger.path, settings.keys_path
    if path is None or keys is None or not path.is_file():
        fail("a scan learns for a sidecar with a ledger on disk: start `quietus serve` once, then scan")
    if rate is not None:
        limits = settings.limits.model_copy(update={"probe_rate_per_second": rate})
        settings = settings.model_copy(update={"limits": limits})
    return assemble(Surroundings(
        Active(load_profile(settings.store.profile, settings.store.wires), load_policy(settings.policy)),
        MemoryLedger(),
        Keyring.load_or_make(keys, ledger_is_new=False),
        SystemClock(),
        upstream,
        settings.store.name,
        Metrics(CollectorRegistry(), settings.store.name),
        Mute(),
        no_id,
        random.Random(0),
        lambda erasure, verdict: status_view(erasure, verdict=verdict),
        bounds_of(settings),
        lineage=lineage_file(settings),
    ))


async def scanned(
    parts: Parts, settings: Settings, reach: Reach, reapply: bool, restart: bool, told: Any
) -> Seen:
    """One scan with these parts. Raises CannotScan, LineageFault, UpstreamError, LedgerError."""
    more: dict[str, Any] = {}
    gate = parts.erasures.gate
    if reapply:
        assert settings.ledger.path is not None
        replay(settings.ledger.path, parts.erasures.keyring, gate)
        keyring = parts.erasures.keyring
        more = {"gate": gate, "screener": Screener(gate, keyring.pseudonym, keyring.digest)}
    await parts.lineage.load(serving=False)
    try:
        work = Scan(
            parts.prober, parts.owners, parts.lineage, parts.erasures.clock, reach, told, **more
        )
        return await work.run(resume=not restart and not reapply)
    finally:
        await parts.lineage.close()


def _report(seen: Seen, reapply: bool) -> None:
    console = Console(no_color=no_color(), highlight=False)
    word = ("complete", "green") if seen.complete else ("not complete", "yellow")
    console.print(Text.assemble(
        word, f": {seen.records} records in {seen.pages} pages; {seen.derived} derived, {seen.ownerless} "
        f"without a subject, {seen.dangling} edges to nothing, {seen.evicted} let go at the bound",
    ))  # fmt: skip
    told = coverage(seen)
    console.print(
        f"lineage covers {told['with_subject_percent']} % of the records by their subject, and "
        f"{told['with_sources_percent']} % by the sources that they name"
    )
    for limit in told["limits"]:
        console.print(Text.assemble(("note ", "yellow"), limit), soft_wrap=True)
    if reapply:
        console.print(f"erased and back: {sum(seen.returned.values())}; removed: {seen.removed}")
        for erasure, count in sorted(seen.returned.items()):
            console.print(f"  {erasure}  {count}")
        if seen.refused:
            console.print(Text(f"not removed: {seen.refused}; remove them in the store", "red"))


def coverage(seen: Seen) -> dict[str, Any]:
    """How far the lineage reaches after a scan, in per cent of its records, and what it cannot say."""
    limits = []
    if not seen.complete:
        limits.append("not everything was reached: no verdict on it is compliant; run it again to go on")
    if seen.evicted:
        limits.append(f"{seen.evicted} records were let go: raise limits.lineage_records_max, scan again")
    if seen.ownerless:
        limits.append(f"{seen.ownerless} records name no subject: they count as everybody's, and are held "
                      "back from wider recalls while an erasure is open")  # fmt: skip
    if seen.dangling:
        limits.append(f"{seen.dangling} edges lead to what the store does not hold: there the trail ends")
    if seen.records and not seen.derived:
        limits.append("no record names its sources: what was derived is known where it quotes five words; "
                      "see derived_from in the profile's controls")  # fmt: skip

    def percent(count: int) -> int:
        return 100 * count // seen.records if seen.records else 100

    return {
        "with_subject_percent": percent(seen.records - seen.ownerless),
        "with_sources_percent": percent(seen.derived),
        "limits": limits,
    }


def register(application: typer.Typer) -> None:
    """Adds the command."""
    application.command()(scan)
