"""From what a trial has observed to what it found: one judge a finding.

A finding is true, false, or None where it could not be told; what is None is never taken for a false.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quietus.core.trial import Case, Lag, came_back, revived, span, unsteady


@dataclass(slots=True)
class Observed:
    """Everything that a trial has seen."""

    kinds: Mapping[str, str]
    """The surfaces that were asked, and their kinds."""
    by_key: frozenset[str]
    cases: Sequence[Case]
    facts: Mapping[str, Any]
    left: Sequence[str] = ()
    """Canaries that could not be removed."""
    residue: Sequence[str] = ()
    """Canaries of which only copies are still told."""
    patience: float = 0.0
    watched: float = 0.0
    seconds: float = 0.0
    requests: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a store does, or does not, or that could not be told."""

    name: str
    found: bool | None
    says: str
    seconds: float | None = None
    surfaces: tuple[str, ...] = ()


Lags = Mapping[str, Lag]
_SEARCHED: Final = ("index", "derived", "cache")
Judge = Callable[[Observed, Lags], Finding]


def _leaks(seen: Observed, lags: Lags) -> Finding:
    told = tuple(name for name, lag in lags.items() if lag.leaked)
    longest = max((lag.max for lag in lags.values()), default=None)
    return Finding("leaks", bool(told) if lags else None,
                   "a surface still tells what was acknowledged as forgotten", longest, told)  # fmt: skip


def _never_gone(seen: Observed, lags: Lags) -> Finding:
    never = tuple(name for name, lag in lags.items() if lag.never)
    return Finding("never_gone", bool(never) if lags else None,
                   f"it was still told when the trial ended ({seen.patience:g} s)", None, never)  # fmt: skip


def _row_first(seen: Observed, lags: Lags) -> Finding:
    found: bool | None = None
    elsewhere = {*_others(seen, lags).surfaces, *_answer_cache(seen, lags).surfaces}
    for case in seen.cases:
        if unsteady(case):
            continue
        spans = {name: one for name in case.proven if (one := span(case, name)) is not None}
        rows = [one.high for name, one in spans.items() if seen.kinds.get(name) == "primary"]
        searched = {name for name, kind in seen.kinds.items() if kind in _SEARCHED} - elsewhere
        index = [one.low for name, one in spans.items() if name in searched]
        if rows and index:
            found = bool(found) or any(row is not None and low > row for row in rows for low in index)
    return Finding("row_before_index", found, "the row is gone before what is found by search")


def _others(seen: Observed, lags: Lags) -> Finding:
    looks = [look for case in seen.cases for look in case.after() if look.seen]
    names = {look.surface for look in looks if look.foreign}
    return Finding("others_repeat", bool(names) if lags else None,
                   "another record repeats it", None, tuple(sorted(names)))  # fmt: skip


def _answer_cache(seen: Observed, lags: Lags) -> Finding:
    told: dict[str, list[bool]] = {}
    for case in seen.cases:
        usual = {(look.surface, look.turn) for look in case.after() if look.seen and not look.foreign}
        for look in case.looks:
            if look.reworded and look.seen is not None and (look.surface, look.turn) in usual:
                told.setdefault(look.surface, []).append(look.seen)
    steady = set(told).difference(*(unsteady(case) for case in seen.cases))
    cached = tuple(sorted(name for name in steady if len(told[name]) > 1 and not any(told[name])))
    says = "it is told in answer to a query that was asked before, and not to one in other words"
    return Finding("answer_cache", bool(cached) if told or not _leaking(lags) else None, says, None, cached)


def _leaking(lags: Lags) -> bool:
    return any(lag.leaked for lag in lags.values())


def _unsteady(seen: Observed, lags: Lags) -> Finding:
    names = sorted({name for case in seen.cases for name in unsteady(case)})
    return Finding("unsteady", bool(names) if lags else None,
                   "reads disagree: told, not told, and told again", None, tuple(names))  # fmt: skip


def _guise(seen: Observed, lags: Lags) -> Finding:
    shown: bool | None = None
    for case in seen.cases:
        probes = case.after(client=False)
        if not probes:
            continue
        turns = {look.turn for look in probes}
        agents = [look for look in case.after() if look.turn in turns and look.seen]
        shown = bool(shown) or (len(agents) >= 3 and not any(look.seen for look in probes))
    says = "agents are told what probes are not (requests with a User-Agent)"
    return Finding("agents_see_more", shown, says)


def _back(seen: Observed, lags: Lags) -> Finding:
    times = [at for case in seen.cases if not unsteady(case) and (at := came_back(case)) is not None]
    return Finding("comes_back", bool(times) if lags else None,
                   f"a record that was gone is told again (watched for {seen.watched:g} s)",
                   max(times, default=None))  # fmt: skip


def _revived(seen: Observed, lags: Lags) -> Finding:
    found = sum(revived(case, seen.by_key) for case in seen.cases)
    return Finding("read_revives", found * 2 > len(seen.cases) if lags and seen.by_key else None,
                   "what no list and no search tells any more is told to a read by key")  # fmt: skip


def _restated(seen: Observed, lags: Lags) -> Finding:
    names = seen.facts.get("restated")
    steady = {name for case in seen.cases for name in unsteady(case)}.isdisjoint(names or ())
    return Finding("restated_returns", bool(names) if names is not None and steady else None,
                   "the same text by another subject brings it back", None, names or ())  # fmt: skip


