"""What a PostgreSQL server must be set to before an acknowledgement of it is worth anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quietus.ports import LedgerRefused

_SURE: Final = frozenset({"on", "remote_write", "remote_apply"})


def faults(found: Sequence[Any]) -> list[str]:
    """What is wrong, worst first. `found` is the row of `postgresql_sql.SETTINGS`."""
    fsync, pages, commit, standbys, recovering, followers = found
    wrong: list[str] = []
    if recovering:
        wrong.append("it is a standby: give the address of the primary")
    if fsync != "on":
        wrong.append("it acknowledges before the disk has it: set fsync to on")
    if pages != "on":
        wrong.append("a power cut may tear its pages: set full_page_writes to on")
    if commit not in _SURE:
        wrong.append("it acknowledges before it is sure: set synchronous_commit to on")
    if followers and not standbys:
        wrong.append("what it acknowledged may be on no standby: set synchronous_standby_names")
    return wrong


def refuse(wrong: list[str]) -> None:
    """Raises LedgerRefused when anything is wrong."""
    if wrong:
        raise LedgerRefused(f"the ledger's server may lose what it acknowledges: {'; '.join(wrong)}")
