"""Long conversations as memories: turns are records, observations and summaries are derived from them.

The folder holds one JSON file a conversation, in the form of the LoCoMo data set (Maharana et al., 2024),
which is for measuring only and is not part of this project.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_SESSION = re.compile(r"session_\d+")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")


@dataclass(frozen=True, slots=True)
class Derived:
    """A statement, whose it is, and the turns that it was derived from."""

    subject: str
    text: str
    sources: tuple[str, ...]


@dataclass(slots=True)
class Conversation:
    """One conversation of two speakers. Speakers are told apart by the conversation, too."""

    name: str
    speakers: tuple[str, str]
    turns: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By turn: speaker and text."""
    derived: list[Derived] = field(default_factory=list)
    summaries: list[str] = field(default_factory=list)

    def said_by(self, speaker: str) -> list[str]:
        """All that one of them said."""
        return [text for who, text in self.turns.values() if who == speaker]

    def records(self) -> list[str]:
        """Every text of it."""
        return [*(text for _, text in self.turns.values()), *(d.text for d in self.derived), *self.summaries]


def load(folder: Path) -> list[Conversation]:
    """The conversations of a folder, by name. Raises SystemExit when there are none."""
    found = [_read(path) for path in sorted(folder.glob("*.json"))]
    if not found:
        raise SystemExit(f"no conversation in {folder}: give the folder that holds the data set's JSON files")
    return found


def spoken_sentences(text: str, words: int) -> list[str]:
    """The sentences of a text that have at least so many words, as a reader would cut them."""
    return [part.strip() for part in _SENTENCE.findall(text) if len(part.split()) >= words]


def _read(path: Path) -> Conversation:
    raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    found = Conversation(path.stem, (raw["speaker_a"], raw["speaker_b"]))
    for name, value in raw.items():
        if _SESSION.fullmatch(name):
            found.turns |= {turn["dia_id"]: (turn["speaker"], turn["text"]) for turn in value}
        elif name.endswith("_observation"):
            for speaker, statements in value.items():
                for text, *sources in statements:
                    found.derived.append(Derived(speaker, text, tuple(_flat(sources))))
        elif name.endswith("_summary"):
            found.summaries.append(value)
    return found


def _flat(values: Any) -> list[str]:
    if isinstance(values, str):
        return [values]
    return [each for value in values for each in _flat(value)]
