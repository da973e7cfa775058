"""Copies of a SQLite ledger: taken while it is in use, put back when it is lost, completed from the archive.

A backup is a whole ledger, one moment of it. What is sealed for probing is in it unless it is left out: keep
such a backup no longer than the shortest watch, or what was forgotten is kept after all.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from quietus.core.events import Draft, EventType, scope_from_facts
from quietus.core.fingerprint import Mark
from quietus.core.scope import Wild
from quietus.ledger import files, sql
from quietus.ledger.chain import LEDGER
from quietus.ledger.faults import READ_ERRORS, meaning
from quietus.ledger.verify import VerifyReport, open_read_only, verify_chain
from quietus.ports import Head, LedgerRefused

PAGES: Final = 256
"""Pages copied at a time: between two of them the sidecar writes."""
LINE_MAX: Final = 8 << 20
"""Bytes of one line of an event archive."""


def back_up(
    ledger: Path,
    target: Path,
    *,
    secrets: bool = True,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> VerifyReport:
    """Copies a ledger that may be in use; the copy is checked before it gets its name.

    `progress` is told pages copied and pages in all. Raises LedgerRefused, LedgerUnavailable; what stood
    under the name of `target` is never replaced.
    """
    if target.exists():
        raise LedgerRefused(f"{target} exists: a backup replaces nothing; give another name")
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    files.create(part)
    try:
        with closing(open_read_only(ledger)) as source, closing(sqlite3.connect(part)) as copy:
            # A reading transaction holds one moment: else each write would make the copy begin again.
            source.execute("BEGIN")
            source.execute(sql.LAST_NUMBER).fetchone()
            source.backup(copy, pages=PAGES, progress=lambda _, left, of: progress(of - left, of))
            if not secrets:
                copy.execute("DELETE FROM secrets")
                copy.commit()
            copy.execute("PRAGMA journal_mode = DELETE")
            copy.execute("VACUUM")
        report = verify_chain(part)
        if not report.ok:
            raise LedgerRefused(f"the ledger does not verify, and no backup was made of it: {report.fault}")
        _durable(part)
        os.replace(part, target)
        files.sync_folder(target)
    except READ_ERRORS as error:
        fault, _ = meaning(error)
        raise fault from None
    except OSError as error:
        raise LedgerRefused(f"the backup {target} cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
    return report


def restore(
    backup: Path, ledger: Path, *, head_file: Path | None = None, accept_older: bool = False
) -> tuple[Head, Path | None]:
    """Puts a backup where a ledger was; what stood there is moved aside and told. No process may be using it.

    Raises LedgerRefused: when the backup does not verify, or is older than the head file knows and that was
    not accepted. Then nothing has changed.
    """
    report = verify_chain(backup)
    if not report.ok or report.head is None:
        raise LedgerRefused(f"the backup does not verify: {report.fault}")
    held = files.lock(ledger)
    try:
        known = files.read_head(head_file) if head_file is not None else None
        if known is not None and not accept_older:
            _refuse_older(report.head, known)
        aside = _move_aside(ledger)
        part = ledger.with_name(ledger.name + ".part")
        part.unlink(missing_ok=True)
        files.create(part)
        shutil.copyfile(backup, part)
        _durable(part)
        os.replace(part, ledger)
        files.sync_folder(ledger)
        if head_file is not None:
            files.write_head(head_file, report.head)
    except OSError as error:
        raise LedgerRefused(f"the ledger {ledger} cannot be restored: {error.strerror}") from None
    finally:
        os.close(held)
    return report.head, aside


def _refuse_older(head: Head, known: Head) -> None:
    if head.incarnation != known.incarnation:
        raise LedgerRefused("the backup is of another ledger than the head file: give that ledger's backup")
    if head.number < known.number:
        raise LedgerRefused(
            f"the backup ends at event {head.number}, and the head file knows event {known.number}: what was "
            "erased in between is not in it and would be recalled. Give a newer backup; or accept the older "
            "one with --accept-older, best with --events and the archive, which has what was erased since"
        )


def _move_aside(ledger: Path) -> Path | None:
    if not ledger.exists():
        return None
    number = next(n for n in range(1, 10_000) if not Path(f"{ledger}.replaced-{n}").exists())
    aside = Path(f"{ledger}.replaced-{number}")
    for suffix in ("-wal", "-shm", ""):
        beside = Path(f"{ledger}{suffix}")
        if beside.exists():
            os.replace(beside, f"{aside}{suffix}")
    return aside


def _durable(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def archived(lines: Iterable[bytes], after: int) -> Iterator[tuple[Draft, list[tuple[str, Mark]]]]:
    """The events of an archive (`GET /v1/audit`) with a larger number, to be appended again in order.

    What only the ledger had is not in an archive: witnesses, and the marks of contents. An erasure that
    comes back so refuses its subject and its scope, cannot be probed, and nothing is claimed of it. Raises
    LedgerRefused for a gap, or a line that is no event.
    """
    last = after
    for line in lines:
        if not line.strip():
            continue
        event = _event(line)
        if event["number"] <= after:
            continue
        if event["number"] != last + 1:
            raise LedgerRefused(f"event {last + 1} is missing in the archive; export it from that number on")
        last = event["number"]
        facts = {name: value for name, value in event["facts"].items() if name != LEDGER}
        kind, erasure = EventType(event["type"]), event["erasure"] or ""
        if kind is EventType.SNAPSHOTTED:
            facts |= {"truncated": True, "reimported": True}
        at = datetime.fromisoformat(event["at"]).timestamp()
        draft = Draft(kind, erasure, at, event["actor"], facts, bool(event["gate"]))
        yield draft, _marks(draft) if kind is EventType.REQUESTED else []


def _event(line: bytes) -> Any:
    try:
        if len(line) > LINE_MAX:
            raise ValueError
        event = json.loads(line)
        EventType(event["type"])
        datetime.fromisoformat(event["at"])
        sound = isinstance(event["facts"], dict) and isinstance(event["number"], int)
        if not sound or not isinstance(event["actor"], str):
            raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise LedgerRefused("a line of the archive is no event; export it again with GET /v1/audit") from None
    return event


def _marks(draft: Draft) -> list[tuple[str, Mark]]:
    """The marks that the predicate alone gives: the subjects of an erasure that is not of a part of them."""
    scope = scope_from_facts(draft.facts["predicate"])
    part = any(not isinstance(each, Wild) for each in (scope.purpose, scope.key, scope.path))
    if part or isinstance(scope.subject, Wild):
        return []
    return [(draft.erasure, Mark("subject", bytes(subject))) for subject in scope.subject]  # type: ignore[arg-type]
