"""A trial over a socket, against the real server of the store that lies; and the command around it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from quietus.app import SystemClock, store_client
from quietus.cli import app
from quietus.cli.trying import tried
from quietus.config import load
from quietus.legacy.faults import parse_faults
from quietus.legacy.server import serving
from quietus.legacy.store import LegacyStore
from quietus.profiles.loader import find_profile, load_profile
from quietus.trial.run import Plan
from quietus.trial.watching import Patience

TRY = ["profile", "try", "memory-tool", "--upstream", "http://127.0.0.1:9", "--tenant", "acme"]


@pytest.mark.timeout(120)
async def test_a_trial_over_a_socket() -> None:
    clock = SystemClock()
    store = LegacyStore(clock, 7, parse_faults(["lazy_index=2", "same_ack", "latency=0.01"]))
    store.put("Bob likes green tea", tenant="acme", subject="bob")
    told: list[str] = []
    async with serving(store) as served:
        settings = load(None, {"store.profile": "memory-tool", "store.http.upstream": served.url}, {})
        client = store_client(settings.store.http, settings.timeouts)
        plan = Plan({"tenant": "acme"}, trials=10, records=5, rate=2000.0, patience=Patience(5.0, 20.0, 1.0))
        seen, found = await tried(
            load_profile("memory-tool"), client, clock, plan, lambda part, *_: told.append(part)
        )
        await client.close()
    assert {name for name, one in found.findings.items() if one.found} == {
        "leaks", "row_before_index", "same_ack",
    }  # fmt: skip
    lag = found.lags["recall"]
    assert lag.max - lag.resolution <= 2.1 and lag.max >= 1.9
    assert found.complete and not seen.left and "cleaning up" in told
    await asyncio.sleep(0)
    assert [row.subject for row in store._world.rows.values()] == ["bob"]


def test_nothing_is_written_without_a_yes() -> None:
    refused = CliRunner().invoke(app, TRY)
    assert refused.exit_code == 2 and "--yes" in refused.output


def test_a_profile_without_a_canary_is_told_what_to_add(tmp_path: Path) -> None:
    document = yaml.safe_load(find_profile("memory-tool").read_text())
    del document["canary"]
    file = tmp_path / "bare.yaml"
    file.write_text(yaml.safe_dump(document))
    refused = CliRunner().invoke(app, ["profile", "try", str(file), *TRY[3:], "--yes"])
    assert refused.exit_code == 2 and "add `canary:" in refused.output
    document = yaml.safe_load(find_profile("chroma").read_text())
    file.write_text(yaml.safe_dump(document))
    refused = CliRunner().invoke(app, ["profile", "try", str(file), *TRY[3:], "--yes"])
    assert refused.exit_code == 2 and "--set" in refused.output


def test_a_store_that_is_not_there_is_said_to_be(tmp_path: Path) -> None:
    out = tmp_path / "trial.json"
    failed = CliRunner().invoke(app, [*TRY, "--yes", "--json", "--out", str(out)])
    assert failed.exit_code == 1 and "did not answer" in failed.output and not out.exists()


@pytest.mark.requirement("R2")
def test_check_says_why_an_exemption_does_not_hold(tmp_path: Path) -> None:
    document = yaml.safe_load(find_profile("memory-tool").read_text())
    document["store"]["erasure_model"] = "synchronous_transactional"
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(document))
    config = tmp_path / "quietus.yaml"
    config.write_text(yaml.safe_dump({"store": {
        "profile": str(tmp_path / "mine.yaml"), "trial": str(tmp_path / "none.json"),
        "http": {"upstream": "http://127.0.0.1:9"},
    }}))  # fmt: skip
    told = CliRunner().invoke(app, ["check", str(config)])
    assert told.exit_code == 0 and "stay async" in " ".join(told.output.split())
    shown = json.loads(CliRunner().invoke(app, ["check", "--json", str(config)]).output)
    assert shown["checked"][0]["exemption"]["reason"] == "unreadable_trial"
