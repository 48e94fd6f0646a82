"""atoll.duckdb before there is a database: arguments, refusals, the fallback, names of methods."""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import atoll.duckdb
from atoll import _duckdb
from atoll.duckdb import FallbackWarning, methods, opening
from atoll.duckdb.scheduler import Scheduler
from atoll.errors import EngineFailed, UsageError


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policy": "wide"}, "choose one of adaptive, local, distributed, none"),
        ({"workers": 0}, "workers=0: give 1 or more"),
        ({"workers": -3}, "workers=-3: give 1 or more"),
        ({"workers": "2"}, "workers='2': give 1 or more"),
        ({"workers": True}, "workers=True: give 1 or more"),
        ({"threads": 0}, "workers=0: give 1 or more"),
        ({"workers": 2, "threads": 3}, "workers=2 and threads=3: give one of them"),
        ({"workers": 10**6}, "give at most"),
        ({"pin_threads": "on"}, "pin_threads is set by Atoll"),
        ({"config": {"External_Threads": 2}}, "external_threads is set by Atoll"),
        ({"plan": "/no/such/plan.json"}, "/no/such/plan.json: No such file .* atoll plan duckdb"),
    ],
)
def test_bad_arguments(options: dict[str, Any], said: str) -> None:
    for fallback in (False, True):  # which is for faults that are not the user's
        with pytest.raises(UsageError, match=said):
            atoll.duckdb.connect(**options, fallback=fallback)


# What cannot be had -------------------------------------------------------------------------------


def _unsupported(patch: pytest.MonkeyPatch, _: Path) -> str:
    patch.setattr(duckdb, "__version__", "0.10.3")
    return "DuckDB 0.10.3 is not supported .* pip install duckdb==1.5.5"


def _no_extension(patch: pytest.MonkeyPatch, folder: Path) -> str:
    patch.setattr(opening, "EXTENSION", folder / "atoll.duckdb_extension")
    return "atoll.duckdb_extension is missing: .* install it anew"


def _no_library(patch: pytest.MonkeyPatch, folder: Path) -> str:
    (folder / "atoll.duckdb_extension").write_bytes(b"nothing that can be loaded")
    patch.setattr(opening, "EXTENSION", folder / "atoll.duckdb_extension")
    return "does not take Atoll's extension .*fallback=True"


def _other_library(patch: pytest.MonkeyPatch, _: Path) -> str:
    patch.setattr(opening, "EXTENSION", Path(_duckdb.__file__))
    return "is not Atoll's extension"


def _other_platform(patch: pytest.MonkeyPatch, folder: Path) -> str:
    file = opening.EXTENSION.read_bytes()
    # The footer alone names it: the last 512 bytes.
    for platform in (b"linux_amd64", b"linux_arm64"):
        file = file[:-512] + file[-512:].replace(platform, b"linux_other")
    (folder / "atoll.duckdb_extension").write_bytes(file)
    patch.setattr(opening, "EXTENSION", folder / "atoll.duckdb_extension")
    return "does not take Atoll's extension .*linux_other"


@pytest.mark.parametrize(
    "prepare", [_unsupported, _no_extension, _no_library, _other_library, _other_platform]
)
def test_refusals(
    prepare: Callable[[pytest.MonkeyPatch, Path], str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    said = prepare(monkeypatch, tmp_path)
    _assert_refused_or_plain(said, {})


@pytest.mark.parametrize("off", ["no", "N", "f", "FALSE", "0", 0, None, "off"])
def test_every_word_for_off_forbids_the_extension(off: object) -> None:
    with pytest.raises(EngineFailed, match="forbids Atoll's extension"):
        atoll.duckdb.connect(config={"Allow_Unsigned_Extensions": off})


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("allow_unsigned_extensions", "forbids Atoll's extension, which is not signed"),
        ("enable_external_access", "Loading external extensions is disabled"),
    ],
)
def test_refused_by_policy(setting: str, said: str) -> None:
    _assert_refused_or_plain(said, {setting: False})


def _assert_refused_or_plain(said: str, config: dict[str, Any]) -> None:
    with pytest.raises(EngineFailed, match=said):
        atoll.duckdb.connect(**config)
    with pytest.warns(FallbackWarning, match=f"DuckDB's own scheduler: .*{said}") as seen:
        con = atoll.duckdb.connect(fallback=True, workers=3, **config)
    assert [str(warning.filename) for warning in seen] == [__file__]
    with con:
        assert type(con) is duckdb.DuckDBPyConnection
        assert con.execute("select current_setting('threads')").fetchall() == [(3,)]
        for name, value in config.items():
            assert con.execute(f"select current_setting('{name}')").fetchall() == [(value,)]


def test_without_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(EngineFailed, match=r"pip install 'atoll\[duckdb\]'"):
        atoll.duckdb.connect()


def test_fallback_says_nothing_where_all_is_well() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with atoll.duckdb.connect(fallback=True, workers=2) as con:
            assert isinstance(con.atoll, Scheduler)  # type: ignore[attr-defined]  # of ours


