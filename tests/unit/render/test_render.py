"""A plan as scripts and units: places, quoting, secrets; what is refused; files whole or not."""

from __future__ import annotations

import errno
import os
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from atoll.engines import registry
from atoll.engines.api import ConfigurableEngine
from atoll.engines.rendered import Rendering
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import NotPermitted, UsageError
from atoll.plan import make_plan
from atoll.render.deployment import UnattendedDeployment, lay_out, numactl_argv
from atoll.render.explain import UNKNOWN, explain
from atoll.render.native import render_native, script
from atoll.render.systemd import render_systemd, unit_files
from atoll.render.writing import NOTE, write_rendering
from atoll.schema.base import parse
from atoll.schema.plan import MemoryPolicy, Placement, Slot
from atoll.schema.rendered import Rendered
from tests.parts.faults import fails
from tests.parts.machines import listening, milan
from tests.parts.render import ENGINES, TARGET, THERE, unattended


def words_of(text: str) -> list[str]:
    """A script's last command, as a shell takes it apart."""
    return shlex.split(text[text.index("exec ") :].replace("\\\n", " "))[1:]


@pytest.mark.parametrize("engine", ENGINES)
def test_each_process_has_a_script_that_becomes_it_in_its_place(engine: str) -> None:
    made = unattended(engine)
    scripts = render_native(made).scripts
    assert list(scripts) == [f"bin/{spec.name}.sh" for spec in made.processes]
    for spec in made.processes:
        words = words_of(scripts[f"bin/{spec.name}.sh"])
        assert words == numactl_argv(made.plan, spec)
        assert words[-len(spec.argv) :] == list(spec.argv)
        if spec.slot is not None:
            first = 4 * spec.slot
            assert words[:4] == ["numactl", "-C", f"{first}-{first + 3}", "--"]


@pytest.mark.parametrize("engine", ENGINES)
def test_no_secret_is_in_a_script_a_unit_or_the_page(engine: str) -> None:
    made = unattended(engine)
    native, systemd = render_native(made), render_systemd(made)
    open_texts = [*native.scripts.values(), native.files["README.md"], systemd.files["README.md"]]
    open_texts += [native.files["processes.json"]]
    open_texts += [text for path, text in systemd.files.items() if path.startswith("systemd/")]
    secrets = {
        line.split("=")[-1].split()[-1]
        for text in made.layout.files.values()
        for line in text.splitlines()
        if "secret" in line.lower() and len(line) > 40
    }
    assert secrets or engine in ("postgresql", "mariadb")
    assert not [secret for secret in secrets for text in open_texts if secret in text]


def test_secrets_of_a_user_go_into_closed_files() -> None:
    texts = {"config.properties": "a=1\n", "jvm.config": '-server\n-Dx.password=hun"ter 2\n-Da=b\n'}
    trino = registry.get("trino")
    assert isinstance(trino, ConfigurableEngine)
    files = render_systemd(unattended(trino.on(UserTree("/etc/x", texts)))).files
    unit = files["systemd/t-worker-0.service"]
    assert "ter 2" not in unit
    assert "/bin/java @/srv/t/worker-0/java.args -Dconfig=etc/config.properties " in unit
    assert '"-server"\n"-Dx.password=hun\\"ter 2"\n"-Da=b"\n' in files["worker-0/java.args"]
    spark = registry.get("spark")
    assert isinstance(spark, ConfigurableEngine)
    script = "AWS_SECRET_ACCESS_KEY='a$b'\nHADOOP_CONF_DIR=/etc/hadoop\n"
    made = unattended(spark.on(UserTree("/etc/x", {"spark-env.sh": script})))
    files = render_systemd(made).files
    unit = files["systemd/t-worker-0.service"]
    assert "a$b" not in unit
    assert "EnvironmentFile=/srv/t/secret/worker-0.env\n" in unit
    assert "Environment=HADOOP_CONF_DIR=/etc/hadoop\n" in unit
    native = render_native(
        unattended(spark.on(UserTree("/etc/x", {"spark-env.sh": script})))
    ).scripts
    assert "a$b" not in native["bin/worker-0.sh"]
    assert ". /srv/t/secret/worker-0.env;" in native["bin/worker-0.sh"]
    assert files["secret/worker-0.env"] == 'AWS_SECRET_ACCESS_KEY="a\\$b"\n'


