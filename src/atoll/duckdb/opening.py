"""Opens a DuckDB database so that its tasks run on Atoll's workers.

DuckDB is configured for N external threads and starts none. Atoll's extension, loaded into the
database, hands it over to the pool (native/src/duckdb), which has N-1 threads: the caller is the
Nth. Connections become instances of a subclass made for their database, so that a call binds its
thread (`atoll.duckdb.connections`).
"""

from __future__ import annotations

import atexit
import importlib
import itertools
import os
import threading
import time
import warnings
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atoll import _duckdb
from atoll.duckdb.connections import inside, make_types
from atoll.duckdb.scheduler import Scheduler, check_policy
from atoll.errors import EngineFailed, UsageError
from atoll.schema.base import parse
from atoll.schema.plan import Plan

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# The versions that the tests cover.
SUPPORTED = ("1.5.5",)
EXTENSION = Path(_duckdb.__file__).parent / "atoll.duckdb_extension"

# Settings that only Atoll may set.
_OURS = ("external_threads", "pin_threads")

# How DuckDB refuses a file that this process has open with other settings.
_OTHER_SETTINGS = "different configuration"

# DuckDB's spellings of a setting.
_TRUE = ("true", "t", "yes", "y", "1")

# The longest that closing a database may take: its workers end, and it may write a checkpoint.
_CLOSING_S = 5.0
# How long the interpreter's end waits for calls of daemon threads.
_LAST_CALLS_S = 2.0
# How many consecutive checks must find no thread inside a call: a thread that frees a connection
# also releases the interpreter's lock, and no hook could count it.
_LAST_LOOKS = 20

_numbers = itertools.count(1)
_opening = threading.Lock()  # one database at a time: two threads may open the same one
_schedulers: weakref.WeakValueDictionary[int, Scheduler] = weakref.WeakValueDictionary()


class _StillOpen(EngineFailed):
    """By connections that are not Atoll's, or that are just being closed."""


class _OpenElsewhere(EngineFailed):
    """By `duckdb.connect` in this process, with DuckDB's own threads."""


class FallbackWarning(UserWarning):
    """Why a database that was opened with `fallback=True` uses DuckDB's own scheduler."""


def connect(
    path: str | os.PathLike[str] = ":memory:",
    policy: str = "adaptive",
    workers: int | None = None,
    plan: Plan | str | os.PathLike[str] | None = None,
    *,
    fallback: bool = False,
    read_only: bool = False,
    config: Mapping[str, Any] | None = None,
    **duckdb_config: Any,
) -> DuckDBPyConnection:
    """`duckdb.connect(path)`, with the tasks of its queries on Atoll's workers.

    `policy`: how workers are placed. `local`: on the fewest chiplets that hold them; `distributed`:
    on as many chiplets as there are; `adaptive`: by each query's working set and its measurements;
    `none`: unbound. `connection.atoll` is its `Scheduler`: it reports the threads' places and each
    query's costs, and changes the policy. `workers`: the number of threads that run tasks,
    including the caller; by default one for each core that this process may use, within the CPU
    quota of its cgroup. `plan`: a plan
    with one slot (or its file): its CPUs, threads and heap. `fallback`: use DuckDB's own scheduler,
    with a `FallbackWarning`, if Atoll's is unavailable. The rest are DuckDB's settings
    (`memory_limit="8GB"`); `threads` is an alias of `workers`.

    If this process already has the file open, the result is another connection to it. The workers
    end with the last connection. Raises UsageError, EngineFailed, and DuckDB's own exceptions.
    """
    return open_database(
        path,
        policy=policy,
        workers=workers,
        plan=plan,
        fallback=fallback,
        read_only=read_only,
        # DuckDB's names are case-insensitive.
        config={name.lower(): value for name, value in {**(config or {}), **duckdb_config}.items()},
    )