def test_a_duckdb_without_the_symbols() -> None:
    """The extension asks the library that calls it: here the C library, which has none of them."""

    class Access(ctypes.Structure):
        _fields_ = (
            ("set_error", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)),
            ("get_database", ctypes.c_void_p),
            ("get_api", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)),
        )

    said: list[bytes] = []
    access = Access(
        type(Access().set_error)(lambda _, error: said.append(error)),
        ctypes.cast(ctypes.CDLL(None).getenv, ctypes.c_void_p),
        type(Access().get_api)(lambda _, version: 1),
    )
    handle = _duckdb.DatabaseHandle(1)
    handle.expect(str(opening.EXTENSION))
    try:
        enter = ctypes.CDLL(str(opening.EXTENSION)).atoll_init_c_api
        enter.restype = ctypes.c_bool
        assert not enter(None, ctypes.byref(access))
    finally:
        handle.expect_no_more()
    assert len(said) == 1 and said[0].endswith(b" has no duckdb_create_task_state")
    assert not handle.arrived


def test_extension_is_loaded_by_connect_alone() -> None:
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as con:
        with pytest.raises(duckdb.Error, match=r"open the database with atoll.duckdb.connect\(\)"):
            con.load_extension(str(opening.EXTENSION))
        assert con.execute("select 42").fetchall() == [(42,)]


# Methods ------------------------------------------------------------------------------------------


def test_every_method_that_gives_a_relation_or_a_result_is_wrapped() -> None:
    wrapped = {name for name, _ in methods.connection_methods(duckdb.DuckDBPyConnection)}
    # Those that build types or values, look something up, or must not wait.
    left = {name for name in dir(duckdb.DuckDBPyConnection) if name[0] != "_"} - wrapped
    assert left <= {
        *("array_type", "decimal_type", "dtype", "enum_type", "list_type", "map_type", "row_type"),
        *("sqltype", "string_type", "struct_type", "type", "union_type", "create_function"),
        *("remove_function", "register", "unregister", "register_filesystem", "list_filesystems"),
        *("unregister_filesystem", "filesystem_is_registered", "install_extension", "interrupt"),
        *("load_extension", "extract_statements", "get_table_names", "query_progress", "rowcount"),
        *("description", "disable_profiling", "enable_profiling", "get_profiling_information"),
        *("close", "cursor", "duplicate", "fetchone"),  # fetchone: see methods.py
    }
    wrapped = {name for name, _ in methods.relation_methods(duckdb.DuckDBPyRelation)}
    left = {name for name in dir(duckdb.DuckDBPyRelation) if name[0] != "_"} - wrapped
    assert left <= {
        *("alias", "close", "set_alias", "sql_query", "columns", "description", "dtypes", "shape"),
        *("type", "types"),
    }


def test_names_that_a_version_lacks_are_left_out() -> None:
    class Older:
        def execute(self) -> None: ...

    assert methods.connection_methods(Older) == [("execute", "query")]
    assert {name for name, _ in methods.relation_methods(Older)} == {
        *("execute", "__repr__", "__str__"),  # every class has the latter
    }


# Who is there -------------------------------------------------------------------------------------


class _Pool:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.stops: list[str] = []
        self.forgotten: list[int] = []

    def stop(self) -> None:
        self.stops.append("stop")

    def forget(self, owner: int) -> None:
        self.forgotten.append(owner)


class _Connection:
    pass


class _Ours(_Connection):
    pass


@pytest.fixture
def bookkeeping() -> tuple[Scheduler, _Pool]:
    pool = _Pool()
    scheduler = Scheduler(pool, "1.5.5")  # type: ignore[arg-type]  # a fake
    scheduler.connections = _Ours
    return scheduler, pool


def test_workers_end_with_the_last_connection(bookkeeping: tuple[Scheduler, _Pool]) -> None:
    scheduler, pool = bookkeeping
    one, other = scheduler.take(_Connection()), scheduler.take(_Connection())
    assert type(one) is _Ours
    scheduler.closed(one)
    assert pool.stops == []
    scheduler.closed(one)
    del other
    assert pool.stops == ["stop"] and not scheduler.in_use
    assert len(set(pool.forgotten)) == 2


def test_closing_closes_cursors_of_cursors(bookkeeping: tuple[Scheduler, _Pool]) -> None:
    scheduler, pool = bookkeeping
    one = scheduler.take(_Connection())
    cursor = scheduler.take(_Connection(), one)
    deeper = scheduler.take(_Connection(), cursor)
    alone = scheduler.take(_Connection())
    pool.forgotten.clear()
    scheduler.closed(one)
    assert sorted(pool.forgotten) == sorted(map(id, (one, cursor, deeper)))
    assert pool.stops == []
    scheduler.closed(alone)
    assert pool.stops == ["stop"]


def test_a_relation_keeps_workers_unless_its_connection_was_closed(
    bookkeeping: tuple[Scheduler, _Pool],
) -> None:
    scheduler, pool = bookkeeping
    con = scheduler.take(_Connection())
    relation, derived = _Connection(), _Connection()
    scheduler.add_relation(relation, con)
    scheduler.add_relation(derived, relation)
    del con, relation
    assert pool.stops == []
    del derived
    assert pool.stops == ["stop"]

    con, relation = scheduler.take(_Connection()), _Connection()
    scheduler.add_relation(relation, con)
    scheduler.closed(con)
    assert pool.stops == ["stop", "stop"]


