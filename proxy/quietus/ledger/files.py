"""The files beside a ledger: its lock, and the head file that may lie on another disk.

The head file says how far the ledger is known to have been. It is written after each commit and
never before, so that after a crash it may be older than the ledger and is never newer; a ledger
that is older than its head file has been rolled back.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Final

from quietus.ports import Head, LedgerRefused

OWNER_ONLY: Final = 0o600


def lock(path: Path) -> int:
    """Takes the lock of the ledger at `path` for this process; returns its descriptor.

    Raises LedgerRefused when another process (or another ledger object of this one) has it. The
    lock goes with the process that holds it, however that ends; the file stays.
    """
    where = Path(f"{path}.lock")
    try:
        handle = os.open(where, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, OWNER_ONLY)
    except OSError as error:
        raise LedgerRefused(
            f"the ledger {path} cannot be opened for writing ({error.strerror}): make its folder, writable "
            "for Quietus"
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
        os.close(handle)
        raise LedgerRefused(
            f"the ledger {path} is in use by another process (pid {holder or 'unknown'}): a ledger has one "
            "writer; stop the other one first"
        ) from None
    # Who holds it is a help for people, no more: on a full disk the lock holds without it.
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    except OSError:
        pass
    return handle


def create(path: Path) -> None:
    """Makes an empty file for its owner only, whatever the umask says. Raises LedgerRefused."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ONLY)
        try:
            os.fchmod(handle, OWNER_ONLY)
        finally:
            os.close(handle)
        sync_folder(path)
    except OSError as error:
        raise LedgerRefused(f"the ledger {path} cannot be made: {error.strerror}") from None


def close_to_others(path: Path) -> None:
    """Takes the rights of group and others away from a ledger's files. Raises LedgerRefused."""
    for name in (str(path), f"{path}-wal", f"{path}-shm"):
        try:
            if os.stat(name).st_mode & 0o077:
                os.chmod(name, OWNER_ONLY)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise LedgerRefused(
                f"{name} is open to others and that cannot be changed ({error.strerror}): chmod 600 {name}"
            ) from None


def read_head(path: Path) -> Head | None:
    """What the head file says; None if there is none. Raises LedgerRefused if it cannot be read."""
    try:
        document = json.loads(path.read_bytes())
        head = Head(
            str(document["incarnation"]),
            int(document["number"]),
            bytes.fromhex(document["hash"]).hex(),
            int(document["gate_epoch"]),
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerRefused(f"the head file {path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise LedgerRefused(
            f"the head file {path} is damaged: restore it, or, if you know that the ledger was not rolled "
            "back, remove it and start once without a head file"
        ) from None
    return head


def write_head(path: Path, head: Head) -> None:
    """Replaces the head file, durably and as a whole. Raises OSError."""
    part = Path(f"{path}.part")
    text = json.dumps(
        {
            "incarnation": head.incarnation,
            "number": head.number,
            "hash": head.hash,
            "gate_epoch": head.gate_epoch,
        }
    )
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, OWNER_ONLY)
    try:
        os.write(handle, f"{text}\n".encode())
        os.fsync(handle)
    finally:
        os.close(handle)
    os.replace(part, path)
    sync_folder(path)


def sync_folder(path: Path) -> None:
    """Makes the name of a file durable. Raises OSError."""
    handle = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def compare(path: Path, head: Head | None, known: Head | None, hash_then: str | None) -> None:
    """Raises LedgerRefused unless a ledger at `head` may be what the head file `known` speaks of.

    `head` is None for a ledger that is not there or empty; `hash_then` is the hash of the ledger's
    event with the number that `known` gives, None if it has none.
    """
    if known is None:
        return
    if head is None:
        raise LedgerRefused(
            f"the ledger is missing, and its head file {path} says that it had {known.number} events: "
            "restore the ledger"
        )
    if head.incarnation != known.incarnation:
        raise LedgerRefused(f"the head file {path} belongs to another ledger: restore that ledger")
    if head.number < known.number:
        raise LedgerRefused(
            f"the ledger ends at event {head.number} and was at event {known.number} (head file {path}): it "
            "was rolled back, and what was erased since would be recalled; restore the newer ledger"
        )
    if hash_then != known.hash:
        raise LedgerRefused(
            f"event {known.number} of the ledger is not the one that the head file {path} knows: the ledger "
            "was rewritten; restore it from a backup that verifies"
        )


def lock_for_worker(path: Path) -> int:
    """Says for as long as this process lives that it answers from the ledger at `path`; the descriptor."""
    handle = os.open(_workers(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, OWNER_ONLY)
    fcntl.flock(handle, fcntl.LOCK_SH)
    return handle


def workers_live(path: Path) -> bool:
    """Whether a process answers from the ledger at `path` as somebody's worker."""
    handle = os.open(_workers(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, OWNER_ONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _workers(path: Path) -> Path:
    return Path(f"{path}.workers.lock")
