"""Recalls over gRPC, on real sockets, while subjects are forgotten by a store that lies: who is told of whom?

    python -m tests.grpc_wire.soak --recalls 20000

Every subject has a word of their own. An answer leaks where it holds the word of somebody whose forget had
been acknowledged before its recall began; a bystander is lost where a wide answer lacks somebody who was
never to be forgotten. The last line is JSON: what was counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quietus.legacy.faults import Faults
from tests.grpc_wire.standing import Said, hurried, legacy, sidecar, tool

FAULTS = Faults(
    lazy_index=3.0, chunk_cache=4.0, service_digest=3.0, query_cache=2.0, stale_replica=2.0, history=True
)
BYSTANDERS = 5
AT_ONCE = 16


@dataclass
class Town:
    """Who lives here, and who has been forgotten."""

    seed: int
    forgotten: dict[str, str] = field(default_factory=dict)
    """Word by subject, once the forget is acknowledged."""
    living: dict[str, str] = field(default_factory=dict)
    born: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    leaks: list[str] = field(default_factory=list)

    def goes_on(self, recalls: int, forgets: int) -> bool:
        """Whether there is still less of anything than was asked for: a machine may be slow at either."""
        return self.counts["recalls"] < recalls or self.counts["forgets"] < forgets

    def newcomer(self) -> tuple[str, str]:
        self.born += 1
        word = f"zq{self.seed:02d}word{self.born:05d}"
        return f"subject-{self.born}", word

    def judge(self, said: Said, forgotten: dict[str, str], wide: bool) -> None:
        """Looks at one answer; `forgotten` are those who were so when its recall began."""
        self.counts["recalls"] += 1
        self.counts[said.code] += 1
        if said.code != "OK":
            return
        shown = str(said.message)
        found = [word for word in forgotten.values() if word in shown]
        self.leaks += found
        if wide and not all(f"bystander-{number}" in shown for number in range(BYSTANDERS)):
            self.counts["bystanders lost"] += 1


async def soak(folder: Path, recalls: int, forgets: int = 5, seed: int = 1) -> Town:
    """At least so many recalls and forgets; a forget begins a hundred or so recalls after the one before."""
    rng, town = random.Random(seed), Town(seed)
    async with (
        legacy(FAULTS) as store,
        sidecar(folder, store.address, hurried(folder, settling_interval="2s")) as quietus,
        tool(quietus.grpc_address) as agent,
        tool(store.address) as direct,
    ):
        for number in range(BYSTANDERS):
            await agent.write(f"bystander-{number}", f"The bystander-{number} likes green tea", "somebody")

        async def asks() -> None:
            while town.goes_on(recalls, forgets):
                before = dict(town.forgotten)
                everybody = {**town.living, **town.forgotten}
                who = rng.choice([None, *everybody]) if everybody else None
                query = f"what about {everybody.get(who or '', 'green tea')}"
                fields: dict[str, Any] = {"query": query, "top_k": 1000}
                if who is not None:
                    fields["subject"] = who
                if rng.random() < 0.1:
                    rows, said = await agent.stream("StreamRecall", **fields)
                    said.message = rows if said.code == "OK" else None
                    town.judge(said, before, False)
                else:
                    town.judge(await agent.call("Recall", **fields), before, who is None)

        async def lives() -> None:
            while town.goes_on(recalls, forgets):
                who, word = town.newcomer()
                text = f"The secret of {who} is the word {word} and nobody else knows it"
                wrote = await agent.write(f"key-{who}", text, who)
                town.counts["writes"] += wrote.code == "OK"
                town.living[who] = word
                goal = town.counts["recalls"] + rng.randrange(40, 160)
                while town.counts["recalls"] < goal and town.goes_on(recalls, forgets):
                    await asyncio.sleep(0)
                forgot = await agent.call("Forget", subject=who)
                town.counts["forgets"] += forgot.code == "OK"
                if forgot.code == "OK":
                    town.forgotten[who] = town.living.pop(who)
                shown = str((await direct.call("Recall", query=f"what about {word}", top_k=1000)).message)
                town.counts["told by the store itself"] += word in shown

        await asyncio.gather(lives(), *(asks() for _ in range(AT_ONCE)))
        states = Counter(erasure.state.value for erasure in quietus.parts.erasures.all())
        town.counts.update({f"erasures {state}": count for state, count in states.items()})
    return town


def main() -> int:
    """Soaks and tells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recalls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        town = asyncio.run(soak(Path(folder), given.recalls, seed=given.seed))
    print(json.dumps({"seed": given.seed, "leaks": len(town.leaks), **dict(sorted(town.counts.items()))}))
    return 1 if town.leaks else 0


if __name__ == "__main__":
    sys.exit(main())
