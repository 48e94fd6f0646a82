"""Puts a measurement together, and refuses what cannot work before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from atoll.engines import registry
from atoll.engines.api import Progress
from atoll.engines.calls import located
from atoll.engines.transactions import TransactionalEngine, Transactions
from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.oltp.measure import Setup
from atoll.oltp.seats import make_seats
from atoll.probing.memory import free_bytes
from atoll.schema.machine import Machine
from atoll.schema.size import gib
from atoll.store.once import require_room
from atoll.store.paths import cache_dir

_LOG_BYTES = 2 << 30  # of the write-ahead log, and what the transactions add


def engine_of() -> TransactionalEngine:
    """The first engine that has transactional workloads."""
    engines = map(registry.get, registry.names())
    return next(one for one in engines if isinstance(one, TransactionalEngine))


def prepare(
    host: Host,
    machine: Machine,
    engine: TransactionalEngine,
    sizes: Mapping[str, int],
    cores: Sequence[int],
    *,
    warmup_s: int,
    measured_s: int,
    blocks: int,
    progress: Progress,
) -> Setup:
    """Raises UsageError (a size, the cores, too little memory), EngineFailed (not installed, no
    driver), DiskFull."""
    works = {name: engine.transactions(name, size) for name, size in sizes.items()}
    seats, notes = make_seats(machine, engine.traits, cores)
    installation = located(engine, host)
    for name, work in works.items():
        work.drive(installation, "/", clients=1, seconds=1, seed=1)  # raises without a driver
        _require_memory(name, work, free_bytes(host, machine))
    # Each once in the cache, which ycsb and ycsb-zipf share, and a copy of one for a run.
    sizes_bytes = {work.data.name: work.database_bytes for work in works.values()}
    room = sum(sizes_bytes.values()) + max(sizes_bytes.values()) + _LOG_BYTES
    require_room(cache_dir(), room, ", ".join(works))
    for work in works.values():
        work.load(installation, host=host, progress=progress)
    return Setup(
        engine=engine,
        installation=installation,
        works=works,
        seats=seats,
        notes=tuple(notes),
        warmup_s=warmup_s,
        measured_s=measured_s,
        blocks=blocks,
    )


def _require_memory(name: str, work: Transactions, free: int) -> None:
    """What does not fit into memory would measure the disk."""
    need = work.database_bytes
    if need > free:
        most = max(1, work.size * free // need)
        raise UsageError(
            f"{name} of size {work.size} takes about {gib(need)}, and {gib(free)} of memory may be "
            f"used here; choose {most} or less"
        )
