"""What a process opens, as its settings name it: the ledger with its keys, the lineage, the bounds."""

from __future__ import annotations

from quietus.assembly import Bounds
from quietus.forgets import ForgetLimits
from quietus.forgetting import DeskLimits
from quietus.gateway import GatewayLimits
from quietus.keys import Keyring
from quietus.ledger.lineage_file import LineageFile
from quietus.ledger.memory import MemoryLedger
from quietus.ledger.sqlite import SqliteLedger
from quietus.ledger_server import open_shared
from quietus.ports import Ledger, LedgerRefused, SharedLedger
from quietus.prober import ProbeLimits
from quietus.settings import Settings
from quietus.snapshotter import SnapshotLimits


def open_ledger(settings: Settings) -> tuple[Ledger, Keyring]:
    """The ledger that the settings name, not opened yet, and the keys that go with it."""
    path = settings.ledger.path
    keys = settings.keys_path
    if settings.ledger.shared:
        return open_shared(settings.ledger, keys)
    if path is None:
        keyring = Keyring.fresh() if keys is None else Keyring.load_or_make(keys, ledger_is_new=True)
        return MemoryLedger(), keyring
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = not path.exists() or path.stat().st_size == 0
    if keys is None:
        raise LedgerRefused("a ledger on disk needs a keys file: set keys.file")
    keys.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    keyring = Keyring.load_or_make(keys, ledger_is_new=new)
    return (
        SqliteLedger(
            path, head_file=settings.ledger.head_file, reserve_bytes=settings.ledger.reserve_bytes
        ),
        keyring,
    )


def lineage_file(settings: Settings) -> LineageFile | None:
    """The file of the lineage, not opened yet; None where nothing is to be kept."""
    path = settings.ledger.path
    return None if path is None else LineageFile(path.with_suffix(".lineage.db"))


def bounds_of(settings: Settings) -> Bounds:
    """The bounds that the settings name."""
    limits, timeouts = settings.limits, settings.timeouts
    response = limits.response_bytes_max
    return Bounds(
        gateway=GatewayLimits(response, timeouts.wait),
        desk=DeskLimits(timeouts.wait, response),
        forgets=ForgetLimits(timeouts.barrier, response),
        probes=ProbeLimits(limits.probes_in_flight_max, limits.probe_rate_per_second, response),
        snapshots=SnapshotLimits(limits.snapshot_records_max, limits.snapshot_seconds_max),
        replicas=settings.store.replicas,
        lease=settings.ledger.lease,
        lineage_records=limits.lineage_records_max,
    )


def worker_ledger(settings: Settings, remote: SharedLedger) -> tuple[Ledger, Keyring]:
    """A worker's ledger and keys: its supervisor's, or, where the ledger is a server's, one of its own."""
    keys = settings.keys_path
    if settings.ledger.shared or keys is None:
        return open_ledger(settings)
    return remote, Keyring.load_or_make(keys, ledger_is_new=False)
