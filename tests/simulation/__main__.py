"""Plays seeds: `python -m tests.simulation --seed 17`, or many: `--seeds 5000 --keep build/soak`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import yaml

from tests.simulation.controls import smallest, write
from tests.simulation.families import Family, plan_from, simulate
from tests.simulation.keeping import Kept
from tests.simulation.many import Total, play
from tests.simulation.plan import RECALLS, Plan
from tests.simulation.shrink import shrunk
from tests.simulation.switches import PROTECTIONS, switched_off


def main() -> int:
    """One seed with all that was found in it, or many with their figures."""
    asked = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    asked.add_argument("--seed", type=int, help="play this one and say what was found")
    asked.add_argument("--plan", type=Path, help="play the plan in this YAML file")
    asked.add_argument("--seeds", type=int, default=500, help="play so many, from --first on")
    asked.add_argument("--first", type=int, default=0)
    asked.add_argument("--recalls", type=int, default=RECALLS, help="recalls in each")
    asked.add_argument("--replicas", type=int, default=1, help="how many share the ledger")
    asked.add_argument("--keep", type=Path, help="keep in this folder what was played, and go on there")
    asked.add_argument("--shrink", action="store_true", help="leave out what the failure does not need")
    asked.add_argument("--off", default="", choices=["", *PROTECTIONS], help="switch a protection off")
    asked.add_argument("--controls", action="store_true", help="write docs/negative-controls.md")
    options = asked.parse_args()
    if options.controls:
        return _controls(options)
    if options.plan is not None:
        return _one(plan_from(yaml.safe_load(options.plan.read_text())), options)
    family = Family(options.recalls, options.replicas)
    if options.seed is not None:
        return _one(family.make(options.seed), options)
    return _many(options, family)


def _one(plan: Plan, options: argparse.Namespace) -> int:
    with switched_off(options.off):
        if options.shrink:
            plan = shrunk(plan)
            sys.stdout.write(yaml.safe_dump(plan.document(), sort_keys=False, width=110))
        found = simulate(plan).findings
    for finding in found:
        sys.stdout.write(f"{finding}\n")
    sys.stdout.write(f"{len(found)} findings\n")
    return 1 if found else 0


def _controls(options: argparse.Namespace) -> int:
    if options.seed is not None:
        sys.stdout.write(smallest(options.off, options.seed, options.recalls))
    else:
        write(options.off)
    return 0


def _many(options: argparse.Namespace, family: Family) -> int:
    total, taken = Total(family), 0.0
    left = list(range(options.first, options.first + options.seeds))
    kept = Kept(options.keep, family.name) if options.keep is not None and not options.off else None
    for outcome, seconds in kept.outcomes() if kept is not None else ():
        if outcome.seed in left:
            left.remove(outcome.seed)
            total.add(outcome)
            taken += seconds
    began = time.perf_counter()
    for outcome in play(left, family, options.off):
        seconds, began = time.perf_counter() - began, time.perf_counter()
        taken += seconds
        total.add(outcome)
        if kept is not None:
            kept.add(outcome, seconds)
        if total.seeds % 50 == 0 and sys.stderr.isatty():
            sys.stderr.write(f"\r{total.seeds} of {options.seeds} seeds, {len(total.failed)} failed ")
    sys.stdout.write(total.say(taken) + "\n" + total.complaint() + "\n")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
