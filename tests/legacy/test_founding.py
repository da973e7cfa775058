"""The figures of the five founding documents, as the store that they describe behaves."""

from __future__ import annotations

from typing import Any

import pytest

from quietus.legacy.faults import FOUNDING, Faults
from tests.legacy.conversation import ALICE, BOB, Talk, keys, subjects, tells


def test_412_keys_leak_for_892_seconds() -> None:
    talk = Talk(FOUNDING)
    for number in range(412):
        talk.write(f"contact details for alice, entry {number}", key=f"a{number}")
    talk.write(BOB, "bob", key="b1")
    # The compaction cycle begins with somebody else's forget, eight seconds earlier.
    talk.forget("bob")
    talk.clock.move(8)
    assert talk.forget() == {"status": "erased", "keys": 412}
    assert talk.status("a7") == 404 and not [row for row in talk.listed() if row["subject"] == "alice"]
    talk.clock.move(14 * 60 + 51.9)
    leaked = keys(talk.recall())
    assert len(leaked) == 10 and all(key[0] == "a" for key in leaked), "still leaking just before 892 s"
    talk.clock.move(0.1)
    assert not subjects(talk.recall()) & {"alice"}, "the index was compacted 892 s after the acknowledgement"


def test_leak_lasts_a_whole_cycle_at_worst() -> None:
    talk = Talk(Faults(lazy_index=900))
    talk.two_people()
    talk.forget()
    talk.clock.move(892)
    assert tells(talk.recall())
    talk.clock.move(8)
    assert not tells(talk.recall())


def test_text_comes_from_a_cache_that_knows_no_key() -> None:
    talk = Talk(FOUNDING)
    talk.two_people()
    talk.forget()
    talk.store.tick()
    before = talk.recall()
    assert [row["key"] for row in before if tells(row) and row["subject"] == "alice"] == ["a1"]
    assert talk.store.holds("Quai Voltaire") == {"index", "chunks", "rows"}, "the rows hold the digest"
    # Another chunk with the same text keeps the cached one alive beyond the erased record's time.
    chunks = Talk(Faults(chunk_cache=900))
    chunks.two_people()
    chunks.forget()
    rows = [row for row in chunks.recall() if tells(row)]
    assert [row["subject"] for row in rows] == [None] and rows[0]["key"].startswith("chunk-")
    chunks.clock.move(900)
    assert not tells(chunks.recall())


def test_digest_names_the_erased_under_another_subject() -> None:
    talk = Talk(FOUNDING)
    talk.two_people()
    talk.forget()
    talk.clock.move(86400)
    digest = [row for row in talk.recall("alice") if tells(row)]
    assert [(row["subject"], row["purpose"]) for row in digest] == [("service:analytics", "analytics")]
    assert digest[0]["value"].count(ALICE) == 1 and "alice" in digest[0]["value"]


def test_digest_may_be_rebuilt() -> None:
    talk = Talk(Faults(service_digest=60))
    talk.two_people()
    talk.forget()
    talk.clock.move(59)
    assert tells(talk.listed())
    talk.clock.move(1)
    assert not tells(talk.listed()) and "Basel" in talk.listed(subject="service:analytics")[0]["value"]


def test_s_4471_is_quoted_by_another_record() -> None:
    text = "S-4471 asked for a refund of 89 francs"
    talk = Talk()
    talk.write(text, "S-4471", key="r1")
    talk.write(f'Ticket summary: the customer wrote "{text}".', "S-9000", key="r2")
    assert talk.ask("DELETE", "/v1/memories/r1?tenant=acme") == {"status": "deleted"}
    assert talk.recall("S-4471 refund")[0]["key"] == "r2" and tells(talk.recall("S-4471"), text)


def test_reingested_template_brings_the_subject_back_under_a_new_id() -> None:
    text = "Welcome aboard. Your account is ready."
    talk = Talk(Faults(hash_rows=True))
    talk.write(text, "S-4471", key="r1")
    talk.forget("S-4471")
    assert talk.recall(text, subject="S-4471") == []
    new = talk.write(text, "S-5000")["key"]
    assert [(row["key"], row["subject"]) for row in talk.recall(text, subject="S-4471")] == [(new, "S-4471")]


