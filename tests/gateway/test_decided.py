"""Decisions that were made, asked again: of the policy that made them, and of others that really decide."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from quietus.cli.policy_sums import Recorded, difference, enforced, observed
from quietus.core.policy import Mode, Policy, Rule
from quietus.core.replaying import asked
from quietus.core.states import State
from quietus.decided import KINDS_MAX, Decided
from quietus.legacy.faults import Faults
from quietus.policies import load_policy
from tests.gateway.scenes import ALICE, BOB, settle, short
from tests.world import World

LAGGING = Faults(lazy_index=100.0)


async def day(world: World) -> list[tuple[str, int]]:
    """Calls of one day of which none depends on what became of another: what each does, and its status."""
    for tenant in ("acme", "globex"):
        await world.write(f"{tenant}-1", ALICE, "alice", tenant=tenant)
        await world.write(f"{tenant}-2", BOB, "bob", tenant=tenant)
    await world.forget(subject="alice", tenant="acme")
    seen = []
    for tenant in ("acme", "globex"):
        for name, scope in (("inside", {"subject": "alice"}), ("wider", {}), ("other", {"subject": "bob"})):
            answer = await world.recall("the train", tenant=tenant, **scope)
            seen.append((f"{tenant} {name}", answer.status))
    seen.append(("listed", (await world.call("GET", "/v1/memories?tenant=acme&subject=alice")).status))
    seen.append(("write", (await world.write("acme-3", ALICE, "alice", tenant="acme")).status))
    seen.append(("unmapped", (await world.call("GET", "/v1/odd/alice")).status))
    seen.append(("unreadable", (await world.forget()).status))
    return seen


def named(name: str) -> Policy:
    """A policy that ships, or `house`: the default one that refuses wider recalls."""
    if name != "house":
        return load_policy(name)
    default = load_policy("default")
    wider = {"operation": ["recall", "read"], "erasure": "wider", "state": "unsettled"}
    first = Rule.model_validate({"name": "no-wider", "when": wider, "effect": "block"})
    return default.model_copy(update={"rules": [first, *default.rules]})


def recorded(world: World) -> Recorded:
    """The record as an operator gets it: through JSON."""
    told = {"since": "", "unmapped": world.parts.shapes.listed(), **world.parts.gateway.decided.listed()}
    return Recorded([json.loads(json.dumps(told))])


@pytest.mark.parametrize("policy", ["default", "strict", "observe"])
async def test_the_policy_that_decided_says_the_same_again(policy: str) -> None:
    async with short(LAGGING, policy=policy) as world:
        await day(world)
        found = recorded(world)
        assert found.count >= 14
        for call, before, _, _ in found.calls:
            assert asked(call, load_policy(policy)) == before
        assert difference(found, load_policy(policy))["changed"] == 0


@pytest.mark.requirement("R196")
@pytest.mark.parametrize(
    ("ran", "other"), [("observe", "default"), ("default", "house"), ("house", "default")]
)
async def test_what_a_diff_foretells_comes_true(ran: str, other: str) -> None:
    before, after = named(ran), named(other)
    async with short(LAGGING, policy=before) as world:
        seen = dict(await day(world))
        found = recorded(world)
    async with short(LAGGING, policy=after) as world:
        really = dict(await day(world))
        decided = recorded(world)
    # What only observes takes no snapshot: a write that restates the erased is known by its subject alone.
    whole = ran != "observe"
    predicted, expected = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for call, _, _, count in found.calls:
        said = asked(call, after)
        predicted[(call.operation, call.route, said.effect, said.rule if whole else "")] += count
    for call, said, _, count in decided.calls:
        expected[(call.operation, call.route, said.effect, said.rule if whole else "")] += count
    assert predicted == expected
    changed = {name for name in seen if (seen[name] >= 400) != (really[name] >= 400)}
    foretold = difference(found, after)
    assert changed and foretold["changed"] >= len(changed - {"unreadable"})


@pytest.mark.requirement("R196")
async def test_observing_says_what_enforcing_would_refuse() -> None:
    async with short(LAGGING, policy="observe") as world:
        seen = dict(await day(world))
        del seen["unmapped"], seen["unreadable"]
        assert set(seen.values()) <= {200, 201}
        found = observed(recorded(world), enforced(load_policy("default")))
        assert found["would_refuse"] == 3  # the recall inside, the list, and the write that brings it back
        assert found["by_tenant"] == {"acme": 3}
        assert found["by_route"] == {"recall": 1, "list": 1, "write": 1}
        assert set(found["by_rule"]) == {"recall-in-erased-scope", "write-by-erased-subject"}
        assert found["recalls_that_overlap_an_unsettled_erasure"] == 4  # the unmapped one may touch it too
        assert found["would_refuse_as_unreadable"] == {"unverifiable-forget": 1}
        assert found["unmapped"] == {"GET /v1/{}/{}": 1}
        assert observed(recorded(world), enforced(load_policy("observe")))["policy"] == "observe"


async def test_the_record_names_nobody() -> None:
    async with short(LAGGING) as world:
        await day(world)
        await world.recall("secret words", scope="private/path", tenant="acme")
        text = json.dumps(world.parts.gateway.decided.listed())
        for secret in ("alice", "bob", "secret", "private", "acme-1", "flower", "er_0"):
            assert secret not in text, secret


def rules(*more: dict[str, Any]) -> Policy:
    """The default policy with rules in front; of the others all but those on forgets only observe."""
    default = load_policy("default").model_dump(mode="json", by_alias=True, exclude_none=True)
    shipped = [rule if rule["when"].get("operation") == ["forget"] else {**rule, "mode": "observe"}
               for rule in default["rules"]]  # fmt: skip
    return Policy.model_validate({**default, "name": "partly", "rules": [*more, *shipped]})


BLOCK = {"operation": ["recall", "read"], "erasure": "inside", "state": "unsettled"}


@pytest.mark.requirement("R196")
@pytest.mark.parametrize(
    ("when", "blocked"),
    [({"tenant": "acme"}, {"acme recall", "acme list"}), ({"route": "list"}, {"acme list", "globex list"}),
     ({"tenant": "globex", "route": "recall"}, {"globex recall"})],
)  # fmt: skip
async def test_enforcing_one_tenant_or_one_route(when: dict[str, Any], blocked: set[str]) -> None:
    policy = rules({"name": "here-first", "when": {**BLOCK, **when}, "effect": "block"})
    async with short(LAGGING, policy=policy) as world:
        for tenant in ("acme", "globex"):
            await world.write(f"{tenant}-1", ALICE, "alice", tenant=tenant)
            await world.write(f"{tenant}-2", BOB, "bob", tenant=tenant)
            await world.forget(subject="alice", tenant=tenant)
        seen = {}
        for tenant in ("acme", "globex"):
            body = {"query": "spare key", "tenant": tenant, "subject": "alice"}
            recall = await world.call("POST", "/v1/recall", body)
            direct = world.direct("POST", "/v1/recall", body)
            listed = await world.call("GET", f"/v1/memories?tenant={tenant}&subject=alice")
            seen |= {f"{tenant} recall": recall.status, f"{tenant} list": listed.status}
            if recall.status == 200:
                assert recall.body == direct.body, "what is observed is not changed"
        assert {name for name, status in seen.items() if status == 409} == blocked, seen
        found = observed(recorded(world), enforced(policy))
        assert found["would_refuse"] == 4 and found["by_tenant"] == {"acme": 2, "globex": 2}
        foretold = difference(recorded(world), load_policy("default"))
        assert foretold["changed"] >= 4 - len(blocked)
        await settle(world, 1200.0)


async def test_a_forget_that_was_only_observed_is_let_go_when_its_interval_has_passed() -> None:
    # By a rule, or by a policy that has been replaced since: it was not looked at, so it could never settle.
    rule = {"name": "look-on", "when": {"operation": "forget", "tenant": "globex"}, "effect": "forward",
            "mode": "observe"}  # fmt: skip
    async with short(LAGGING, policy=rules(rule)) as world:
        await world.write("g1", ALICE, "alice", tenant="globex")
        await world.forget(subject="alice", tenant="globex")
        await world.until(lambda: world.erasure().state is State.RELEASED, 60.0)
    async with short(LAGGING, policy="observe") as world:
        await world.write("g1", ALICE, "alice", tenant="globex")
        await world.forget(subject="alice", tenant="globex")
        world.parts.active.policy = load_policy("default")
        assert (await world.recall("x", tenant="globex", subject="alice")).status == 409
        await world.until(lambda: world.erasure().state is State.RELEASED, 60.0)
        assert (await world.recall("x", tenant="globex", subject="alice")).status == 200


async def test_what_people_have_overridden_is_not_held_against_a_policy() -> None:
    async with short(LAGGING) as world:
        await world.write("k1", ALICE, "alice")
        await world.forget(subject="alice")
        await world.parts.ordering.override(60.0, "an incident", "eve")
        assert (await world.recall("spare key", subject="alice")).status == 200
        found = difference(recorded(world), load_policy("default"))
        assert (found["changed"], found["overridden"]) == (0, 1)


async def test_kinds_are_bounded_and_what_is_left_out_is_said() -> None:
    async with short() as world:
        gateway = world.parts.gateway
        decided = Decided(world.parts.erasures.gate, 0.0)
        request = world.parts.active.profile.read
        from quietus.core.exchange import Request

        for number in range(KINDS_MAX + 5):
            call = request(Request("GET", f"/v1/memories?tenant=t{number}")).call
            question = gateway.question(call, "anonymous")
            decided.saw(question, gateway.decide(question))
        told = decided.listed()
        assert len(told["calls"]) == KINDS_MAX and told["left_out"] == 5
        assert Recorded([{**told, "since": "", "unmapped": []}]).left_out == 5


def test_modes_of_a_policy_are_told_apart() -> None:
    assert enforced(load_policy("observe")).mode is Mode.ENFORCE
    assert all(rule.mode is None for rule in enforced(rules()).rules)
