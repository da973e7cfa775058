"""What the fingerprints find and what they miss: `python -m bench.detection FOLDER [--json FILE]`.

FOLDER holds the conversations (see `bench.locomo`). Each number is a share of cases, counted through the
parts that the sidecar itself looks with; only the pairs of unrelated texts are a sample, with a fixed seed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.attacks import attacked
from bench.denylist import Denylist, known_of
from bench.locomo import Conversation, load, spoken_sentences
from quietus.core.folding import words
from quietus.core.likeness import ALIKE, alike, stems_of

PAIRS = 40
"""Unrelated turns that each observation is compared with."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Shares are between 0 and 1; `must` and `goal` say what is asked."""

    name: str
    measured: float
    cases: int
    must: str = ""
    goal: str = ""
    missed: tuple[str, ...] = ()


FORMS: dict[str, Callable[[str], str]] = {
    "verbatim": lambda text: text,
    "in capitals": str.upper,
    "without punctuation": lambda text: "".join(c for c in text if c.isalnum() or c.isspace() or c in "'’"),
    "other spacing": lambda text: "\n  ".join(text.split(" ")),
}


def quoted(conversations: list[Conversation]) -> Iterable[Row]:
    """Quoted sentences of eight words and more, inside a text of somebody else's."""
    for name, form in FORMS.items():
        hits = cases = 0
        missed: list[str] = []
        for conversation, other in _with_another(conversations):
            carrier = other.summaries[0]
            for speaker in conversation.speakers:
                denied = Denylist()
                denied.erase(conversation.said_by(speaker))
                for text in conversation.said_by(speaker):
                    for sentence in spoken_sentences(text, 8):
                        cases += 1
                        found = denied.refuses(f"{carrier} {form(sentence)} {carrier}")
                        found = found and denied.drops(f"{form(sentence)} {carrier}")
                        hits += found
                        missed += [] if found else [sentence]
        yield Row(f"quoted sentence of 8 words, {name}", hits / cases, cases, "100 %", "100 %", tuple(missed))


def summarised(conversations: list[Conversation]) -> Iterable[Row]:
    """Two sentences of one message, apart from each other, inside a longer summary."""
    hits = cases = 0
    missed: list[str] = []
    for conversation, other in _with_another(conversations):
        for speaker in conversation.speakers:
            denied = Denylist()
            denied.erase(conversation.said_by(speaker))
            for text in conversation.said_by(speaker):
                parts = spoken_sentences(text, 4)
                if len(parts) < 2 or sum(len(part.split()) for part in parts[:2]) < 12:
                    continue
                cases += 1
                summary = f"{other.summaries[0]} {parts[0]} {other.summaries[1]} {parts[1]}"
                found = denied.refuses(summary)
                hits += found
                missed += [] if found else [" | ".join(parts[:2])]
    yield Row("two sentences in a longer summary", hits / cases, cases, "100 %", "100 %", tuple(missed))


def derived(conversations: list[Conversation]) -> Iterable[Row]:
    """Observations held against the turn that they were derived from, and against unrelated turns."""
    chance = random.Random(20261130)
    every = [(c.name, text) for c in conversations for _, text in c.turns.values()]
    hits = cases = false = pairs = 0
    for conversation in conversations:
        names = {word for speaker in conversation.speakers for word in words(speaker)}
        turns = {name: stems_of(words(text), names) for name, (_, text) in conversation.turns.items()}
        for observation in conversation.derived:
            roots = stems_of(words(observation.text), names)
            for source in observation.sources:
                if source in turns:
                    cases += 1
                    hits += alike(roots, roots.keys() & turns[source].keys()) >= ALIKE
            for name, text in chance.sample(every, PAIRS):
                if name != conversation.name:
                    pairs += 1
                    false += alike(roots, roots.keys() & stems_of(words(text), names).keys()) >= ALIKE
    name = "observation found as derived from its turn (overlap of words)"
    yield Row(name, hits / cases, cases, "60 %", "75 %")
    yield Row("the same, of an unrelated turn (false alarm)", false / pairs, pairs, "0.1 %", "0.1 %")