def open_database(
    path: str | os.PathLike[str],
    *,
    policy: str,
    workers: int | None,
    plan: Plan | str | os.PathLike[str] | None,
    fallback: bool,
    read_only: bool,
    config: dict[str, Any],
    places: str | None = None,
) -> DuckDBPyConnection:
    """See `connect`. `places`: simulated places on the real CPUs, as text (`synthetic_places`)."""
    check_policy(policy)
    for name in _OURS:
        if name in config:
            raise UsageError(f"{name} is set by Atoll; remove it")
    slot = None if plan is None else _read_plan(plan).slots[0]
    threads = config.pop("threads", config.pop("worker_threads", None))
    count = _workers(workers, threads, None if slot is None else slot.threads)
    if slot is not None and "max_memory" not in config:  # an alias of memory_limit
        config.setdefault("memory_limit", f"{slot.heap_bytes}B")
    duckdb = _duckdb_module()
    try:
        _check_version(duckdb.__version__)
        _check_extension(config)
        where = _places(places, None if slot is None else slot.cpus)
        with inside():
            return _open_once_closed(
                duckdb, os.fspath(path), policy, count or where.workers, where, read_only, config
            )
    except EngineFailed as fault:
        if not fallback:
            raise
        warnings.warn(FallbackWarning(f"DuckDB's own scheduler: {fault}"), stacklevel=3)
        threads_too = config if count is None else {**config, "threads": count}
        try:
            return _plain(duckdb, path, read_only, threads_too)
        except duckdb.ConnectionException:
            if not isinstance(fault, _OpenElsewhere):
                raise
            return _plain(duckdb, path, read_only, config)  # it has its number of threads already


def _plain(
    duckdb: Any, path: str | os.PathLike[str], read_only: bool, config: dict[str, Any]
) -> DuckDBPyConnection:
    connection: DuckDBPyConnection = duckdb.connect(
        os.fspath(path), read_only=read_only, config=config
    )
    return connection


def _open_once_closed(*arguments: Any) -> DuckDBPyConnection:
    """`_open`, after waiting for a database whose last connection another thread is closing."""
    give_up_s = time.monotonic() + _CLOSING_S
    while True:
        try:
            with _opening:
                return _open(*arguments)
        except _StillOpen:
            if time.monotonic() > give_up_s:
                raise
        time.sleep(0.01)


def _open(
    duckdb: Any,
    path: str,
    policy: str,
    workers: int,
    places: _duckdb.Places,
    read_only: bool,
    config: dict[str, Any],
) -> DuckDBPyConnection:
    settings = {
        **config,
        "threads": workers,
        "external_threads": workers,
        "pin_threads": "off",
        "allow_unsigned_extensions": True,
    }
    lock = settings.pop("lock_configuration", None)  # last of all
    try:
        connection = _plain(duckdb, path, read_only, settings)
    except duckdb.ConnectionException as fault:
        _check_open_here(path, fault)
        raise
    try:
        number = next(_numbers)
        handle = _duckdb.DatabaseHandle(number)
        _load(duckdb, connection, handle)
        if handle.arrived:
            if "allow_unsigned_extensions" not in config:
                connection.execute("SET allow_unsigned_extensions = false")
            if lock is not None:
                connection.execute("SET lock_configuration = ?", [lock])
            pool = _duckdb.Pool(handle, workers, policy, places)
            scheduler = Scheduler(pool, duckdb.__version__, os.path.realpath(path))
            make_types(scheduler, pool, type(connection), duckdb.DuckDBPyRelation)
            _schedulers[number] = scheduler
            scheduler.take(connection)
        else:
            _join(connection, path, policy)
    except RuntimeError as fault:
        connection.close()
        raise UsageError(str(fault)) from None
    except BaseException:
        connection.close()
        raise
    return connection


def _check_open_here(path: str, fault: Exception) -> None:
    """Raises EngineFailed if DuckDB refused a database because it is open without Atoll's workers.
    Returns if Atoll has it open, with other settings."""
    if _OTHER_SETTINGS not in str(fault):
        return
    mine = [one for one in list(_schedulers.values()) if one.path == os.path.realpath(path)]
    if any(one.in_use for one in mine):
        return
    if mine:
        raise _StillOpen(f"{path} is still being closed; open it again once it is closed")
    raise _OpenElsewhere(
        f"{path} is already open in this process through duckdb.connect, on DuckDB's own threads; "
        "close those connections first, or share the database with fallback=True"
    )


def _load(duckdb: Any, connection: Any, handle: _duckdb.DatabaseHandle) -> None:
    quoted = str(EXTENSION).replace("'", "''")
    try:
        handle.expect(str(EXTENSION))
        connection.execute(f"LOAD '{quoted}'")
    except (RuntimeError, duckdb.Error) as fault:
        reason = " ".join(str(fault).split())
        raise EngineFailed(
            f"DuckDB {duckdb.__version__} does not take Atoll's extension ({reason}); use "
            "DuckDB's own scheduler: duckdb.connect(), or fallback=True"
        ) from None
    finally:
        handle.expect_no_more()


