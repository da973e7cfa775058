"""The honest store, its wire, its switches and its background work."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import Any

import pytest

from quietus.core.exchange import Request
from quietus.legacy.embedding import DIMENSIONS, cosine, embed, from_dense, to_dense
from quietus.legacy.faults import FAULTS, FOUNDING, Faults, UnknownFault, parse_faults
from quietus.legacy.schedule import Schedule
from tests.legacy.conversation import AGENT, ALICE, BOB, Talk, keys, tells

# An honest store


def test_a_forget_is_done_when_it_is_answered() -> None:
    talk = Talk()
    talk.two_people()
    talk.write(f"Summary: {ALICE}", None, key="s1", derived_from=["a1"])
    assert talk.forget() == {"status": "erased", "keys": 2}
    assert talk.store.holds("Quai Voltaire") == frozenset()
    assert keys(talk.recall()) == keys(talk.listed()) == ["b1"]
    assert talk.forget()["error"] == "not_found"
    assert talk.store.next_due() is None and talk.store.tick() == 0


def test_unit_is_subject_and_purpose() -> None:
    talk = Talk()
    talk.write("billing note", key="k1", purpose="billing")
    talk.write("support note", key="k2", purpose="support")
    assert talk.forget(purposes=["support"]) == {"status": "erased", "keys": 1}
    assert keys(talk.listed()) == ["k1"]


def test_scopes_go_by_segments() -> None:
    talk = Talk()
    for scope in ("a/b", "a/b/c", "a/bc", "a"):
        talk.write(f"at {scope}", key=scope.replace("/", "-"), scope=scope)
    assert set(keys(talk.listed(scope="a/b"))) == {"a-b", "a-b-c"}
    assert talk.forget("", scope="a/b/")["keys"] == 2
    assert set(keys(talk.listed())) == {"a-bc", "a"}


def test_tenants_are_apart() -> None:
    talk = Talk()
    talk.two_people()
    talk.ask(
        "POST",
        "/v1/memories",
        {"tenant": "other", "key": "a1", "value": "theirs", "retention": {"subject": "alice"}},
    )
    talk.forget()
    assert talk.ask("GET", "/v1/memories/a1?tenant=other")["value"] == "theirs"
    assert talk.send("GET", "/v1/memories/a1").status == 200, "without a tenant, any"


def test_ttl_ends_a_memory() -> None:
    talk = Talk()
    talk.write(ALICE, key="a1", ttl=10)
    talk.clock.move(9.9)
    assert talk.status("a1") == 200
    talk.clock.move(0.1)
    assert (
        talk.status("a1") == 404 and not tells(talk.recall()) and talk.store.holds("Voltaire") == frozenset()
    )


def test_a_key_is_written_again() -> None:
    talk = Talk()
    talk.write("first", key="k")
    talk.write("second", key="k")
    assert [row["value"] for row in talk.recall("first")] == ["second"]
    assert [entry["event"] for entry in talk.ask("GET", "/v1/memories/k/history")["results"]] == [
        "ADD",
        "UPDATE",
    ]


def test_pages_end() -> None:
    talk = Talk()
    for number in range(25):
        talk.write(f"note {number}", key=f"k{number}")
    seen, cursor = [], ""
    while True:
        page = talk.ask("GET", f"/v1/memories?tenant=acme&limit=10{cursor}")
        seen += keys(page["results"])
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert seen == [f"k{number}" for number in range(25)]


def test_batches_are_whole() -> None:
    talk = Talk()
    good: dict[str, Any] = {"value": "one"}
    answer = talk.ask("POST", "/v1/memories", {"memories": [good, good]})
    assert len({result["key"] for result in answer["results"]}) == 2
    bad = talk.send("POST", "/v1/memories", {"memories": [good, {"value": 1}]})
    assert (
        bad.status == 400
        and b"memories[1].value" in bad.body
        and len(talk.ask("GET", "/v1/memories")["results"]) == 2
    )


def test_epochs_are_told_where_the_store_has_them() -> None:
    talk = Talk(Faults(epochs=True, lazy_index=60))
    talk.two_people()
    assert talk.forget()["erasure_epoch"] == 1
    assert talk.ask("GET", "/v1/epoch") == {"read_epoch": 0}
    talk.clock.move(60)
    assert talk.ask("POST", "/v1/recall", {"query": "x"})["read_epoch"] == 1


def test_epochs_may_regress() -> None:
    talk = Talk(Faults(epoch_regresses=True))
    talk.two_people()
    talk.forget()
    assert talk.ask("GET", "/v1/epoch") == {"read_epoch": 0}


def test_credential() -> None:
    talk = Talk(credential="secret")
    assert talk.send("GET", "/v1/export").status == 401
    assert talk.send("GET", "/healthz").status == 200
    assert talk.send("GET", "/v1/export", headers=(("Authorization", "Bearer secret"),)).status == 200


# The wire


@pytest.mark.parametrize(
    ("method", "target", "body", "status"),
    [
        ("POST", "/v1/memories", b"{", 400),
        ("POST", "/v1/memories", b"[]", 400),
        ("POST", "/v1/memories", b'{"value": "x", "more": 1}', 400),
        ("POST", "/v1/memories", b'{"value": "x", "retention": {"subject": ["a"]}}', 400),
        ("POST", "/v1/memories", b'{"value": "x", "retention": {"ttl": -1}}', 400),
        ("POST", "/v1/memories", b'{"value": "x", "retention": {"ttl": NaN}}', 400),
        ("POST", "/v1/memories", b'{"value": "x", "key": ""}', 400),
        ("POST", "/v1/memories", b'{"value": "x", "salience": 2}', 400),
        ("POST", "/v1/memories", b'{"value": "x", "derived_from": "a"}', 400),
        ("POST", "/v1/memories", b'{"memories": []}', 400),
        ("POST", "/v1/memories", b"[" * 100_000, 400),
        ("POST", "/v1/recall", b"{}", 400),
        ("POST", "/v1/recall", b'{"query": "x", "top_k": 0}', 400),
        ("POST", "/v1/recall", b'{"vector": [1]}', 400),
        ("POST", "/v1/forget", b"{}", 422),
        ("POST", "/v1/forget", b'{"tenant": "acme"}', 422),
        ("POST", "/v1/forget", b'{"keys": []}', 422),
        ("POST", "/v1/forget", b'{"subject": ""}', 422),
        ("POST", "/v1/forget", b'{"subject": "a", "purposes": []}', 422),
        ("POST", "/v1/forget", b'{"subject": {"a": 1}}', 400),
        ("POST", "/v1/forget", b'{"user": "a"}', 400),
        ("POST", "/v1/reset", b"{}", 422),
        ("GET", "/v1/memories?tenant=a&tenant=b", b"", 400),
        ("GET", "/v1/memories?limit=none", b"", 400),
        ("GET", "/v1/memories?who=alice", b"", 400),
        ("GET", "/v1/memories/%ff", b"", 400),
        ("GET", "/v1/nothing", b"", 404),
        ("PATCH", "/v1/memories/a", b"", 405),
    ],
)
def test_bad_requests_are_told_and_not_repeated(method: str, target: str, body: bytes, status: int) -> None:
    talk = Talk()
    reply = talk.store.handle(Request(method, target, AGENT, body))
    assert reply.status == status, reply.body
    assert set(json.loads(reply.body)) == {"error", "message"}
    assert talk.store.holds("x") == frozenset()


# Recall


def test_neighbours_exist() -> None:
    talk = Talk()
    talk.write("Alice moved to Lyon in May", key="near")
    talk.write("Trains leave at nine", key="far")
    talk.write("The weather was fine", key="farther")
    rows = talk.recall("when did Alice move to Lyon", top_k=2)
    assert rows[0]["key"] == "near" and rows[0]["score"] > 0.4 > rows[1]["score"]
    assert len(talk.recall("nothing in common", top_k=3)) == 3, "the nearest, however far"


def test_vectors_go_out_and_come_in() -> None:
    talk = Talk()
    talk.two_people()
    vector = talk.recall(ALICE, include=["vector"], top_k=1)[0]["vector"]
    assert len(vector) == DIMENSIONS
    assert talk.ask("POST", "/v1/recall", {"vector": vector, "top_k": 1})["results"][0]["key"] == "a1"


def test_embedding_is_a_cosine() -> None:
    assert cosine(embed(ALICE), embed(ALICE.upper())) == pytest.approx(1.0)
    assert cosine(embed(ALICE), from_dense(to_dense(embed(ALICE)))) == pytest.approx(1.0, abs=1e-5)
    assert cosine(embed(ALICE), embed(BOB)) < 0.4
    assert embed("...") == () and cosine((), embed(BOB)) == 0.0


# Switches


def test_switches_from_words() -> None:
    faults = parse_faults(
        ["lazy-index", "chunk_cache=60s", "page_limit=5", "ack=accepted", "gzip=false", "service_digest=inf"]
    )
    assert faults == Faults(
        lazy_index=900.0, chunk_cache=60.0, page_limit=5, ack="accepted", service_digest=inf
    )
    assert FOUNDING == parse_faults(["lazy_index", "chunk_cache", "service_digest"])


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("lazy_indx", "did you mean lazy_index"),
        ("zzz", "known: lazy_index"),
        ("ack=perhaps", "erased, accepted"),
        ("lazy_index=soon", "a number, such as 900"),
        ("page_limit=1.5", "a number"),
        ("latency=-1", "not negative"),
        ("latency=nan", "not negative"),
        ("gzip=yes", "true or false"),
    ],
)
def test_wrong_switches_say_what_would_do(word: str, told: str) -> None:
    with pytest.raises(UnknownFault, match=told):
        parse_faults([word])


def test_every_switch_says_what_it_does() -> None:
    for fault in FAULTS.values():
        assert len(fault.says) > 20 and (fault.on != fault.off or fault.name == "lost_count")


# Background work


def test_work_runs_at_its_own_time_whenever_it_is_looked_at() -> None:
    patient, hasty = (Talk(Faults(lazy_index=10, late_rewrite=5, async_effect=5)) for _ in range(2))
    for talk in (patient, hasty):
        talk.two_people()
        talk.forget()
    for _ in range(100):
        hasty.clock.move(0.25)
        hasty.store.tick()
    patient.clock.move(25)
    assert hasty.recall() == patient.recall() and hasty.listed() == patient.listed()


def test_schedule_keeps_order() -> None:
    seen: list[str] = []
    schedule = Schedule()
    schedule.set("b", 0, 2, lambda: seen.append("b"))
    schedule.set("a", 0, 1, lambda: schedule.set("c", 99, 0.5, lambda: seen.append("c")))
    schedule.set("d", 0, 2, lambda: seen.append("d"))
    schedule.set("b", 1, 2, lambda: seen.append("never"))
    schedule.set("d", 1, 2, lambda: seen.append("later"), again=True)
    schedule.set("e", 0, inf, lambda: seen.append("never"))
    assert schedule.next_due() == 1 and schedule.waits("b") and not schedule.waits("e")
    assert schedule.run(2) == 3 and seen == ["c", "b"]
    assert schedule.run(3) == 1 and seen[-1] == "later" and schedule.next_due() is None


def test_restart_of_an_honest_store_changes_nothing() -> None:
    talk = Talk()
    talk.two_people()
    talk.forget()
    talk.store.restart()
    assert keys(talk.listed()) == ["b1"]


def test_same_seed_same_store() -> None:
    def run(seed: int) -> Any:
        talk = Talk(FOUNDING, seed)
        names = [talk.write(f"note {number}")["key"] for number in range(3)]
        talk.forget()
        return names, talk.recall()

    assert run(1) == run(1) and run(1)[0] != run(2)[0]


def test_every_switch_stands_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "legacy-store.md").read_text(encoding="utf-8")
    for fault in FAULTS.values():
        lines = [line for line in page.splitlines() if line.startswith(f"| `{fault.name}` |")]
        assert len(lines) == 1 and fault.says in lines[0], (
            f"docs/legacy-store.md: {fault.name} is missing or old"
        )
    assert page.count("\n| `") == len(FAULTS)