def suspected(conversations: list[Conversation]) -> Iterable[Row]:
    """Observations written after their speaker was erased whole: refused, or suspected beside the name."""
    refused = marked = cases = 0
    false = unrelated = 0
    for conversation in conversations:
        for speaker in conversation.speakers:
            denied = Denylist()
            denied.erase(conversation.said_by(speaker), alias=speaker)
            for observation in conversation.derived:
                if observation.subject == speaker:
                    cases += 1
                    refused += denied.refuses(observation.text)
                    marked += denied.refuses(observation.text) or denied.suspects(observation.text)
            for other in conversations:
                if other is not conversation:
                    for text in other.records():
                        unrelated += 1
                        false += denied.suspects(text)
    yield Row("observation after its speaker was erased: refused", refused / cases, cases)
    yield Row("the same: refused or suspected, by words beside the name", marked / cases, cases)
    yield Row("unrelated record suspected (false alarm)", false / unrelated, unrelated)


def overblocked(conversations: list[Conversation]) -> Iterable[Row]:
    """Records of other people that are refused."""
    hits = cases = 0
    known = known_of(conversations)
    for conversation in conversations:
        for speaker in conversation.speakers:
            denied = Denylist(known)
            denied.erase(conversation.said_by(speaker), who=f"{conversation.name}/{speaker}", alias=speaker)
            for other in conversations:
                if other is not conversation:
                    for text in other.records():
                        cases += 1
                        hits += denied.refuses(text)
    yield Row("unrelated record refused, one speaker erased", hits / cases, cases, "0.1 %", "0.01 %")
    hits = cases = erasures = 0
    missed: list[str] = []
    for held_out in conversations:
        denied = Denylist(known_of(conversations))
        erasures = 0
        for conversation in conversations:
            if conversation is not held_out:
                erasures += denied.erase_each(conversation, 10_000 - erasures)
        for text in held_out.records():
            cases += 1
            found = denied.refuses(text)
            hits += found
            missed += [text] if found else []
    name = f"unrelated record refused, {erasures:,} records erased one by one"
    yield Row(name, hits / cases, cases, "0.5 %", "0.05 %", tuple(missed))


def boilerplate(conversations: list[Conversation]) -> Iterable[Row]:
    """A text that everybody holds, erased of one: the others write it again."""
    text = "Your appointment at the clinic is confirmed, please bring your insurance card and arrive early."
    refused = cases = 0
    people = [f"{c.name}/{s}" for c in conversations for s in c.speakers]
    for who in people:
        denied = Denylist({person: [text] for person in people})
        denied.erase([text], who=who)
        for person in people:
            if person != who:
                cases += 1
                refused += denied.refuses(text)
    yield Row("bystander with identical boilerplate refused", refused / cases, cases, "0", "0")


MEASURES = (quoted, summarised, derived, suspected, overblocked, boilerplate)


def _with_another(conversations: list[Conversation]) -> Iterable[tuple[Conversation, Conversation]]:
    return zip(conversations, [*conversations[1:], conversations[0]], strict=True)


def table(rows: Iterable[Row]) -> Iterable[str]:
    """The rows as a Markdown table."""
    yield "| measure | measured | cases | must | goal |"
    yield "|---|---|---|---|---|"
    for row in rows:
        yield f"| {row.name} | {row.measured:.4%} | {row.cases:,} | {row.must} | {row.goal} |"


def main() -> int:
    """Measures, prints both tables, and says how long it took."""
    parser = argparse.ArgumentParser(prog="python -m bench.detection", description=__doc__)
    parser.add_argument("folder", type=Path, help="the conversations, one JSON file each")
    parser.add_argument("--json", type=Path, help="also write the numbers, and what was missed, to this file")
    names = [measure.__name__ for measure in MEASURES] + ["attacked"]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="some of the measures")
    options = parser.parse_args()
    conversations = load(options.folder)
    began = time.process_time()
    rows: list[Row] = []
    for measure in (measure for measure in MEASURES if measure.__name__ in options.only):
        rows += measure(conversations)
        print("\n".join(list(table(rows[-4:]))[2:]), file=sys.stderr)
    attacks = list(attacked(conversations)) if "attacked" in options.only else []
    print("\n".join(table(rows)))
    print("\n| attack | refused | refused or suspected | cases |\n|---|---|---|---|")
    for attack in attacks:
        print(f"| {attack.name} | {attack.refused:.1%} | {attack.marked:.1%} | {attack.cases:,} |")
    print(f"\n{len(conversations)} conversations, {time.process_time() - began:.0f} s of CPU.")
    if options.json:
        found = {"rows": [_plain(row) for row in rows], "attacks": [_plain(each) for each in attacks]}
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
    return 0


def _plain(row: object) -> dict[str, object]:
    return {name: getattr(row, name) for name in row.__slots__}  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(main())