@pytest.mark.parametrize(
    ("last_calls", "done"),
    [
        ([(0, 0)], []),  # nobody calls: connections are left to whoever has them
        ([(2, 0), (1, 1), (0, 2)], ["interrupt"] * 4 + ["close"] * 2),
        ([(1, 0), (0, 0)], ["interrupt"] * 2),
    ],
)
def test_the_end_interrupts_who_still_calls(
    last_calls: list[tuple[int, int]],
    done: list[str],
    bookkeeping: tuple[Scheduler, _Pool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = []

    class Caller(_Ours):
        def interrupt(self) -> None:
            told.append("interrupt")
            raise ValueError("closed by now")

        def close(self) -> None:
            told.append("close")
            raise ValueError("no checkpoint")

    scheduler, pool = bookkeeping
    scheduler.connections = Caller
    callers = [scheduler.take(_Connection()) for _ in range(2)]
    monkeypatch.setattr(opening, "_schedulers", {1: scheduler})
    monkeypatch.setattr(_duckdb, "last_calls", iter(last_calls).__next__)
    opening._end_all()
    assert told == done and len(callers) == 2
    assert pool.stops == ["stop"]


def test_the_end_does_not_wait_for_ever(
    bookkeeping: tuple[Scheduler, _Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a call that no interrupt ends; its connection could not be closed either."""
    scheduler, pool = bookkeeping
    monkeypatch.setattr(opening, "_schedulers", {1: scheduler})
    monkeypatch.setattr(opening, "_LAST_CALLS_S", 0.05)
    monkeypatch.setattr(_duckdb, "last_calls", lambda: (1, 1))
    opening._end_all()
    assert pool.stops == ["stop"]


def _with_id(number: int) -> _Connection:
    """One that has an id that was another's."""
    others = []
    for _ in range(10000):
        found = _Connection()
        if id(found) == number:
            return found
        others.append(found)
    pytest.skip("this Python gave the id to nothing")


def test_an_id_that_comes_again_is_not_who_had_it(bookkeeping: tuple[Scheduler, _Pool]) -> None:
    scheduler, pool = bookkeeping
    one, other = scheduler.take(_Connection()), scheduler.take(_Connection())
    cursor = scheduler.take(_Connection(), one)
    number = id(cursor)
    del cursor
    cursor = scheduler.take(_with_id(number), other)
    scheduler.closed(one)  # closes its cursor, which is no more
    del other
    assert scheduler.in_use and pool.stops == []

    relation = _Connection()
    scheduler.add_relation(relation, cursor)
    keeps = scheduler.take(_Connection())
    number = id(cursor)
    del cursor
    scheduler.closed(scheduler.take(_with_id(number), keeps))
    del keeps
    assert pool.stops == []
    del relation
    assert pool.stops == ["stop"]


def test_queries_of_who_had_an_id_before_are_over(bookkeeping: tuple[Scheduler, _Pool]) -> None:
    """A closed connection may be called in vain, and nobody tells of its end."""
    scheduler, pool = bookkeeping
    con, relation = scheduler.take(_Connection()), _Connection()
    scheduler.add_relation(relation, con)
    assert pool.forgotten == [id(con), id(relation)]


def test_nobody_joins_a_database_that_is_being_closed(
    bookkeeping: tuple[Scheduler, _Pool],
) -> None:
    scheduler, pool = bookkeeping
    one, other = scheduler.take(_Connection()), _Connection()
    assert scheduler.join(other)
    assert type(other) is _Ours
    scheduler.closed(one)
    scheduler.closed(other)
    late = _Connection()
    assert not scheduler.join(late)
    assert type(late) is _Connection
    assert pool.stops == ["stop"] and not scheduler.in_use


def test_nothing_is_asked_of_the_pool_of_another_process(
    bookkeeping: tuple[Scheduler, _Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, _ = bookkeeping
    own = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    asked: list[Callable[[], object]] = [
        *(lambda: scheduler.policy, lambda: scheduler.spread, lambda: scheduler.chiplets),
        *(scheduler.threads, scheduler.queries, scheduler.spreads, scheduler.profile),
        *(lambda: setattr(scheduler, "policy", "local"), lambda: scheduler.set_spread(2)),
    ]
    for ask in asked:  # the pool here has nothing that could be asked, either
        with pytest.raises(EngineFailed, match=r"before a fork\(\)"):
            ask()
    assert "fork" in repr(scheduler)


def test_another_process_is_refused(
    bookkeeping: tuple[Scheduler, _Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, pool = bookkeeping
    con = scheduler.take(_Connection())
    pool.forgotten.clear()
    own = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    with pytest.raises(EngineFailed, match=r"before a fork\(\): open the database anew"):
        scheduler.check_process()
    scheduler.end()
    del con
    assert pool.stops == [] and pool.forgotten == []