def _partial(seen: Observed, lags: Lags) -> Finding:
    many, left = seen.facts.get("many"), seen.facts.get("many_left")
    if not many or left is None:
        return Finding("partial_delete", None, "one forget leaves some of many records")
    gone = len(many) - len(left)
    # Records that were all left are the fault of another kind: nothing was removed at all.
    partial = 0 < len(left) < len(many)
    tail = list(left) == list(range(gone, len(many)))
    how = f": {len(left)} of {len(many)} stayed, here and there"
    if tail:
        how = f": the first {gone} of {len(many)} went"
    says = f"one forget leaves some of many records{how if partial else ''}"
    return Finding("partial_delete", partial, says)


def _denied(seen: Observed, lags: Lags) -> Finding:
    acks = [case.acked for case in seen.cases if case.acked is not None and case.acked.answered]
    if not acks:
        return Finding("ack_denies", None, "the acknowledgement says that nothing was removed, and it goes")
    nothing = [ack for ack in acks if ack.count == 0 or ack.outcome == "not_found"]
    return Finding("ack_denies", len(nothing) * 2 > len(acks) and any(case.gone for case in seen.cases),
                   "the acknowledgement says that nothing was removed, and it goes")  # fmt: skip


def _same(seen: Observed, lags: Lags) -> Finding:
    return Finding("same_ack", seen.facts.get("same_ack"),
                   "a forget of somebody unknown is acknowledged like any other")  # fmt: skip


def _unanswered(seen: Observed, lags: Lags) -> Finding:
    lost = seen.facts.get("unanswered", 0)
    return Finding("unanswered", bool(lost), f"forgets without an answer: {lost} of {len(seen.cases)}")


def _repeat(seen: Observed, lags: Lags) -> Finding:
    case: Case | None = seen.facts.get("repeat")
    says = "a repeated forget starts the clock again"
    if case is None or case.acked is None:
        return Finding("repeat_restarts", None, says)
    ended = [one.high for name in case.proven if (one := span(case, name)) is not None and one.leaked]
    usual = max((lag.max for lag in lags.values()), default=0.0)
    took = None if None in ended else max((high for high in ended if high is not None), default=0.0)
    late = took is None or took > usual + seen.facts["repeat_after"] * 0.6
    return Finding("repeat_restarts", late, says, took)


def _tokens(seen: Observed, lags: Lags) -> Finding:
    tokens = seen.facts.get("repeat_tokens")
    known = tokens is not None and None not in tokens
    return Finding("fresh_tokens", tokens[0] != tokens[1] if known and tokens else None,
                   "a repeated forget gets another token")  # fmt: skip


def _fact(name: str, fact: str, says: str) -> Judge:
    """A judge of a fact that is true, false or missing, or names surfaces and places."""

    def judge(seen: Observed, lags: Lags) -> Finding:
        value = seen.facts.get(fact)
        places = tuple(value) if isinstance(value, tuple) else ()
        return Finding(name, None if value is None else bool(value), says, None, places)

    return judge


def _case(seen: Observed, lags: Lags) -> Finding:
    reads, forgets = seen.facts.get("reads_fold"), seen.facts.get("forget_folds")
    told = reads is not None and forgets is not None
    return Finding("case_differs", reads != forgets if told else None,
                   "reads and forgets differ about the case of a subject")  # fmt: skip


def _siblings(seen: Observed, lags: Lags) -> Finding:
    lost = seen.facts.get("lost")
    names = tuple(sorted(name for name, gone in (lost or {}).items() if gone))
    return Finding("siblings_lost", bool(names) if lost else None,
                   "a forget takes along what only begins alike", None, names)  # fmt: skip


def _swallowed(seen: Observed, lags: Lags) -> Finding:
    if "swallowed_first" not in seen.facts:
        return Finding("swallows", None, "what is written below a forgotten path is not told for a while")
    lost = not seen.facts["swallowed_first"] and not seen.facts.get("queued", False)
    return Finding("swallows", lost, "what is written below a forgotten path is not told for a while",
                   seen.facts.get("swallowed_for"))  # fmt: skip


def _expired(seen: Observed, lags: Lags) -> Finding:
    told, all_of = seen.facts.get("expired"), seen.facts.get("expired_of")
    found = None if told is None or not all_of else bool(told)
    return Finding("expired_told", found, "what has expired is still told", None, told or ())


def _epoch(seen: Observed, lags: Lags) -> Finding:
    epoch = seen.facts.get("epoch")
    behind = None if epoch is None or _leaking(lags) and not all(c.gone for c in seen.cases) else (
        epoch["read"] < epoch["acked"]
    )  # fmt: skip
    return Finding("epoch_behind", behind, "all is gone, and the read epoch is below the acknowledged one")


def _bystanders(seen: Observed, lags: Lags) -> Finding:
    lost = seen.facts.get("bystanders_lost")
    says = f"records that nobody forgot are gone: {lost or 0} of {seen.facts.get('bystanders', 0)}"
    return Finding("bystanders_lost", None if lost is None else lost > 0, says)


JUDGES: Final[tuple[Judge, ...]] = (
    _leaks, _never_gone, _row_first, _others, _answer_cache, _unsteady, _guise, _back, _revived, _partial,
    _denied, _same, _unanswered, _repeat, _tokens, _case, _siblings, _swallowed, _expired, _epoch,
    _bystanders,
    _restated,
    _fact("keeps_queries", "kept", "the words of a query turn up in records"),
    _fact("inherits", "drift", "a write takes over something of a forgotten near-duplicate"),
    _fact("merges", "merge_lost", "a near-duplicate by another subject takes a live record away"),
    _fact("ids_reused", "reused", "the id of a forgotten record was given to another"),
    _fact("queued_writes", "queued", "writes are acknowledged before they have landed"),
    _fact("lands_late", "race_landed", "a write that was acknowledged before a forget lands after it"),
    _fact("batched", "batched", "what waits goes when others are forgotten: after so many removals"),
)  # fmt: skip
"""All of them, in the order of a report."""
