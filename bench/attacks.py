"""Attacks on the fingerprints: the same sentence, written so that it is not recognised."""

from __future__ import annotations

import base64
import codecs
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import quote

from bench.denylist import Denylist
from bench.locomo import Conversation, spoken_sentences

SENTENCES = 40
"""Sentences of each conversation that every attack is tried with."""
_ALIKE = str.maketrans("aceopxyACEHKMOPTXy", "асеорхуАСЕНКМОРТХу")
_LEET = str.maketrans("aeiost", "431057")


@dataclass(frozen=True, slots=True)
class Attacked:
    """How often one attack was met."""

    name: str
    refused: float
    marked: float
    cases: int


def _halves(text: str) -> list[str]:
    parts = text.split()
    return [" ".join(parts[: len(parts) // 2]), " ".join(parts[len(parts) // 2 :])]


def _pieces(text: str) -> list[str]:
    parts = text.split()
    return [" ".join(parts[at : at + 3]) for at in range(0, len(parts), 3)]


def _without(text: str, every: int) -> str:
    return " ".join(word for at, word in enumerate(text.split(), 1) if at % every)


def _shuffled(text: str) -> str:
    parts = text.split()
    random.Random(len(text)).shuffle(parts)
    return " ".join(parts)


ATTACKS: dict[str, Callable[[str], list[str]]] = {
    "mark-up between the letters": lambda t: ["".join(f"<b>{c}</b>" if c.isalpha() else c for c in t)],
    "look-alike letters": lambda t: [t.translate(_ALIKE)],
    "invisible characters": lambda t: ["\u200b".join(t)],
    "accents": lambda t: [t.translate(str.maketrans("aeiou", "áèîöū"))],
    "citation marks after each word": lambda t: [" [3] ".join(t.split())],
    "base64": lambda t: [base64.b64encode(t.encode()).decode()],
    "base64 twice": lambda t: [base64.b64encode(base64.b64encode(t.encode() + b" ") + b" ").decode()],
    "percent signs": lambda t: [quote(t)],
    "hexadecimal": lambda t: [t.encode().hex()],
    "rot13": lambda t: [codecs.encode(t, "rot13")],
    "digits for letters": lambda t: [t.translate(_LEET)],
    "letters spaced out": lambda t: [" ".join(t.replace(" ", ""))],
    "written backwards": lambda t: [t[::-1]],
    "split in halves over two records": _halves,
    "split in pieces of three words": _pieces,
    "every fifth word left out": lambda t: [_without(t, 5)],
    "every third word left out": lambda t: [_without(t, 3)],
    "words shuffled": lambda t: [_shuffled(t)],
}
"""Each makes one sentence into the records that are written in its place."""

NUMBER = "Her number is +351 912 345 678, call after lunch."
WRITTEN = {
    "a number spelled out": "It is nine one two three four five six seven eight.",
    "a number with other groups": "00351/912-345-678",
    "a number in look-alike digits": "９１２３４５６７８ or so",
    "a number counted up": "nine hundred twelve million and some three hundred forty-five thousand",
}
"""One number, written in other ways."""

TRANSLATED = {
    "She works nights at the harbour office and keeps bees on the roof.": (
        "Sie arbeitet nachts im Hafenbüro und hält Bienen auf dem Dach.",
        "Elle travaille de nuit au bureau du port et élève des abeilles sur le toit.",
        "Trabaja de noche en la oficina del puerto y cría abejas en el tejado.",
    ),
    "Her sister was diagnosed with diabetes in the spring of last year.": (
        "Bei ihrer Schwester wurde im Frühling letzten Jahres Diabetes festgestellt.",
        "Sa soeur a été diagnostiquée diabétique au printemps dernier.",
        "A su hermana le diagnosticaron diabetes en la primavera del año pasado.",
    ),
    "The spare key lies under the third flower pot by the garden gate.": (
        "Der Ersatzschlüssel liegt unter dem dritten Blumentopf am Gartentor.",
        "La clé de rechange est sous le troisième pot de fleurs près du portail.",
        "La llave de repuesto está bajo la tercera maceta junto a la puerta del jardín.",
    ),
}
"""Sentences, and what they are in German, French and Spanish."""


def attacked(conversations: list[Conversation]) -> Iterable[Attacked]:
    """Every attack on some sentences of each first speaker, erased whole with their name as an alias."""
    met = {name: [0, 0, 0] for name in (*ATTACKS, "paraphrase: the observation of a turn")}
    for conversation in conversations:
        speaker = conversation.speakers[0]
        said = conversation.said_by(speaker)
        denied = Denylist()
        denied.erase(said, alias=speaker)
        parts = [part for text in said for part in spoken_sentences(text, 8)][:SENTENCES]
        for name, attack in ATTACKS.items():
            for part in parts:
                _count(met[name], denied, attack(part))
        for observation in conversation.derived:
            if observation.subject == speaker:
                _count(met["paraphrase: the observation of a turn"], denied, [observation.text])
    for name, (refused, marked, cases) in met.items():
        yield Attacked(name, refused / cases, marked / cases, cases)
    for name, text in WRITTEN.items():
        yield _alone(name, NUMBER, [text])
    shares = [_alone("translation", text, others) for text, others in TRANSLATED.items()]
    cases = sum(each.cases for each in shares)
    yield Attacked("translation", sum(s.refused * s.cases for s in shares) / cases,
                   sum(s.marked * s.cases for s in shares) / cases, cases)  # fmt: skip


def _alone(name: str, erased: str, written: Iterable[str]) -> Attacked:
    denied = Denylist()
    denied.erase([erased])
    met = [0, 0, 0]
    for text in written:
        _count(met, denied, [text])
    return Attacked(name, met[0] / met[2], met[1] / met[2], met[2])


def _count(met: list[int], denied: Denylist, records: list[str]) -> None:
    refused = any(denied.refuses(text) for text in records)
    met[0] += refused
    met[1] += refused or any(denied.suspects(text) for text in records)
    met[2] += 1