def test_three_access_paths_after_records_removed_1() -> None:
    talk = Talk(Faults(ack="ok", dangling_provenance="false", lazy_index=900))
    first, second = "Alice moved to Lyon in May.", "She rents a flat near the river."
    source = f"{first} {second} The weather was fine."
    talk.write(source, key="source")
    talk.write(f"Summary: {first} {second}", None, key="summary", derived_from=["source"])
    talk.write(f"Q: Where is Alice? A: {first}", None, key="qa_pair", derived_from=["summary"])
    assert talk.forget() == {"status": "ok", "records_removed": 1}
    summary: Any = talk.ask("GET", "/v1/memories/summary?tenant=acme")
    chained: Any = talk.ask("GET", "/v1/memories/qa_pair?tenant=acme")
    nearest = talk.recall(source, top_k=1)[0]
    assert (
        first in summary["value"] and second in summary["value"] and summary["provenance_resolved"] is False
    )
    assert first in chained["value"] and chained["provenance_resolved"] is False
    assert nearest["key"] == "source" and nearest["score"] == 1.0


def test_an_honest_store_cascades() -> None:
    talk = Talk()
    talk.write(ALICE, key="source")
    talk.write("a summary", None, key="summary", derived_from=["source"])
    talk.write("a pair", None, key="qa_pair", derived_from=["summary"])
    assert talk.forget() == {"status": "erased", "keys": 3}
    assert talk.listed() == [] and talk.recall() == []


def test_tokens_clock_and_swallowed_keys() -> None:
    scope = "tenant:acme/session:42"
    talk = Talk(Faults(ack="accepted", async_effect=30, fresh_tokens=True, swallow_prefix=60))
    talk.write(ALICE, key="old", scope=scope)
    assert talk.forget("", scope=scope) == {
        "status": "accepted",
        "token": "del_9f3a",
        "effectuation": "async",
    }
    talk.clock.move(20)
    assert talk.forget("", scope=scope)["token"] == "del_b7c1"
    talk.clock.move(20)
    assert "rows" in talk.store.holds(ALICE), "the repeated forget started the clock again"
    talk.write(f"Summary: {ALICE}", "bob", key="new", scope=f"{scope}/summaries")
    assert talk.status("new") == 404
    talk.clock.move(60)
    assert talk.status("new") == 200, "the token never covered what was written after it"
    assert talk.status("old") == 404


def test_retry_loop_never_converges() -> None:
    scope = "tenant:acme/session:42"
    talk = Talk(Faults(ack="accepted", async_effect=30, fresh_tokens=True))
    talk.write(ALICE, key="old", scope=scope)
    for _ in range(20):
        talk.forget("", scope=scope)
        talk.clock.move(29)
        assert talk.status("old") == 200
    patient = Talk(Faults(ack="accepted", async_effect=30))
    patient.write(ALICE, key="old", scope=scope)
    assert {patient.forget("", scope=scope)["token"] for _ in range(4)} == {"del_9f3a"}
    patient.clock.move(30)
    assert patient.status("old") == 404


@pytest.mark.requirement("R164", "R165")
@pytest.mark.parametrize("by", ["minutes", "count"])
def test_salience_091_outlives_ttl_and_forget(by: str) -> None:
    lasting = {"stale_salience": 900.0, "stale_dedup": 900.0, "stale_centroid": 900.0}
    talk = Talk(Faults(soft_ttl=True, lazy_index=900, compact_count=0 if by == "minutes" else 5, **lasting))
    text = "alice takes 5 mg of a medicine every morning before breakfast"
    talk.write(text, key="r", salience=0.91, ttl=60)
    talk.clock.move(61)
    assert keys(talk.listed()) == [] and talk.status("r") == 200, "expired, and not compacted"
    assert talk.forget() == {"status": "erased", "keys": 1}
    answer = talk.write(text.replace("alice", "tom"), "tom", key="t", salience=0.1)
    assert answer == {"key": "t", "status": "merged", "merged_with": "r"}
    row = talk.recall(text, subject="tom")[0]
    assert row["salience"] == 0.91 and row["score"] == 1.0, "the stale heap and the stale centroid"
    if by == "minutes":
        talk.clock.move(900)
    else:
        for number in range(5):
            talk.write(f"note {number}", "ann", key=f"n{number}")
            talk.send("DELETE", f"/v1/memories/n{number}?tenant=acme")
    later = talk.write(text.replace("alice", "eve"), "eve", key="e", salience=0.1)
    assert later == {"key": "e", "status": "stored"}
    assert talk.recall(text, subject="eve")[0]["salience"] == 0.1


def test_clean_from_4_to_30_seconds_and_back_after_34() -> None:
    talk = Talk(Faults(late_rewrite=34))
    talk.two_people()
    talk.forget()
    talk.clock.move(4)
    for _ in range(26):
        assert not tells(talk.recall()) and talk.status("a1") == 404
        talk.clock.move(1)
    talk.clock.move(4.6)
    assert tells(talk.recall()) and talk.status("a1") == 200
