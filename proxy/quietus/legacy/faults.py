"""The ways in which the legacy store lies, each a named switch with a value.

A store with `Faults()` is honest: a forget removes the records and everything that was derived from
them before it answers. Each field of `Faults` departs from that in one way that real memory stores
have been seen to do; fields combine. Times are seconds on the store's clock; `inf` means "never".
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from math import inf
from typing import Any, Final, Literal

Value = bool | int | float | str


def _fault(off: Any, on: Value, says: str, *, choices: tuple[str, ...] = (), outside: bool = True) -> Any:
    return field(default=off, metadata={"on": on, "says": says, "choices": choices, "outside": outside})


@dataclass(frozen=True, slots=True)
class Faults:
    """Every switch. The defaults are an honest store that answers in rows of plain JSON."""

    # --- what a forget leaves behind -------------------------------------------------------------
    lazy_index: float = _fault(
        0.0,
        900.0,
        "the row is gone at once, the vector index serves it until a compaction so many seconds "
        "after the first removal that waits for it",
    )
    chunk_cache: float = _fault(
        0.0,
        900.0,
        "a chunk cache keyed by content hash serves erased text to recalls of a whole tenant, "
        "without a subject, for so many seconds",
    )
    service_digest: float = _fault(
        0.0,
        inf,
        "a rolling digest, owned by service:analytics for the purpose analytics, repeats what subjects "
        "said until it is rebuilt so many seconds after a removal",
    )
    query_cache: float = _fault(
        0.0, 3600.0, "a recall that was asked before is answered from a cache for so many seconds"
    )
    hash_rows: bool = _fault(
        False,
        True,
        "the embedding row, keyed by content hash, stays: writing the same text again brings the "
        "erased subject back under the new id",
    )
    stale_salience: float = _fault(
        0.0, 900.0, "the salience heap outlives the record: a near-duplicate by anyone inherits its salience"
    )
    stale_dedup: float = _fault(
        0.0,
        900.0,
        "the dedup map outlives the record: a near-duplicate by anyone is said to be merged with it",
    )
    stale_centroid: float = _fault(
        0.0,
        900.0,
        "the cluster centroid outlives the record: a near-duplicate by anyone gets the erased vector",
    )
    compact_count: int = _fault(
        0, 3, "everything that waits for a compaction is also compacted once so many records were removed"
    )
    dangling_provenance: Literal["off", "false", "null"] = _fault(
        "off",
        "false",
        "derived records survive, with provenance_resolved false (or null)",
        choices=("off", "false", "null"),
    )
    history: bool = _fault(False, True, "the history of an erased key still shows its texts")
    stale_export: float = _fault(0.0, 86400.0, "the export lists erased records for so many seconds")
    stale_replica: float = _fault(
        0.0,
        60.0,
        "every third read is served by a replica that still has what was removed in the last so many seconds",
    )
    probe_liar: float = _fault(
        0.0,
        900.0,
        "requests without a User-Agent (a probe's) see the truth, all others the erased records, for "
        "so many seconds",
    )

    # --- what comes back -------------------------------------------------------------------------
    late_rewrite: float = _fault(
        0.0,
        34.0,
        "a debounced background task writes the newest erased record back so many seconds after the "
        "last removal",
    )
    queued_ingest: float = _fault(
        0.0,
        2.0,
        "a write is acknowledged as queued and lands so many seconds later, whatever was forgotten since",
    )
    read_repair: Literal["off", "clears", "restores"] = _fault(
        "off",
        "restores",
        "the first read by key of an erased record finds it on a replica that was down; it is "
        "then gone (clears) or written back everywhere (restores)",
        choices=("off", "clears", "restores"),
    )
    restart_resurrection: bool = _fault(
        False, True, "a restart loads everything that was ever written", outside=False
    )
    dedup_merge: bool = _fault(
        False,
        True,
        "a near-duplicate is merged with the older record under a new id, owned by whoever wrote last",
    )
    id_reuse: bool = _fault(False, True, "the ids of removed records are given to new ones")
    query_writeback: bool = _fault(False, True, "a recall writes its query into the records that it returns")

    # --- what a forget says, and when it acts ----------------------------------------------------
    ack: Literal["erased", "accepted", "deleted", "ok"] = _fault(
        "erased",
        "accepted",
        "how a forget is acknowledged: with a count, with a token, or barely",
        choices=("erased", "accepted", "deleted", "ok"),
    )
    async_effect: float = _fault(
        0.0, 30.0, "what a forget matched at acceptance is removed so many seconds later"
    )
    fresh_tokens: bool = _fault(
        False, True, "a repeated forget gets a new token and starts the clock of async_effect again"
    )
    idle_ack: bool = _fault(False, True, "a forget is acknowledged and nothing is done")
    negative_ack: float = _fault(
        0.0, 5.0, "a forget answers that nothing was deleted; it is gone so many seconds later"
    )
    same_ack: bool = _fault(False, True, "the acknowledgement is the same for what never existed")
    page_limit: int = _fault(0, 100, "a forget removes only the first so many records and says it is done")
    failures: int = _fault(
        0, 3, "every nth record of a forget fails; the answer is 200 with a list of failures"
    )
    lost_answer: Literal["off", "done", "undone", "either"] = _fault(
        "off",
        "either",
        "the answer to a forget never comes; it was done, was not, or the seed decides",
        choices=("off", "done", "undone", "either"),
    )
    lost_count: int = _fault(1, 1, "how many answers lost_answer loses before one arrives", outside=False)

    # --- what a forget reaches -------------------------------------------------------------------
    swallow_prefix: float = _fault(
        0.0, 60.0, "keys written below a forgotten scope are not found for so many seconds after the forget"
    )
    sibling_prefixes: bool = _fault(
        False, True, "predicates match by prefix: a/b takes a/bc along, uid1 takes uid10"
    )
    reset_wipes: bool = _fault(False, True, "a reset of one tenant or subject wipes everyone")
    case_sensitive_forget: bool = _fault(False, True, "reads fold the case of subjects, a forget does not")
    soft_ttl: bool = _fault(
        False, True, "what has expired is hidden from lists and recalls and still read by key"
    )

    # --- how it answers --------------------------------------------------------------------------
    epochs: bool = _fault(False, True, "forgets and recalls carry epochs (no lie: an honest store may do it)")
    epoch_regresses: bool = _fault(False, True, "the read epoch goes back by one after a compaction")
    columnar: bool = _fault(False, True, "lists and recalls answer in parallel columns")
    sse: bool = _fault(False, True, "recalls answer as server-sent events, asked for or not")
    gzip: bool = _fault(False, True, "answers are gzip-encoded, asked for or not")
    latency: float = _fault(0.0, 0.04, "the server waits so many seconds before it acknowledges a forget")
    hang: float = _fault(
        0.0, 120.0, "the server holds the connection of a lost answer so many seconds before it drops it"
    )
    event_gap: float = _fault(0.0, 0.05, "the server waits so many seconds between two events of a stream")


@dataclass(frozen=True, slots=True)
class Fault:
    """What one switch is called, does, and is set to when it is only named."""

    name: str
    says: str
    on: Value
    off: Value
    choices: tuple[str, ...]
    outside: bool
    """Whether a client can see it; a restart, for one, must be caused."""


class UnknownFault(ValueError):
    """A switch that does not exist, or a value that it cannot take; the message says what would do."""


FAULTS: Final[dict[str, Fault]] = {
    item.name: Fault(
        name=item.name,
        says=item.metadata["says"],
        on=item.metadata["on"],
        off=getattr(Faults(), item.name),
        choices=item.metadata["choices"],
        outside=item.metadata["outside"],
    )
    for item in fields(Faults)
}
"""Every switch by name, in the order of `Faults`."""

FOUNDING: Final = Faults(lazy_index=900.0, chunk_cache=900.0, service_digest=inf)
"""The store of the first founding scenario: a 15-minute compaction, a chunk cache, a digest."""


def parse_faults(words: Iterable[str]) -> Faults:
    """Switches from words such as `lazy_index`, `lazy-index=60` or `dangling_provenance=null`.

    Raises UnknownFault for a name or a value that does not exist.
    """
    chosen: dict[str, Any] = {}
    for word in words:
        name, given, text = word.partition("=")
        name = name.strip().replace("-", "_")
        if name not in FAULTS:
            near = difflib.get_close_matches(name, FAULTS, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(FAULTS)}"
            raise UnknownFault(f"there is no fault {name!r}{hint}")
        fault = FAULTS[name]
        chosen[name] = _value(fault, text.strip()) if given else fault.on
    return Faults(**chosen)


def _value(fault: Fault, text: str) -> Value:
    if fault.choices:
        if text not in fault.choices:
            raise UnknownFault(f"{fault.name} takes one of {', '.join(fault.choices)}")
        return text
    if isinstance(fault.off, bool):
        if text not in ("true", "false"):
            raise UnknownFault(f"{fault.name} takes true or false")
        return text == "true"
    try:
        number = int(text) if isinstance(fault.off, int) else float(text.removesuffix("s"))
    except ValueError:
        raise UnknownFault(f"{fault.name} takes a number, such as {fault.on}") from None
    if not number >= 0:
        raise UnknownFault(f"{fault.name} takes a number that is not negative")
    return number
