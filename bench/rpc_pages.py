"""Puts a measured table where it is published: whole into docs/grpc.md, its ratios into README.md."""

from __future__ import annotations

import re
from typing import Final

from bench.processes import ROOT

PUBLISHED: Final = {
    "a bare proxy on grpc.aio": "a bare proxy on grpc.aio, uvloop, no policy",
    "Envoy, HTTP/2": "Envoy as an HTTP/2 reverse proxy, one thread",
    "over gRPC, nothing erased": "quietus, nothing erased",
    "over gRPC, 1 settled erasure": "quietus, 1 settled erasure",
    "over gRPC, 1 unsettled, a wider recall": "quietus, 1 unsettled, wider recalls",
}
"""Rows of README.md, by what the measured table calls them."""
_BETWEEN: Final = re.compile(r"(<!-- bench.rpc -->\n).*?(\n<!-- /bench.rpc -->)", re.S)


def publish(table: str, said: str) -> None:
    """Writes both pages; `said` is the line on rounds and load. Raises KeyError where a peer was missing."""
    measured = {cells[0]: cells for cells in map(_cells, table.splitlines())}
    rows = [
        "| | CPU a call, beside the bare grpc.aio proxy | beside Envoy | added p50 |",
        "|---|---|---|---|",
    ]
    for row, name in PUBLISHED.items():
        envoy, bare, p50 = (_number(measured[name][at]) for at in (2, 3, 5))
        rows.append(f"| {row} | {bare:.1f} times | {envoy:.1f} times | {p50 / 1000:.1f} ms |")
    for page, text in (("docs/grpc.md", f"{table}\n\n{said}"), ("README.md", "\n".join(rows))):
        path = ROOT / page
        whole, count = _BETWEEN.subn(lambda found, text=text: found[1] + text + found[2], path.read_text())
        assert count == 1, f"{page} has no place for the table"
        path.write_text(whole)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _number(text: str) -> float:
    found = re.match(r"-?[\d.]+", text)
    assert found is not None, text
    return float(found[0])
