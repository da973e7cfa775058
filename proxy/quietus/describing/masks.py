"""Values replaced by masks that say nothing of them: what was equal stays equal, and of the same type.

A mask is a number in the order in which values were met, so there is nothing to invert; what was met is
remembered as a digest under a key that lives as long as the recording. Structure stays: punctuation and
white space of a JSON text, the number of rows, the length of arrays, the separators in a name without
spaces, and the names that the profile itself has.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection
from typing import Final

from quietus.profiles.codec import decode_json
from quietus.profiles.faults import NotJson

VALUES_MAX: Final = 500_000
"""Different values of one recording; what comes beyond is not recorded."""
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[A-Za-z]+')
_JOINED: Final = re.compile(r"[^/:,|=]+")
_INTEGER: Final = re.compile(r"-?[0-9]+")


class TooMany(Exception):
    """More different values than are remembered."""


class Masks:
    """The masks of one recording. `names` may stay where names stand, `words` where values do."""

    def __init__(self, key: bytes, names: Collection[str], words: Collection[str] = ()) -> None:
        self._key = key
        self._names = frozenset(names)
        self._words = frozenset(words)
        self._met: dict[bytes, int] = {}
        self._counts: dict[str, int] = {}

    def number(self, kind: str, value: str) -> int:
        """The number of a value among those of its kind, from 0 on. Raises TooMany."""
        digest = hashlib.blake2b(f"{kind}\0{value}".encode(), key=self._key, digest_size=16).digest()
        found = self._met.get(digest)
        if found is None:
            if len(self._met) >= VALUES_MAX:
                raise TooMany
            found = self._met[digest] = self._counts.get(kind, 0)
            self._counts[kind] = found + 1
        return found

    def name(self, text: str) -> str:
        """A name of a member, a parameter or a segment: kept where the profile has it."""
        return text if text in self._names else f"n{self.number('name', text)}"

    def text(self, value: str) -> str:
        """A string. One with spaces is one mask; in one without, each part between `/ : , | =` is."""
        if not value or value in self._words:
            return value
        if value[:1] in "{[" and (inner := self._inside(value)) is not None:
            return inner
        if any(char.isspace() for char in value):
            return f"text {self.number('text', value)}"
        return _JOINED.sub(lambda match: self._part(match[0]), value)

    def _part(self, part: str) -> str:
        if not part.isascii() or not part.isdigit():
            return f"v{self.number('part', part)}"
        # Digits stay digits, as many as there were: a profile may read them as a number.
        return self.integer(part) if len(part) == 1 else f"{self.number('digits', part):0{len(part)}d}"

    def _inside(self, value: str) -> str | None:
        try:
            return self.json(value.encode()).decode()
        except NotJson:
            return None

    def integer(self, text: str) -> str:
        """A whole number: as many digits, the same sign; 0 and 1 say nothing of anybody and stay."""
        sign, digits = text[: text.startswith("-")], text.lstrip("-")
        if digits in ("0", "1"):
            return text
        first = 2 if len(digits) == 1 else 10 ** (len(digits) - 1)
        return f"{sign}{self.number(f'integer {sign}{len(digits)}', digits) + first}"

    def real(self, text: str) -> str:
        """A number with a fraction."""
        return f"{self.number('float', text) + 2}.5"

    def json(self, data: bytes) -> bytes:
        """A JSON text with every value masked and nothing else changed. Raises NotJson, TooMany."""
        decode_json(data)  # what is not strict JSON is not masked token by token
        text = data.decode("utf-8")
        out: list[str] = []
        end = 0
        for found in _TOKEN.finditer(text):
            out.append(text[end : found.start()])
            end = found.end()
            out.append(self._token(found[0], text, end))
        out.append(text[end:])
        return "".join(out).encode()

    def _token(self, token: str, text: str, end: int) -> str:
        if token.startswith('"'):
            value = json.loads(token)
            is_name = text[end : end + 64].lstrip()[:1] == ":"
            masked = self.name(value) if is_name else self.text(value)
            return token if masked == value else json.dumps(masked, ensure_ascii=False)
        if token in ("true", "false", "null"):
            return token
        return self.integer(token) if _INTEGER.fullmatch(token) else self.real(token)

    def lines(self, data: bytes) -> bytes:
        """A text of lines, such as server-sent events: JSON in them masked as JSON, all else whole."""
        out = []
        for line in data.decode("utf-8", errors="replace").split("\n"):
            head, space, rest = line.partition("data:")
            if line.startswith("data:"):
                out.append(f"data:{_spaces(rest)}{self._line(rest.strip())}")
            else:
                out.append(self._line(line.strip()) if line.strip() else "")
        return "\n".join(out).encode()

    def _line(self, text: str) -> str:
        try:
            return self.json(text.encode()).decode()
        except NotJson:
            return self.text(text)


def _spaces(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" "))]