def _join(connection: Any, path: str, policy: str) -> None:
    """Gives the connection to the scheduler of its database, which was already open."""
    # Qualified: the database may have a macro of this name.
    number = connection.execute("SELECT system.main.atoll_pool()").fetchone()[0]
    scheduler = _schedulers.get(number)
    if scheduler is not None and not scheduler.is_here:
        raise EngineFailed(
            f"{path} was opened before a fork() and cannot be opened again in the child process; "
            "open it after the fork, or use multiprocessing's spawn"
        )
    if scheduler is not None and scheduler.in_use and scheduler.policy != policy:
        raise UsageError(
            f"{path} is open with the policy {scheduler.policy}, not {policy}; "
            "set connection.atoll.policy to change it for all connections"
        )
    if scheduler is None or not scheduler.join(connection):
        raise _StillOpen(
            f"{path} is still open by connections that are not Atoll's; close these first"
        )


def _read_plan(plan: Plan | str | os.PathLike[str]) -> Plan:
    if not isinstance(plan, Plan):
        where = os.fspath(plan)
        try:
            text = Path(where).read_bytes()
        except OSError as fault:
            raise UsageError(
                f"{where}: {fault.strerror}; make it with: atoll plan duckdb"
            ) from None
        plan = parse(Plan, text, where=where)
    if plan.engine != "duckdb":
        raise UsageError(f"the plan is for {plan.engine}; make one with: atoll plan duckdb")
    if len(plan.slots) != 1:
        raise UsageError(
            f"the plan has {len(plan.slots)} slots, but a database has one; use "
            "atoll plan duckdb --policy wim, or atoll up for several servers"
        )
    if plan.task_threads is not None:
        raise UsageError(
            f"the plan has placement {plan.placement}, one CPU for each thread, but Atoll's "
            "workers move between chiplets; use a plan with --placement none"
        )
    return plan


def _workers(asked: int | None, threads: Any, planned: int | None) -> int | None:
    if asked is not None and threads is not None and asked != threads:
        raise UsageError(f"workers={asked} and threads={threads}: use only one of them")
    count = threads if asked is None else asked
    if count is None:
        return planned
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise UsageError(f"workers={count!r}: use 1 or more, or omit it for one per core")
    return count


def _duckdb_module() -> Any:
    try:
        return importlib.import_module("duckdb")
    except ImportError:
        raise EngineFailed(
            "DuckDB is not installed in this Python; install it with: pip install 'atoll[duckdb]'"
        ) from None


def _check_version(version: str) -> None:
    if version not in SUPPORTED:
        raise EngineFailed(
            f"this atoll does not support DuckDB {version}, only {', '.join(SUPPORTED)}; "
            f"install it with: pip install duckdb=={SUPPORTED[-1]}"
        )


def _check_extension(config: Mapping[str, Any]) -> None:
    if not EXTENSION.is_file():
        raise EngineFailed(f"{EXTENSION} is missing: this atoll was built without it; reinstall it")
    if str(config.get("allow_unsigned_extensions", True)).lower() not in _TRUE:
        raise EngineFailed(
            "allow_unsigned_extensions=False forbids Atoll's extension, which is not signed by "
            "DuckDB; remove it: Atoll turns it off again once the extension is loaded"
        )


def _places(words: str | None, cpus: tuple[int, ...] | None) -> _duckdb.Places:
    try:
        if words is not None:
            return _duckdb.Places.made_up(words, sorted(os.sched_getaffinity(0)))
        return _duckdb.Places.live(cpus)
    except RuntimeError as fault:
        raise UsageError(str(fault)) from None


@atexit.register
def _end_all() -> None:
    """Interrupts queries of daemon threads, and stops these threads there: a thread that returns
    into an interpreter that no longer exists ends the process by a signal."""
    deadline_s = time.monotonic() + _LAST_CALLS_S
    has_daemons = threading.active_count() > 1  # all other threads have ended by now
    looks = _LAST_LOOKS if _duckdb.last_calls() or has_daemons else 0
    while looks > 0 and time.monotonic() < deadline_s:
        if _duckdb.last_calls():
            looks = _LAST_LOOKS
            for scheduler in list(_schedulers.values()):
                scheduler.interrupt()
        else:
            looks -= 1
        time.sleep(0.001)
    for scheduler in list(_schedulers.values()):
        scheduler.end()


def _leave_all() -> None:
    global _opening
    _opening = threading.Lock()  # another thread may have held it
    for scheduler in list(_schedulers.values()):
        scheduler.give_up()


os.register_at_fork(after_in_child=_leave_all)
