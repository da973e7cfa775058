"""The erasure machine: one literal, total table from (state, happening) to state.

The table is the machine and its documentation; `ARCHITECTURE.md` shows a diagram made from it.
None ("-") is an operator's act that has no meaning in that state: the API answers 409.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """The life of an erasure. Unsettled states keep the gate of their scope shut."""

    REQUESTED = "requested"
    SETTLING = "settling"
    LEAKING = "leaking"
    VIOLATION = "violation"
    SETTLED = "settled"
    RELAPSED = "relapsed"
    REFUSED = "refused"
    RELEASED = "released"


class Happening(StrEnum):
    """What moves an erasure from state to state. Everything else only changes facts."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNCLEAR = "unclear"
    CLEAN = "clean"
    LEAKED = "leaked"
    LEAKED_LATE = "leaked_late"
    RETRIED = "retried"
    RELEASED = "released"


UNSETTLED: Final = frozenset(
    {State.REQUESTED, State.SETTLING, State.LEAKING, State.VIOLATION, State.RELAPSED}
)
"""States in which the restriction on the scope holds."""

TOMBSTONED: Final = UNSETTLED | {State.SETTLED, State.RELEASED}
"""States in which ids and content of the erased are screened for and writes of them refused."""

_S, _H = State, Happening

COLUMNS: Final = tuple(Happening)

_ROWS: Final[dict[State, tuple[State | None, ...]]] = {
    # columns in this order: ACCEPTED REFUSED UNCLEAR CLEAN LEAKED LEAKED_LATE RETRIED RELEASED
    _S.REQUESTED: (_S.SETTLING,  _S.REFUSED,   _S.REQUESTED, _S.REQUESTED, _S.REQUESTED, _S.REQUESTED, _S.REQUESTED, _S.RELEASED),  # noqa: E501
    _S.SETTLING:  (_S.SETTLING,  _S.SETTLING,  _S.SETTLING,  _S.SETTLED,   _S.LEAKING,   _S.VIOLATION, _S.SETTLING,  _S.RELEASED),  # noqa: E501
    _S.LEAKING:   (_S.LEAKING,   _S.LEAKING,   _S.LEAKING,   _S.SETTLED,   _S.LEAKING,   _S.VIOLATION, _S.SETTLING,  _S.RELEASED),  # noqa: E501
    _S.VIOLATION: (_S.VIOLATION, _S.VIOLATION, _S.VIOLATION, _S.SETTLED,   _S.VIOLATION, _S.VIOLATION, _S.SETTLING,  _S.RELEASED),  # noqa: E501
    _S.SETTLED:   (_S.SETTLED,   _S.SETTLED,   _S.SETTLED,   _S.SETTLED,   _S.RELAPSED,  _S.RELAPSED,  None,         _S.RELEASED),  # noqa: E501
    _S.RELAPSED:  (_S.RELAPSED,  _S.RELAPSED,  _S.RELAPSED,  _S.SETTLED,   _S.RELAPSED,  _S.VIOLATION, _S.SETTLING,  _S.RELEASED),  # noqa: E501
    _S.REFUSED:   (_S.REFUSED,   _S.REFUSED,   _S.REFUSED,   _S.REFUSED,   _S.REFUSED,   _S.REFUSED,   None,         _S.REFUSED),   # noqa: E501
    _S.RELEASED:  (_S.RELEASED,  _S.RELEASED,  _S.RELEASED,  _S.RELEASED,  _S.RELEASED,  _S.RELEASED,  None,         _S.RELEASED),  # noqa: E501
}

TABLE: Final[dict[tuple[State, Happening], State | None]] = {
    (state, happening): target
    for state, row in _ROWS.items()
    for happening, target in zip(COLUMNS, row, strict=True)
}


class WrongState(ValueError):
    """An operator's act that has no meaning in the erasure's state."""


def step(state: State, happening: Happening) -> State:
    """The state after `happening`. Raises WrongState for a cell that is "-"."""
    target = TABLE[state, happening]
    if target is None:
        raise WrongState(f"{happening.value} has no meaning while {state.value}")
    return target


def diagram() -> str:
    """The table as Markdown, for ARCHITECTURE.md (a test keeps the two the same)."""
    head = ["", *(h.name for h in COLUMNS)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for state in State:
        cells = [TABLE[state, h] for h in COLUMNS]
        lines.append(
            "| " + " | ".join([f"**{state.name}**", *(c.name if c else "-" for c in cells)]) + " |"
        )
    return "\n".join(lines)
