"""A trial's report, for people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from quietus.cli.root import screen
from quietus.core.trial_conclusion import Conclusion
from quietus.core.trial_findings import Observed
from quietus.profiles.profile import Profile


def report(
    profile: Profile, seen: Observed, found: Conclusion, against: Sequence[str], out: Path | None
) -> None:
    """Prints what a trial found, and the lines for the profile."""
    console = screen()
    console.print(
        f"{len(seen.cases)} canaries, {seen.requests} requests, {seen.seconds:.0f} s, profile {profile.name}"
    )
    console.print(_lags(found))
    _findings(console, found)
    _warnings(console, seen, found, against)
    console.print("\nFor the profile:\n")
    console.print("store:")
    for key, value in found.store.items():
        console.print(f"  {key}: {str(value).lower() if isinstance(value, bool) else value}", markup=False)
    shown = ", ".join(found.conditions) or "nothing"
    console.print(f"\nShown to hold: {shown}")
    if out is not None:
        console.print(f"The result is in {out}; name it as store.trial in the configuration.", markup=False)


def _lags(found: Conclusion) -> Table:
    table = Table(box=None, title="Seconds from the acknowledgement until it is gone", title_justify="left")
    table.add_column("surface")
    for head in ("p50", "p99", "max", "exact to", "leaked", "never gone"):
        table.add_column(head, justify="right")
    for name, lag in found.lags.items():
        numbers = [f"{value:.2f}" for value in (lag.p50, lag.p99, lag.max, lag.resolution)]
        table.add_row(name, *numbers, f"{lag.leaked}/{lag.cases}", str(lag.never or ""))
    return table


def _findings(console: Console, found: Conclusion) -> None:
    console.print("What the store does")
    for one in found.findings.values():
        if not one.found:
            continue
        seconds = "" if one.seconds is None else f", {one.seconds:.1f} s"
        places = f" ({', '.join(one.surfaces)})" if one.surfaces else ""
        console.print(Text.assemble((f" {one.name:<18}", "red"), f"{one.says}{seconds}{places}"))
    for word, wanted in (("not seen", False), ("not told", None)):
        names = ", ".join(name for name, one in found.findings.items() if one.found is wanted)
        console.print(Text.assemble((f" {word:<18}", "green" if wanted is False else "yellow"), names or "-"))


def _warnings(console: Console, seen: Observed, found: Conclusion, against: Sequence[str]) -> None:
    def warn(text: str) -> None:
        console.print(Text.assemble(("no  ", "red"), text))

    for line in against:
        warn(line)
    if found.unread:
        warn(f"answers that the profile could not read: {', '.join(found.unread)}")
    if found.unproven:
        warn(f"surfaces that never told a canary: {', '.join(found.unproven)}; nothing is known of them")
    if seen.left:
        warn(f"records that the store would not let go: {len(seen.left)} ({', '.join(seen.left[:5])})")
    if seen.residue:
        console.print(Text.assemble(
            ("note  ", "yellow"),
            f"copies of {len(seen.residue)} removed canaries are still told; their time is the store's",
        ))  # fmt: skip
