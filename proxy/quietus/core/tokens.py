"""Words that single one person out: e-mail addresses, telephone, card, account and identity numbers.

One of them alone, inside any text, restates what was erased. Months, weekdays, dates, times, amounts and
small numbers are none; a number of no known form, and a name, counts only beside an alias of the subject (see
`fingerprint.beside_marks`). Values are normalised: how a number was grouped or spelled, and the country code
of a telephone number, make no difference.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from itertools import islice
from typing import Final
from urllib.parse import unquote

from quietus.core.folding import cleaned

_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_NUMBER: Final = re.compile(r"(?<![\w.,/-])(?<!\d:)\+?\(?\d[\d ().\-/]{5,40}\d(?![\w])")
_DATE: Final = re.compile(
    r"(?:19|20)\d\d[-/. ]?(?:0?[1-9]|1[0-2])[-/. ]?(?:0?[1-9]|[12]\d|3[01])(?:[ t.]?\d{2,6})?"
    r"|(?:0?[1-9]|[12]\d|3[01])[-/. ](?:0?[1-9]|[12]\d|3[01])[-/. ](?:19|20)?\d\d"
    r"|(?:19|20)\d\d ?[-/] ?(?:19|20)\d\d"
)
_AMOUNT: Final = re.compile(r"\d{1,3}(?:([,. ])\d{3})(?:\1\d{3})*(?:[.,]\d\d)?")
_GROUPS: Final = re.compile(r"\d+")
_ID: Final = re.compile(r"(?<![\w.@/-])[a-z0-9]+(?:[-_/][a-z0-9]+)*(?![\w@])")
_ACCOUNT: Final = re.compile(r"(?<!\w)[a-z]{2}\d{2}(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,3})?(?!\w)")
_QUANTITY: Final = re.compile(r"\d+[a-z]{1,4}|\d+x\d+|\d{4}-\d\d-\d\dt\d+(?:-\d+)*z?")
_SPELLED: Final = {
    "zero": "0", "oh": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6",
    "seven": "7", "eight": "8", "nine": "9",
}  # fmt: skip
_DIGIT_WORD: Final = f"(?:{'|'.join(_SPELLED)})"
_SPOKEN: Final = re.compile(rf"\b{_DIGIT_WORD}(?:[\s,.-]+{_DIGIT_WORD}){{6,24}}\b")
_SIGNS: Final = re.compile(r"[@\d]")
_LIKELY: Final = re.compile(r"@|\d[\d ().\-/]{5}|[a-z][-_/]?\d{3}|\d{3}[-_/]?[a-z]")
_COUNTED: Final = re.compile(rf"{_DIGIT_WORD}[\s,.-]+{_DIGIT_WORD}[\s,.-]+{_DIGIT_WORD}")

TAIL: Final = 9
"""Digits by which a long number is known: with or without its country code it ends alike."""
TOKENS: Final = 256
"""Tokens read from one text."""

_BLOB: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX: Final = re.compile(r"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{2}){16,}(?![0-9A-Za-z])")
_ESCAPED: Final = re.compile(r"(?:%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4})")
_UNICODE_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})")
BLOBS: Final = 16
"""Encoded pieces of one text that are decoded."""


def tokens_of(text: str) -> list[str]:
    """The distinctive tokens of a text, normalised, each once."""
    plain = cleaned(text)
    if _SIGNS.search(plain) is None and _SPOKEN.search(plain) is None:
        return []  # most texts, found out at a tenth of the cost
    if _LIKELY.search(plain) is None and _COUNTED.search(plain) is None:
        return []
    return list(islice(dict.fromkeys(_tokens(plain)), TOKENS))


def _tokens(plain: str) -> Iterator[str]:
    for email in _EMAIL.findall(plain) if "@" in plain else ():
        yield "mail:" + email.strip(".-+")
    for account in _ACCOUNT.findall(plain):
        value = account.replace(" ", "")
        if sum(map(str.isdigit, value)) >= 8:
            yield "id:" + value
    for number in _NUMBER.findall(plain):
        if _tells(number):
            yield _numbered("".join(_GROUPS.findall(number)))
    for spoken in _SPOKEN.findall(plain):
        yield _numbered("".join(_SPELLED[word] for word in re.findall(_DIGIT_WORD, spoken)))
    for name in _ID.findall(plain):
        digits = sum(map(str.isdigit, name))
        if digits < 4:
            continue
        size = sum(map(str.isalnum, name))
        if digits == size or size < 5 or _QUANTITY.fullmatch(name):
            continue
        yield "id:" + re.sub(r"[-_/]", "", name)


def _tells(number: str) -> bool:
    """Whether digits are a number of somebody: no date, no amount, no clock, nothing round."""
    bare = number.strip(" .-/")
    if _DATE.fullmatch(bare) or _AMOUNT.fullmatch(bare):
        return False
    groups = _GROUPS.findall(bare)
    digits = "".join(groups)
    if not 7 <= len(digits) <= 24 or digits.endswith("000") or len(set(digits)) < 2:
        return False
    if len(groups) == 1:  # a Unix time in seconds or milliseconds is a time
        return number.startswith("+") or not (len(digits) in (10, 13) and digits.startswith("1"))
    local = [len(group) for group in groups] == [3, 4]
    return number.startswith(("+", "(")) or local or (len(digits) >= 9 and max(map(len, groups)) >= 3)


def _numbered(digits: str) -> str:
    return "number:" + (digits[-TAIL:] if len(digits) >= TAIL else digits)


def unwrapped(text: str) -> list[str]:
    """What a text says in another writing: base64, hexadecimal, percent signs, escapes. Empty for most."""
    found: list[str] = []
    if "%" in text or "\\u" in text:
        if _ESCAPED.search(text):
            plain = _UNICODE_ESCAPE.sub(lambda each: chr(int(each[1], 16)), unquote(text))
            found.append(plain.encode("utf-8", "replace").decode())
    for blob in _BLOB.findall(text)[:BLOBS] if len(text) >= 16 else ():
        decoded = _decoded(blob)
        if decoded is not None:
            found.append(decoded)
    for blob in _HEX.findall(text)[:BLOBS] if len(text) >= 32 else ():
        plain = bytes.fromhex(blob).decode("utf-8", "replace")
        if plain.isprintable():
            found.append(plain)
    return found


def _decoded(blob: str) -> str | None:
    body = blob.rstrip("=").replace("-", "+").replace("_", "/")
    if len(body) % 4 == 1:
        return None
    try:
        plain = base64.b64decode(body + "=" * (-len(body) % 4), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    # A long word decodes to something too; what was written by somebody can be printed.
    said = " " in plain.strip() or _BLOB.fullmatch(plain.strip()) is not None
    return plain if said and plain.replace("\n", " ").isprintable() else None
