"""What can go wrong between a document and its meaning. No message ever quotes a value.

A `RequestFault` is the client's, an `Unreadable` the store's, a `ProfileError` the operator's; a
`CannotQuote` or `MissingValue` says that a request of our own cannot be put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_STATUS = {
    "ambiguous-request": 400,
    "malformed-request": 400,
    "too-large": 413,
    "unverifiable-forget": 422,
}


class RequestFault(Exception):
    """A request that is refused before anything is forwarded; `problem` is its name on the wire."""

    def __init__(self, problem: str, detail: str, *, status: int | None = None) -> None:
        super().__init__(f"{problem}: {detail}")
        self.problem = problem
        self.detail = detail
        self.status = status if status is not None else _STATUS[problem]


class Unreadable(Exception):
    """An answer of the store that its profile could not read."""


class MissingItems(Unreadable):
    """An answer without anything where its rows should be: unreadable, not empty."""


class NotJson(ValueError):
    """Bytes that are not strict JSON, or that could mean two things. `too_large`: beyond a bound."""

    def __init__(self, detail: str, *, too_large: bool = False) -> None:
        super().__init__(detail)
        self.too_large = too_large


class Unread(Exception):
    """A selector met something it cannot take: its dimension is UNKNOWN. `detail` has no value in it."""


class Ambiguous(Exception):
    """A selector met two meanings, such as a repeated query parameter."""


class CannotQuote(Exception):
    """A value that cannot be written safely at the place its placeholder stands."""


class MissingValue(Exception):
    """A placeholder for which there is no value; `name` says which."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no value for {{{name}}}")
        self.name = name


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a profile: where it stands, what is wrong, what to do about it."""

    file: str
    line: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.file}:{self.line}: {self.message}{hint}"


class ProfileError(Exception):
    """A profile that is refused at load, with everything that is wrong with it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = list(faults)


class CompileFault(Exception):
    """A fault found while compiling, by the place in the document (a path of keys and indexes)."""

    def __init__(self, place: tuple[str | int, ...], message: str, hint: str = "") -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.hint = hint
