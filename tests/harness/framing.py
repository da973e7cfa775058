"""Framing attacks against the real listener and client, with a strict server behind them.

    python -m tests.harness.framing [FOLDER]

FOLDER holds cases in the format of http-desync-guardian (a list of requests with a verdict each); without
one only the vectors generated here are run. A vector is *refused* when the answer is a 4xx after which the
connection is closed and nothing of it was forwarded. It is *forwarded in one meaning* when the strict
server read the very requests that the handler was shown, each byte of them. Anything else is a fault, and
so is a case of the verdict "Severe" that is not refused.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from quietus.adapters.http import ListenerLimits
from tests.adapters.wires import Wire, wiring

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: store\r\n\r\n"
BODY_MAX = 100_000
LIMITS = ListenerLimits(body=0.05, header=0.5, idle=0.3, linger=0.2)
"""Patience. `idle` also runs before the first byte of a connection: fifty milliseconds were not enough for a
busy machine to read one, and a connection that is closed without a word is a fault here."""


@dataclass(frozen=True)
class Vector:
    """One attack: what is sent, and how bad its authors think it is ("" for our own)."""

    name: str
    data: bytes
    verdict: str = ""


@dataclass
class Counts:
    """What became of them."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def total(self, verdict: str | None = None) -> int:
        return sum(n for (kind, _), n in self.outcomes.items() if verdict in (None, kind))

    def of(self, outcome: str, verdict: str | None = None) -> int:
        return sum(
            n for (kind, what), n in self.outcomes.items() if what == outcome and verdict in (None, kind)
        )


async def run(vectors: Iterable[Vector]) -> Counts:
    """Runs them one after the other over one listener."""
    counts = Counts()
    async with wiring(limits=LIMITS) as wire:
        for vector in vectors:
            outcome = await attack(wire, vector)
            counts.outcomes[vector.verdict, outcome] += 1
            if outcome not in ("refused", "forwarded") or (
                vector.verdict == "Severe" and outcome != "refused"
            ):
                counts.faults.append(
                    f"{vector.verdict or 'own'}: {vector.name}: {outcome}: {vector.data[:200]!r}"
                )
    return counts


async def attack(wire: Wire, vector: Vector) -> str:
    """Sends one, and says what became of it: "refused", "forwarded", or the fault."""
    wire.handler.requests.clear()
    wire.store.received.clear()
    wire.store.faults.clear()
    line = await wire.connect()
    wire.lines.clear()
    await line.send(vector.data)
    answered = await asyncio.wait_for(line.rest(), 10)  # until the sidecar closes: it always does
    line.close()
    seen = [(f"{one.method} {one.target} HTTP/1.1", one.body) for one in wire.handler.requests]
    got = [(one.line, one.body) for one in wire.store.received]
    if wire.store.faults:
        return f"no request: {wire.store.faults[0]}"
    if seen != got:
        return f"two meanings: decided about {len(seen)}, the store read {len(got)}"
    statuses = [int(found) for found in re.findall(rb"(?:^|\}|\r\n\r\n)HTTP/1\.1 (\d{3}) ", answered)]
    if not got:
        refused = bool(statuses) and 400 <= statuses[-1] < 500
        return "refused" if refused else f"nothing forwarded, and answered {statuses}"
    if any(b"smuggled" in body for _, body in got[1:]) or any("smuggled" in one for one, _ in got[:1]):
        return "read from within a body"
    return "forwarded"


# Cases of others


def load(folder: Path) -> Iterator[Vector]:
    """The cases in a folder of YAML files."""
    for path in sorted(folder.glob("*.yaml")):
        for case in yaml.safe_load(path.read_text(encoding="utf-8")):
            headers = [(_raw(one["name"]), _raw(one["value"])) for one in case.get("headers") or ()]
            yield Vector(f"{path.stem}: {case['name']}", _request(case, headers), case["expected"]["tier"])


