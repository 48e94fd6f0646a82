"""MariaDB: what a slot makes of its configuration, where it is looked for, what is refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from atoll.engines.api import Column, Data, Installation, Layout, Table
from atoll.engines.mariadb import engine as mariadb
from atoll.engines.mariadb import option_file
from atoll.engines.mariadb.engine import MariaDBEngine, find_mariadb
from atoll.engines.mariadb.settings import programs
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import EngineFailed, NotPermitted, UsageError
from atoll.host.fake import FakeHost
from atoll.host.processes import Finished
from atoll.plan import make_plan
from atoll.schema.plan import Plan
from tests.parts.machines import GIB, NodeShape, build, milan

INSTALLED = Installation("10.11.19", "/usr", cache="/cache/mariadb")
ENGINE = MariaDBEngine()


def layout(plan: Plan, installed: Installation = INSTALLED) -> Layout:
    return ENGINE.layout(plan, installed, run_dir="/run/x", ports=(), scratch_dir="/var/x")


def settings(made: Layout, index: int) -> dict[str, str]:
    return option_file.read(made.files[f"mariadb-{index}.cnf"], {"mariadbd"}, where="x")


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
    assert len({each["datadir"] for each in found}) == len(plan.slots)
    for spec, slot, each in zip(made.processes, plan.slots, found, strict=True):
        assert spec.slot == slot.index
        assert spec.ready_socket == each["socket"]
        assert spec.argv[4] == each["datadir"]
        # MariaDB takes it as the first argument only.
        assert spec.argv[-2:] == (
            "/usr/sbin/mariadbd",
            f"--defaults-file=/run/x/mariadb-{slot.index}.cnf",
        )
        assert all(each[key].startswith("/var/x/") for key in ("datadir", "tmpdir", "pid_file"))


def test_a_slot_decides_its_servers_sizes() -> None:
    unequal = build([[NodeShape(chiplets=(8, 3), memory_gib=64)]])
    plan = make_plan(unequal, ENGINE.traits, "wicp")
    assert sorted(slot.threads for slot in plan.slots) == [3, 8]
    for slot in plan.slots:
        found = settings(layout(plan), slot.index)
        assert int(found["innodb_buffer_pool_size"]) == slot.heap_bytes
        assert int(found["innodb_read_io_threads"]) == slot.threads
        # One query on each thread, each sorting, joining and filling a table at the same time.
        work = sum(
            int(found[key])
            for key in ("sort_buffer_size", "join_buffer_space_limit", "tmp_memory_table_size")
        )
        assert slot.heap_bytes + work * slot.threads <= slot.memory_bytes
        assert int(found["max_connections"]) == 151 + slot.threads  # a stream for each


def test_a_query_has_one_thread_and_that_is_said() -> None:
    assert not ENGINE.traits.parallel_query


def test_io_threads_stay_within_what_mariadb_takes() -> None:
    for machine, policy, expected in (
        (build([[NodeShape(rest=256, memory_gib=512)]]), "wim", "64"),
        (milan(1), "wic", "2"),
    ):
        plan = make_plan(machine, ENGINE.traits, policy)
        assert settings(layout(plan), 0)["innodb_write_io_threads"] == expected


def test_the_work_of_all_slots_is_equal_between_policies() -> None:
    totals = {
        policy: sum(
            int(settings(layout(plan), slot.index)["sort_buffer_size"]) * slot.threads
            for slot in plan.slots
        )
        for policy in ("win", "wicp", "wic")
        for plan in [make_plan(milan(2), ENGINE.traits, policy)]
    }
    assert max(totals.values()) - min(totals.values()) < GIB // 4, totals


def test_nothing_is_open_to_others() -> None:
    found = settings(layout(make_plan(milan(1), ENGINE.traits, "win")), 0)
    assert found["skip_networking"] == "ON"
    assert found["socket"].startswith("/run/x/")
    assert found["feedback"] == "OFF"


def test_backslashes_in_a_path_stay() -> None:
    plan = make_plan(milan(1), ENGINE.traits, "wim")
    made = ENGINE.layout(plan, INSTALLED, run_dir="/run/x", ports=(), scratch_dir=r"/var/a\now #1")
    assert settings(made, 0)["datadir"] == r"/var/a\now #1/data-0"


def test_with_tables_every_server_begins_with_the_loaded_template_and_makes_none() -> None:
    table = Table("t", "/d/t/t.parquet", (Column("a", "bigint"),))
    data = Data("tpch-sf1", "ab" * 32, (table,))
    plan = make_plan(milan(2), ENGINE.traits, "win")
    loaded = ENGINE.holding(data)
    for spec in loaded.layout(plan, INSTALLED, run_dir="/run/x", ports=()).processes:
        assert "tpch-sf1-abab" in spec.argv[3]
        assert spec.argv[5] == "--"
    assert layout(plan).processes[0].argv[5] == "/usr/bin/mariadb-install-db"
    assert loaded.attach(table) == []
    with pytest.raises(UsageError, match="table t must be loaded"):
        ENGINE.attach(table)


def test_an_unpacked_package_is_given_its_libraries() -> None:
    plan = make_plan(milan(1), ENGINE.traits, "wim")
    assert layout(plan).processes[0].env == {}
    unpacked = Installation("10.11.19", "/cache/m/usr", cache=INSTALLED.cache)
    path = layout(plan, unpacked).processes[0].env["LD_LIBRARY_PATH"]
    assert path.startswith("/cache/m/usr/lib/")


# ---- a configuration of the user's


THEIRS = UserTree(
    "/etc/mysql",
    {
        "my.cnf": "[mysqld]\nport = 3306\nwsrep_on = ON\n!includedir conf.d/\n",
        "conf.d/own.cnf": (
            "[mysqld]\ninnodb-buffer-pool-size = 9G\njoin_buffer_size = 7M\n"
            "innodb_log_group_home_dir = /fast\n[mysqldump]\nquick\n"
        ),
        "debian-start": "#!/bin/bash",
    },
)


def test_of_the_users_configuration_only_what_placement_needs_is_changed() -> None:
    plan = make_plan(milan(2), ENGINE.traits, "win")
    made = ENGINE.on(THEIRS).layout(
        plan, INSTALLED, run_dir="/run/x", ports=(), scratch_dir="/var/x"
    )
    for slot, spec in zip(plan.slots, made.processes, strict=True):
        folder = f"server-{slot.index}"
        assert spec.cwd == folder
        assert spec.argv[-1] == f"--defaults-file=/run/x/{folder}/my.cnf"
        text = made.files[f"{folder}/my.cnf"]
        found = option_file.read(text, {"mysqld", "mariadbd"}, where="x")
        assert int(found["innodb_buffer_pool_size"]) == slot.heap_bytes
        assert found["datadir"] == found["innodb_log_group_home_dir"] == f"/var/x/data-{slot.index}"
        assert found["wsrep_on"] == "OFF"
        assert "join_buffer_size" not in found
        assert made.files[f"{folder}/conf.d/own.cnf"] == THEIRS.texts["conf.d/own.cnf"]
        # Behind what is included, which says otherwise.
        lines = text.splitlines()
        include = lines.index("!includedir conf.d/")
        assert any(line.startswith("innodb_buffer_pool_size") for line in lines[include:])
    assert not any("debian-start" in path for path in made.files)


def test_what_not_every_build_knows_is_set_only_where_the_user_has_it() -> None:
    base = UserTree("/etc/mysql", {"my.cnf": "[mysqld]\nmax_connections = 20\n"})
    plan = make_plan(milan(1), ENGINE.traits, "wim")
    made = ENGINE.on(base).layout(plan, INSTALLED, run_dir="/run/x", ports=())
    text = made.files["server-0/my.cnf"]
    assert "max_connections = 20" in text
    assert "wsrep" not in text
    assert "numa_interleave" not in text


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"other.cnf": ""}, "/etc/mysql: has no my.cnf or mariadb.cnf"),
        ({"my.cnf": "[mysqld]\nwhat is this\n"}, "/etc/mysql/my.cnf:2"),
        (
            {"my.cnf": "!includedir conf.d\n", "conf.d/a.cnf": "port = 1\n"},
            "/etc/mysql/conf.d/a.cnf:1",
        ),
    ],
)
def test_a_configuration_that_cannot_be_read_is_told_by_file_and_line(
    texts: dict[str, str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        ENGINE.on(UserTree("/etc/mysql", texts))


def based(base: UserTree) -> str:
    plan = make_plan(milan(1), ENGINE.traits, "wim")
    return (
        ENGINE.on(base).layout(plan, INSTALLED, run_dir="/run/x", ports=()).files["server-0/my.cnf"]
    )


def test_tls_is_off_behind_all_else() -> None:
    """Any option of TLS switches it on, and the key is another account's."""
    text = based(UserTree("/etc/x", {"my.cnf": "[mysqld]\nssl = on\nssl_key = /nix/key\n"}))
    told = [line for line in text.splitlines() if "ssl" in line]
    assert told == ["ssl = on", "ssl_key = /nix/key", "skip_ssl"]


