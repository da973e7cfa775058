"""The file of the decision counts beside a ledger: one sealed blob, replaced as a whole."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

from quietus.ledger.files import OWNER_ONLY, sync_folder

SIZE_MAX: Final = 64 << 20
"""Bytes that are read; what was written by us is far smaller."""


class CountsFile:
    """The blob at a path. One process has it, as it has the ledger."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    async def read(self) -> bytes | None:
        """What was written last; None where nothing was. Raises OSError."""
        return await asyncio.to_thread(self._read)

    async def write(self, blob: bytes) -> None:
        """Replaces it, durably and as a whole. Raises OSError."""
        await asyncio.to_thread(self._write, blob)

    def _read(self) -> bytes | None:
        try:
            with self._path.open("rb") as file:
                return file.read(SIZE_MAX)
        except FileNotFoundError:
            return None

    def _write(self, blob: bytes) -> None:
        part = Path(f"{self._path}.part")
        try:
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, OWNER_ONLY)
            with os.fdopen(handle, "wb") as file:
                file.write(blob)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, self._path)
            sync_folder(self._path)
        except OSError:
            part.unlink(missing_ok=True)  # on a full disk it would stand in the ledger's way
            raise
