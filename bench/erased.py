"""Ledgers of many erasures, written through the real ledger: the events, marks and secrets of a forget.

Each erasure is of a subject of its own with one record of two sentences. Settled ones have been watched to
the end: what is left of them are their tombstones. Unsettled ones were acknowledged and are being probed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import asdict
from pathlib import Path

from quietus.core.events import Draft, EventType, scope_to_facts
from quietus.core.fingerprint import Mark, alias_mark, marks_of
from quietus.core.probing import Witness
from quietus.core.scope import Scope
from quietus.core.terms import Terms
from quietus.keys import Keyring
from quietus.ledger.sqlite import SqliteLedger
from quietus.snapshots import PREDICATE, SNAPSHOT, Predicate, Snapshot

BATCH = 500
TERMS = Terms(settling_interval=6 * 3600.0, effectuation_bound=12 * 3600.0)
"""Long enough that nothing settles while it is measured."""


def text_of(number: int) -> str:
    """What was known of one subject."""
    return f"Person {number} takes the train of a quarter past six. Window seat {number}, and no meal aboard."


class _Writer:
    def __init__(self, keyring: Keyring, settled: bool) -> None:
        self._keyring = keyring
        self._settled = settled
        self._drafts: list[Draft] = []
        self._marks: list[tuple[str, Mark]] = []
        self._secrets: list[tuple[str, str, bytes]] = []

    def add(self, number: int) -> None:
        """One erasure with everything that it leaves in the ledger."""
        name, subject, key = f"er_bench{number:09d}", f"person-{number}", f"note-{number:08d}"
        scope = self._keyring.pseudonymise(Scope(tenant=frozenset({"acme"}), subject=frozenset({subject})))
        facts = {
            "store": "memories", "predicate": scope_to_facts(scope), "terms": asdict(TERMS),
            "label": "subject", "basis": "", "undrained": {},
        }  # fmt: skip
        at = time.time()
        steps = [
            (EventType.REQUESTED, facts, True), (EventType.SNAPSHOTTED, {"witnesses": 1, "marks": 9}, True),
            (EventType.FORWARDED, {"again": False}, False),
            (EventType.ACCEPTED, {"outcome": "accepted", "epoch": None, "claim": {}}, False),
        ]  # fmt: skip
        if self._settled:
            steps += [(EventType.CLEAN, {"through": ["record"]}, True), (EventType.WATCH_ENDED, {}, False)]
        self._drafts += [Draft(kind, name, at, facts=its, gate=gate) for kind, its, gate in steps]
        self._mark(name, subject, key, text_of(number))
        if not self._settled:
            self._seal(name, subject, key, text_of(number))

    def _mark(self, name: str, subject: str, key: str, text: str) -> None:
        pseudonym, digest = self._keyring.pseudonym, self._keyring.digest
        marks = [Mark("subject", pseudonym("subject", subject)), Mark("id", pseudonym("key", key))]
        alias = alias_mark(subject, digest)
        marks += [*([alias] if alias else []), *marks_of(text, digest)]
        self._marks += [(name, mark) for mark in marks]

    def _seal(self, name: str, subject: str, key: str, text: str) -> None:
        own, wrapped = self._keyring.new_erasure_key()
        predicate = Predicate(tenant=("acme",), subject=(subject,))
        snapshot = Snapshot([Witness(key=key, subject=subject, tenant="acme", text=text)], records=1)
        self._secrets += [
            (name, "key", wrapped), (name, PREDICATE, own.seal(PREDICATE, predicate.seal())),
            (name, SNAPSHOT, own.seal(SNAPSHOT, snapshot.seal())),
        ]  # fmt: skip

    async def flush(self, ledger: SqliteLedger) -> None:
        """Commits what was added."""
        await ledger.append(self._drafts, marks=self._marks, secrets=self._secrets)
        self._drafts, self._marks, self._secrets = [], [], []


async def write(path: Path, count: int, settled: bool) -> None:
    """A ledger and its keys at `path`, with so many erasures."""
    keyring = Keyring.load_or_make(path.with_suffix(".keys.json"), ledger_is_new=True)
    ledger = SqliteLedger(path)
    await ledger.open()
    await ledger.bind_keys(keyring.ids)
    writer = _Writer(keyring, settled)
    for number in range(count):
        writer.add(number)
        if number % BATCH == BATCH - 1:
            await writer.flush(ledger)
    await writer.flush(ledger)
    await ledger.close()


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "settled"))
