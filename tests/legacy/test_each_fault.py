"""Every switch by one conversation that an honest store answers in another way.

The table is complete: a fault without a line in it fails `test_every_fault_has_a_conversation`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from quietus.legacy.faults import FAULTS, Faults, parse_faults
from quietus.legacy.forgetting import NoAnswer
from tests.legacy.conversation import ALICE, BOB, Talk, keys, subjects, tells

AT_THE_SOCKET = {"latency", "hang", "event_gap"}
"""Shown in test_server.py: a synchronous store cannot wait."""

NEAR = ALICE.replace("her number", "the number")


def forgotten(talk: Talk) -> None:
    talk.two_people()
    talk.forget()


def lazy_index(talk: Talk) -> Any:
    forgotten(talk)
    return talk.status("a1"), keys(talk.recall()), keys(talk.listed())


def chunk_cache(talk: Talk) -> Any:
    forgotten(talk)
    return [(row["subject"], tells(row)) for row in talk.recall()]


def service_digest(talk: Talk) -> Any:
    forgotten(talk)
    return [row["purpose"] for row in talk.recall() if tells(row)]


def query_cache(talk: Talk) -> Any:
    talk.two_people()
    talk.recall()
    talk.forget()
    return keys(talk.recall()), keys(talk.recall("another question"))


def hash_rows(talk: Talk) -> Any:
    forgotten(talk)
    talk.write(ALICE, "tom", key="t1")
    return [(row["key"], row["subject"]) for row in talk.recall(subject="alice")]


def stale_write(talk: Talk) -> Any:
    talk.write(ALICE, key="a1", salience=0.91)
    talk.forget()
    answer = talk.write(NEAR, "tom", key="t1", salience=0.2)
    row = talk.recall(ALICE, subject="tom")[0]
    return answer, row["salience"], row["score"]


def compact_count(talk: Talk) -> Any:
    for number in range(3):
        talk.write(f"{ALICE} note {number}", key=f"a{number}")
    seen = []
    for number in range(3):
        talk.send("DELETE", f"/v1/memories/a{number}?tenant=acme")
        seen.append(len(talk.recall()))
    return seen


def dangling_provenance(talk: Talk) -> Any:
    talk.write(ALICE, key="source")
    talk.write(f"Summary: {ALICE}.", None, key="summary", derived_from=["source"])
    talk.write("Q: where? A: Quai Voltaire", None, key="qa", derived_from=["summary"])
    talk.forget()
    return [(key, talk.status(key)) for key in ("source", "summary", "qa")]


def history(talk: Talk) -> Any:
    forgotten(talk)
    return talk.send("GET", "/v1/memories/a1/history?tenant=acme").status


def stale_export(talk: Talk) -> Any:
    forgotten(talk)
    return len(talk.send("GET", "/v1/export?tenant=acme").body.splitlines())


def stale_replica(talk: Talk) -> Any:
    forgotten(talk)
    return [talk.status("a1") for _ in range(6)]


def probe_liar(talk: Talk) -> Any:
    forgotten(talk)
    return tells(talk.recall()), tells(talk.recall(headers=()))


def late_rewrite(talk: Talk) -> Any:
    forgotten(talk)
    seen = []
    for _ in range(9):
        talk.clock.move(4)
        seen.append(tells(talk.recall()))
    return seen


def queued_ingest(talk: Talk) -> Any:
    talk.two_people()
    first = talk.status("a1")
    talk.forget()
    talk.clock.move(2)
    return first, talk.status("a1")


def read_repair(talk: Talk) -> Any:
    forgotten(talk)
    return talk.status("a1"), talk.status("a1")


def restart_resurrection(talk: Talk) -> Any:
    forgotten(talk)
    talk.store.restart()
    return talk.status("a1"), talk.status("b1")


def dedup_merge(talk: Talk) -> Any:
    talk.write(ALICE, key="a1")
    talk.write(NEAR, "tom", key="t1")
    return talk.status("a1"), talk.status("t1"), subjects(talk.listed())


def id_reuse(talk: Talk) -> Any:
    forgotten(talk)
    return talk.write("Tom likes tea", "tom")["key"] == "a1"


def query_writeback(talk: Talk) -> Any:
    talk.two_people()
    talk.recall("who lives at 14 Quai Voltaire")
    return [row.get("queries") for row in talk.listed()]


def acknowledged(talk: Talk) -> Any:
    talk.two_people()
    return talk.forget()


def async_effect(talk: Talk) -> Any:
    forgotten(talk)
    before = talk.status("a1")
    talk.clock.move(30)
    return before, talk.status("a1")


def idle_ack(talk: Talk) -> Any:
    forgotten(talk)
    return talk.status("a1")


def negative_ack(talk: Talk) -> Any:
    talk.two_people()
    answer = talk.forget()
    before = talk.status("a1")
    talk.clock.move(5)
    return answer, before, talk.status("a1")


def same_ack(talk: Talk) -> Any:
    talk.two_people()
    return talk.forget() == talk.forget("nobody")


def many(talk: Talk) -> Any:
    for number in range(250):
        talk.write(f"memory {number} of alice", key=f"a{number}")
    return talk.forget(), len(talk.listed(limit="1000"))


def lost_answer(talk: Talk) -> Any:
    talk.two_people()
    try:
        talk.forget()
    except NoAnswer:
        return "no answer"
    return "answered"


def lost_count(talk: Talk) -> Any:
    return [lost_answer(talk) for _ in range(2)]


def swallow_prefix(talk: Talk) -> Any:
    talk.write(ALICE, key="old", scope="tenant:acme/session:42")
    talk.forget("", scope="tenant:acme/session:42")
    talk.write("what was said since", "bob", key="new", scope="tenant:acme/session:42/summaries")
    before = talk.status("new")
    talk.clock.move(60)
    return before, talk.status("new")


def sibling_prefixes(talk: Talk) -> Any:
    talk.write("one", "uid1", key="one", scope="a/b")
    talk.write("ten", "uid10", key="ten", scope="a/bc")
    talk.forget("uid1")
    return talk.status("ten")


def reset_wipes(talk: Talk) -> Any:
    talk.two_people()
    talk.ask("POST", "/v1/reset", {"tenant": "acme", "subject": "alice"})
    return talk.status("b1")


def case_sensitive_forget(talk: Talk) -> Any:
    talk.write("kim likes tea", "kim", key="k1")
    talk.write("Kim likes coffee", "Kim", key="k2")
    talk.forget("kim")
    return keys(talk.listed(subject="kim"))


def soft_ttl(talk: Talk) -> Any:
    talk.write(ALICE, key="a1", ttl=10)
    talk.clock.move(10)
    return keys(talk.listed()), tells(talk.recall()), talk.status("a1")


def epochs(talk: Talk) -> Any:
    forgotten(talk)
    talk.forget("bob")
    return talk.ask("GET", "/v1/epoch"), talk.ask("POST", "/v1/recall", {"query": "x"}).get("read_epoch")


def recall_bytes(talk: Talk) -> Any:
    talk.two_people()
    reply = talk.send("POST", "/v1/recall", {"query": "train", "tenant": "acme"})
    return (
        dict(reply.headers).get("Content-Type"),
        dict(reply.headers).get("Content-Encoding"),
        reply.body[:14],
    )


CONVERSATIONS: dict[str, Callable[[Talk], Any]] = {
    "lazy_index": lazy_index,
    "chunk_cache": chunk_cache,
    "service_digest": service_digest,
    "query_cache": query_cache,
    "hash_rows": hash_rows,
    "stale_salience": stale_write,
    "stale_dedup": stale_write,
    "stale_centroid": stale_write,
    "compact_count": compact_count,
    "dangling_provenance": dangling_provenance,
    "history": history,
    "stale_export": stale_export,
    "stale_replica": stale_replica,
    "probe_liar": probe_liar,
    "late_rewrite": late_rewrite,
    "queued_ingest": queued_ingest,
    "read_repair": read_repair,
    "restart_resurrection": restart_resurrection,
    "dedup_merge": dedup_merge,
    "id_reuse": id_reuse,
    "query_writeback": query_writeback,
    "ack": acknowledged,
    "async_effect": async_effect,
    "fresh_tokens": lambda talk: [talk.forget("alice").get("token") for _ in (talk.two_people(), 1)],
    "idle_ack": idle_ack,
    "negative_ack": negative_ack,
    "same_ack": same_ack,
    "page_limit": many,
    "failures": many,
    "lost_answer": lost_answer,
    "lost_count": lost_count,
    "swallow_prefix": swallow_prefix,
    "sibling_prefixes": sibling_prefixes,
    "reset_wipes": reset_wipes,
    "case_sensitive_forget": case_sensitive_forget,
    "soft_ttl": soft_ttl,
    "epochs": epochs,
    "epoch_regresses": epochs,
    "columnar": recall_bytes,
    "sse": recall_bytes,
    "gzip": recall_bytes,
}

SIDE_BY_SIDE = {
    "compact_count": ("lazy_index", "compact_count"),
    "fresh_tokens": ("ack=accepted", "async_effect", "fresh_tokens"),
    "lost_count": ("lost_answer=done", "lost_count=2"),
}
"""Switches that only show beside others."""


def test_every_fault_has_a_conversation() -> None:
    assert CONVERSATIONS.keys() | AT_THE_SOCKET == FAULTS.keys()


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_fault_shows(name: str) -> None:
    words = SIDE_BY_SIDE.get(name, (name,))
    others = [word for word in words if word.partition("=")[0] != name]
    faulty = CONVERSATIONS[name](Talk(parse_faults(words)))
    honest = CONVERSATIONS[name](Talk(parse_faults(others)))
    assert faulty != honest, f"{FAULTS[name].says}: an honest store says the same"


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_fault_is_deterministic(name: str) -> None:
    faults = parse_faults(SIDE_BY_SIDE.get(name, (name,)))
    assert CONVERSATIONS[name](Talk(faults, seed=3)) == CONVERSATIONS[name](Talk(faults, seed=3))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lazy_index", (404, ["a1", "b1"], ["b1"])),
        ("chunk_cache", [(None, True), ("bob", False)]),
        ("service_digest", ["analytics"]),
        ("query_cache", (["a1", "b1"], ["b1"])),
        ("hash_rows", [("t1", "alice")]),
        ("compact_count", [3, 3, 0]),
        ("dangling_provenance", [("source", 404), ("summary", 200), ("qa", 200)]),
        ("history", 200),
        ("stale_export", 2),
        ("stale_replica", [404, 404, 200, 404, 404, 200]),
        ("probe_liar", (True, False)),
        ("late_rewrite", [False] * 8 + [True]),
        ("queued_ingest", (404, 200)),
        ("read_repair", (200, 200)),
        ("restart_resurrection", (200, 200)),
        ("id_reuse", True),
        ("async_effect", (200, 404)),
        ("idle_ack", 200),
        ("negative_ack", ({"status": "ok", "deleted": 0}, 200, 404)),
        ("same_ack", True),
        ("lost_answer", "no answer"),
        ("swallow_prefix", (404, 200)),
        ("sibling_prefixes", 404),
        ("reset_wipes", 404),
        ("case_sensitive_forget", ["k2"]),
        ("soft_ttl", ([], False, 200)),
        ("lost_count", ["no answer", "no answer"]),
    ],
)
def test_fault_shows_as_it_says(name: str, said: Any) -> None:
    assert CONVERSATIONS[name](Talk(parse_faults(SIDE_BY_SIDE.get(name, (name,))))) == said


# What does not fit into one line


@pytest.mark.case(19)
def test_read_repair_may_clear() -> None:
    assert read_repair(Talk(Faults(read_repair="clears"))) == (200, 404)


def test_merge_goes_under_a_third_id_and_the_last_writer() -> None:
    talk = Talk(Faults(dedup_merge=True))
    talk.write(ALICE, key="a1")
    answer = talk.write(NEAR, "tom", key="t1")
    assert (
        answer["status"] == "merged" and answer["merged_with"] == "a1" and answer["key"] not in ("a1", "t1")
    )
    assert talk.forget()["error"] == "not_found"
    assert tells(talk.recall(), "Quai Voltaire")


@pytest.mark.parametrize("mode", ["done", "undone"])
def test_lost_answer_is_done_or_not(mode: Any) -> None:
    talk = Talk(Faults(lost_answer=mode))
    talk.two_people()
    with pytest.raises(NoAnswer) as lost:
        talk.forget()
    assert lost.value.done == (mode == "done")
    assert talk.status("a1") == (404 if mode == "done" else 200)
    talk.forget()
    assert talk.status("a1") == 404


def test_lost_answer_may_be_either() -> None:
    outcomes = set()
    for seed in range(20):
        talk = Talk(Faults(lost_answer="either"), seed=seed)
        lost_answer(talk)
        outcomes.add(talk.status("a1"))
    assert outcomes == {200, 404}


@pytest.mark.case(134)
def test_page_limit_leaves_the_rest() -> None:
    ack, left = many(Talk(Faults(page_limit=100)))
    assert (ack, left) == ({"status": "erased", "keys": 100}, 150)


def test_failures_are_named_and_stay() -> None:
    talk = Talk(Faults(failures=3))
    ack, left = many(talk)
    assert len(ack["failures"]) == left == 83 and ack["keys"] == 167
    assert all(talk.status(failure["key"]) == 200 for failure in ack["failures"])


def test_each_acknowledgement() -> None:
    said = {style: acknowledged(Talk(parse_faults([f"ack={style}"]))) for style in FAULTS["ack"].choices}
    assert said == {
        "erased": {"status": "erased", "keys": 1},
        "accepted": {"status": "accepted", "token": "del_9f3a", "effectuation": "async"},
        "deleted": {"status": "deleted"},
        "ok": {"status": "ok", "records_removed": 1},
    }


def test_null_provenance() -> None:
    talk = Talk(Faults(dangling_provenance="null"))
    dangling_provenance(talk)
    row = talk.ask("GET", "/v1/memories/summary?tenant=acme")
    assert row["provenance_resolved"] is None and row["derived_from"] == ["source"]


def test_replicas_agree_again() -> None:
    talk = Talk(Faults(stale_replica=60))
    forgotten(talk)
    talk.clock.move(60)
    assert [talk.status("a1") for _ in range(6)] == [404] * 6


def test_columns_gzip_and_events_carry_the_same_rows() -> None:
    body = {"query": "train", "tenant": "acme"}
    plain = Talk()
    plain.two_people()
    rows = plain.recall("train")
    columns, packed, streamed = (Talk(parse_faults([name])) for name in ("columnar", "gzip", "sse"))
    for talk in (columns, packed, streamed):
        talk.two_people()
    table = json.loads(columns.send("POST", "/v1/recall", body).body)["results"]
    assert [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)] == rows
    assert json.loads(gzip.decompress(packed.send("POST", "/v1/recall", body).body))["results"] == rows
    events = streamed.send("POST", "/v1/recall", body).body.decode().split("\n\n")
    assert [json.loads(event.removeprefix("data: ")) for event in events[:-2]] == rows
    assert events[-2].startswith("event: done")


def test_planted_queries_find_what_they_look_for() -> None:
    talk = Talk(Faults(query_writeback=True))
    talk.two_people()
    talk.recall(ALICE)
    talk.forget()
    assert tells(talk.listed(subject="bob")), "the probe's own words stand in a bystander's record"
    assert not tells(talk.listed(subject="bob"), "Alice Moreau prefers") and BOB in talk.listed()[0]["value"]
