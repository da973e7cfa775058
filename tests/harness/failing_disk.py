"""A disk that fails when it is told to: a VFS of apsw under the real ledger.

The ledger's code, its SQL and SQLite itself are real; only the calls of SQLite to the file system go through
here. apsw brings a SQLite of its own, so its connection is dressed as the standard library's: nothing is
known of the standard library's SQLite from outside of C. What SQLite itself ignores (a checkpoint after a
commit that is durable) is ignored here, too.

Nothing is really synced. A power cut leaves what was synced, and of what was not, nothing or any part.
"""

from __future__ import annotations

import itertools
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

CODES = {"read": apsw.SQLITE_IOERR_READ, "write": apsw.SQLITE_IOERR_WRITE, "sync": apsw.SQLITE_IOERR_FSYNC}
_numbers = itertools.count()


class Failed(apsw.IOError):  # type: ignore[misc]
    """What the disk answers when it fails."""

    def __init__(self, code: int, place: str) -> None:
        super().__init__("the disk fails")
        self.result, self.extendedresult = code & 0xFF, code
        self.place = place


class Full(apsw.FullError):  # type: ignore[misc]
    """What the disk answers when it is full."""

    result = extendedresult = apsw.SQLITE_FULL
    place = ""


class Disk(apsw.VFS):  # type: ignore[misc]
    """Counts reads, writes and syncs, and fails at the one that it is told of."""

    def __init__(self) -> None:
        self.name = f"disk-{next(_numbers)}"
        super().__init__(self.name, "")
        self.count: Counter[str] = Counter()
        self.kind = ""
        """What fails: "read", "write", "sync"; "" for nothing."""
        self.at = 0
        self.lasting = False
        """Whether everything fails from then on, as it does for a process that was killed there."""
        self.dead = False
        self.room: Callable[[], int] | None = None
        """How many bytes there still are; None: as many as one likes."""
        self.files: dict[str, _Image] = {}

    def excepthook(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        """SQLite passed over it; it was counted all the same."""

    def fail(self, kind: str, at: int, *, lasting: bool = False) -> None:
        """The `at`-th call of that kind from now on fails; with `lasting`, whatever comes after it, too."""
        self.count.clear()
        self.kind, self.at, self.lasting = kind, at, lasting

    def check(self, kind: str, place: str) -> None:
        """Counts one call, and raises if it is one that fails."""
        self.count[kind] += 1
        if self.dead:
            raise Failed(CODES[kind], place)
        if kind == self.kind and self.count[kind] == self.at:
            self.dead = self.lasting
            raise Failed(CODES[kind], place)

    @property
    def struck(self) -> bool:
        """Whether what was to fail has come to pass."""
        return bool(self.kind) and self.count[self.kind] >= self.at

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        """Opens a file."""
        return _File(self, name, flags)

    def cut_power(self, rng: random.Random | None) -> None:
        """Leaves on the disk what was synced; with `rng`, any part of what was written since, too."""
        self.dead = True
        for path, image in self.files.items():
            image.restore(Path(path), rng)

    def connect(self, path: Path) -> sqlite3.Connection:
        """What `SqliteLedger(connect=...)` takes."""
        return _Dressed(path, self.name)  # type: ignore[return-value]


class _Image:
    """What of a file is on the disk for good, and the writes that are not yet."""

    def __init__(self, path: Path) -> None:
        self.kept = path.read_bytes() if path.exists() else b""
        self.since: list[tuple[int, bytes]] = []

    def sync(self, path: Path) -> None:
        self.kept, self.since = path.read_bytes(), []

    def restore(self, path: Path, rng: random.Random | None) -> None:
        data = bytearray(self.kept)
        for offset, written in self.since if rng is not None else ():
            if rng is not None and rng.random() < 0.5:
                data += bytes(max(0, offset + len(written) - len(data)))
                data[offset : offset + len(written)] = written
        if path.exists():
            path.write_bytes(data)


class _File(apsw.VFSFile):  # type: ignore[misc]
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if self._path:
            disk.files.setdefault(self._path, _Image(Path(self._path)))

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.check("read", self._path)
        return bytes(super().xRead(amount, offset))

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.check("write", self._path)
        grows = offset + len(data) - super().xFileSize()
        if self._disk.room is not None and grows > max(self._disk.room(), 0):
            raise Full("the disk is full")
        self._disk.files[self._path].since.append((offset, bytes(data)))
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._disk.check("sync", self._path)
        self._disk.files[self._path].sync(Path(self._path))


class _Dressed:
    """An apsw connection with as much of the standard library's face as the ledger looks at."""

    def __init__(self, path: Path, vfs: str) -> None:
        with _told():
            self._connection = apsw.Connection(str(path), vfs=vfs)

    @property
    def in_transaction(self) -> bool:
        return bool(self._connection.in_transaction)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> _Rows:
        try:
            with _told():
                return _Rows(self._connection.execute(statement, values))
        except sqlite3.Error as error:
            # The commit is durable; the checkpoint after it failed, and will be made another time.
            if statement == "COMMIT" and not self.in_transaction and _of_database(error):
                return _Rows(iter(()))
            raise

    def executemany(self, statement: str, rows: Any) -> None:
        with _told():
            self._connection.executemany(statement, rows)

    def close(self) -> None:
        try:
            self._connection.close(True)
        except apsw.Error:
            pass  # what a close cannot tidy up is left for the next opening


class _Rows:
    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        while (row := self.fetchone()) is not None:
            yield row

    def fetchone(self) -> Any:
        with _told():
            return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self)


def _of_database(error: sqlite3.Error) -> bool:
    cause = error.__cause__
    return isinstance(cause, Failed) and not cause.place.endswith("-wal")


@contextmanager
def _told() -> Iterator[None]:
    """Errors of apsw as the standard library's."""
    try:
        yield
    except apsw.Error as error:
        code = getattr(error, "extendedresult", getattr(error, "result", apsw.SQLITE_ERROR))
        found = sqlite3.OperationalError("the disk answered with an error")
        found.sqlite_errorcode = code
        found.sqlite_errorname = str(apsw.mapping_result_codes.get(code & 0xFF, "SQLITE_ERROR"))
        raise found from error