def test_the_users_binary_log_is_off_behind_all_else() -> None:
    text = based(UserTree("/etc/x", {"my.cnf": "[mysqld]\nskip-log-bin\nlog_bin = /nix/bin\n"}))
    told = [line for line in text.splitlines() if "log_bin" in line]
    assert told.index("skip_log_bin") > told.index("log_bin = /nix/bin")


@pytest.mark.parametrize("version", ["10.11.19", ""])
def test_what_the_plan_decides_is_repeated_behind_a_group_of_a_release(version: str) -> None:
    """Also where the server's release is not known: it is on another machine."""
    text = "[mysqld]\ninnodb_buffer_pool_size = 1G\n"
    text += "[mariadb-10.11]\ninnodb_buffer_pool_size = 999G\n"
    plan = make_plan(milan(1), ENGINE.traits, "wim")
    made = ENGINE.on(UserTree("/etc/x", {"my.cnf": text})).layout(
        plan, replace(INSTALLED, version=version), run_dir="/run/x", ports=()
    )
    groups = {"mysqld", "mariadb-10.11", "mariadbd"}
    found = option_file.read(made.files["server-0/my.cnf"], groups, where="x")
    assert int(found["innodb_buffer_pool_size"]) == plan.slots[0].heap_bytes


@pytest.mark.parametrize(
    "texts",
    [
        {"my.cnf": "!include /elsewhere.cnf\n"},  # nobody knows what is in it
        {"my.cnf": "!includedir /etc/x/conf.d\n", "conf.d/a.cnf": "[galera]\nwsrep_on = 1\n"},
        {"my.cnf": "!include own.ini\n", "own.ini": "[mysqld]\nloose-wsrep-on\n"},
    ],
)
def test_no_server_joins_the_users_cluster(texts: dict[str, str]) -> None:
    assert "\nloose_wsrep_on = OFF\n" in based(UserTree("/etc/x", texts))


