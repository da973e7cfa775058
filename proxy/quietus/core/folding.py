"""One text, one form: what a person would call the same words is folded to the same words.

Folded away: Unicode form and case, accents, invisible characters, letters of another script that look Latin,
mark-up and its entities, list bullets, citation marks, apostrophes, the grouping of digits, punctuation and
spacing. Folding looks at nothing but the characters around, so that a quote folds as its source did.

Scripts without spaces are cut into single characters.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Final

# Han, kana; Thai, Lao, Myanmar, Khmer. Their own punctuation is left out.
_WIDE: Final = "\u3005\u3006\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
_WIDE_RARE: Final = "\uf900-\ufaff\U00020000-\U0003ffff"
_NARROW: Final = "\u0e01-\u0e4e\u0e50-\u0e59\u0e80-\u0eff\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17e0-\u17ff"
_SPACELESS: Final = _WIDE + _WIDE_RARE + _NARROW
# Vowel signs and points are parts of words in the scripts that have them, though they are not letters.
_POINTS: Final = "\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f"
_SIGNS: Final = "\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0963\u0970-\u0dff"

_ASCII_WORD: Final = re.compile(r"[a-z0-9]+")
_WORD: Final = re.compile(
    f"[{_SPACELESS}]|(?:(?![{_SPACELESS}])[^\\W_]|[{_POINTS}{_SIGNS}])+"
)
_SENTENCE_END: Final = re.compile(r"[.!?]+[\"')\]]*(?=\s|$)|[\n\r。！？।]")

_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_ACCENTS: Final = re.compile("[\u0300-\u036f\u20d0-\u20ff]")
_SUPERSCRIPT: Final = re.compile("[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]+")
_PLAIN: Final = str.maketrans(
    dict.fromkeys("‘’ʼ´", "'") | dict.fromkeys("“”„«»", '"') | dict.fromkeys("‐‑–—", "-")
    | dict.fromkeys("\u00a0\u202f\u2009", " ") | {"…": "."}
)  # fmt: skip
_CITATION: Final = re.compile(
    r"【[^】]{1,80}】|\ue200[^\ue201]{0,200}\ue201|\[\^?\d{1,3}(?:\s*[,;-]\s*\^?\d{1,3})*\]"
)

_MARKED: Final = re.compile(r"[<&\[*`~#]|^[ \t]*(?:[-+•>]|\d{1,3}[.)])[ \t]", re.MULTILINE)
_INLINE_TAG: Final = re.compile(
    r"</?(?:a|abbr|b|code|del|em|font|i|ins|kbd|mark|q|s|small|span|strong|sub|sup|tt|u|wbr)(?:\s[^<>]{0,400})?/?>"
)
_TAG: Final = re.compile(r"</?[a-z][a-z0-9-]{0,30}(?:\s[^<>]{0,400})?/?>|<!--.{0,2000}?-->", re.DOTALL)
_LINK: Final = re.compile(r"!?\[([^\[\]]{0,400})\]\([^()\s]{1,2000}(?:\s\"[^\"]{0,200}\")?\)")
_EMPHASIS: Final = re.compile(r"[*`~]+")
_BULLET: Final = re.compile(r"^[ \t]*(?:[-+•>#]+|\d{1,3}[.)])[ \t]+", re.MULTILINE)
_NUMBERED: Final = re.compile(r"^[ \t]*\d{1,3}[.)][ \t]", re.MULTILINE)
_APOSTROPHE: Final = re.compile(r"(?<=[^\W\d_])['`](?=[^\W\d_])")
_HYPHEN: Final = re.compile(r"(?<=[^\W_])[^\w\s]+(?=[^\W_])")
_GROUPED: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:([,.'])\d{3}(?:\1\d{3})*|(?:\s+\d{3})+)(?!\d)")
_GROUPING: Final = re.compile(r"[,.'\s]+")

# Small letters that look like Latin ones, and Latin letters that decompose to nothing simpler.
_READ_AS: Final = {
    "авекмнорстухіјѕһԁԛԝӏ": "abekmhopctyxijshdqwl",
    "αβεζηικμνορτυχγ": "abezhikmvoptuxy",
    "օսհո": "ouhn",
    "ıɑɡɩǀøđłðʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢᴀ": "iagiiodldbcdefghijklmnoprstuvwyza",
}
_ALIKE: Final = str.maketrans(
    {"æ": "ae", "œ": "oe", "þ": "th"}
    | {seen: read for alike, latin in _READ_AS.items() for seen, read in zip(alike, latin, strict=True)}
)
_LOOKS_LATIN: Final = re.compile(r"[^\W\d_]*[^\x00-\x7f\W\d_][^\W_]*")


def cleaned(text: str) -> str:
    """The text without mark-up, citation marks, accents and invisible characters, in small letters.

    Punctuation, spacing and digits stand as they did: addresses and numbers are read from this form.
    """
    return _cleanings(text)[0]


def folded(text: str) -> str:
    """`cleaned`, and without apostrophes and the grouping of digits: words and sentences are read from it."""
    return _GROUPED.sub(_together, _unquoted(cleaned(text)))


def readings(text: str) -> tuple[str, ...]:
    """`folded`, and after it the other ways in which the same text can be read; most have none.

    A number at the beginning of a line is a list's or the sentence's, and numbers side by side are one that
    is written in groups or several: spacing and punctuation tell, and those are what a quote may change.
    """
    forms = [_unquoted(form) for form in _cleanings(text)]
    return tuple(dict.fromkeys([*(_GROUPED.sub(_together, form) for form in forms), *forms]))


def words(text: str) -> list[str]:
    """The words of a text, folded: compatibility form, no case, no accents, no punctuation."""
    return split(folded(text))


def split(plain: str) -> list[str]:
    """The words of a text that is `folded` already."""
    return _ASCII_WORD.findall(plain) if plain.isascii() else _WORD.findall(plain)


def sentences(plain: str) -> list[list[str]]:
    """The words of a `folded` text, sentence by sentence; sentences without words are left out."""
    return [found for part in spans(plain) if (found := split(part))]


def spans(plain: str) -> list[str]:
    """The sentences of a `folded` text as they are written."""
    return _SENTENCE_END.split(plain)


def unhyphened(plain: str) -> str:
    """A `folded` text with the words that only a hyphen or its like parts written as one."""
    return _HYPHEN.sub("", plain)


def spaceless(word: str) -> bool:
    """Whether a word is one character of a script that is written without spaces."""
    return len(word) == 1 and word >= "\u0e01" and _SPACELESS_CHARACTER.match(word) is not None


_LINE_END: Final = re.compile(r"[\n\r]+")
_SPACELESS_CHARACTER: Final = re.compile(f"[{_SPACELESS}]")


def one_line(plain: str) -> str:
    """A `folded` text as if its lines were not ended: where they end may be the page's doing."""
    return _LINE_END.sub(" ", plain)


def _unmasked(text: str) -> str:
    text = _INVISIBLE.sub("", text).translate(_PLAIN)
    if text.isascii():
        return text
    text = _SUPERSCRIPT.sub("", _CITATION.sub(" ", text))
    text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    text = unicodedata.normalize("NFKC", text.casefold())
    return text if text.isascii() else _LOOKS_LATIN.sub(_latin, text)


def _latin(found: re.Match[str]) -> str:
    # A word counts as masked only when every letter of it can be read as Latin; the same in every context.
    read = found[0].translate(_ALIKE)
    return read if read.isascii() else found[0]


def _cleanings(text: str) -> list[str]:
    """The text `cleaned`, and once more with its lists' numbers where it has any."""
    if not text.isascii():
        text = _unmasked(text)
    text = text.lower()
    if _MARKED.search(text) is None:
        return [text]
    text = _stripped(text)
    listed = _EMPHASIS.sub("", _BULLET.sub("", text))
    return [listed] if _NUMBERED.search(text) is None else [listed, _EMPHASIS.sub("", text)]


def _stripped(text: str) -> str:
    if "<" in text:
        text = _TAG.sub(" ", _INLINE_TAG.sub("", text))
    if "&" in text:
        text = html.unescape(text)
        text = text if text.isascii() else _unmasked(text).lower()
    return _LINK.sub(r"\1", _CITATION.sub(" ", text)) if "[" in text else text


def _unquoted(text: str) -> str:
    return _APOSTROPHE.sub("", text) if "'" in text or "`" in text else text


def _together(found: re.Match[str]) -> str:
    return _GROUPING.sub("", found[0])
