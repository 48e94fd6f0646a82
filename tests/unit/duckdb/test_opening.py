"""atoll.duckdb before a database is open: arguments, refusals, the fallback, method names."""

from __future__ import annotations

import ctypes
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
from atoll.schema.plan import Placement
from tests.parts.faults import fails
from tests.parts.toy import toy_plan

PLACED = toy_plan(1, placement=Placement.DENSE).model_copy(update={"engine": "duckdb"})


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"policy": "wide"}, {"policy": "'wide'"}),
        ({"workers": 0}, {"option": "workers=0"}),
        ({"workers": -3}, {"option": "workers=-3"}),
        ({"workers": "2"}, {"option": "workers='2'"}),
        ({"workers": True}, {"option": "workers=True"}),
        ({"threads": 0}, {"option": "workers=0"}),
        ({"workers": 2, "threads": 3}, {"option": "workers=2", "other": "threads=3"}),
        ({"workers": 10**6}, {"workers": 10**6}),
        ({"pin_threads": "on"}, {"setting": "pin_threads"}),
        ({"config": {"External_Threads": 2}}, {"setting": "external_threads"}),
        ({"plan": "/no/such/plan.json"}, {"path": "/no/such/plan.json"}),
        ({"plan": PLACED}, {"placement": "dense"}),
    ],
)
def test_bad_arguments(options: dict[str, Any], named: dict[str, object]) -> None:
    for fallback in (False, True):  # which is for faults that are not the user's
        with fails(UsageError, **named):
            atoll.duckdb.connect(**options, fallback=fallback)


# What cannot be had -------------------------------------------------------------------------------


def _unsupported(patch: pytest.MonkeyPatch, _: Path) -> str:
    patch.setattr(duckdb, "__version__", "0.10.3")
    return r"0\.10\.3.* pip install duckdb==1\.5\.5"


def _no_extension(patch: pytest.MonkeyPatch, folder: Path) -> str:
    patch.setattr(opening, "EXTENSION", folder / "atoll.duckdb_extension")
    return "atoll.duckdb_extension"


def _no_library(patch: pytest.MonkeyPatch, folder: Path) -> str:
    (folder / "atoll.duckdb_extension").write_bytes(b"nothing that can be loaded")
    patch.setattr(opening, "EXTENSION", folder / "atoll.duckdb_extension")
    return "fallback=True"


def _other_library(patch: pytest.MonkeyPatch, _: Path) -> str:
    patch.setattr(opening, "EXTENSION", Path(_duckdb.__file__))
    return Path(_duckdb.__file__).name


def _other_platform(patch: pytest.MonkeyPatch, folder: Path) -> str:
    file = opening.EXTENSION.read_bytes()
    # The footer alone names it: the last 512 bytes.
    for platform in (b"linux_amd64", b"linux_arm64"):
        file = file[:-512] + file[-512:].replace(platform, b"linux_other")
    (folder / "atoll.duckdb_extension").write_bytes(file)
    patch.setattr(opening, "EXTENSION", folder / "atoll.duckdb_extension")
    return "linux_other"


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
    with fails(EngineFailed, setting="allow_unsigned_extensions"):
        atoll.duckdb.connect(config={"Allow_Unsigned_Extensions": off})


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("allow_unsigned_extensions", "allow_unsigned_extensions"),
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


def test_a_file_that_plain_duckdb_has_open_is_refused_or_shared(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with duckdb.connect(str(path)) as plain:
        plain.execute("create table t as select 42 a")
        with fails(opening._OpenElsewhere, path=path):
            atoll.duckdb.connect(path)
        for workers in (None, 1):
            with pytest.warns(FallbackWarning, match=r"already open .* through duckdb\.connect"):
                con = atoll.duckdb.connect(path, fallback=True, workers=workers)
            with con:
                assert type(con) is duckdb.DuckDBPyConnection
                assert con.execute("from t").fetchall() == [(42,)]
        with pytest.warns(FallbackWarning), pytest.raises(duckdb.ConnectionException):
            atoll.duckdb.connect(path, fallback=True, memory_limit="1GB")  # as in plain DuckDB
    with atoll.duckdb.connect(path, workers=1) as con:
        assert con.execute("from t").fetchall() == [(42,)]
        for fallback in (False, True):  # Atoll has it open, with other settings
            with pytest.raises(duckdb.ConnectionException):
                atoll.duckdb.connect(path, workers=2, fallback=fallback)


def test_the_refusal_of_a_wrong_number_of_workers_offers_no_refused_remedy() -> None:
    for workers in (0, 10**9):
        with pytest.raises(UsageError) as caught:
            atoll.duckdb.connect(workers=workers)
        assert "or 0" not in str(caught.value)


def test_duckdbs_own_default_connection_can_be_atolls() -> None:
    before = duckdb.default_connection()
    with atoll.duckdb.connect() as con:
        con.execute("create table only_here as select 42 a")
        duckdb.set_default_connection(con)
        try:
            assert duckdb.sql("from only_here").fetchall() == [(42,)]
        finally:
            duckdb.set_default_connection(before)


def test_without_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with fails(EngineFailed, install="pip install 'atoll[duckdb]'"):
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
