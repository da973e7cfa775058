"""Erasures with their marks, made and looked through with the sidecar's own parts, without a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache

from bench.locomo import Conversation
from quietus.core.events import Event, EventType, scope_to_facts
from quietus.core.fingerprint import joined
from quietus.core.folding import folded, sentences, split
from quietus.core.gate import Gate
from quietus.core.operations import Call, Item, Operation
from quietus.core.prints import Sharing
from quietus.core.probing import Witness
from quietus.core.scope import Scope
from quietus.core.screening import Screener, screen
from quietus.core.terms import Terms
from quietus.keys import Keyring
from quietus.lineage import Lineage
from quietus.marking import Marking
from quietus.owners import Owners
from quietus.restating import Restating
from quietus.snapshots import Predicate

KEYS = Keyring.fresh()
BYSTANDER = "somebody else"


class Denylist:
    """A gate with erasures in it. `known`: by live subject, the texts that they are known to hold."""

    def __init__(self, known: Mapping[str, Sequence[str]] | None = None) -> None:
        self.gate = Gate()
        self.screener = Screener(self.gate, KEYS.pseudonym, KEYS.digest, KEYS.digests)
        self._known = known or {}
        self._sharing = Sharing()
        for who, texts in self._known.items():
            for number in _numbers(texts):
                self._sharing.held(number, KEYS.pseudonym("subject", who))
        self._marking = Marking(KEYS.pseudonym, KEYS.digest, self._sharing.holding)
        self._restating = Restating(self.gate, self.screener, Owners(KEYS, Lineage(KEYS)))
        self._scope = KEYS.pseudonymise(Scope(subject=frozenset({BYSTANDER})))

    def erase(self, texts: Sequence[str], who: str = "the erased", alias: str = "") -> None:
        """One erasure of a subject with all their texts; from then on they hold nothing."""
        aliases = (alias,) if alias else ()
        self._erase(Predicate(subject=(who,), aliases=aliases), texts)
        self._gone(who)

    def erase_each(self, conversation: Conversation, most: int) -> int:
        """One erasure for each record of a conversation; how many."""
        found = 0
        for text in conversation.records():
            if found < most:
                found += 1
                whose = tuple(f"{conversation.name}/{speaker}" for speaker in conversation.speakers)
                self._erase(Predicate(subject=whose, key=(f"{conversation.name}-{found}",)), [text])
        for speaker in conversation.speakers:
            self._gone(f"{conversation.name}/{speaker}")
        return found

    def refuses(self, text: str) -> bool:
        """Whether a bystander's write of the text restates the erased."""
        call = Call(Operation.WRITE, texts=(text,))
        return next(self._restating.of(call, self._scope, None), None) is not None

    def suspects(self, text: str) -> bool:
        """Whether it is suspected to, by an overlap of words."""
        return any(hit.cause == "overlap" for hit in self.screener.look(text))

    def drops(self, text: str) -> bool:
        """Whether a row with the text, of a bystander's, is dropped from a recall."""
        row = Item(0, key="k", subject=BYSTANDER, texts=(text,))
        screening = screen(
            [row], [(0, text)], gate=self.gate, screener=self.screener, scope=Scope(),
            scope_of=lambda item: self._scope, paths_of=lambda item: None,
        )  # fmt: skip
        return bool(screening.dropped)

    def _erase(self, predicate: Predicate, texts: Sequence[str]) -> None:
        number = len(self.gate.erasures) + 1
        name = f"er_{number}"
        keyed = frozenset(predicate.key) if predicate.key else None
        scope = KEYS.pseudonymise(Scope(subject=frozenset(predicate.subject)) if keyed is None else Scope(
            subject=frozenset(predicate.subject), key=keyed))  # fmt: skip
        facts = {"store": "bench", "terms": asdict(Terms()), "predicate": scope_to_facts(scope)}
        self.gate.apply(Event(number, EventType.REQUESTED, name, 0.0, "bench", facts, True, ""))
        witnesses = [Witness(text=text) for text in texts]
        self.gate.mark(name, self._marking.of(predicate, witnesses).marks)

    def _gone(self, who: str) -> None:
        for number in _numbers(self._known.get(who, ())):
            self._sharing.gone(number, KEYS.pseudonym("subject", who))


def known_of(conversations: Iterable[Conversation]) -> dict[str, list[str]]:
    """By speaker, what is known to be theirs: what they said, and what was derived from it."""
    return {
        f"{c.name}/{speaker}": [*c.said_by(speaker), *(d.text for d in c.derived if d.subject == speaker)]
        for c in conversations
        for speaker in c.speakers
    }


def _numbers(texts: Iterable[str]) -> set[int]:
    """The prints of whole texts and of their sentences."""
    return {number for text in texts for number in _prints(text)}


@lru_cache(maxsize=20_000)
def _prints(text: str) -> tuple[int, ...]:
    plain = folded(text)
    parts = [part for part in [split(plain), *sentences(plain)] if part]
    return tuple(int.from_bytes(KEYS.digest("text", joined(part))[:8], "big") for part in parts)
