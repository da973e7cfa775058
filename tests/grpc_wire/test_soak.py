"""A thousand recalls of `soak`: nobody is told of who was forgotten, and nobody else goes missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.grpc_wire.soak import soak


@pytest.mark.timeout(180)
@pytest.mark.requirement("R34", "R192")
async def test_a_thousand_recalls_tell_of_nobody_who_was_forgotten(tmp_path: Path) -> None:
    town = await soak(tmp_path, 1000)
    assert town.leaks == []
    assert town.counts["bystanders lost"] == 0
    assert town.counts["forgets"] >= 5 and town.counts["OK"] > 200
    assert town.counts["told by the store itself"], "the control: the store does lie"
