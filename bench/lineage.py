"""What lineage costs: memory and disk a record, time a write, a row and a walk. `python -m bench.lineage`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import resource
import statistics
import tempfile
import time
from pathlib import Path

from quietus.core.operations import Call, Item, Operation
from quietus.core.scope import Scope
from quietus.keys import Keyring
from quietus.ledger.lineage_file import LineageFile
from quietus.lineage import Lineage
from quietus.owners import Owners

_WORDS = "river stone window morning letter garden train music winter paper bridge corner".split()


def text_of(rng: random.Random) -> str:
    """A memory of the usual length: a sentence of six to twenty-four words."""
    return " ".join(f"{rng.choice(_WORDS)}{rng.randrange(400)}" for _ in range(rng.randrange(6, 25)))


def resident() -> int:
    """Resident bytes now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


async def measure(count: int, share: float, folder: Path) -> dict[str, float]:
    """Learns `count` records of which `share` are derived, writes them down, reads them back, walks."""
    rng = random.Random(1)
    keyring = Keyring.fresh()
    where = folder / "lineage.db"
    lineage = Lineage(keyring, count, LineageFile(where), time.time)
    await lineage.load()
    owners = Owners(keyring, lineage)
    calls = []
    for number in range(count):
        sources = (f"record-{rng.randrange(number)}",) if number and rng.random() < share else ()
        subject = f"subject-{number % (count // 20 + 1)}"
        scope = Scope(tenant=frozenset({"acme"}), subject=frozenset({subject}))
        item = Item(0, key=f"record-{number}", texts=(text_of(rng),), derived_from=sources)
        calls.append((item, Call(Operation.WRITE, scope=scope)))
    gc.collect()
    before, times = resident(), []
    for item, call in calls:
        digested = owners.digested(call.scope)
        began = time.perf_counter()
        owners.learn(item, call, digested, 1)
        times.append(time.perf_counter() - began)
    gc.collect()
    memory = (resident() - before) / count
    began = time.perf_counter()
    await lineage.write()
    written = time.perf_counter() - began
    known = [(Item(0, key=item.key), Call(Operation.RECALL, scope=call.scope)) for item, call in calls[:2000]]
    digests = [owners.digested(call.scope) for _, call in known]
    began = time.perf_counter()
    for (item, call), digested in zip(known, digests, strict=True):
        owners.learn(item, call, digested)
    row = (time.perf_counter() - began) / len(known)
    roots = [lineage.link("record-0", "acme")]
    began = time.perf_counter()
    kin = lineage.records.descendants(roots)
    walk = time.perf_counter() - began
    await lineage.close()
    again = Lineage(keyring, count, LineageFile(where), time.time)
    began = time.perf_counter()
    await again.load()
    loaded = time.perf_counter() - began
    await again.close()
    times.sort()
    return {
        "records": count, "derived": share, "bytes of memory a record": memory,
        "bytes of disk a record": where.stat().st_size / count,
        "us a write, median": statistics.median(times) * 1e6,
        "us a write, p99": times[int(count * 0.99)] * 1e6,
        "us a row that is known": row * 1e6, "s to write all down": written, "s to load all": loaded,
        "descendants walked": len(kin), "ms to walk them": walk * 1e3,
    }  # fmt: skip


def main() -> None:
    """Prints one table."""
    parser = argparse.ArgumentParser(prog="python -m bench.lineage", description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--derived", type=float, default=0.2, help="share of records that name a source")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(given.records, given.derived, Path(folder)))
    for name, value in found.items():
        print(f"{name:<28}{value:>14,.1f}")


if __name__ == "__main__":
    main()
