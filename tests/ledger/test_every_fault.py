"""Every read, write and sync of a forget fails once, in turn: nothing acknowledged is lost, no gate opens.

The life of the process from opening its ledger to the end of the watch is one run; each N of it is tried:
once as a fault that passes, and once as the last thing that the process did. Then a new process opens the
files: as they lie, with nothing but what was synced, and with any part of what was not.
"""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.gateway.scenes import forgets
from tests.harness.failing_disk import Disk
from tests.ledger.forget_on_disk import Outcome, forgotten, life, restarted, run

KINDS = ("read", "write", "sync")
LEFT = ("ledger.db", "ledger.db-wal", "ledger.db-journal")


async def calls(folder: Path) -> Counter[str]:
    """How many calls of each kind a run makes on a disk that does not fail."""
    folder.mkdir()
    disk = Disk()
    world = life(folder, disk)
    outcome = Outcome()
    await forgotten(world, outcome)
    assert (outcome.told, outcome.wrong, world.erasure().watch_ended) == (202, [], True)
    made = Counter(disk.count)
    await world.ledger.close()
    return made


@pytest.mark.timeout(300)
@pytest.mark.requirement("R39", "R119", "R157")
async def test_a_fault_that_passes_at_every_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = await calls(tmp_path / "whole")
    wrong: list[str] = []
    told: Counter[str] = Counter()
    for kind in KINDS:
        for number in range(1, count[kind] + 1):
            folder = tmp_path / f"{kind}-{number}"
            folder.mkdir()
            disk = Disk()
            disk.fail(kind, number)
            outcome, world = await run(folder, disk)
            assert disk.struck, (kind, number)
            told[f"{kind}: answered {outcome.told or 'nothing'}"] += 1
            found = outcome.wrong + await restarted(folder, world, outcome.told, to_the_end=True)
            wrong += [f"{kind} {number}: {what}" for what in found]
            shutil.rmtree(folder)
    with capsys.disabled():
        print(f"\nfaults that pass: {dict(count)}, each tried; {len(wrong)} wrong; {sorted(told.items())}")
    assert not wrong, wrong
    assert min(count[kind] for kind in KINDS) > 10


@pytest.mark.timeout(300)
@pytest.mark.requirement("R39", "R119", "R157")
async def test_power_that_goes_at_every_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = await calls(tmp_path / "whole")
    wrong: list[str] = []
    tried = 0
    for kind in KINDS:
        for number in range(1, count[kind] + 1):
            folder = tmp_path / f"{kind}-{number}"
            folder.mkdir()
            disk = Disk()
            disk.fail(kind, number, lasting=True)
            outcome, world = await run(folder, disk)
            wrong += [f"{kind} {number}: {what}" for what in outcome.wrong]
            asked = forgets(world)
            lying = {name: (folder / name).read_bytes() for name in LEFT if (folder / name).exists()}
            for left in ("all", "synced", "any part"):
                for name, data in lying.items():
                    (folder / name).write_bytes(data)
                (folder / "ledger.db-shm").unlink(missing_ok=True)
                if left != "all":
                    disk.cut_power(random.Random(number) if left == "any part" else None)
                found = await restarted(folder, world, outcome.told, to_the_end=False, asked=asked)
                wrong += [f"{kind} {number}, {left} left: {what}" for what in found]
                tried += 1
            shutil.rmtree(folder)
    with capsys.disabled():
        print(f"\npower cuts: {dict(count)}, each tried with three disks ({tried}); {len(wrong)} wrong")
    assert not wrong, wrong