def _request(case: dict[str, object], headers: list[tuple[bytes, bytes]]) -> bytes:
    version = _raw(case["version"])
    line = _raw(case["method"]) + b" " + _raw(case["uri"]) + (b" " + version if version else b"")
    if not any(name.strip().lower() == b"host" for name, _ in headers):
        headers = [(b"Host", b" store"), *headers]
    head = line + b"\r\n" + b"".join(name + b":" + value + b"\r\n" for name, value in headers) + b"\r\n"
    chunked = any(b"chunked" in value.lower() for name, value in headers if b"ransfer" in name.lower())
    lengths = [int(v) for name, value in headers
               if b"ength" in name.lower() and (v := value.strip()).isdigit() and len(v) < 6]  # fmt: skip
    if chunked:
        return head + b"%x\r\n" % len(SMUGGLED) + SMUGGLED + b"\r\n0\r\n\r\n"
    size = min(lengths[-1] if lengths else 0, BODY_MAX)
    return head + (SMUGGLED + b"x" * size)[:size]


def _raw(value: object) -> bytes:
    return ("" if value is None else str(value)).encode("latin-1", "replace")


# Our own


NAMES = (
    b"Transfer-Encoding",
    b"transfer-encoding",
    b" Transfer-Encoding",
    b"Transfer-Encoding ",
    b"Transfer_Encoding",
    b"Transfer\tEncoding",
    b"Transfer-Encoding\0",
    b"Transfer-Encoding\x0b",
    b"X: y\nTransfer-Encoding",
    b"X: y\rTransfer-Encoding",
    b"X: y\r\n Transfer-Encoding",
    b"\xffTransfer-Encoding",
    b"Content-Encoding",
)
CODINGS = (
    b"chunked",
    b" chunked",
    b"\tchunked",
    b" chunked ",
    b" chunked\t",
    b" Chunked",
    b" CHUNKED",
    b" xchunked",
    b" chunked, identity",
    b" identity, chunked",
    b" chunked,chunked",
    b" gzip, chunked",
    b" chunked, gzip",
    b"\x0bchunked",
    b"\x0cchunked",
    b' "chunked"',
    b" chunked;q=1",
    b" chunked\0",
    b" chu\nnked",
    b" ,chunked",
    b" chunked,",
    b" identity",
    b"",
    b" \xa0chunked",
    b" cow",
    b"\r\n chunked",
    b" chunked\r\n ,x",
    b" chunked\x7f",
    b" chunked\r\nTransfer-Encoding: chunked",
    b" chunked\r\nTransfer-Encoding: identity",
)
LENGTHS = (b"", b" 0", b" 6", b" 999")
LENGTH_NAMES = (
    b"Content-Length",
    b"content-length",
    b" Content-Length",
    b"Content-Length ",
    b"Content_Length",
    b"Content\tLength",
    b"Content-Length\0",
    b"X: y\nContent-Length",
    b"X: y\rContent-Length",
    b"Content-Length:",
)
NUMBERS = (
    b" 6",
    b" 06",
    b" +6",
    b" -6",
    b" 6,6",
    b" 6, 7",
    b" 6 6",
    b" 0x6",
    b" 6e0",
    b" 6.0",
    b" 6\t",
    b"6",
    b" \x0b6",
    b" 6\0",
    b" 6;",
    b" ",
    b" \xd9\xa6",
    b" 18446744073709551622",
    b" 99999999999999999999",
    b" 6\r\n 7",
    b" 6\r\nContent-Length: 6",
    b" 6\r\nContent-Length: 0",
    b" 0\r\nContent-Length: 6",
    b" NaN",
)
CHUNKS = (
    b"5\r\nhello\r\n0\r\n\r\n",
    b"5;a=b\r\nhello\r\n0\r\n\r\n",
    b"05\r\nhello\r\n0\r\n\r\n",
    b"5 \r\nhello\r\n0\r\n\r\n",
    b" 5\r\nhello\r\n0\r\n\r\n",
    b"5\nhello\n0\n\n",
    b"5\r\nhello0\r\n\r\n",
    b"5\r\nhello\r\n0\r\n",
    b"0x5\r\nhello\r\n0\r\n\r\n",
    b"+5\r\nhello\r\n0\r\n\r\n",
    b"-5\r\nhello\r\n0\r\n\r\n",
    b"5\r\nhello\n0\r\n\r\n",
    b"5\rhello\r\n0\r\n\r\n",
    b"100000005\r\nhello\r\n0\r\n\r\n",
    b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    b"5;\0\r\nhello\r\n0\r\n\r\n",
    b"5;\n\r\nhello\r\n0\r\n\r\n",
    b'5;a="\r\n"\r\nhello\r\n0\r\n\r\n',
    b"5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n",
    b"5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"5\r\nhello\r\n00\r\n\r\n",
    b"\r\n5\r\nhello\r\n0\r\n\r\n",
    b"5\r\nhello\r\n0;x\r\n\r\n",
    b"5\r\nhello\r\n0\r\nX\r\n\r\n",
    b"5\r\nhello\r\n0\r\n X: y\r\n\r\n",
    b"g\r\n",
    b"\r\n",
    b"",
)
LINES = (
    b"POST /v1 HTTP/1.1",
    b"POST  /v1 HTTP/1.1",
    b"POST /v1  HTTP/1.1",
    b"POST /v1 HTTP/1.1 ",
    b"POST\t/v1\tHTTP/1.1",
    b" POST /v1 HTTP/1.1",
    b"\r\nPOST /v1 HTTP/1.1",
    b"POST /v1 HTTP/1.01",
    b"POST /v1 HTTP/1,1",
    b"POST /v1 HTTP/ 1.1",
    b"POST /v1 HTTP/1.1\r\n",
    b"POST /v1\r\nHTTP/1.1",
    b"POST /v1 HTTP/1.1\0",
    b"POST /v1 HTTP/11",
    b"POST /v1 http/1.1",
    b"POST /v1 HTTP/1.",
    b"POST /v1 XTTP/1.1",
    b"POST /v1 HTTP/-1.1",
    b"POST /v1 HTTP/1.1\x0b",
    b"POST\0 /v1 HTTP/1.1",
)


