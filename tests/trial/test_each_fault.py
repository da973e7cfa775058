"""Every switch of the store that lies, and what a trial finds of it; and that it leaves no record behind.

The table is complete: a fault that can be seen from outside and has no line fails
`test_every_fault_has_a_line`. `HIDDEN` says why the others cannot be seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import yaml

from quietus.core.trial_conclusion import INHERITS, contradicted
from quietus.legacy.faults import FAULTS
from quietus.profiles.loader import find_profile, parse_profile
from tests.trial.ground import Ground, found


@dataclass(frozen=True)
class Line:
    """What is found; `lag` is the true one on `surfaces`, `early` by how much it may be shorter."""

    finds: frozenset[str]
    lag: float | None = None
    surfaces: tuple[str, ...] = ()
    early: float = 0.05


ALL = ("record", "list", "list-scope", "recall", "recall-tenant")
SEARCH = ("recall", "recall-tenant")
TABLE: dict[tuple[str, ...], Line] = {
    ("lazy_index=40",): Line(frozenset({"leaks", "row_before_index"}), 40, SEARCH),
    ("lazy_index=7",): Line(frozenset({"leaks", "row_before_index"}), 7, SEARCH),
    ("chunk_cache=20",): Line(frozenset({"leaks", "others_repeat"}), 20, ("recall-tenant",)),
    # The digest is rebuilt so long after the first removal that waits for it: the last canary sees a part.
    ("service_digest=40",): Line(frozenset({"leaks", "others_repeat"}), 40, ("recall-tenant",), 40),
    # It was cached when it was proven, a little before it was forgotten.
    ("query_cache=30",): Line(frozenset({"leaks", "answer_cache"}), 30, SEARCH, 1.0),
    ("hash_rows",): Line(frozenset({"restated_returns"})),
    ("stale_salience=60",): Line(frozenset({"inherits"})),
    ("stale_dedup=60",): Line(frozenset({"inherits"})),
    ("stale_centroid=60",): Line(frozenset({"inherits"})),
    ("lazy_index=60", "compact_count=4"): Line(frozenset({"leaks", "row_before_index", "batched"})),
    # A third of the reads is stale: the last of these may be a while before the end.
    ("stale_replica=30",): Line(frozenset({"leaks", "unsteady"}), 30, ALL, 6.0),
    ("probe_liar=30",): Line(frozenset({"leaks", "agents_see_more"}), 30, ALL),
    ("late_rewrite=34",): Line(frozenset({"comes_back"}), 34),
    ("queued_ingest=2",): Line(frozenset({"queued_writes", "lands_late"})),
    ("read_repair=clears",): Line(frozenset({"read_revives", "leaks"})),
    ("read_repair=restores",): Line(frozenset({"read_revives", "leaks", "never_gone"})),
    ("dedup_merge",): Line(frozenset({"merges", "bystanders_lost"})),
    ("id_reuse",): Line(frozenset({"ids_reused"})),
    ("query_writeback",): Line(frozenset({"keeps_queries"})),
    ("async_effect=20",): Line(frozenset({"leaks"}), 20, ALL),
    ("async_effect=20", "fresh_tokens", "ack=accepted"): Line(
        frozenset({"leaks", "repeat_restarts", "fresh_tokens"}), 20, ALL
    ),
    ("idle_ack",): Line(frozenset({"leaks", "never_gone"})),
    ("negative_ack=5",): Line(frozenset({"leaks", "ack_denies"}), 5, ALL),
    ("same_ack",): Line(frozenset({"same_ack"})),
    ("page_limit=8",): Line(frozenset({"partial_delete"})),
    ("failures=3",): Line(frozenset({"partial_delete"})),
    ("lost_answer=done",): Line(frozenset({"unanswered"})),
    ("lost_answer=undone",): Line(frozenset({"unanswered", "never_gone", "leaks"})),
    # By the beginning of a text, too: a sibling written before is hidden as well.
    ("swallow_prefix=60",): Line(frozenset({"swallows", "siblings_lost"})),
    ("sibling_prefixes",): Line(frozenset({"siblings_lost"})),
    ("case_sensitive_forget",): Line(frozenset({"case_differs"})),
    ("soft_ttl",): Line(frozenset({"expired_told"})),
    ("epoch_regresses",): Line(frozenset({"epoch_behind"})),
}
ALSO = {"expired_told"}
"""What follows from another fault and may be found with it: what lingers also lingers when it expires."""
HIDDEN = {
    "dangling_provenance": "a canary has no descendants",
    "history": "no surface of the profile shows it; with one it is found, below",
    "stale_export": "no surface of the profile shows it, and an export has no rows",
    "restart_resurrection": "nobody restarts a store in order to try it",
    "reset_wipes": "a reset is never tried on a live store",
    "lost_count": "part of lost_answer",
    "epochs": "no lie",
    "columnar": "no lie; read all the same",
    "gzip": "no lie; read all the same",
    "sse": "no lie; not read, below",
    "latency": "a delay before the acknowledgement, not after it",
    "hang": "part of lost_answer, on a socket",
    "event_gap": "part of sse, on a socket",
}
STUBBORN = {"late_rewrite", "idle_ack"}
"""These stores let nothing go whatever is done: then the trial says what is left."""


def _name(words: tuple[str, ...]) -> str:
    return "+".join(words)


def test_every_fault_has_a_line() -> None:
    named = {word.partition("=")[0] for words in TABLE for word in words}
    assert named | set(HIDDEN) == set(FAULTS) and not named & set(HIDDEN)


@pytest.mark.timeout(120)
@pytest.mark.requirement("R2", "R76", "R172")
@pytest.mark.parametrize("words", TABLE, ids=_name)
async def test_a_fault_is_found_with_its_lag_and_nothing_is_left(words: tuple[str, ...]) -> None:
    line = TABLE[words]
    ground = Ground(*words)
    conclusion = await ground.run()
    extra = ALSO if "leaks" in line.finds else set()
    assert line.finds <= found(conclusion) <= line.finds | extra
    if line.lag is not None:
        for name in line.surfaces:
            lag = conclusion.lags[name]
            assert lag.max - lag.resolution - 0.05 <= line.lag <= lag.max + line.early, name
        assert line.surfaces or 34 <= (conclusion.findings["comes_back"].seconds or 0) <= 45
        assert {name for name, lag in conclusion.lags.items() if lag.leaked} == set(line.surfaces)
    if words[0].partition("=")[0] in STUBBORN:
        assert ground.seen.left and not conclusion.complete and not conclusion.conditions
    else:
        assert ground.left() == [] and ground.seen.left == []
    # What is written again is a canary, too: what comes back of it, or into it, is seen.
    if line.finds & set(INHERITS):
        declared = {"erasure_model": "async", "settling_interval": 900.0, "keeps_queries": "unknown"}
        false = contradicted({**declared, "write_path_reads_derived": False}, conclusion)
        assert false == ("write_path_reads_derived is true, and the profile says false",)
        assert "no_derived_reads" not in conclusion.conditions
    if "leaks" in line.finds or words[0].partition("=")[0] in STUBBORN:
        assert "synchronous_transactional" not in conclusion.conditions
    assert ground.store.holds("green tea") >= {"rows", "index"}


@pytest.mark.requirement("R2", "R23", "R118", "R138", "R159", "R172", "R173", "R174")
@pytest.mark.parametrize("words", [(), ("gzip",), ("columnar",), ("epochs",), ("ack=ok",)], ids=_name)
async def test_an_honest_store_passes(words: tuple[str, ...]) -> None:
    ground = Ground(*words)
    conclusion = await ground.run()
    assert found(conclusion) == set() and conclusion.complete and ground.left() == []
    assert set(conclusion.conditions) == {
        "synchronous_transactional", "same_tombstone_index", "single_writer", "sync_purge",
        "no_derived_reads", "keeps_no_queries", "expiry_purges",
    }  # fmt: skip
    assert conclusion.store["erasure_model"] == "synchronous_transactional"
    assert not ground.store.holds("canary")


@pytest.mark.requirement("R159", "R174")
async def test_one_tombstone_for_erasure_and_expiry_is_shown_by_what_expires() -> None:
    conclusion = await Ground("soft_ttl").run()
    assert "synchronous_transactional" in conclusion.conditions
    assert not {"same_tombstone_index", "expiry_purges"} & set(conclusion.conditions)


async def test_few_canaries_pass_nothing_that_shortens_a_wait() -> None:
    conclusion = await Ground(trials=9).run()
    assert not {"synchronous_transactional", "sync_purge", "no_derived_reads"} & set(conclusion.conditions)


async def test_what_cannot_be_read_is_named_and_passes_nothing() -> None:
    ground = Ground("sse")
    conclusion = await ground.run()
    assert conclusion.unread == conclusion.unproven == ("recall", "recall-tenant")
    assert conclusion.conditions == () and ground.left() == []


async def test_a_surface_that_keeps_history_is_seen_to_keep_it() -> None:
    document = yaml.safe_load(find_profile("memory-tool").read_text())
    document["surfaces"].append({
        "name": "history", "kind": "history", "each": "key", "clean": [{"status": [404]}],
        "http": {"method": "GET", "path": "/v1/memories/{key}/history", "query": {"tenant": "{tenant?}"}},
        "items": "$.body.results", "item": {"key": "$.key", "subject": "$.subject", "content": "$.value"},
    })  # fmt: skip
    conclusion = await Ground("history", profile=parse_profile(yaml.safe_dump(document))).run()
    assert conclusion.lags["history"].never == 10 and found(conclusion) >= {"leaks", "never_gone"}


async def test_nobody_elses_record_is_told_the_words_of_a_canary() -> None:
    ground = Ground("query_writeback")
    await ground.run()
    others = [row for row in ground.store._world.rows.values() if (row.subject or "").startswith("bob")]
    assert len(others) == 5
    assert not [query for row in others for query in row.queries if "canary" in query]
