"""The rounds of the DuckDB stress run, its watchdog, and what its process may weigh."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import random
import statistics
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import numpy  # noqa: F401 - its threads are there from the first round on, as `fetchnumpy` has them

from tests.parts.answers import TPCH, data_at
from tests.parts.duckdb_stress_bases import Base, interrupt, life, steer
from tests.parts.duckdb_stress_jobs import Session, Tally, Tpch

SCALE_FACTOR = 0.1
THREADS = 6
ROUNDS_S = (3.0, 10.0)  # one round: at least, at most
MIB = 1 << 20
# How much more the last quarter of the rounds may weigh than the second one, by their medians. A
# query that left 1 KiB behind would show after 32,000, which is a quarter of an hour. A young
# process grows by itself (pools of memory for each thread, the latest 4096 queries of a database).
GROWTH_BYTES = 32 * MIB
# With fewer rounds, only what threads and files are left can be told.
LEAST_ROUNDS = 40


@dataclass(frozen=True, slots=True)
class Weight:
    """Of this process between two rounds, when one database is open and nothing runs."""

    resident_bytes: int
    heap_bytes: int  # in use, of malloc's; DuckDB's tables and results are not in it
    threads: int
    files: int


def weigh(first: Weight | None = None) -> Weight:
    """`first`: what there may be of threads and files; others get a while to go."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Weight(
        pages * os.sysconf("SC_PAGE_SIZE"),
        _heap_bytes(),
        _fewest("/proc/self/task", None if first is None else first.threads),
        _fewest("/proc/self/fd", None if first is None else first.files),
    )


def _fewest(folder: str, allowed: int | None) -> int:
    """The fewest entries of some looks: a thread that was joined may be in /proc for a moment
    longer, on a busy machine for many; so more than are allowed are looked at for a minute."""
    fewest = len(os.listdir(folder))
    for look in range(6000):
        if look >= 20 and (allowed is None or fewest <= allowed):
            break
        time.sleep(0.01)
        fewest = min(fewest, len(os.listdir(folder)))
    return fewest


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
            *("uordblks", "fordblks", "keepcost"),
        )
    ]


def _sanitized() -> bool:
    return hasattr(ctypes.CDLL(None), "__sanitizer_get_current_allocated_bytes")


def _heap_bytes() -> int:
    libc = ctypes.CDLL(None)
    if _sanitized():
        libc.__sanitizer_get_current_allocated_bytes.restype = ctypes.c_size_t
        return int(libc.__sanitizer_get_current_allocated_bytes())
    libc.mallinfo2.restype = _Mallinfo
    said = libc.mallinfo2()
    return int(said.uordblks + said.hblkhd)


def growths(weights: Sequence[Weight]) -> list[str]:
    """What grew over the rounds, in words."""
    found = []
    if len(weights) >= LEAST_ROUNDS:
        quarter = len(weights) // 4
        second, last = weights[quarter : 2 * quarter], weights[-quarter:]
        # A sanitizer keeps freed memory and every stack that it has seen.
        for name in ("heap_bytes",) if _sanitized() else ("resident_bytes", "heap_bytes"):
            before, now = (statistics.median(getattr(x, name) for x in w) for w in (second, last))
            if now > before + GROWTH_BYTES:
                found.append(f"{name} grew from {before / MIB:.1f} to {now / MIB:.1f} MiB")
    for name in ("threads", "files"):
        most = max(getattr(one, name) for one in weights)
        if most > getattr(weights[0], name):
            found.append(f"{name}: {getattr(weights[0], name)}, then {most}")
    return found


class Workers:
    """The threads of a round. The first fault of any ends all of them."""

    def __init__(self, hang_s: float) -> None:
        self.faults: list[str] = []
        self._hang_s = hang_s
        self._threads: list[threading.Thread] = []

    def start(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except BaseException:
                self.faults.append(traceback.format_exc())

        self._threads.append(threading.Thread(target=run, daemon=True))
        self._threads[-1].start()

    def wait(self, until: float) -> None:
        """One that is not back in time is lost with its query: stacks, and the end."""
        for thread in self._threads:
            thread.join(max(0.0, until + self._hang_s - time.monotonic()))
            if thread.is_alive():
                print("hangs: a query was lost", flush=True)
                faulthandler.dump_traceback(all_threads=True)
                os._exit(3)


def run(seconds: float, seed: int, hang_s: float) -> int:
    """0: all was well."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="atoll-stress-") as folder:
        path = Path(folder, "tpch.duckdb")
        tpch = _make_tpch(path)
        kept = Base(path, tally, tpch, stays=True)
        # Else a first round in which nobody came to it would weigh less than all later ones.
        kept.open_root(random.Random(seed))
        round_s = min(ROUNDS_S[1], max(ROUNDS_S[0], seconds / 8))
        until = time.monotonic() + seconds
        weights: list[Weight] = []
        faults: list[str] = []
        for number in range(1_000_000):
            if time.monotonic() >= until or faults:
                break
            # No query takes so long that a round could; this one needs no GIL.
            faulthandler.dump_traceback_later(round_s + 2 * hang_s, exit=True)
            rng = random.Random(f"{seed} {number}")
            written = Path(folder, f"written-{number % 2}.duckdb")
            others = [
                Base(where, tally, workers=rng.choice([1, 2, 5, 8])) for where in (None, written)
            ]
            faults = _round(kept, others, rng, round_s, hang_s)
            weights.append(weigh(weights[0] if weights else None))
            tally.add("rounds")
        faulthandler.cancel_dump_traceback_later()
        scheduler = kept.scheduler()
        moves = 0 if scheduler is None else len(scheduler.spreads())
        if kept.root is not None:
            kept.root.close()
    faults += growths(weights) + _not_accounted(tally)
    print(f"{tally.text()}; {moves} changes of the spread of the database that stayed open")
    for weight in (weights[0], weights[len(weights) // 4], weights[-1]):
        print(weight)
    print(f"at the end {weigh()}")
    for fault in faults:
        print(fault)
    print("all right" if not faults else f"{len(faults)} faults")
    return 1 if faults else 0


def _round(
    kept: Base, others: list[Base], rng: random.Random, round_s: float, hang_s: float
) -> list[str]:
    until = time.monotonic() + round_s
    workers = Workers(hang_s)
    sessions: set[Session] = set()
    bases = [kept, *others]

    def live(own: random.Random) -> None:
        while time.monotonic() < until and not workers.faults:
            life(own.choice([kept, *bases]), own, sessions, until)

    seeds = [random.Random(rng.random()) for _ in range(THREADS + 2)]
    for own in seeds[:THREADS]:
        workers.start(partial(live, own))
    workers.start(lambda: steer(bases, seeds[-2], until))
    workers.start(lambda: interrupt(sessions, seeds[-1], until, kept.tally))
    workers.wait(until)
    for base in others:
        if base.root is not None:
            base.root.close()
    return workers.faults


def _make_tpch(path: Path) -> Tpch:
    """A database file, and plain DuckDB's answers from it."""
    data = data_at(SCALE_FACTOR)
    with duckdb.connect(str(path), config={"pin_threads": "off"}) as plain:
        for table, file in data.files.items():
            plain.execute(f"create table {table} as from '{file}'")
        return Tpch.of(plain, tuple(TPCH.queries("duckdb").values()))


def _not_accounted(tally: Tally) -> list[str]:
    ended = ("right answers", "interrupted", "expected errors", "left half-read")
    known = sum(tally[name] for name in ended)
    if known == tally["queries"] > 0:
        return []
    return [f"{tally['queries']} queries began and {known} ended as they should"]
