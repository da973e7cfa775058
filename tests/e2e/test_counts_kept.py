"""The decision counts of a real process: stopped, killed, and started over a damaged file."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Quietus
from tests.e2e.stores import Served

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def quietus(tmp_path: Path) -> Iterator[Quietus]:
    store = Served()
    found = Quietus(tmp_path, store.url, "memory-tool")
    yield found
    if found.process is not None and found.process.poll() is None:
        found.kill()
    store.close()


def count(quietus: Quietus) -> int:
    found: dict[str, Any] = quietus.office("/v1/decisions")
    return sum(one["count"] for one in found["calls"])


def recalls(quietus: Quietus, times: int) -> None:
    for _ in range(times):
        assert quietus.call("POST", "/v1/recall", {"query": "tea", "tenant": "acme"}).status == 200


def written(quietus: Quietus, path: Path, before: int) -> None:
    """Waits until the file was written anew."""
    end = time.monotonic() + 90
    while path.stat().st_mtime_ns <= before:
        assert time.monotonic() < end, "the counts were never written"
        with contextlib.suppress(subprocess.TimeoutExpired):
            assert quietus.process is not None
            quietus.process.wait(0.1)


@pytest.mark.requirement("R196")
def test_counts_outlive_a_stop_a_kill_and_not_a_damaged_file(quietus: Quietus, tmp_path: Path) -> None:
    path = tmp_path / "ledger.decisions"
    since = quietus.start().office("/v1/decisions")["since"]
    recalls(quietus, 3)
    assert quietus.stop() == 0
    assert b"acme" not in path.read_bytes() and path.stat().st_mode & 0o777 == 0o600
    quietus.start()
    assert (count(quietus), quietus.office("/v1/decisions")["since"]) == (3, since)
    recalls(quietus, 2)
    before = path.stat().st_mtime_ns
    written(quietus, path, before)
    quietus.kill()
    quietus.start()
    assert (count(quietus), quietus.office("/v1/decisions")["since"]) == (5, since)
    quietus.kill()
    path.write_bytes(path.read_bytes()[:-5])
    quietus.start()
    assert count(quietus) == 0 and quietus.office("/v1/decisions")["since"] > since
    assert '"event":"decisions_begun_anew"' in quietus.log().replace(": ", ":").replace(", ", ",")