def test_a_driver_and_what_only_it_reads_are_left_out() -> None:
    made = unattended("spark")
    rendering = render_native(made)
    paths = (*rendering.files, *rendering.scripts)
    assert not any("driver" in path or "sqlhost" in path for path in paths)
    assert "The driver is your own application" in rendering.files["README.md"]


def test_an_engine_without_a_server_is_refused() -> None:
    with fails(UsageError, engine="duckdb"):
        unattended("duckdb")


def test_threads_that_a_running_atoll_binds_are_refused() -> None:
    with fails(UsageError, placement="sparse", engine="postgresql"):
        unattended("postgresql", placement=Placement.SPARSE)


@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
def test_data_that_outlives_atoll_is_durable_and_made_by_the_engines_own_program(
    engine: str,
) -> None:
    made = unattended(engine)
    text = "".join(made.layout.files.values())
    assert "fsync" not in text
    assert "doublewrite" not in text
    page = render_native(made).files["README.md"]
    for spec in made.processes:
        assert "python" not in spec.argv[0]
        assert shlex.join(made.prepare[spec.name]) in page
        assert "{}" not in made.prepare[spec.name]


def test_a_sockets_path_that_is_too_long_is_refused() -> None:
    deep = replace(TARGET, folder="/srv/" + "x" * 100)
    with fails(UsageError, path=f"{deep.folder}/.s.PGSQL.5432", most_bytes=107):
        unattended("postgresql", target=deep)


def test_odd_names_are_quoted() -> None:
    folder = '/srv/it\'s 100% $HOME "x"'
    made = unattended("trino", target=replace(TARGET, folder=folder, data=f"{folder}/data"))
    spec = made.processes[1]
    text = script(made, spec, numactl_argv(made.plan, spec))
    assert words_of(text) == numactl_argv(made.plan, spec)
    unit = unit_files(made)[f"t-{spec.name}.service"]
    line = next(line for line in unit.splitlines() if line.startswith("ExecStart="))
    assert '100%% $$HOME \\"x\\"' in line
    assert f"WorkingDirectory={folder.replace('%', '%%')}/worker-0" in unit


def test_an_engine_as_it_is_has_no_place() -> None:
    made = unattended("trino", policy="wim")
    unit = unit_files(made)["t-worker-0.service"]
    assert not any(word in unit for word in ("AllowedCPUs", "CPUAffinity", "NUMA"))
    assert words_of(render_native(made).scripts["bin/worker-0.sh"])[0] == "/opt/java/bin/java"


def test_data_may_lie_elsewhere() -> None:
    made = unattended("postgresql", target=replace(TARGET, data="/var/lib/pg"))
    rendering = render_native(made)
    assert "data_directory = '/var/lib/pg/data-0'" in rendering.files["postgresql-0.conf"]
    assert "data" not in rendering.folders
    assert "install -d -m 700 -o engine /var/lib/pg\n" in rendering.files["README.md"]
    assert render_native(unattended("postgresql")).folders == ("data",)


def test_processes_can_be_found_again() -> None:
    made = unattended("spark")
    rendering = render_native(made)
    found = parse(Rendered, rendering.files["processes.json"], where="x")
    assert [spec.name for spec in found.processes] == [spec.name for spec in made.processes]
    for spec in made.processes:
        text = rendering.scripts[f"bin/{spec.name}.sh"]
        assert f"export ATOLL_DEPLOYMENT={found.mark}\n" in text
        assert f"export ATOLL_PROCESS={spec.name}\n" in text
        unit = unit_files(made)[f"t-{spec.name}.service"]
        assert f"Environment=ATOLL_DEPLOYMENT={found.mark}\n" in unit


@pytest.mark.parametrize("engine", ENGINES)
def test_every_setting_has_a_reason(engine: str) -> None:
    # Two nodes in a slot, where a JVM gets UseNUMA.
    for made in (unattended(engine), unattended(engine, milan(2, 2, 4), "spmwin")):
        told = explain(made.layout, made.processes, tree=None)
        assert UNKNOWN.text not in told


