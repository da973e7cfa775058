"""What happens in one seed: the store's faults, the network's, and every step, written out beforehand.

A plan is plain data: it is shrunk by leaving steps out and kept in a file when it fails. Nothing in it
depends on what the code under test does.
"""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

INTERVAL: Final = 10.0
BOUND: Final = 60.0
ROUNDS: Final = 3
"""The terms of the profile in a simulation."""

RECALLS: Final = 235
"""In a seed: some find the sidecar dead or the store away, and 500 seeds make 100,000 answered ones."""

Step = dict[str, Any]

MENU: Final[dict[str, tuple[Any, ...]]] = {
    "lazy_index": (3.0, 6.0, 40.0),
    "chunk_cache": (4.0, 8.0, 30.0),
    "service_digest": (5.0, 8.0, 1e9),
    "query_cache": (6.0, 9.0, 40.0),
    "hash_rows": (True,),
    "stale_salience": (8.0,),
    "stale_dedup": (8.0,),
    "stale_centroid": (8.0,),
    "compact_count": (3,),
    "dangling_provenance": ("false", "null"),
    "history": (True,),
    "stale_export": (30.0, 86400.0),
    "stale_replica": (4.0, 8.0, 60.0),
    "probe_liar": (8.0, 60.0),
    "late_rewrite": (2.0, 5.0, 34.0),
    "queued_ingest": (0.5, 3.0),
    "read_repair": ("clears", "restores"),
    "restart_resurrection": (True,),
    "dedup_merge": (True,),
    "id_reuse": (True,),
    "query_writeback": (True,),
    "ack": ("accepted", "deleted", "ok"),
    "async_effect": (3.0, 8.0, 30.0),
    "fresh_tokens": (True,),
    "idle_ack": (True,),
    "negative_ack": (3.0, 8.0),
    "same_ack": (True,),
    "page_limit": (1, 2),
    "failures": (2, 3),
    "lost_answer": ("done", "undone", "either"),
    "swallow_prefix": (8.0, 60.0),
    "sibling_prefixes": (True,),
    "case_sensitive_forget": (True,),
    "soft_ttl": (True,),
    "epochs": (True,),
    "epoch_regresses": (True,),
    "columnar": (True,),
    "sse": (True,),
    "gzip": (True,),
}
"""The store's faults as a seed may draw them; their times are in proportion to the settling interval."""

AILMENTS: Final = "slow lost_request lost_answer late doubled refused broken cut long".split()
"""What the network may do to a request."""


@dataclass
class Plan:
    """One seed, written out."""

    seed: int
    faults: dict[str, Any] = field(default_factory=dict)
    network: dict[str, float] = field(default_factory=dict)
    """How likely each ailment is for a client's request; probes suffer a fifth of it."""
    ledger_delay: float = 0.0
    hasty: bool = False
    """Operators press a button as soon as they see a third clean round."""
    steps: list[Step] = field(default_factory=list)

    @property
    def faithful(self) -> bool:
        """Whether the store does what it says, so that every erasure has to settle."""
        return set(self.faults) <= {"epochs", "ack", "gzip"}

    def kept(self, steps: list[Step]) -> Plan:
        return replace(self, steps=steps)

    def document(self) -> dict[str, Any]:
        """As it stands in `regressions.yaml`."""
        return asdict(self)


WORDS: Final = (
    "amber basin cedar delta ember fjord grove haven inlet jetty knoll ledge maple notch orbit plaza quarry "
    "ridge slate tundra umber valley willow yonder zenith anchor beacon copper dapple easel fennel garnet "
    "hollow indigo juniper kettle lantern meadow nectar oriole pebble quiver russet saffron thistle velvet"
).split()