# ---- where it is looked for


@pytest.fixture
def _nothing_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")


def host_with(versions: dict[str, str]) -> FakeHost:
    def run(argv: Sequence[str]) -> Finished:
        assert argv[1] == "--no-defaults"  # the system's own my.cnf may be broken
        version = versions[os.path.dirname(os.path.dirname(argv[0]))]
        if not version:
            return Finished(127, "", "error while loading shared libraries")
        return Finished(0, f"{argv[0]}  Ver {version}-MariaDB-0+deb12u1 for debian-linux-gnu\n", "")

    return FakeHost({programs(home)[1]: "" for home in versions}, on_run=run)


@pytest.mark.usefixtures("_nothing_on_path")
@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ({"/usr": "10.11.19", "/c/usr": "11.4.2"}, ("10.11.19", "/usr")),
        ({"/usr": "10.5.8", "/c/usr": "10.11.19"}, ("10.11.19", "/c/usr")),
        ({"/usr": "", "/c/usr": "11.4.2"}, ("11.4.2", "/c/usr")),
    ],
)
def test_the_first_that_runs_and_is_new_enough_is_taken(
    versions: dict[str, str], expected: tuple[str, str]
) -> None:
    assert find_mariadb(host_with(versions), unpacked="/c") == expected


def test_a_tarball_on_the_path_is_taken_as_it_is_laid_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "mariadb-11.4.2-linux-systemd-x86_64"
    (home / "bin").mkdir(parents=True)
    (home / "bin/mariadbd").touch(mode=0o755)
    (tmp_path / "mysql").symlink_to(home)  # as the documentation has it
    monkeypatch.setenv("PATH", str(tmp_path / "mysql/bin"))
    assert find_mariadb(host_with({str(home): "11.4.2"}), unpacked="") == ("11.4.2", str(home))
    plan = make_plan(milan(1), ENGINE.traits, "wim")
    (process,) = layout(plan, Installation("11.4.2", str(home), cache="/c")).processes
    assert process.argv[5] == f"{home}/scripts/mariadb-install-db"
    assert f"{home}/bin/mariadbd" in process.argv


