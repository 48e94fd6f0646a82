"""PostgreSQL: what a slot makes of its configuration, where it is looked for, what is refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import pytest

from atoll.engines.api import Column, Data, Installation, Layout, Table
from atoll.engines.postgresql import config_file
from atoll.engines.postgresql import engine as postgresql
from atoll.engines.postgresql.engine import PostgreSQLEngine, find_postgresql
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import EngineFailed, NotPermitted, UsageError
from atoll.host.fake import FakeHost
from atoll.host.processes import Finished
from atoll.plan import make_plan
from atoll.schema.plan import Plan
from tests.parts.machines import GIB, MIB, NodeShape, build, milan

HOME = "/usr/lib/postgresql/15/bin"
INSTALLED = Installation("15.18", HOME, cache="/cache/postgresql")
ENGINE = PostgreSQLEngine()


def layout(plan: Plan, installed: Installation = INSTALLED) -> Layout:
    return ENGINE.layout(plan, installed, run_dir="/run/x", ports=(), scratch_dir="/var/x")


def settings(made: Layout, index: int) -> dict[str, str]:
    pairs = [line.split(" = ", 1) for line in made.files[f"postgresql-{index}.conf"].splitlines()]
    return {key: value.removeprefix("'").removesuffix("'") for key, value in pairs}


def size_bytes(text: str) -> int:
    return int(text[:-2]) * {"kB": 1 << 10, "MB": 1 << 20}[text[-2:]]


# ---- the layout


@pytest.mark.parametrize("policy", ["wim", "win", "wicp", "wic"])
def test_every_slot_is_a_server_with_its_own_data_and_socket(policy: str) -> None:
    plan = make_plan(milan(2), ENGINE.traits, policy)
    made = layout(plan)
    assert len(made.processes) == len(plan.slots)
    assert ENGINE.ports(plan) == 0
    assert made.endpoints == tuple(spec.ready_socket for spec in made.processes)
    assert len(set(made.endpoints)) == len(plan.slots)
    found = [settings(made, slot.index) for slot in plan.slots]
    assert len({each["data_directory"] for each in found}) == len(plan.slots)
    for spec, slot, each in zip(made.processes, plan.slots, found, strict=True):
        assert spec.slot == slot.index
        # libpq's name for it (PostgreSQL's manual, unix_socket_directories).
        assert spec.ready_socket == f"{each['unix_socket_directories']}/.s.PGSQL.{each['port']}"
        assert spec.argv[4] == each["data_directory"]
        assert spec.argv[-1] == f"config_file=/run/x/postgresql-{slot.index}.conf"
        assert each["data_directory"].startswith("/var/x/")


def test_a_slot_decides_its_servers_sizes() -> None:
    unequal = build([[NodeShape(chiplets=(8, 3), memory_gib=64)]])
    plan = make_plan(unequal, ENGINE.traits, "wicp")
    assert sorted(slot.threads for slot in plan.slots) == [3, 8]
    for slot in plan.slots:
        found = settings(layout(plan), slot.index)
        assert size_bytes(found["shared_buffers"]) == slot.heap_bytes
        assert int(found["max_parallel_workers"]) == slot.threads
        assert int(found["max_worker_processes"]) >= slot.threads
        # With the session's own process a query runs on as many as the slot has threads.
        assert int(found["max_parallel_workers_per_gather"]) + 1 == slot.threads
        together = (
            size_bytes(found["shared_buffers"])
            + size_bytes(found["min_dynamic_shared_memory"])
            + size_bytes(found["work_mem"]) * slot.threads
        )
        assert together <= slot.memory_bytes
        assert size_bytes(found["effective_cache_size"]) <= slot.memory_bytes
        # WIM gets as many streams as the finest policy has servers: more than the default of 100.
        assert int(found["max_connections"]) == 100 + slot.threads


def test_one_thread_runs_no_parallel_query() -> None:
    plan = make_plan(milan(1), ENGINE.traits, "wic")
    assert settings(layout(plan), 0)["max_parallel_workers_per_gather"] == "0"


def test_a_slot_of_more_threads_than_postgresql_takes_still_starts() -> None:
    """It refuses to start with more than 1024 parallel workers."""
    huge = build([[NodeShape(rest=1536, memory_gib=4096)]])
    plan = make_plan(huge, ENGINE.traits, "wim")
    assert plan.slots[0].threads > 1024
    found = settings(layout(plan), 0)
    for name in ("workers", "workers_per_gather", "maintenance_workers"):
        assert int(found[f"max_parallel_{name}"]) <= 1024


def test_a_small_slot_keeps_the_default_for_its_work() -> None:
    small = build([[NodeShape(rest=8, memory_gib=0.5)]])
    plan = make_plan(small, ENGINE.traits, "wim")
    assert plan.slots[0].heap_bytes <= 128 * MIB
    assert size_bytes(settings(layout(plan), 0)["work_mem"]) == 4 * MIB


def test_the_work_of_all_slots_is_equal_between_policies() -> None:
    totals = {
        policy: sum(
            size_bytes(settings(layout(plan), slot.index)["work_mem"]) * slot.threads
            for slot in plan.slots
        )
        for policy in ("win", "wicp", "wic")
        for plan in [make_plan(milan(2), ENGINE.traits, policy)]
    }
    assert max(totals.values()) - min(totals.values()) < GIB // 4, totals


def test_nothing_is_open_to_others() -> None:
    made = layout(make_plan(milan(1), ENGINE.traits, "win"))
    found = settings(made, 0)
    assert found["listen_addresses"] == ""
    assert found["unix_socket_permissions"] == "0700"
    assert {line.split()[0] for line in made.files["pg_hba.conf"].splitlines()} == {"local"}
    assert found["hba_file"] == "/run/x/pg_hba.conf"


def test_quotes_and_backslashes_in_a_path_stay_in_its_string() -> None:
    plan = make_plan(milan(1), ENGINE.traits, "wim")
    made = ENGINE.layout(plan, INSTALLED, run_dir="/run/x", ports=(), scratch_dir=r"/var/it's\now")
    assert r"data_directory = '/var/it''s\\now/data-0'" in made.files["postgresql-0.conf"]


def test_a_template_is_shared_by_slots_but_not_by_builds() -> None:
    plan = make_plan(milan(2), ENGINE.traits, "win")
    other = Installation("15.18", "/opt/pg/bin", cache=INSTALLED.cache)
    templates = [
        {spec.argv[3] for spec in layout(plan, one).processes} for one in (INSTALLED, other)
    ]
    assert [len(each) for each in templates] == [1, 1]
    assert templates[0] != templates[1]
    assert all(path.startswith("/cache/postgresql/15.18-") for each in templates for path in each)


def test_with_tables_every_server_begins_with_the_loaded_template_and_makes_none() -> None:
    table = Table("t", "/d/t/t.parquet", (Column("a", "bigint"),))
    data = Data("tpch-sf1", "ab" * 32, (table,))
    plan = make_plan(milan(2), ENGINE.traits, "win")
    empty, loaded = ENGINE, ENGINE.holding(data)
    for spec in loaded.layout(plan, INSTALLED, run_dir="/run/x", ports=()).processes:
        assert spec.argv[3].startswith("/cache/postgresql/15.18-")
        assert "tpch-sf1-abab" in spec.argv[3]
        assert spec.argv[5] == "--"
    assert layout(plan).processes[0].argv[5] == f"{HOME}/initdb"
    assert loaded.attach(table) == []
    other = Table("other", "/d/other/other.parquet", ())
    for engine, what in ((empty, table), (loaded, other)):
        with pytest.raises(UsageError, match=f"table {what.name} must be loaded"):
            engine.attach(what)


def test_an_unpacked_package_is_given_its_libraries() -> None:
    plan = make_plan(milan(1), ENGINE.traits, "wim")
    assert layout(plan).processes[0].env == {}
    unpacked = Installation("15.18", f"/cache/postgresql-15{HOME}", cache=INSTALLED.cache)
    path = layout(plan, unpacked).processes[0].env["LD_LIBRARY_PATH"]
    assert path.startswith("/cache/postgresql-15/usr/lib/")


# ---- a configuration of the user's


# Open to everybody, as a user's may be: the tests show that Atoll's own takes its place.
THEIRS = UserTree(
    "/etc/pg",
    {
        "postgresql.conf": (
            "listen_addresses = '*'  # all\nwork_mem = 77MB\nfsync = on\nssl = on\n"
            "shared_buffers = 9GB\ninclude_dir = 'conf.d'\n"
        ),
        "conf.d/own.conf": "shared_buffers = 8GB\nrandom_page_cost = 1.1\n",
        "pg_hba.conf": "host all all 0.0.0.0/0 md5\n",
        "base/1/1247": "no configuration",
    },
)


def test_of_the_users_configuration_only_what_placement_needs_is_changed() -> None:
    plan = make_plan(milan(2), ENGINE.traits, "win")
    made = ENGINE.on(THEIRS).layout(
        plan, INSTALLED, run_dir="/run/x", ports=(), scratch_dir="/var/x"
    )
    for slot, spec in zip(plan.slots, made.processes, strict=True):
        assert spec.argv[-1] == f"config_file=/run/x/server-{slot.index}/postgresql.conf"
        found = config_file.read(made.files[f"server-{slot.index}/postgresql.conf"], where="x")
        assert found["listen_addresses"] == ""
        assert found["port"] == str(5432 + slot.index)
        assert size_bytes(found["shared_buffers"]) == slot.heap_bytes
        assert found["hba_file"] == "/run/x/pg_hba.conf"
        assert (found["work_mem"], found["fsync"], found["ssl"]) == ("77MB", "on", "off")
        own = made.files[f"server-{slot.index}/conf.d/own.conf"]
        assert own == THEIRS.texts["conf.d/own.conf"]
        # Behind what is included, which says otherwise.
        lines = made.files[f"server-{slot.index}/postgresql.conf"].splitlines()
        include = lines.index("include_dir = 'conf.d'")
        assert any(line.startswith("shared_buffers") for line in lines[include:])
    assert made.files["pg_hba.conf"] == "local all all trust\n"
    assert not any("1247" in path for path in made.files)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"other.conf": ""}, "/etc/pg: has no postgresql.conf"),
        ({"postgresql.conf": "port = 1\n= 2\n"}, "/etc/pg/postgresql.conf:2"),
        (
            {"postgresql.conf": "include_dir 'conf.d'\n", "conf.d/a.conf": "x = 'y\n"},
            "/etc/pg/conf.d/a.conf:1",
        ),
        ({"postgresql.conf": "include 'nix'\n"}, "/etc/pg/postgresql.conf:1: 'nix' is not there"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_told_by_file_and_line(
    texts: dict[str, str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        ENGINE.on(UserTree("/etc/pg", texts))


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [("4", 8), ("'32'", 32), ("32\ninclude 'own'", 48)],
)
def test_the_users_processes_are_as_many_as_parallel_queries_need_or_more(
    theirs: str, expected: int
) -> None:
    """Extensions of the user's have processes, too."""
    texts = {"postgresql.conf": f"max_worker_processes = {theirs}\n"}
    texts["own"] = "max_worker_processes = 48\n"  # read where it is included only
    machine = build([[NodeShape(rest=8, memory_gib=64)]])
    plan = make_plan(machine, ENGINE.traits, "wim")
    made = ENGINE.on(UserTree("/etc/pg", texts)).layout(plan, INSTALLED, run_dir="/run/x", ports=())
    found = config_file.read(made.files["server-0/postgresql.conf"], where="x")
    assert int(found["max_worker_processes"]) == expected
    assert int(found["max_parallel_workers"]) == 8


