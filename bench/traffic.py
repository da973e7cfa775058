"""What is asked and answered: a recall of 1 KB, and 4 KB with ten hits of one subject."""

from __future__ import annotations

import json

SUBJECT = "bench-subject-0001"
HITS = 10
REQUEST_BYTES = 1024
ANSWER_BYTES = 4096
WORDS = (
    "the assistant noted that on tuesday a colleague asked for an early train to the coast and said "
    "that window seats are what she likes best when there is time to read a long book about ships"
).split()


def request_body(wide: bool = False) -> bytes:
    """The recall, 1 KB to the byte; a wide one names no subject."""
    asked: dict[str, object] = {"query": "", "tenant": "acme", "subject": SUBJECT, "top_k": HITS}
    if wide:
        del asked["subject"]
    asked["query"] = _words(0, REQUEST_BYTES - len(_json(asked)))
    return _json(asked)


def rows(fresh: str = "") -> list[dict[str, object]]:
    """Ten hits that make an answer of 4 KB; `fresh` stands in every text."""
    return [_row(number, fresh) for number in range(HITS)]


def answer_body(fresh: str = "") -> bytes:
    """The answer as the store sends it."""
    return _json({"results": rows(fresh)})


def _row(number: int, fresh: str) -> dict[str, object]:
    row: dict[str, object] = {
        "key": f"mem-{number:08d}", "value": fresh, "subject": SUBJECT, "purpose": "travel",
        "tenant": "acme", "derived_from": [], "score": 0.5 + number / 32,
    }  # fmt: skip
    room = (ANSWER_BYTES - len('{"results":[]}') - HITS) // HITS
    row["value"] = f"{fresh} {_words(number, room - len(_json(row)) - 1)}"
    return row


def _words(start: int, length: int) -> str:
    text = ""
    number = start
    while len(text) < length:
        text += WORDS[number % len(WORDS)] + str(number % 97) + " "
        number += 1
    return text[: max(length, 0)].ljust(max(length, 0), "x")


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
