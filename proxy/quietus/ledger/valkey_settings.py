"""What a Valkey or Redis server must be set to before an acknowledgement of it is worth anything.

Each fault says which setting is wrong, why that matters, and what to write instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from quietus.ports import LedgerRefused

WATCHED: Final = ("maxmemory", "maxmemory-policy", "appendonly", "appendfsync", "min-replicas-to-write")
"""The settings that are asked for."""


def faults(config: Mapping[str, str], info: Mapping[str, Any]) -> list[str]:
    """What is wrong, worst first. `config` is of CONFIG GET, `info` of INFO."""
    found: list[str] = []
    if info.get("role") != "master":
        found.append("it is a replica: give the address of the primary")
    if info.get("loading"):
        found.append("it is still loading its data: wait until it has")
    if config.get("maxmemory-policy") != "noeviction":
        found.append("it may evict what it acknowledged: set maxmemory-policy to noeviction")
    if config.get("appendonly") != "yes":
        found.append("it keeps nothing past a restart: set appendonly to yes")
    elif config.get("appendfsync") != "always":
        found.append("it acknowledges before the disk has it: set appendfsync to always")
    elif info.get("aof_last_write_status") not in (None, "ok"):
        found.append("its last write to disk failed: make room on its disk")
    followers = int(info.get("connected_slaves") or 0)
    if followers and int(config.get("min-replicas-to-write") or 0) < 1:
        found.append("what it acknowledged may be on no replica: set min-replicas-to-write to 1")
    return found


def refuse(found: list[str]) -> None:
    """Raises LedgerRefused when anything is wrong."""
    if found:
        raise LedgerRefused(f"the ledger's server may lose what it acknowledges: {'; '.join(found)}")
