"""A process that appends and says on a line what was acknowledged, until it is killed.

Run by test_kill.py: `python crash_writer.py LEDGER HEAD_FILE`.
"""

from __future__ import annotations

import asyncio
import itertools
import sys

from quietus.core.events import Draft, EventType
from quietus.ledger.sqlite import SqliteLedger
from quietus.ports import Mark


async def forget(ledger: SqliteLedger, erasure: str) -> None:
    """Appends three events of an erasure, with a mark and a secret each, and now and then destroys them."""
    for step in range(3):
        name = f"{erasure}/{step}"
        [event] = await ledger.append(
            [Draft(EventType.ROUND, erasure, 1.0, facts={"name": name}, gate=step == 0)],
            marks=[(erasure, Mark(name, bytes(16)))],
            secrets=[(erasure, name, name.encode())],
        )
        print("acked", event.number, name, flush=True)
    if erasure.endswith("0"):
        await ledger.destroy_secrets(erasure)
        print("destroyed", erasure, flush=True)


async def main() -> None:
    """Goes on for ever, four erasures at a time."""
    ledger = SqliteLedger(sys.argv[1], head_file=sys.argv[2])
    head = await ledger.open()
    print("open", head.number, flush=True)
    for turn in itertools.count(head.number):
        await asyncio.gather(*(forget(ledger, f"e{turn}-{part}") for part in range(4)))


if __name__ == "__main__":
    asyncio.run(main())