@pytest.mark.parametrize(
    "url", ["postgresql://u:hush@h/d?nix=1", "host=h password=hush", "http://hush"]
)
def test_what_is_no_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(UsageError, match=r"postgresql://USER@HOST:PORT/DATABASE") as caught:
        ENGINE.reach(url, timeout_s=2)
    assert "hush" not in str(caught.value)


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    with pytest.raises(EngineFailed, match=r"lets us in at 127\.0\.0\.1:1 ") as caught:
        ENGINE.reach("postgresql://u:hush@127.0.0.1:1/d", timeout_s=2)
    assert "hush" not in str(caught.value)


# ---- where it is looked for


@pytest.fixture
def _nothing_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")


def host_with(versions: dict[str, str]) -> FakeHost:
    def run(argv: Sequence[str]) -> Finished:
        version = versions[os.path.dirname(argv[0])]
        if not version:
            return Finished(127, "", "error while loading shared libraries")
        return Finished(0, f"postgres (PostgreSQL) {version} (Debian)\n", "")

    return FakeHost({f"{home}/initdb": "" for home in versions}, on_run=run)


@pytest.mark.usefixtures("_nothing_on_path")
@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ({"9": "9.6.24", "15": "15.18", "17": "17.5"}, ("17.5", "17")),
        ({"15": "15.18", "17": ""}, ("15.18", "15")),  # lacks a library
        ({"18": "18beta1"}, ("18beta1", "18")),
    ],
)
def test_the_newest_that_runs_is_taken(versions: dict[str, str], expected: tuple[str, str]) -> None:
    host = host_with({f"/usr/lib/postgresql/{m}/bin": v for m, v in versions.items()})
    version, major = expected
    assert find_postgresql(host, cache="/c") == (version, f"/usr/lib/postgresql/{major}/bin")


@pytest.mark.usefixtures("_nothing_on_path")
def test_the_unpacked_package_is_found_last() -> None:
    assert find_postgresql(host_with({f"/c{HOME}": "15.18"}), cache="/c")[1] == f"/c{HOME}"


@pytest.mark.usefixtures("_nothing_on_path")
def test_one_that_is_too_old_is_named_with_what_to_install() -> None:
    host = host_with({"/usr/lib/postgresql/13/bin": "13.22"})
    with pytest.raises(EngineFailed, match=r"/13/bin is 13\.22; .*atoll engine install postgresql"):
        find_postgresql(host, cache="/c")
    with pytest.raises(EngineFailed, match="none was found"):
        find_postgresql(FakeHost(), cache="/c")


def test_root_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "find_postgresql", lambda host, cache: ("15.18", HOME))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(NotPermitted, match=r"as root; .*sudo -u NAME atoll up postgresql"):
        ENGINE.locate(FakeHost())
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert ENGINE.locate(FakeHost()).home == HOME


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "find_postgresql", lambda host, cache: ("15.18", HOME))
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(EngineFailed, match=r"pip install 'atoll\[postgresql\]'"):
        ENGINE.locate(FakeHost())
