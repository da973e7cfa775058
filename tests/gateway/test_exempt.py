"""What a profile declares to be exempt is neither probed nor held against anybody, and is never silent."""

from __future__ import annotations

import pytest
import yaml

from quietus.profiles.loader import find_profile, parse_profile
from quietus.profiles.profile import Profile
from tests.gateway.scenes import ALICE, SHORT, World, answering, path, says, settle, two

AUDIT = "/v1/audit-log"
NOTE = "append-only; keeps tombstones, exempt from erasure by law"


def audited() -> Profile:
    """The memory tool with an append-only log of its own, declared as one."""
    document = yaml.safe_load(find_profile("memory-tool").read_text())
    document["routes"].append(
        {"name": "audit-log", "operation": "ignore", "http": {"method": "GET", "path": AUDIT}}
    )
    document["surfaces"].append({"name": "audit-log", "kind": "unprobeable", "note": NOTE})
    return parse_profile(yaml.safe_dump(document)).with_store(**SHORT)


@pytest.mark.requirement("R84", "R159")
async def test_an_append_only_log_is_exempt_by_declaration_and_stands_in_every_report() -> None:
    async with World(profile=audited()) as world:
        await two(world)
        entry = {"event": "write", "text": ALICE}
        world.upstream.hooks.append(answering(path(AUDIT), says(200, {"results": [entry]})))
        await world.forget(subject="alice")
        read = await world.call("GET", AUDIT)
        assert (read.status, read.json) == (200, {"results": [entry]}), "as it came, unscreened"
        await settle(world)
        assert world.upstream.calls("GET", AUDIT) == 0, "nobody asked but that one reader"
        (stands,) = [one for one in world.erasure().surfaces if one["name"] == "audit-log"]
        assert (stands["outcome"], stands["reason"]) == ("OUT_OF_SCOPE", NOTE)
        counted = {"operation": "ignore", "effect": "allow", "store": "memories", "wire": "http"}
        seen = [
            (sample.labels, sample.value)
            for family in world.registry.collect() if family.name == "quietus_operations"
            for sample in family.samples if counted.items() <= sample.labels.items()
        ]  # fmt: skip
        assert [value for _, value in seen if value] == [1.0], "how much is exempt can be seen"


@pytest.mark.requirement("R84")
async def test_a_record_without_lineage_is_nobodys_descendant_and_the_count_says_so() -> None:
    async with World(profile=audited()) as world:
        await two(world)
        await world.write("d1", f"Summary: {ALICE}", "team", derived_from=["alice-key-1"])
        await world.write("d2", "The team met on Tuesday and planned the summer", "team")
        await world.forget(subject="alice")
        lineage = world.erasure().snapshot["lineage"]
        assert lineage["descendants"] == 1, "the one that says what it was made of"
        assert (await world.recall("the team met on Tuesday")).keys.count("d2") == 1