@pytest.mark.parametrize(
    ("engine", "name", "text"),
    [
        (
            "trino",
            "config.properties",
            "http-server.https.enabled=true\nhttp-server.authentication.type=PASSWORD\nx=1\n"
            "spiller-spill-path=/spill\n",
        ),
        ("presto", "config.properties", "experimental.spiller-spill-path=/spill\nx=1\n"),
        ("spark", "spark-defaults.conf", "x 1\n"),
        ("postgresql", "postgresql.conf", "x.y = 1\n"),
        ("mariadb", "my.cnf", "[mysqld]\nx = 1\nfeedback = ON\n"),
    ],
)
def test_every_setting_put_into_a_users_file_has_a_reason(
    engine: str, name: str, text: str
) -> None:
    adapter = registry.get(engine)
    assert isinstance(adapter, ConfigurableEngine)
    base = UserTree("/etc/x", {name: text})
    made = unattended(adapter.on(base))
    told = explain(made.layout, made.processes, tree=base)
    assert "yours, unchanged: " in told
    unknown = [line for line in told.splitlines() if line.strip() == UNKNOWN.text]
    assert not unknown, told


def test_every_flag_put_into_a_users_jvm_config_has_a_reason() -> None:
    texts = {
        "config.properties": "x=1\n",
        "jvm.config": "-XX:+HeapDumpOnOutOfMemoryError\n-Dx.password=hunter2\n-Dmine=a b\n",
        "none.conf": "# nothing is set\n",
    }
    adapter = registry.get("trino")
    assert isinstance(adapter, ConfigurableEngine)
    base = UserTree("/etc/x", texts)
    made = unattended(adapter.on(base))
    told = explain(made.layout, made.processes, tree=base)
    assert "-XX:HeapDumpPath=/srv/t/data\n" in told
    assert UNKNOWN.text not in told
    assert "hunter2" not in told
    assert "-Dmine" not in told
    assert "none.conf" not in told


def test_files_that_only_spark_reads_need_not_please_us() -> None:
    adapter = registry.get("spark")
    assert isinstance(adapter, ConfigurableEngine)
    base = UserTree("/etc/x", {"spark-defaults.conf": "x 1\n", "log4j2.properties": "status\n"})
    made = render_native(unattended(adapter.on(base)))
    assert made.files["conf/log4j2.properties"] == "status\n"


def test_flags_in_an_environment_are_told_too() -> None:
    made = unattended("spark", milan(2, 2, 4), "win")
    told = explain(made.layout, made.processes, tree=None)
    section = told.partition("JDK_JAVA_OPTIONS in the environment of worker-0 (and 1 more")[2]
    assert "  -XX:+AlwaysPreTouch\n      every page of the heap is on its node" in section
    assert f"  -XX:ActiveProcessorCount={made.plan.slots[0].threads}\n" in section


def test_explanations_tell_no_secret_and_like_instances_once() -> None:
    made = unattended("trino")
    told = explain(made.layout, made.processes, tree=None)
    assert "internal-communication.shared-secret=***\n" in told
    assert "worker-0/etc/jvm.config (and 1 more like it)\n" in told
    assert "worker-1/" not in told
    assert f"-Xmx{made.plan.slots[0].heap_bytes >> 20}m\n      a worker's heap is 75 %" in told


def rendering(**files: str) -> Rendering:
    return Rendering(
        files={"a/config": "1", **files},
        scripts={"bin/go.sh": "#!/bin/sh\n"},
        links={"plugin/x": "/nowhere"},
        folders=("data",),
    )


def test_a_folder_is_written_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_rendering(rendering(), folder)
    assert (folder / "a/config").read_text() == "1"
    assert (folder / "a/config").stat().st_mode & 0o777 == 0o600
    assert (folder / "bin/go.sh").stat().st_mode & 0o777 == 0o700
    assert folder.stat().st_mode & 0o777 == 0o700
    assert os.readlink(folder / "plugin/x") == "/nowhere"
    assert (folder / "data").is_dir()
    assert os.listdir(tmp_path) == ["out"]


