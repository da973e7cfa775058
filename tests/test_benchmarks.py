"""What the sidecar costs is published, and README says what the table of the measured run says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench.rpc_pages import PUBLISHED

ROOT = Path(__file__).resolve().parents[1]
ROWS = {
    "nothing erased": "quietus, nothing erased",
    "1 settled erasure": "quietus, 1 settled erasure",
    "100,000 settled erasures": "quietus, 100,000 settled",
    "1 unsettled, a wider recall": "quietus, 1 unsettled, wider recalls",
    "100,000 unsettled, a wider recall": "quietus, 100,000 unsettled, wider recalls",
}


def _cells(page: str, first: str) -> list[str]:
    line = next(line for line in page.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def _number(text: str) -> float:
    found = re.match(r"[\d.,]+", text)
    assert found is not None, text
    return float(found[0].replace(",", ""))


@pytest.mark.requirement("R210")
@pytest.mark.parametrize("row", ROWS)
def test_the_published_figures_are_those_that_were_measured(row: str) -> None:
    measured = _cells((ROOT / "docs" / "benchmarks.md").read_text(), ROWS[row])
    published = _cells((ROOT / "README.md").read_text(), row)
    cpu, nginx, bare, p50 = (_number(measured[i]) for i in (1, 2, 3, 5))
    assert cpu > 0 and p50 > 0
    assert _number(published[1]) == pytest.approx(bare, abs=0.051)
    assert _number(published[2]) == pytest.approx(nginx, abs=0.51)


@pytest.mark.requirement("R210")
@pytest.mark.parametrize("row", PUBLISHED)
def test_the_published_figures_over_grpc_are_those_that_were_measured(row: str) -> None:
    measured = _cells((ROOT / "docs" / "grpc.md").read_text(), PUBLISHED[row])
    published = _cells((ROOT / "README.md").read_text(), row)
    envoy, bare, p50 = (_number(measured[i]) for i in (2, 3, 5))
    assert envoy > 0 and bare > 0 and _number(measured[6]) == 0, "no call failed"
    assert _number(published[1]) == pytest.approx(bare, abs=0.051)
    assert _number(published[2]) == pytest.approx(envoy, abs=0.051)
    assert _number(published[3]) == pytest.approx(p50 / 1000, abs=0.051)
