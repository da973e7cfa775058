"""Nothing that was planted stands in a log line, a metric, an event, a mark or a refusal."""

from __future__ import annotations

import json

import pytest

from quietus.acts import Acts
from quietus.core.states import State
from quietus.legacy.faults import Faults
from tests.gateway.scenes import all_events, answering, kill, lost, path, reborn, says, short, turn

SUBJECT = "subject-zebra-4471"
KEY = "key-quagga-0815"
TEXT = "Xylophone lessons with Ottokar happen behind the lighthouse on Fridays at nine"
TENANT = "tenant-okapi"
PATH = "path-narwhal/session-axolotl"
SECRET = "Bearer walrus-credential"
QUERY = "question-about-pangolins"
PLANTED = [
    SUBJECT, KEY, "Xylophone", "Ottokar", "lighthouse", TENANT, "narwhal", "axolotl", "walrus", "pangolin",
    "del_9f3a",
]  # fmt: skip


@pytest.mark.requirement("R205", "R198")
async def test_nothing_planted_is_found_anywhere() -> None:
    world = short(Faults(lazy_index=6.0, ack="accepted"))
    await world.__aenter__()
    refusals = []
    auth = (("Authorization", SECRET),)
    body = {"key": KEY, "value": TEXT, "tenant": TENANT, "scope": PATH, "retention": {"subject": SUBJECT}}
    assert (await world.call("POST", "/v1/memories", body, auth)).status == 201
    await world.write("bobs-key-1", "Bob is here", "bob", tenant=TENANT)
    world.upstream.hooks.append(answering(path("/v1/forget"), lost()))
    refusals.append(await world.forget(auth, subject=SUBJECT, tenant=TENANT))
    await world.clock.advance(4.0)
    for call in (
        ("POST", "/v1/recall", {"query": QUERY, "subject": SUBJECT, "tenant": TENANT}),
        ("POST", "/v1/recall", {"query": QUERY, "tenant": TENANT, "subject": [SUBJECT]}),
        ("POST", "/v1/recall", {"query": QUERY, "subject": {"a": SUBJECT}}),
        ("POST", "/v1/recall", f'{{"query":"{QUERY}","query":"{SUBJECT}"}}'.encode()),
        ("POST", "/v1/recall", f'{{"query":"{QUERY}'.encode()),
        ("POST", "/v1/memories", body),
        ("POST", "/v1/memories", {"value": TEXT, "tenant": TENANT, "retention": {"subject": "bob"}}),
        ("POST", "/v1/memories", {"value": "x", "derived_from": [KEY], "retention": {"subject": "bob"}}),
        ("POST", "/v1/forget", {"subject": "", "keys": []}),
        ("GET", f"/v1/memories/{KEY}", None),
        ("GET", f"/v1/unknown/{SUBJECT}/{KEY}?q={QUERY}", None),
        ("GET", f"/v1/memories/{KEY}%zz", None),
        ("GET", f"//{SUBJECT}", None),
    ):
        refusals.append(await world.call(*call, auth))
    world.upstream.hooks.append(answering(path("/v1/recall", purpose="client"), says(200, TEXT.encode())))
    refusals.append(await world.recall(QUERY, tenant=TENANT))
    world.upstream.hooks.append(answering(path("/v1/recall", purpose="client"), says(200, {"results": TEXT})))
    refusals.append(await world.recall(QUERY, tenant=TENANT))

    def broken(*_: object) -> None:
        raise RuntimeError(f"{SUBJECT} {TEXT}")

    real = world.parts.gateway.decide
    world.parts.gateway.decide = broken  # type: ignore[method-assign,assignment]
    answer = await world.recall(QUERY, auth, tenant=TENANT)
    assert answer.status == 500
    refusals.append(answer)
    world.parts.gateway.decide = real  # type: ignore[method-assign]
    world.upstream.hooks.append(lambda r, p: broken() if str(p.purpose) == "probe" else None)
    await world.clock.advance(5.0)
    world.upstream.hooks.clear()
    await world.until(lambda: world.erasure().state is State.SETTLED, 600.0)
    acts = Acts(world.parts.erasures, world.parts.timetable.wake)
    await acts.readmit(SUBJECT, TENANT, "reference 12", "dpo")
    await kill(world)
    async with await reborn(world) as again:
        await turn(again)
        told = [repr(line) for line in (*world.log.lines, *again.log.lines)]
        told = [line for line in told if "exc_info" not in line]  # the log itself keeps its type only
        told += [json.dumps([e.type, e.facts, e.actor], default=str) for e in await all_events(again)]
        told += [repr(mark) async for mark in again.ledger.marks()]
        told += [world.metrics.render().decode(), again.metrics.render().decode()]
        told += [json.dumps(world.parts.shapes.listed())]
        for name in await again.ledger.secret_names(again.erasure().id):
            told.append(repr(await again.ledger.secret(again.erasure().id, name)))
        for seen in refusals:
            if seen["Content-Type"] == "application/problem+json":
                told.append(repr((seen.headers, seen.body)))
        assert len(told) > 30
        everything = "\n".join(told).lower()
        assert [word for word in PLANTED if word.lower() in everything] == []
        assert all(seen.status != 500 for seen in refusals if seen is not answer)


@pytest.mark.requirement("R80", "R205")
async def test_marks_are_keyed() -> None:
    marks = []
    for _ in range(2):
        async with short() as world:
            await world.write(KEY, TEXT, SUBJECT)
            await world.forget(subject=SUBJECT)
            marks.append({mark.digest async for _, mark in world.ledger.marks()})
    assert marks[0] and marks[0].isdisjoint(marks[1]), "another key, other digests"