@pytest.mark.usefixtures("_nothing_on_path")
def test_one_that_is_too_old_is_named_with_what_to_do() -> None:
    with pytest.raises(EngineFailed, match=r"in /usr is 10\.5\.8; .*atoll engine install mariadb"):
        find_mariadb(host_with({"/usr": "10.5.8"}), unpacked="")
    with pytest.raises(EngineFailed, match="needed; that in /usr does not run; fetch it with"):
        find_mariadb(host_with({"/usr": ""}), unpacked="")
    with pytest.raises(EngineFailed, match="none was found"):
        find_mariadb(FakeHost(), unpacked="")


def test_root_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb, "find_mariadb", lambda host, unpacked: ("10.11.19", "/usr"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(NotPermitted, match=r"as root; .*sudo -u NAME atoll up mariadb"):
        ENGINE.locate(FakeHost())
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert ENGINE.locate(FakeHost()).home == "/usr"


def test_without_pymysql_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb, "find_mariadb", lambda host, unpacked: ("10.11.19", "/usr"))
    monkeypatch.setitem(sys.modules, "pymysql", None)
    with pytest.raises(EngineFailed, match=r"pip install 'atoll\[mariadb\]'"):
        ENGINE.locate(FakeHost())


# ---- a cluster that runs already


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hush@h/d",
        "mysql://u:hush@h:port/d",
        "mysql://",
        "mysql://h/d?hush",
        "mysql://u:hush@db..example/d",
    ],
)
def test_what_is_no_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(UsageError, match="mysql://USER@HOST:PORT/DATABASE") as caught:
        ENGINE.reach(url, timeout_s=2)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("option", ["ssl-ca", "unix_socket"])
def test_an_empty_option_is_not_passed_over(option: str) -> None:
    with pytest.raises(UsageError, match=f"'{option}' has no value"):
        ENGINE.reach(f"mysql://u:hush@h/d?{option}=", timeout_s=2)


@pytest.mark.parametrize("text", ["password=hush\n[client]\n", "[client]\npassword=hush€\n"])
def test_an_option_file_that_cannot_be_read_is_told_without_its_lines(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".my.cnf").write_text(text)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UsageError, match=r"~/\.my\.cnf: cannot be read") as caught:
        ENGINE.reach("mysql://u@127.0.0.1:1/d", timeout_s=2)
    assert "hush" not in str(caught.value)


def test_a_password_may_have_any_characters() -> None:
    with pytest.raises(EngineFailed, match=r"lets us in at 127\.0\.0\.1:1 "):
        ENGINE.reach("mysql://u:%E2%82%AC@127.0.0.1:1/d", timeout_s=2)


def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    with pytest.raises(EngineFailed, match=r"lets us in at 127\.0\.0\.1:1 ") as caught:
        ENGINE.reach("mariadb://u:hush@127.0.0.1:1/d", timeout_s=2)
    assert "hush" not in str(caught.value)