def test_its_own_folder_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_rendering(rendering(old="1"), folder)
    write_rendering(rendering(new="1"), folder)
    assert not (folder / "old").exists()
    assert (folder / "new").exists()
    (folder / "a/config").write_text("mine")
    with fails(UsageError, folder=folder, file="a/config", count=1):
        write_rendering(rendering(), folder)
    (folder / NOTE).unlink()
    with fails(UsageError, folder=folder):
        write_rendering(rendering(), folder)
    assert (folder / "a/config").read_text() == "mine"
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_that_was_given_to_the_engines_account_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    write_rendering(rendering(), folder)

    def closed(path: Path) -> list[Path]:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", closed)
    with fails(NotPermitted, folder=folder, why="Permission denied"):
        write_rendering(rendering(), folder)


@pytest.mark.parametrize("note", ["[]", "3", '"x"', "{"])
def test_a_strange_note_is_none_of_ours(note: str, tmp_path: Path) -> None:
    write_rendering(rendering(), tmp_path / "out")
    (tmp_path / "out" / NOTE).write_text(note)
    with fails(UsageError, folder=tmp_path / "out"):
        write_rendering(rendering(), tmp_path / "out")


def test_a_link_somebody_laid_is_not_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "file").write_text("x")
    (tmp_path / "out").symlink_to(theirs)
    with fails(UsageError, folder=tmp_path / "out"):
        write_rendering(rendering(), tmp_path / "out")


def test_what_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    broken = replace(rendering(), copies={"keystore": str(tmp_path / "gone")})
    with fails(NotPermitted, file=tmp_path / "gone"):
        write_rendering(broken, tmp_path / "out")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("fails_at", [1, 2])
def test_what_was_there_comes_back_if_the_new_cannot_take_its_place(
    fails_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    write_rendering(rendering(old="1"), folder)
    renames: list[Path] = []
    really = Path.rename

    def rename(path: Path, target: Path) -> Path:
        renames.append(path)
        if len(renames) == fails_at:
            raise OSError(errno.EBUSY, "Device or resource busy", str(path))
        return really(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(NotPermitted, match="Device or resource busy"):
        write_rendering(rendering(new="1"), folder)
    assert (folder / "old").read_text() == "1"
    assert os.listdir(tmp_path) == ["out"]


def test_numactl_takes_several_preferred_nodes_by_another_flag() -> None:
    made = unattended("trino", milan(2, 2, 4), "spmwin")
    slot: Slot = made.plan.slots[0].model_copy(
        update={"memory_policy": MemoryPolicy.PREFERRED, "memory_nodes": (0, 1)}
    )
    plan = made.plan.model_copy(update={"slots": (slot, *made.plan.slots[1:])})
    assert "-P" in numactl_argv(plan, made.processes[1])


def test_the_page_says_where_it_listens_and_who_may_connect_how() -> None:
    def page(made: UnattendedDeployment) -> str:
        return render_native(made).files["README.md"]

    trino = page(unattended("trino"))
    assert "listens only on loopback" in trino
    assert 'trino --server http://127.0.0.1:9000 --user "$(cat /srv/t/user)"' in trino
    assert "Only one user may send queries" in trino
    servers = page(unattended("postgresql"))
    assert "listens only on UNIX sockets in `/srv/t`" in servers
    assert "psql -h /srv/t -p 5433 " in servers
    spark = page(unattended("spark"))
    assert "As `engine`:" not in spark and "The driver is your own application" in spark


def test_the_page_of_a_deployment_on_the_network_says_so() -> None:
    engine = registry.get("trino")
    plan = listening(
        make_plan(milan(1, 2, 4), engine.traits, "wicp"),
        coordinator="10.0.0.5",
        slots=["10.0.1.5"],
    )
    page = render_native(lay_out(plan, engine, THERE, TARGET)).files["README.md"]
    assert "It listens at 10.0.0.5, 10.0.1.5. Others on that network" in page
    assert "| worker-0 | `-C 0-3` |" in page and "| 10.0.1.5:9001 |" in page
