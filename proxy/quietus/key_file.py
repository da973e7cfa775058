"""The keys file: made once, read strictly, and added to when a key is put in the place of another.

An entry says its use, its id and the key. Of several entries of one use the last is worked with; the first
is the one that the ledger is bound to. Nothing is taken out: old keys open and check what was made with them.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

USES: Final = ("hmac", "wrapping", "signing")
ROTATED: Final = ("wrapping", "signing")
"""Uses of which a key can be put in the place of another. The hmac key makes the digests that tombstones are,
and no names are kept to make them anew: with another one nobody who was erased would be recognised."""
MOST: Final = 100
"""Entries in a file."""
_VERSION: Final = 1


class KeysRefused(Exception):
    """The keys cannot be used; the message says what to do about it and quotes no key."""


@dataclass(frozen=True, slots=True, repr=False)
class Key:
    """One key and its use."""

    use: str
    key: bytes

    @property
    def id(self) -> str:
        """Its public name: it says nothing about the key."""
        return key_id(self.use, self.key)


def derive(key: bytes, use: bytes, size: int) -> bytes:
    """A key for one use only."""
    return hashlib.blake2b(use, key=key, digest_size=size, person=b"quietus/derive/1").digest()


def key_id(use: str, key: bytes) -> str:
    """The id of a key, derived from it, so that a damaged one cannot pass under its old id."""
    return f"{use}-{derive(key, b'id/' + use.encode(), 8).hex()}"


def make(path: Path) -> None:
    """New random keys in a new file, readable by its owner only. Raises KeysRefused."""
    part = _written_beside(path, [Key(use, secrets.token_bytes(32)) for use in USES])
    try:
        # Linked into place: a file that another process made in between is not replaced.
        try:
            os.link(part, path)
        finally:
            os.unlink(part)
        _sync_folder(path)
    except OSError as error:
        raise _unwritable(path, error) from None


def rotate(path: Path, use: str) -> tuple[str, str]:
    """Puts a new key in the place of the one in use; the ids of the old and the new. Raises KeysRefused.

    A sidecar works with it from its next start on.
    """
    if use not in ROTATED:
        raise KeysRefused(
            f"the {use} key cannot be replaced: the digests of what was erased are made with it, no names "
            "are kept to make them anew, and with another key nobody who was erased would be recognised"
            if use in USES else f"a key is for one of: {', '.join(ROTATED)}"
        )  # fmt: skip
    kept = load(path)
    if len(kept) >= MOST:
        raise KeysRefused(f"the keys file {path} holds {MOST} keys, which is all it may")
    old = next(each for each in reversed(kept) if each.use == use)
    new = Key(use, secrets.token_bytes(32))
    part = _written_beside(path, [*kept, new])
    try:
        os.replace(part, path)
        _sync_folder(path)
    except OSError as error:
        raise _unwritable(path, error) from None
    return old.id, new.id


def load(path: Path) -> list[Key]:
    """The keys in a file. Raises KeysRefused when it is open to others, damaged, or of a newer version."""
    try:
        if open_to_others(path.stat()):
            raise KeysRefused(f"the keys file {path} is open to others: chmod 600 {path}")
        document: Any = json.loads(path.read_bytes())
        if document["version"] != _VERSION:
            raise KeysRefused(f"the keys file {path} has a version that is not known here: upgrade Quietus")
        kept = [Key(str(entry["use"]), bytes.fromhex(entry["key"])) for entry in document["keys"]]
        said = [entry["id"] for entry in document["keys"]]
        uses = [each.use for each in kept]
        sound = set(uses) == set(USES) and uses.count("hmac") == 1 and len(kept) <= MOST
        sound = sound and all(len(each.key) == 32 for each in kept)
        sound = sound and said == [each.id for each in kept] and len(set(said)) == len(said)
    except OSError as error:
        raise KeysRefused(f"the keys file {path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise KeysRefused(f"the keys file {path} is damaged: restore it from its backup") from None
    return kept


def open_to_others(found: os.stat_result) -> bool:
    """Whether a file may be read by whom it is not for.

    A file of our own must be ours alone. One that another owns and lets our group read is how Kubernetes
    hands a Secret to a process that is not root (owner root, mode 0440, group of the pod).
    """
    ours = found.st_uid == os.geteuid()
    return bool(found.st_mode & (0o077 if ours else 0o037))


def _written_beside(path: Path, kept: Sequence[Key]) -> Path:
    # Written beside and moved into place: a crash leaves the whole file, old or new.
    keys = [{"use": each.use, "id": each.id, "key": each.key.hex()} for each in kept]
    text = json.dumps({"version": _VERSION, "keys": keys}, indent=1) + "\n"
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.fchmod(handle, 0o600)
            os.write(handle, text.encode())
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise _unwritable(path, error) from None
    return part


def _sync_folder(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _unwritable(path: Path, error: OSError) -> KeysRefused:
    return KeysRefused(
        f"the keys file {path} cannot be made ({error.strerror}): make its folder, writable for Quietus"
    )