def generate() -> Iterator[Vector]:
    """Every name with every coding and length; every length; every chunking; every request line."""
    chunked = b"0\r\n\r\n" + SMUGGLED
    methods = itertools.cycle((b"POST", b"PUT", b"DELETE", b"PATCH"))
    for name, coding, length in itertools.product(NAMES, CODINGS, LENGTHS):
        head = next(methods) + b" /v1 HTTP/1.1\r\nHost: store\r\n" + name + b":" + coding + b"\r\n"
        yield Vector(
            "coding", head + (b"Content-Length:" + length + b"\r\n" if length else b"") + b"\r\n" + chunked
        )
        if length:
            swapped = b"POST /v1 HTTP/1.1\r\nContent-Length:" + length + b"\r\n" + name + b":" + coding
            yield Vector("length first", swapped + b"\r\nHost: store\r\n\r\n" + chunked)
    for name, number in itertools.product(LENGTH_NAMES, NUMBERS):
        for method in (b"POST", b"GET", b"DELETE"):
            head = method + b" /v1 HTTP/1.1\r\nHost: store\r\n" + name + b":" + number + b"\r\n\r\n"
            yield Vector("length", head + b"abcdef" + SMUGGLED)
    for chunks in CHUNKS:
        for more in (b"", SMUGGLED):
            head = b"POST /v1 HTTP/1.1\r\nHost: store\r\nTransfer-Encoding: chunked\r\n\r\n"
            yield Vector("chunks", head + chunks + more)
    for line in LINES:
        yield Vector("line", line + b"\r\nHost: store\r\nContent-Length: 6\r\n\r\nabcdef")
        yield Vector("line", line + b"\r\nHost: store\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked)


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else None
    if folder is not None and not folder.is_dir():
        print(f"{folder} is no folder", file=sys.stderr)
        return 2
    cases = list(load(folder)) if folder else []
    if folder is not None and not cases:
        print(f"{folder} holds no case: it is the YAML files themselves that are read", file=sys.stderr)
        return 2
    counts = asyncio.run(run([*generate(), *cases]))
    for verdict in sorted({kind for kind, _ in counts.outcomes}):
        print(f"{verdict or 'generated here':16} {counts.total(verdict):5} "
              f"refused {counts.of('refused', verdict):5}  "
              f"forwarded in one meaning {counts.of('forwarded', verdict):5}")  # fmt: skip
    for fault in counts.faults:
        print("FAULT", fault)
    print(json.dumps({"vectors": counts.total(), "refused": counts.of("refused"),
                      "forwarded": counts.of("forwarded"), "faults": len(counts.faults)}))  # fmt: skip
    print(f"{counts.total() - len(counts.faults)} passed, {len(counts.faults)} failed")
    return 1 if counts.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
