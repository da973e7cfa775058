"""Room set aside for the day on which the disk is full: then what shuts the gate can still be written.

A file beside the ledger holds the room. When the disk is full it is given up, and only events that restrict
(an intent, a leak, a quarantine, a hold) may use what it held; anything else waits. It is made anew when
there is room for it and as much again, so that the next write does not take it back at once.
"""

from __future__ import annotations

import os
from pathlib import Path

from quietus.ledger.files import OWNER_ONLY, sync_folder


class Reserve:
    """The file beside a ledger, of `size` bytes; none at all where that is 0. Never raises."""

    def __init__(self, ledger: Path, size: int) -> None:
        self.path = Path(f"{ledger}.reserve")
        self.size = size
        self.held = False
        """Whether the room is there to be given up."""

    @property
    def spent(self) -> bool:
        """Whether there should be one and is none: only what restricts may be written."""
        return bool(self.size) and not self.held

    def keep(self) -> None:
        """Makes the file, if it is not there and there is room."""
        if self.held or not self.size:
            return
        try:
            there = self.path.stat().st_blocks * 512
        except OSError:
            there = 0
        if there >= self.size or _free(self.path.parent) >= 2 * self.size - there:
            self.held = self._make()

    def give_up(self) -> bool:
        """Gives the room to whoever writes next; False if there was none."""
        if not self.held:
            return False
        self.held = False
        self._remove()
        return True

    def _make(self) -> bool:
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(self.path, flags, OWNER_ONLY)
            try:
                os.ftruncate(handle, self.size)
                os.posix_fallocate(handle, 0, self.size)
                os.fsync(handle)
            finally:
                os.close(handle)
            sync_folder(self.path)
        except OSError:
            self._remove()
            return False
        return True

    def _remove(self) -> None:
        try:
            self.path.unlink(missing_ok=True)
        except OSError:
            pass  # a folder that nothing can be removed from: the write that wanted the room fails


def _free(folder: Path) -> int:
    """Bytes that an ordinary process may still write."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize
