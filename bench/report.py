"""The table, and the same numbers as JSON."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterable
from typing import Any

from bench.contenders import Contender


def machine() -> dict[str, Any]:
    """What it ran on, as far as it matters."""
    model = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release(),
            "python": platform.python_version()}  # fmt: skip


def median(contender: Contender, name: str) -> float | None:
    """Over the rounds; None where there is none."""
    values = contender.rounds.get(name)
    return statistics.median(values) if values else None


def results(contenders: Iterable[Contender]) -> list[dict[str, Any]]:
    """One record for each contender."""
    every = list(contenders)
    direct = next(c for c in every if c.kind == "direct")
    found = []
    for contender in every:
        record: dict[str, Any] = {"name": contender.name, "says": contender.says}
        if contender.missing:
            found.append({**record, "missing": contender.missing})
            continue
        for name, values in contender.rounds.items():
            record[name] = {"median": statistics.median(values), "min": min(values), "max": max(values)}
        if contender is not direct:
            for share in ("p10", "p50"):
                pairs = zip(contender.rounds[share], direct.rounds[share], strict=True)
                added = [mine - base for mine, base in pairs]
                record[f"added_{share}"] = {
                    "median": statistics.median(added), "min": min(added), "max": max(added)
                }
        if contender.kind == "quietus":
            record["ready_seconds"] = contender.ready
            record["resident_bytes"] = contender.resident
        found.append(record)
    return found


def summary(contenders: Iterable[Contender], count: int) -> dict[str, float]:
    """Ratios and what else is asked of the whole."""
    by_name = {c.name: c for c in contenders}
    out: dict[str, float] = {}

    def ratio(name: str, above: str, below: str, of: str = "cpu_us") -> None:
        if above not in by_name or below not in by_name:
            return
        a, b = median(by_name[above], of), median(by_name[below], of)
        if a and b:
            out[name] = a / b

    for name in ("idle", "settled-1", "unsettled-1"):
        ratio(f"{name} / nginx", name, "nginx")
        ratio(f"{name} / aiohttp", name, "aiohttp")
    ratio("requests a second, workers-2 / idle", "workers-2", "idle", "rate")
    ratio("settled-n / settled-1", "settled-n", "settled-1")
    ratio("unsettled-n / unsettled-1", "unsettled-n", "unsettled-1")
    ratio("fresh-1 / settled-1", "fresh-1", "settled-1")
    for kind in ("settled", "unsettled"):
        many, one = by_name.get(f"{kind}-n"), by_name.get(f"{kind}-1")
        if many is None or one is None:
            continue
        out[f"ready with {count:,} {kind}, s"] = many.ready
        out[f"resident bytes an erasure, {kind}"] = (many.resident - one.resident) / max(count - 1, 1)
        rest = median(many, "rest_ms")
        if rest is not None:
            out[f"CPU at rest with {count:,} {kind}, ms a second"] = rest
    return out


def table(found: list[dict[str, Any]], whole: dict[str, float]) -> str:
    """Markdown."""
    lines = [
        "| contender | CPU us/request, c=16 (min-max) | x nginx | x aiohttp | added p10 us, c=1 "
        "| added p50 us (min-max) | requests/s | errors |",
        "|---|---|---|---|---|---|---|---|",
    ]
    base = {r["name"]: r.get("cpu_us", {}).get("median") for r in found}
    for record in found:
        if "missing" in record:
            lines.append(f"| {record['says']} | missing: {record['missing']} | | | | | | |")
            continue
        cpu, rate = record.get("cpu_us"), record["rate"]
        cells = [record["says"], _span(cpu) if cpu else "-"]
        for peer in ("nginx", "aiohttp"):
            cells.append(f"{cpu['median'] / base[peer]:.2f}" if cpu and base.get(peer) else "-")
        p10, p50 = record.get("added_p10"), record.get("added_p50")
        cells += [f"{p10['median']:.0f}" if p10 else "-", _span(p50) if p50 else "-"]
        cells += [f"{rate['median']:.0f}", f"{record['errors']['max']:.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| measure | value |", "|---|---|"]
    lines += [f"| {name} | {value:,.2f} |" for name, value in whole.items()]
    return "\n".join(lines)


def _span(values: dict[str, float]) -> str:
    return f"{values['median']:.0f} ({values['min']:.0f}-{values['max']:.0f})"