class Planner:
    """Draws a plan. The world it imagines is only used to draw names that exist."""

    def __init__(self, seed: int, recalls: int) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.recalls = recalls
        self.tenants = ["acme", "globex"][: self.rng.choice((1, 2, 2))]
        self.subjects = {
            t: [f"{name}-of-{t}" for name in ("alice", "bob", "carol", "dave", "erin")] for t in self.tenants
        }
        self.paths = ["org", "org/a", "org/a/x", "org/ab", "org/b"]
        self.keys: list[tuple[str, str]] = []
        self.texts: list[Step] = []
        self.forgets: list[Step] = []
        self.count = 0

    def draw(self) -> Plan:
        rng = self.rng
        plan = Plan(self.seed)
        if self.seed % 4:
            names = rng.sample(sorted(MENU), rng.choice((1, 1, 2, 3, 4)))
            plan.faults = {name: rng.choice(MENU[name]) for name in names}
        else:
            plan.faults = {"epochs": True} if rng.random() < 0.3 else {}
        for name in rng.sample(AILMENTS, rng.choice((0, 2, 3, 5))):
            plan.network[name] = rng.choice((0.02, 0.05, 0.15))
        plan.ledger_delay = rng.choice((0.0, 0.0, 0.01, 0.3, 1.5))
        plan.hasty = rng.random() < 0.15
        span = rng.choice((20.0, 40.0, 80.0))
        at, steps = 0.0, []
        for _ in range(9):
            steps.append(self._write(at))
            at += 0.3
        left, total = self.recalls, int(self.recalls * 1.17)
        for place in range(total):
            at = 6.0 + span * place / total + rng.random() * 0.5
            recall = rng.random() < left / max(total - place, 1)
            left -= recall
            steps.append(self._recall(at) if recall else self._other(at))
        ills = self._ills(span)
        if any(step["do"] == "blind" for step in ills) and plan.faults and rng.random() < 0.7:
            # A store that shows nothing while it still has everything.
            plan.faults |= rng.choice(({"idle_ack": True}, {"lazy_index": 40.0}, {"async_effect": 30.0}))
        plan.steps = sorted([*steps, *ills], key=lambda step: step["at"])
        for number, step in enumerate(plan.steps):
            step["n"] = number
        return plan

    # --- what clients do -------------------------------------------------------------------------

    def _step(self, at: float, do: str, **more: Any) -> Step:
        step: Step = {"at": round(at, 3), "do": do, **{k: v for k, v in more.items() if v is not None}}
        if self.rng.random() < 0.03:
            step["patience"] = round(self.rng.random() * 3, 2)
        if do in ("recall", "list", "export", "read") and self.rng.random() < 0.08:
            step["reads_slowly"] = round(self.rng.random() * 12, 2)
        if do in ("recall", "list") and self.rng.random() < 0.025:
            step["answered_after"] = round(10 + self.rng.random() * 90, 1)
        return step

    def _who(self) -> tuple[str, str]:
        tenant = self.rng.choice(self.tenants)
        return tenant, self.rng.choice(self.subjects[tenant])

    def _write(self, at: float) -> Step:
        rng = self.rng
        tenant, subject = self._who()
        self.count += 1
        key: str | None = f"mem-{self.seed}-{self.count:03d}-{subject[:3]}"
        words, quotes, source = rng.sample(WORDS, 9), None, None
        draw = rng.random()
        if self.texts and draw < 0.08:  # nearly the same text, by anybody
            words = rng.choice(self.texts)["words"]
        elif self.texts and draw < 0.16:  # the very text of another
            quoted = rng.choice(self.texts)
            quotes, words = quoted.get("quotes") or quoted["token"], quoted["words"]
        elif self.keys and draw < 0.22:
            source = rng.choice(self.keys)[1]
        elif draw < 0.26:
            key = None
        path = rng.choice([None, *self.paths])
        step = self._step(
            at, "write", tenant=tenant, subject=subject, key=key, path=path, words=list(words),
            token=f"zq{self.seed}w{self.count:03d}", quotes=quotes, derived_from=source,
            purpose=rng.choice((None, None, "billing")), ttl=rng.choice((None, None, None, 25.0)),
        )  # fmt: skip
        self.texts.append(step)
        if key is not None:
            self.keys.append((tenant, key))
        return step

    def _recall(self, at: float) -> Step:
        rng = self.rng
        tenant, subject = self._who()
        text = rng.choice(self.texts)
        ask: Step = {"query": " ".join(text["words"][:5])}
        if rng.random() < 0.3:  # the very text: a store that keeps queries keeps it too
            ask["query"] = sentence(text)
        draw = rng.random()
        if draw < 0.62:
            do = "recall"
            if rng.random() < 0.015:  # each event is held against those before it: dear
                ask["sse"] = True
        elif draw < 0.74:
            do, ask = "list", {}
        elif draw < 0.88 and self.keys:
            where, key = rng.choice(self.keys)
            return self._step(at, "read", tenant=rng.choice((where, where, None)), key=key)
        elif draw < 0.95:
            do, ask = "export", {}
        else:
            where, key = rng.choice(self.keys or [(tenant, "none")])
            return self._step(at, "history", key=key)
        width = rng.random()
        scope: Step = {"tenant": tenant}
        if width < 0.35:
            scope["subject"] = subject
        elif width < 0.5:
            scope["path"] = rng.choice(self.paths)
        elif width < 0.55:
            scope = {}
        return self._step(at, do, **ask, **scope)

    def _other(self, at: float) -> Step:
        rng = self.rng
        draw = rng.random()
        if draw < 0.40:
            return self._write(at)
        if draw < 0.70 and len(self.forgets) < 5:
            return self._forget(at)
        if draw < 0.77 and self.forgets and len(self.forgets) < 7:
            return self._step(at, "forget", again=True, **_predicate(rng.choice(self.forgets)))
        if draw < 0.82 and self.keys and len(self.forgets) < 6:
            tenant, key = rng.choice(self.keys)
            step = self._step(at, "delete", tenant=tenant, key=key)
            self.forgets.append({"tenant": tenant, "keys": [key]})
            return step
        named = [f for f in self.forgets if "subject" in f]
        if draw < 0.90 and named:
            one = rng.choice(named)
            return self._step(at, "readmit", tenant=one.get("tenant"), subject=one["subject"])
        if draw < 0.97 and self.forgets:
            act = rng.choice(("retry",) * 5 + ("verify",) * 6 + ("signal",))
            return self._step(at, act, which=rng.randrange(8))
        return self._write(at)

    def _forget(self, at: float) -> Step:
        rng = self.rng
        tenant, subject = self._who()
        draw = rng.random()
        predicate: Step = {"tenant": tenant}
        if draw < 0.6 or not self.keys:
            predicate["subject"] = subject
            if rng.random() < 0.1:
                del predicate["tenant"]
        elif draw < 0.8:
            some = rng.sample(self.keys, min(3, len(self.keys)))
            predicate["keys"] = [key for where, key in some if where == tenant] or [some[0][1]]
        else:
            predicate["path"] = rng.choice(self.paths[1:])
        self.forgets.append(predicate)
        wait = rng.choice((None, None, None, 40))
        return self._step(at, "forget", wait=wait, **predicate)

    # --- what befalls them -----------------------------------------------------------------------

    def _ills(self, span: float) -> list[Step]:
        rng = self.rng
        kinds = ["crash", "crash", "ledger_down", "disk_full", "store_down", "store_restart", "jump", "blind"]
        found: list[Step] = []
        for kind in rng.sample(kinds, rng.choice((0, 1, 2, 4))):
            step: Step = {"at": round(4.0 + rng.random() * span, 3), "do": kind}
            if kind == "crash":
                step |= {"steps": rng.randrange(600), "how": rng.choice(("kill", "kill", "cancel"))}
            if kind == "jump":
                step["by"] = rng.choice((-3600.0, -60.0, 61.0, 3600.0, 86400.0))
            if kind in ("crash", "ledger_down", "disk_full", "store_down", "blind"):
                step["for"] = round(rng.random() * rng.choice((2.0, 12.0, 25.0)), 2)
            if kind == "blind":
                step["for"] = rng.choice((3.0, 10.0, 30.0, 60.0))
            found.append(step)
        return found


def sentence(step: Step) -> str:
    """A sentence of ten words with its token where every run of eight words holds it."""
    words = step["words"]
    return " ".join([*words[:4], step.get("quotes") or step["token"], *words[4:9]])


def _predicate(step: Step) -> Step:
    return {name: step[name] for name in ("tenant", "subject", "keys", "path") if name in step}


def plan_of(seed: int, recalls: int = RECALLS) -> Plan:
    """The plan of a seed; the same for the same seed and size."""
    return Planner(seed, recalls).draw()
