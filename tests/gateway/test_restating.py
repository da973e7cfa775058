"""Writes that restate the erased: where in a body, whose words, and who may all the same."""

from __future__ import annotations

import base64

import pytest

from tests.gateway.scenes import ALICE, BOB, World, settle, short, two

GREETING = "Thank you for calling the harbour office of Lisbon, how may we help you today?"
TEA = "Likes rooibos with honey"
PHONE = "Reach her on +351 912 345 678 after lunch"


async def _write(world: World, **more: object) -> tuple[int, str]:
    body = {"key": "n1", "value": "the tomatoes want water", "retention": {"subject": "bob"}, **more}
    answer = await world.call("POST", "/v1/memories", body)
    return answer.status, str(answer.json.get("reason", "")) if answer.status >= 400 else ""


@pytest.mark.requirement("R124", "R130", "R143")
@pytest.mark.parametrize(
    "more",
    [
        {"value": f"Summary. {ALICE} The end."},
        {"metadata": {"note": ALICE}},
        {"metadata": {"deep": [{"er": [ALICE.upper()]}]}},
        {"metadata": {ALICE: True}},
        {"scope": "fresh/place", "value": ALICE},
        {"metadata": {"blob": base64.b64encode(ALICE.encode()).decode()}},
    ],
    ids=["value", "metadata", "deep", "name", "fresh scope", "base64"],
)
async def test_every_string_of_a_body_is_looked_at(more: dict[str, object]) -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        assert await _write(world, **more) == (409, "SCOPE_LAUNDERING")
        await settle(world)
        assert await _write(world, **more) == (409, "SCOPE_LAUNDERING"), "the tombstone stays"
        assert world.sample("quietus_laundering_attempts_total", store="memories",
                            vector="restated_content", effect="reject") == 2
        assert (await _write(world))[0] == 201


@pytest.mark.requirement("R143")
async def test_a_refused_batch_names_its_rows() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        good = {"key": "g1", "value": "fine weather for tomatoes", "retention": {"subject": "bob"}}
        bad = {"key": "g2", "value": ALICE, "retention": {"subject": "bob"}}
        answer = await world.call("POST", "/v1/memories", {"memories": [good, bad, good, bad]})
        assert answer.status == 409 and answer.json["rows"] == [1, 3]
        assert b"alice" not in answer.body.lower()


@pytest.mark.requirement("R53")
async def test_one_number_restates_whatever_is_said_around_it() -> None:
    async with short() as world:
        await world.write("a1", PHONE, "alice")
        await world.write("b1", BOB, "bob")
        await world.forget(subject="alice")
        for value in ("call 00351-912-345-678", "nine one two three four five six seven eight", 351912345678):
            assert await _write(world, value=str(value)) == (409, "SCOPE_LAUNDERING"), value
        assert (await _write(world, value="call 00351-912-345-679 on 2026-11-30"))[0] == 201


@pytest.mark.requirement("R56", "R191")
async def test_what_many_others_say_too_is_nobodys() -> None:
    async with short() as world:
        for who in ("alice", "bob", "carol", "dave"):
            await world.write(f"greeting-of-{who}", GREETING, who)
        await world.write("a1", ALICE, "alice")
        await world.forget(subject="alice")
        assert world.erasure().snapshot["residual_shared"] == 1
        assert (await _write(world, value=GREETING))[0] == 201
        assert (await _write(world, value=ALICE))[0] == 409
        await settle(world)
        rows = await world.recall("calling the harbour office", subject="bob")
        assert "greeting-of-bob" in rows.keys


@pytest.mark.requirement("R56", "R191")
async def test_a_short_text_that_another_said_too_stays_theirs_and_nobody_elses() -> None:
    async with short() as world:
        for who in ("alice", "bob"):
            await world.write(f"tea-of-{who}", TEA, who)
        await world.forget(subject="alice")
        assert world.erasure().snapshot["residual_shared"] == 0
        assert (await _write(world, value=TEA))[0] == 201, "bob's own, again"
        carols = {"key": "n2", "value": TEA, "retention": {"subject": "carol"}}
        assert (await world.call("POST", "/v1/memories", carols)).status == 409
        await settle(world)
        assert "tea-of-bob" in (await world.recall("tea", subject="bob")).keys
        assert world.direct("GET", "/v1/memories/tea-of-bob").status == 200


async def test_a_long_text_that_another_holds_is_a_copy() -> None:
    async with short() as world:
        await world.write("a1", ALICE, "alice")
        await world.write("copy", ALICE, "archive")
        await world.forget(subject="alice")
        assert "copy" not in (await world.recall("flower pot", subject="archive")).keys
        assert (await _write(world, value=ALICE, retention={"subject": "archive"}))[0] == 409


@pytest.mark.requirement("R56")
async def test_what_names_the_erased_is_never_common_property() -> None:
    async with short() as world:
        said = "Alice takes her coffee black at the harbour office of Lisbon"
        for who in ("alice", "bob", "carol", "dave"):
            await world.write(f"of-{who}", said, who)
        await world.forget(subject="alice")
        assert world.erasure().snapshot["residual_shared"] == 0
        assert (await _write(world, value=said))[0] == 409


@pytest.mark.requirement("R8", "R130")
async def test_what_is_put_in_other_words_beside_the_name_is_suspected_and_goes_on() -> None:
    async with short() as world:
        said = "In spring I sold the bakery in Porto and then I trained as a nurse there."
        await world.write("a1", said, "alice")
        await world.write("b1", BOB, "bob")
        await world.forget(subject="alice")
        await settle(world)
        body = {"key": "n1", "value": "Alice trained as a nurse.", "retention": {"subject": "bob"}}
        answer = await world.call("POST", "/v1/memories", body)
        assert answer.status == 201
        assert answer["Quietus-Decision"] == 'annotate;rule="otherwise";reason=SCOPE_LAUNDERING'
        assert world.sample("quietus_laundering_attempts_total", store="memories",
                            vector="restated_content", effect="annotate") == 1
        body |= {"key": "n2", "value": "Maria trained as a nurse."}
        answer = await world.call("POST", "/v1/memories", body)
        assert answer.status == 201 and answer["Quietus-Decision"] is None
