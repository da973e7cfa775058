"""Opening a ledger on a server: which engine, with which keys. Its client library is an extra."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from quietus.keys import Keyring
from quietus.ledger.engine import Engine
from quietus.ledger.shared import SharedServerLedger
from quietus.ports import Ledger, LedgerRefused
from quietus.settings import LedgerSettings


def open_shared(settings: LedgerSettings, keys: Path | None) -> tuple[Ledger, Keyring]:
    """The ledger, not opened yet, and its keys. Raises LedgerRefused, LedgerUnavailable, OSError.

    All replicas have the same keys file. It is made only while the ledger is new and empty; a replica that
    made other keys than the first one is refused when it opens the ledger.
    """
    if keys is None:
        raise LedgerRefused("a ledger on a server needs a keys file that all replicas have: set keys.file")
    keys.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = False
    if not keys.exists():
        with ThreadPoolExecutor(1) as thread:  # whoever asks may have an event loop of its own
            new = thread.submit(asyncio.run, _is_new(_engine(settings))).result()
    keyring = Keyring.load_or_make(keys, ledger_is_new=new)
    return SharedServerLedger(_engine(settings), head_file=settings.head_file), keyring


def _engine(settings: LedgerSettings) -> Engine:
    password = None
    if settings.password_file is not None:
        password = settings.password_file.read_text(encoding="utf-8").strip()
    scheme, _, rest = settings.url.partition("://")
    try:
        if scheme.startswith("postgres"):
            from quietus.ledger.postgresql import PostgresqlEngine

            return PostgresqlEngine(f"postgresql://{rest}", name=settings.name, password=password)
        from quietus.ledger.valkey import ValkeyEngine

        secure = scheme in ("rediss", "valkeys")
        return ValkeyEngine(
            f"{'rediss' if secure else 'redis'}://{rest}", name=settings.name, password=password
        )
    except ImportError:
        extra = "postgresql" if scheme.startswith("postgres") else "redis"
        raise LedgerRefused(
            f"the client of this ledger is not installed: install quietus[{extra}]"
        ) from None


async def _is_new(engine: Engine) -> bool:
    """Whether nothing was ever bound to the ledger."""
    ledger = SharedServerLedger(engine)
    await ledger.open()
    try:
        return not await ledger.key_ids()
    finally:
        await ledger.close()
