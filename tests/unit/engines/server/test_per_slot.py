"""The contract of engines with a server per slot, for PostgreSQL and MariaDB alike."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from atoll.engines.api import Column, Data, Installation, Layout, Table
from atoll.engines.mariadb import option_file
from atoll.engines.mariadb.engine import MariaDBEngine
from atoll.engines.postgresql import config_file
from atoll.engines.postgresql.engine import PostgreSQLEngine
from atoll.engines.server import per_slot
from atoll.engines.server.per_slot import ServerPerSlot
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import ClientMissing, EngineFailed, NotPermitted, UsageError
from atoll.host.processes import Finished
from atoll.plan import make_plan
from atoll.schema.plan import Plan, Slot
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails
from tests.parts.machines import GIB, milan
from tests.parts.server_per_slot import command_of

TABLE = Table("t", "/d/t/t.parquet", (Column("a", "bigint"),))
DATA = Data("tpch-sf1", "ab" * 32, (TABLE,))


@dataclass(frozen=True)
class Kind:
    """One such engine, with what its tests need to know of it."""

    engine: ServerPerSlot
    home: str
    version: str
    prints: str  # what the server prints of its version
    old: tuple[str, str]  # a home and a version that is too old
    config: str  # the name of a user's configuration file
    data_directory: str  # the setting
    work_of: Callable[[dict[str, str], Slot], int]
    base: UserTree  # a user's configuration, open to everybody
    tuned: tuple[str, str]  # a setting of the user's that stays
    buffers: str  # a setting that the plan decides
    unreadable: tuple[dict[str, str], str]  # texts, and where the fault is
    urls: tuple[str, ...]  # that are not the engine's
    url: str  # of a server that does not exist

    @property
    def installed(self) -> Installation:
        return Installation(self.version, self.home, cache="/cache/x")

    def layout(self, plan: Plan, scratch_dir: str = "/var/x") -> Layout:
        return self.engine.layout(
            plan, self.installed, run_dir="/run/x", ports=(), scratch_dir=scratch_dir
        )

    def read(self, text: str) -> dict[str, str]:
        if self.config == "my.cnf":
            return option_file.read(text, ("mysqld", "mariadbd"), where="x")
        return config_file.read(text, where="x")

    def settings(self, made: Layout, slot: Slot) -> dict[str, str]:
        return self.read(made.files[self.engine.config_name.format(slot.index)])


POSTGRESQL = Kind(
    PostgreSQLEngine(),
    home="/usr/lib/postgresql/15/bin",
    version="15.18",
    prints="postgres (PostgreSQL) {} (Debian)\n",
    old=("/usr/lib/postgresql/13/bin", "13.22"),
    config="postgresql.conf",
    data_directory="data_directory",
    work_of=lambda found, slot: int(found["work_mem"].removesuffix("kB")) * 1024 * slot.threads,
    base=UserTree(
        "/etc/x",
        {
            "postgresql.conf": (
                "listen_addresses = '*'  # all\nwork_mem = 77MB\nfsync = on\nssl = on\n"
                "shared_buffers = 9GB\ninclude_dir = 'conf.d'\n"
            ),
            "conf.d/own.conf": "shared_buffers = 8GB\nrandom_page_cost = 1.1\n",
            "pg_hba.conf": "host all all 0.0.0.0/0 md5\n",
            "base/1247": "no configuration",
        },
    ),
    tuned=("work_mem", "77MB"),
    buffers="shared_buffers",
    unreadable=(
        {"postgresql.conf": "include_dir 'conf.d'\n", "conf.d/a.conf": "x = 'y\n"},
        "/etc/x/conf.d/a.conf:1",
    ),
    urls=("postgresql://u:hush@h/d?nix=1", "host=h password=hush", "http://hush"),
    url="postgresql://u:hush@127.0.0.1:1/d",
)
MARIADB = Kind(
    MariaDBEngine(),
    home="/usr",
    version="10.11.19",
    prints="mariadbd  Ver {}-MariaDB-0+deb12u1 for debian-linux-gnu\n",
    old=("/usr", "10.5.8"),
    config="my.cnf",
    data_directory="datadir",
    work_of=lambda found, slot: int(found["sort_buffer_size"]) * slot.threads,
    base=UserTree(
        "/etc/x",
        {
            "my.cnf": (
                "[mysqld]\nport = 3306\nwsrep_on = ON\njoin_buffer_size = 7M\n!includedir conf.d/\n"
            ),
            "conf.d/own.cnf": (
                "[mysqld]\ninnodb-buffer-pool-size = 9G\n"
                "innodb_log_group_home_dir = /fast\n[mysqldump]\nquick\n"
            ),
            "base/1247": "no configuration",
        },
    ),
    tuned=("join_buffer_size", "7M"),
    buffers="innodb_buffer_pool_size",
    unreadable=(
        {"my.cnf": "!includedir conf.d\n", "conf.d/a.cnf": "port = 1\n"},
        "/etc/x/conf.d/a.cnf:1",
    ),
    urls=(
        "postgresql://u:hush@h/d",
        "mysql://u:hush@h:port/d",
        "mysql://",
        "mysql://h/d?hush",
        "mysql://u:hush@db..example/d",
    ),
    url="mariadb://u:hush@127.0.0.1:1/d",
)
KINDS = [POSTGRESQL, MARIADB]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.engine.title)


# ---- the layout


@each_kind
@pytest.mark.parametrize("policy", ["wim", "win", "wicp", "wic"])
def test_every_slot_is_a_server_with_its_own_data_and_socket(kind: Kind, policy: str) -> None:
    plan = make_plan(milan(2), kind.engine.traits, policy)
    made = kind.layout(plan)
    assert kind.engine.ports(plan) == 0
    assert made.endpoints == tuple(spec.ready_socket for spec in made.processes)
    assert len(set(made.endpoints)) == len(plan.slots)
    for spec, slot in zip(made.processes, plan.slots, strict=True):
        command = command_of(spec)
        assert spec.slot == slot.index
        assert command.data == kind.settings(made, slot)[kind.data_directory]
        assert command.data == f"/var/x/data-{slot.index}"
        assert command.server[0] == kind.engine.settings.programs(kind.home)[0]
        assert command.server[-1].endswith(f"=/run/x/{kind.engine.config_name.format(slot.index)}")


@each_kind
def test_the_work_of_all_slots_is_equal_between_policies(kind: Kind) -> None:
    totals = {
        policy: sum(
            kind.work_of(kind.settings(kind.layout(plan), slot), slot) for slot in plan.slots
        )
        for policy in ("win", "wicp", "wic")
        for plan in [make_plan(milan(2), kind.engine.traits, policy)]
    }
    assert max(totals.values()) - min(totals.values()) < GIB // 4, totals


@each_kind
@pytest.mark.parametrize("folder", [r"/var/it's\now", r"/var/a\now #1", '/var/"x"'])
def test_a_path_may_contain_quotes_and_backslashes(kind: Kind, folder: str) -> None:
    plan = make_plan(milan(1), kind.engine.traits, "wim")
    made = kind.layout(plan, scratch_dir=folder)
    assert kind.settings(made, plan.slots[0])[kind.data_directory] == f"{folder}/data-0"


@each_kind
def test_slots_share_a_template_but_builds_do_not(kind: Kind) -> None:
    plan = make_plan(milan(2), kind.engine.traits, "win")
    other = Installation(kind.version, "/opt/own", cache="/cache/x")
    templates = [
        {command_of(spec).template for spec in made.processes}
        for made in (
            kind.layout(plan),
            kind.engine.layout(plan, other, run_dir="/run/x", ports=()),
        )
    ]
    assert [len(each) for each in templates] == [1, 1]
    assert templates[0] != templates[1]
    assert all(path.startswith(f"/cache/x/{kind.version}-") for each in templates for path in each)


@each_kind
def test_servers_with_tables_copy_the_loaded_template(kind: Kind) -> None:
    plan = make_plan(milan(2), kind.engine.traits, "win")
    loaded = kind.engine.holding(DATA)
    for spec in loaded.layout(plan, kind.installed, run_dir="/run/x", ports=()).processes:
        command = command_of(spec)
        assert command.template.startswith(f"/cache/x/{kind.version}-")
        assert "tpch-sf1-abab" in command.template
        assert command.make == ()
    for spec in kind.layout(plan).processes:
        assert command_of(spec).make == kind.engine.settings.make_empty(kind.home)
    assert loaded.attach(TABLE) == []
    other = Table("other", "/d/other/other.parquet", ())
    for engine, table in ((kind.engine, TABLE), (loaded, other)):
        with fails(UsageError, engine=kind.engine.title, table=table.name):
            engine.attach(table)


@each_kind
def test_an_unpacked_package_gets_its_libraries(kind: Kind) -> None:
    plan = make_plan(milan(1), kind.engine.traits, "wim")
    assert kind.layout(plan).processes[0].env == {}
    unpacked = Installation(kind.version, f"/cache/p{kind.home}", cache="/cache/x")
    made = kind.engine.layout(plan, unpacked, run_dir="/run/x", ports=())
    assert made.processes[0].env["LD_LIBRARY_PATH"].startswith("/cache/p/usr/lib/")


# ---- a user's configuration


@each_kind
def test_only_what_placement_needs_is_changed_in_a_users_configuration(kind: Kind) -> None:
    plan = make_plan(milan(2), kind.engine.traits, "win")
    made = kind.engine.on(kind.base).layout(
        plan, kind.installed, run_dir="/run/x", ports=(), scratch_dir="/var/x"
    )
    for slot, spec in zip(plan.slots, made.processes, strict=True):
        folder = f"server-{slot.index}"
        assert spec.cwd == folder
        assert command_of(spec).server[-1].endswith(f"=/run/x/{folder}/{kind.config}")
        text = made.files[f"{folder}/{kind.config}"]
        found = kind.read(text)
        name, value = kind.tuned
        assert found[name] == value
        assert found[kind.data_directory] == f"/var/x/data-{slot.index}"
        (own,) = (path for path in kind.base.texts if path.startswith("conf.d/"))
        assert made.files[f"{folder}/{own}"] == kind.base.texts[own]
        # The included file sets it too, so it must follow the include.
        assert kind.buffers in text[text.index("conf.d") :]
    assert not any("1247" in path for path in made.files)


@each_kind
def test_a_folder_without_a_configuration_is_refused(kind: Kind) -> None:
    with fails(UsageError, where="/etc/x", file=kind.config):
        kind.engine.on(UserTree("/etc/x", {"other": ""}))


@each_kind
def test_a_configuration_that_cannot_be_read_is_refused_with_its_line(kind: Kind) -> None:
    texts, where = kind.unreadable
    with fails(UsageError, where=where):
        kind.engine.on(UserTree("/etc/x", texts))


# ---- where the server is


@pytest.fixture
def _nothing_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(per_slot, "installed", lambda _: "/c")


def host_with(kind: Kind, versions: dict[str, str], *, user_id: int = 1000) -> FakeHost:
    """A machine with these versions by home; '' for one that lacks a library."""
    programs = {kind.engine.settings.programs(home)[0]: home for home in versions}

    def run(argv: Sequence[str]) -> Finished:
        # The system's own configuration may be broken.
        assert tuple(argv[1:]) == kind.engine.version_arguments
        version = versions[programs[argv[0]]]
        if not version:
            return Finished(127, "", "error while loading shared libraries")
        return Finished(0, kind.prints.format(version), "")

    makers = {kind.engine.settings.programs(home)[1]: "" for home in versions}
    return FakeHost(makers, on_run=run, user_id=user_id)


@pytest.mark.usefixtures("_nothing_on_path")
@pytest.mark.parametrize(
    ("kind", "versions", "expected"),
    [
        (POSTGRESQL, {"9": "9.6.24", "15": "15.18", "17": "17.5"}, ("17.5", "17")),
        (POSTGRESQL, {"15": "15.18", "17": ""}, ("15.18", "15")),
        (POSTGRESQL, {"18": "18beta1"}, ("18beta1", "18")),
        (MARIADB, {"/usr": "10.11.19", "/c/usr": "11.4.2"}, ("10.11.19", "/usr")),
        (MARIADB, {"/usr": "10.5.8", "/c/usr": "10.11.19"}, ("10.11.19", "/c/usr")),
        (MARIADB, {"/usr": "", "/c/usr": "11.4.2"}, ("11.4.2", "/c/usr")),
    ],
)
def test_the_first_that_runs_and_is_new_enough_is_taken(
    kind: Kind, versions: dict[str, str], expected: tuple[str, str]
) -> None:
    def home(name: str) -> str:
        return f"/usr/lib/postgresql/{name}/bin" if kind is POSTGRESQL else name

    version, name = expected
    host = host_with(kind, {home(each): found for each, found in versions.items()})
    assert kind.engine.find(host) == (version, home(name))


@each_kind
@pytest.mark.usefixtures("_nothing_on_path")
def test_the_unpacked_package_is_found(kind: Kind) -> None:
    host = host_with(kind, {f"/c{kind.home}": kind.version})
    assert kind.engine.find(host) == (kind.version, f"/c{kind.home}")


@each_kind
@pytest.mark.usefixtures("_nothing_on_path")
def test_a_missing_server_is_an_error_that_says_what_to_install(kind: Kind) -> None:
    name = kind.engine.traits.name
    home, old = kind.old
    program = os.path.basename(kind.engine.settings.programs("")[0])
    oldest = ".".join(map(str, kind.engine.oldest))
    fields = {"title": kind.engine.title, "oldest": oldest, "name": name, "program": program}
    with fails(EngineFailed, home=home, version=old, **fields):
        kind.engine.find(host_with(kind, {home: old}))
    with fails(EngineFailed, home=home, **fields):
        kind.engine.find(host_with(kind, {home: ""}))
    with fails(EngineFailed, **fields):
        kind.engine.find(FakeHost())


@each_kind
@pytest.mark.usefixtures("_nothing_on_path")
def test_root_cannot_run_it(kind: Kind) -> None:
    with fails(NotPermitted, title=kind.engine.title):
        kind.engine.locate(host_with(kind, {kind.home: kind.version}, user_id=0))
    assert kind.engine.locate(host_with(kind, {kind.home: kind.version})).home == kind.home


@each_kind
@pytest.mark.usefixtures("_nothing_on_path")
def test_without_its_python_client_the_extra_is_named(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, module = kind.engine.python_client
    monkeypatch.setitem(sys.modules, module, None)
    why = f"import of {module} halted; None in sys.modules"
    with fails(ClientMissing, package=package, why=why, extra=kind.engine.traits.name):
        kind.engine.locate(host_with(kind, {kind.home: kind.version}))


# ---- a cluster that runs already


@pytest.mark.parametrize(("kind", "url"), [(kind, url) for kind in KINDS for url in kind.urls])
def test_another_url_is_refused_without_its_password(kind: Kind, url: str) -> None:
    with pytest.raises(UsageError) as caught:
        kind.engine.reach(url, timeout_s=2)
    assert "hush" not in str(caught.value)


@each_kind
def test_a_server_that_does_not_answer_is_named_without_the_password(kind: Kind) -> None:
    with pytest.raises(EngineFailed) as caught:
        kind.engine.reach(kind.url, timeout_s=2)
    assert f"{kind.engine.title} at 127.0.0.1:1 " in str(caught.value)
    assert "hush" not in str(caught.value)
