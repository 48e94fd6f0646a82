"""MariaDB: what a slot makes of its configuration. More: server/test_per_slot.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from atoll.engines.api import Installation, Layout
from atoll.engines.mariadb import option_file
from atoll.engines.mariadb.engine import MariaDBEngine
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import EngineFailed, UsageError
from atoll.host.processes import Finished
from atoll.plan import make_plan
from atoll.schema.plan import Plan
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails
from tests.parts.machines import NodeShape, build, milan
from tests.parts.server_per_slot import command_of

INSTALLED = Installation("10.11.19", "/usr", cache="/cache/mariadb")
ENGINE = MariaDBEngine()


def layout(plan: Plan, installed: Installation = INSTALLED) -> Layout:
    return ENGINE.layout(plan, installed, run_dir="/run/x", ports=(), scratch_dir="/var/x")


def settings(made: Layout, index: int) -> dict[str, str]:
    return option_file.read(made.files[f"mariadb-{index}.cnf"], {"mariadbd"}, where="x")


# ---- the layout


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


def test_a_query_has_one_thread() -> None:
    assert not ENGINE.traits.parallel_query


def test_the_option_file_is_the_first_argument() -> None:
    """MariaDB takes it nowhere else."""
    (process,) = layout(make_plan(milan(1), ENGINE.traits, "wim")).processes
    assert command_of(process).server[1:] == ("--defaults-file=/run/x/mariadb-0.cnf",)


def test_io_threads_stay_within_what_mariadb_takes() -> None:
    for machine, policy, expected in (
        (build([[NodeShape(rest=256, memory_gib=512)]]), "wim", "64"),
        (milan(1), "wic", "2"),
    ):
        plan = make_plan(machine, ENGINE.traits, policy)
        assert settings(layout(plan), 0)["innodb_write_io_threads"] == expected


def test_nothing_is_open_to_others() -> None:
    found = settings(layout(make_plan(milan(1), ENGINE.traits, "win")), 0)
    assert found["skip_networking"] == "ON"
    assert found["socket"].startswith("/run/x/")
    assert found["feedback"] == "OFF"


# ---- a configuration of the user's


def test_a_server_writes_only_into_its_data_directory() -> None:
    text = "[mysqld]\ninnodb_log_group_home_dir = /fast\nwsrep_on = ON\ngeneral_log_file = /x\n"
    found = option_file.read(
        based(UserTree("/etc/x", {"my.cnf": text})), ("mysqld", "mariadbd"), where="x"
    )
    assert found["innodb_log_group_home_dir"] == found["datadir"]
    assert found["general_log_file"].startswith(f"{found['datadir']}/")
    assert found["wsrep_on"] == "OFF"


def test_options_that_not_every_build_knows_are_set_only_if_the_user_sets_them() -> None:
    base = UserTree("/etc/mysql", {"my.cnf": "[mysqld]\nmax_connections = 20\n"})
    plan = make_plan(milan(1), ENGINE.traits, "wim")
    made = ENGINE.on(base).layout(plan, INSTALLED, run_dir="/run/x", ports=())
    text = made.files["server-0/my.cnf"]
    assert "max_connections = 20" in text
    assert "wsrep" not in text
    assert "numa_interleave" not in text


def based(base: UserTree) -> str:
    plan = make_plan(milan(1), ENGINE.traits, "wim")
    return (
        ENGINE.on(base).layout(plan, INSTALLED, run_dir="/run/x", ports=()).files["server-0/my.cnf"]
    )


def test_tls_is_off_after_all_other_options() -> None:
    """Any option of TLS switches it on, and the key belongs to another account."""
    text = based(UserTree("/etc/x", {"my.cnf": "[mysqld]\nssl = on\nssl_key = /nix/key\n"}))
    lines = [line for line in text.splitlines() if "ssl" in line]
    assert lines == ["ssl = on", "ssl_key = /nix/key", "skip_ssl"]


def test_the_binary_log_is_off_after_all_other_options() -> None:
    text = based(UserTree("/etc/x", {"my.cnf": "[mysqld]\nskip-log-bin\nlog_bin = /nix/bin\n"}))
    lines = [line for line in text.splitlines() if "log_bin" in line]
    assert lines.index("skip_log_bin") > lines.index("log_bin = /nix/bin")


@pytest.mark.parametrize(
    ("policy", "theirs", "expected"),
    [
        ("win", "innodb_read_io_threads = 2\n", {"innodb_read_io_threads": "2"}),
        ("win", "innodb-read-io-threads = 40\n", {"innodb_read_io_threads": "8"}),
        ("wim", "innodb_read_io_threads = 40\n", {"innodb_read_io_threads": "40"}),
        ("win", "thread_pool_size = 99\n", {"thread_pool_size": "99"}),  # of no pool
        (
            "win",
            "thread_handling = pool-of-threads\n",
            {"thread_handling": "pool-of-threads", "thread_pool_size": "8"},
        ),
        (
            "win",
            "thread_handling = pool-of-threads\nthread_pool_size = 3\n",
            {"thread_handling": "pool-of-threads", "thread_pool_size": "3"},
        ),
        ("wim", "thread_handling = pool-of-threads\n", {"thread_handling": "pool-of-threads"}),
    ],
)
def test_the_users_threads_stay_where_they_fit(
    policy: str, theirs: str, expected: dict[str, str]
) -> None:
    machine = build([[NodeShape(rest=8, memory_gib=64)]])
    plan = make_plan(machine, ENGINE.traits, policy)
    tree = UserTree("/etc/x", {"my.cnf": f"[mysqld]\n{theirs}"})
    made = ENGINE.on(tree).layout(plan, INSTALLED, run_dir="/run/x", ports=())
    text = made.files["server-0/my.cnf"]
    found = option_file.read(text, {"mysqld", "mariadbd"}, where="x")
    assert expected.items() <= found.items()
    assert ("thread_pool_size" in found) == ("thread_pool_size" in expected)


@pytest.mark.parametrize("version", ["10.11.19", ""])
def test_the_plans_options_are_repeated_after_the_group_of_a_release(version: str) -> None:
    """Also if the server is on another machine, so that its release is unknown."""
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
        {"my.cnf": "!include /elsewhere.cnf\n"},  # its content is unknown
        {"my.cnf": "!includedir /etc/x/conf.d\n", "conf.d/a.cnf": "[galera]\nwsrep_on = 1\n"},
        {"my.cnf": "!include own.ini\n", "own.ini": "[mysqld]\nloose-wsrep-on\n"},
    ],
)
def test_no_server_joins_the_users_cluster(texts: dict[str, str]) -> None:
    assert "\nloose_wsrep_on = OFF\n" in based(UserTree("/etc/x", texts))


# ---- where it is


def test_a_tarball_on_the_path_has_its_own_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "mariadb-11.4.2-linux-systemd-x86_64"
    (home / "bin").mkdir(parents=True)
    (home / "bin/mariadbd").touch(mode=0o755)
    (tmp_path / "mysql").symlink_to(home)  # as in the documentation
    monkeypatch.setenv("PATH", str(tmp_path / "mysql/bin"))
    prints = Finished(0, "mariadbd  Ver 11.4.2-MariaDB for Linux\n", "")
    host = FakeHost({f"{home}/scripts/mariadb-install-db": ""}, on_run=lambda _: prints)
    assert ENGINE.find(host) == ("11.4.2", str(home))
    plan = make_plan(milan(1), ENGINE.traits, "wim")
    (process,) = layout(plan, Installation("11.4.2", str(home), cache="/c")).processes
    command = command_of(process)
    assert command.make[0] == f"{home}/scripts/mariadb-install-db"
    assert command.server[0] == f"{home}/bin/mariadbd"


# ---- a cluster that runs already


@pytest.mark.parametrize("option", ["ssl-ca", "unix_socket"])
def test_an_empty_option_is_refused(option: str) -> None:
    with fails(UsageError, option=f"'{option}'"):
        ENGINE.reach(f"mysql://u:hush@h/d?{option}=", timeout_s=2)


@pytest.mark.parametrize("text", ["password=hush\n[client]\n", "[client]\npassword=hush€\n"])
def test_a_fault_in_an_option_file_does_not_repeat_its_lines(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".my.cnf").write_text(text)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UsageError) as caught:
        ENGINE.reach("mysql://u@127.0.0.1:1/d", timeout_s=2)
    assert str(caught.value).startswith("~/.my.cnf: ")
    assert "hush" not in str(caught.value)


def test_a_password_may_have_any_characters() -> None:
    with fails(EngineFailed, place="127.0.0.1:1"):
        ENGINE.reach("mysql://u:%E2%82%AC@127.0.0.1:1/d", timeout_s=2)
