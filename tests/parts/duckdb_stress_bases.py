"""The databases of the DuckDB stress run: opened, steered and closed by whoever comes along."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from atoll.duckdb.scheduler import POLICIES, Scheduler
from atoll.errors import EngineFailed, UsageError
from tests.parts.duckdb import connect
from tests.parts.duckdb_stress_jobs import Fault, Session, Tally, Tpch

FORK_LIMIT_S = 60


class Gate:
    """Many may be inside, or one alone."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._alone = False

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._alone = True  # nobody new comes in
            self._changed.wait_for(lambda: self._inside == 0)
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()


@dataclass(eq=False)
class Base:
    """One database. Sessions have cursors of its root connection, or connections of their own."""

    path: Path | None  # None: in memory, which has no second connection but cursors
    tally: Tally
    tpch: Tpch | None = None
    stays: bool = False  # its root is never closed
    gate: Gate = field(default_factory=Gate)
    root: Any = None
    workers: int = 8
    policy: str = "adaptive"
    opening: threading.Lock = field(default_factory=threading.Lock)

    def session(self, rng: random.Random) -> tuple[Session, bool]:
        """With whether it is a cursor of the root. Inside the gate."""
        own = self.path is not None and rng.random() < 0.3
        with self.opening:
            if own:
                connection = self._open()
            else:
                if self.root is None:
                    self._open_root(rng)
                connection = self.root.cursor()
        self.tally.add("cursors" if not own else "connections")
        return Session(connection, rng, self.tally, self.tpch), not own

    def open_root(self, rng: random.Random) -> None:
        """Else the first session that wants a cursor of it does."""
        with self.opening:
            self._open_root(rng)

    def _open_root(self, rng: random.Random) -> None:
        self.policy = rng.choice(POLICIES)
        self.root = self._open()

    def _open(self) -> Any:
        while True:
            try:
                connection = connect(
                    ":memory:" if self.path is None else self.path,
                    policy=self.policy,
                    workers=self.workers,
                    read_only=self.tpch is not None,
                )
            except UsageError as refused:
                # A connection of its own outlived the root, and with it the policy of then.
                found = [name for name in POLICIES if f"with the policy {name}," in str(refused)]
                if not found:
                    raise
                self.policy = found[0]
                continue
            self.tally.add("opens")
            return connection

    def scheduler(self) -> Scheduler | None:
        with self.opening:
            return None if self.root is None else self.root.atoll

    # What the steering thread does to it -----------------------------------------------------

    def change(self, rng: random.Random) -> None:
        """The policy or the spread: alone, or in the middle of everything, which is refused."""
        if rng.random() < 0.4:
            scheduler = self.scheduler()
            if scheduler is not None:
                self._try_amid(scheduler, rng)
            return
        with self.gate.alone():
            scheduler = self.scheduler()
            if scheduler is None:
                return
            if rng.random() < 0.5:
                self.policy = rng.choice(POLICIES)
                scheduler.policy = self.policy
                self._want(scheduler.policy, self.policy)
                self.tally.add("policy changes")
            else:
                most = min(scheduler.workers, scheduler.chiplets)
                spread = rng.randint(-(-scheduler.workers // 2), most)
                scheduler.set_spread(spread)
                self._want(scheduler.spread, spread)
                self.tally.add("spreads set")

    def _try_amid(self, scheduler: Scheduler, rng: random.Random) -> None:
        policy = rng.choice(POLICIES)
        with self.opening:
            try:
                scheduler.policy = policy
            except UsageError:
                self.tally.add("changes refused")
                return
            self.policy = policy
        self.tally.add("policy changes")

    def _want(self, found: object, wanted: object) -> None:
        if found != wanted:
            raise Fault(f"{found!r} instead of {wanted!r} was set")

    def look(self, rng: random.Random) -> None:
        scheduler = self.scheduler()
        if scheduler is None:
            return
        allowed = os.sched_getaffinity(0)
        for seat in scheduler.threads():
            if not set(seat.cpus) <= allowed:
                raise Fault(f"{seat} is bound to CPUs that this process may not use")
        if rng.random() < 0.1:
            scheduler.profile()
        self.tally.add("looks")

    def close(self, rng: random.Random) -> None:
        """The root goes, closed (and its cursors with it) or just dropped; others may stay."""
        if self.stays:
            return
        with self.gate.alone(), self.opening:
            root, self.root = self.root, None
            if root is not None and rng.random() < 0.7:
                root.close()
                self.tally.add("roots closed")

    def fork(self) -> None:
        """The child must be refused at once, whatever ran in the parent.

        Alone, because the sanitizer's allocator may be locked by a thread that the child lacks.
        """
        with self.gate.alone():
            root = self.root
            if root is None:
                return
            child = os.fork()
            if child == 0:
                signal.alarm(FORK_LIMIT_S)
                refused = False
                try:
                    root.execute("select 1")
                except EngineFailed:
                    refused = True
                finally:
                    os._exit(0 if refused else 1)
        status = os.waitpid(child, 0)[1]
        if status != 0:
            raise Fault(f"a child of fork() was not refused: {status:#x}")
        self.tally.add("forks")


def life(base: Base, rng: random.Random, sessions: set[Session], until: float) -> None:
    """A session from its connection to its end. `sessions` is who may be interrupted."""
    with base.gate.shared():
        session, is_cursor = base.session(rng)
        root = base.root
    sessions.add(session)
    try:
        for _ in range(rng.randint(1, 10)):
            with base.gate.shared():
                if is_cursor and base.root is not root and _is_closed(session):
                    base.tally.add("used after close")
                    return
                if time.monotonic() > until:
                    break
                session.run()
    finally:
        sessions.discard(session)
    with base.gate.shared():
        if rng.random() < 0.7:
            session.connection.close()
        else:
            del session.connection  # left to the collector


def _is_closed(session: Session) -> bool:
    try:
        session.connection.execute("select 1").fetchall()
    except duckdb.ConnectionException:
        return True
    return False


def steer(bases: list[Base], rng: random.Random, until: float) -> None:
    """Changes, looks, closes, forks; every 50 ms or so."""
    deeds = {"change": 10, "look": 6, "close": 4, "fork": 1}
    while time.monotonic() < until:
        time.sleep(min(1.0, rng.expovariate(20)))
        base = rng.choice(bases)
        deed = rng.choices(list(deeds), weights=list(deeds.values()))[0]
        if deed == "fork":
            base.fork()
        else:
            getattr(base, deed)(rng)


def interrupt(sessions: set[Session], rng: random.Random, until: float, tally: Tally) -> None:
    while time.monotonic() < until:
        time.sleep(min(1.0, rng.expovariate(25)))
        now = list(sessions)
        if now and rng.choice(now).interrupt():
            tally.add("interrupts")
