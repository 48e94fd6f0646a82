"""A user's own Spark configuration: what stays, what placement changes, what is refused."""

from __future__ import annotations

import shlex

import pytest

from atoll.engines.api import Installation, Layout
from atoll.engines.spark.engine import SparkEngine
from atoll.engines.userconfig.changes import changes
from atoll.engines.userconfig.merge import read_properties
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from atoll.plan import make_plan
from atoll.schema.deployment import Role
from atoll.schema.machine import Machine
from tests.parts.faults import fails
from tests.parts.machines import milan

DEFAULTS = """\
# ours since 2019
spark.master                     yarn
spark.executor.memory            8g
spark.executor.cores             4
spark.serializer                 org.apache.spark.serializer.KryoSerializer
spark.sql.session.timeZone       Europe/Berlin
spark.executor.extraJavaOptions  -XX:+UseZGC -Dlabel="two words"
spark.driver.extraJavaOptions    -XX:+UseG1GC
spark.ssl.keyPassword            hunter2
"""
THERE = Installation("4.3.0", "/opt/spark", "/opt/jdk/bin/java", "17.0.1")


def layout(
    texts: dict[str, str] | None,
    others: tuple[str, ...] = (),
    *,
    machine: Machine | None = None,
    scratch: str = "/var/x",
) -> Layout:
    engine = SparkEngine()
    if texts is not None:
        engine = engine.on(UserTree("/etc/spark", texts, others))
    plan = make_plan(machine or milan(1, 2, 4), engine.traits, "wicp")
    ports = range(1, 1 + engine.ports(plan))
    return engine.layout(plan, THERE, run_dir="/run/x", ports=ports, scratch_dir=scratch)


def test_only_what_placement_needs_is_changed() -> None:
    found = layout({"spark-defaults.conf": DEFAULTS, "hive-site.xml": "<x/>"}, ("keystore.jks",))
    text = found.files["conf/spark-defaults.conf"]
    assert text.startswith(
        "# ours since 2019\nspark.master                     spark://127.0.0.1:1\n"
    )
    read = read_properties(text, where="f")
    assert read["spark.serializer"] == "org.apache.spark.serializer.KryoSerializer"
    assert read["spark.sql.session.timeZone"] == "Europe/Berlin"
    assert read["spark.executor.memory"].endswith("m")
    assert "spark.executor.cores" not in read, "executors have their slots' sizes"
    assert read["spark.port.maxRetries"] == "0"
    assert found.files["conf/hive-site.xml"] == "<x/>"
    assert found.copies == {"conf/keystore.jks": "/etc/spark/keystore.jks"}
    assert "rootLogger" in found.files["conf/log4j2.properties"]


def test_jvm_options_for_a_whole_machine_do_not_undo_the_plan() -> None:
    options = (
        "-Xms8g -XX:ActiveProcessorCount=96 -XX:ParallelGCThreads=48 -Xloggc:/var/log/gc "
        "-agentlib:jdwp=transport=dt_socket,server=y,address=5005"
    )
    text = f"spark.executor.extraJavaOptions {options} -Da=b\n"
    found = layout({"spark-defaults.conf": text}).files["conf/spark-defaults.conf"]
    executor = read_properties(found, where="f")["spark.executor.extraJavaOptions"].split()
    assert "-Da=b" in executor
    assert not set(options.split()) & set(executor)


EXPORTER = "-javaagent:/opt/jmx.jar=9404:/etc/jmx.yaml"


def test_each_executor_has_the_exporter_at_its_own_port() -> None:
    """Spark gives all executors the same options, so each gets these from its worker's folder."""
    both = f"spark.driver.extraJavaOptions {EXPORTER}\n"
    both += f'spark.executor.extraJavaOptions {EXPORTER} -Da="b c"\n'
    found = layout({"spark-defaults.conf": both, "hive-site.xml": "<x/>"}, ("keystore.jks",))
    read = read_properties(found.files["conf/spark-defaults.conf"], where="f")
    assert EXPORTER in read["spark.driver.extraJavaOptions"]
    assert "-javaagent" not in read["spark.executor.extraJavaOptions"]
    workers = [spec for spec in found.processes if spec.slot is not None]
    for number, spec in enumerate(workers):
        folder = f"worker-{number}/conf"
        assert spec.env["SPARK_CONF_DIR"] == f"/run/x/{folder}"
        assert found.files[f"{folder}/java-opts"] == (
            f"-javaagent:/opt/jmx.jar={9405 + number}:/etc/jmx.yaml\n"
        )
        for name in ("spark-defaults.conf", "hive-site.xml", "keystore.jks", "log4j2.properties"):
            assert found.links[f"{folder}/{name}"] == f"/run/x/conf/{name}"
    others = [spec for spec in found.processes if spec.slot is None]
    assert {spec.env["SPARK_CONF_DIR"] for spec in others} == {"/run/x/conf"}


def test_two_agents_of_one_jvm_on_one_port_are_refused() -> None:
    text = f"# ours\nspark.executor.defaultJavaOptions {EXPORTER}\n"
    text += "spark.executor.extraJavaOptions -javaagent:/opt/b.jar=9404\n"
    where, first = (f"/etc/spark/spark-defaults.conf:{line}" for line in (3, 2))
    with fails(UsageError, where=where, port=9404, first=first):
        SparkEngine().on(UserTree("/etc/spark", {"spark-defaults.conf": text}))


@pytest.mark.parametrize(("asked", "given"), [("6", "6"), ("900", "8"), ("1", "8")])
def test_an_application_takes_the_cores_that_the_user_wants_if_they_fit(
    asked: str, given: str
) -> None:
    """Two instances of four cores: each needs one."""
    text = f"spark.cores.max {asked}\nspark.sql.shuffle.partitions 777\n"
    text += "spark.default.parallelism 33\n"
    found = layout({"spark-defaults.conf": text}).files["conf/spark-defaults.conf"]
    read = read_properties(found, where="f")
    assert read["spark.cores.max"] == given
    assert read["spark.sql.shuffle.partitions"] == "777"
    assert read["spark.default.parallelism"] == "33"


def test_jvm_options_of_the_user_stay_and_a_jvm_has_one_collector() -> None:
    read = read_properties(
        layout({"spark-defaults.conf": DEFAULTS}).files["conf/spark-defaults.conf"], where="f"
    )
    executor = shlex.split(read["spark.executor.extraJavaOptions"])
    assert "-XX:+UseZGC" in executor and "-Dlabel=two words" in executor
    driver = shlex.split(read["spark.driver.extraJavaOptions"])
    assert "-XX:+UseG1GC" in driver
    assert "-XX:+UseSerialGC" not in driver


def test_what_would_undo_the_plan_is_taken_out_and_shown() -> None:
    taken = (
        "spark.shuffle.service.enabled true",
        "spark.worker.ui.port 8081",
        "spark.deploy.recoveryMode ZOOKEEPER",
        "spark.executorEnv._JAVA_OPTIONS -Xmx900g",
    )
    options = "-XX:MaxHeapSize=900g -XX:-AlwaysPreTouch -Da=b"
    text = "".join(f"{line}\n" for line in taken)
    text += f"spark.executor.defaultJavaOptions {options}\n"
    found = layout({"spark-defaults.conf": text})
    read = read_properties(found.files["conf/spark-defaults.conf"], where="f")
    assert not {line.split()[0] for line in taken} & read.keys()
    # On one node the plan does not decide whether heaps are touched.
    assert read["spark.executor.defaultJavaOptions"] == "-XX:-AlwaysPreTouch -Da=b"
    several = read_properties(
        layout({"spark-defaults.conf": text}, machine=milan(2)).files["conf/spark-defaults.conf"],
        where="f",
    )
    assert several["spark.executor.defaultJavaOptions"] == "-Da=b"
    shown = changes(UserTree("/etc/spark", {"spark-defaults.conf": text}), found.files)
    assert all(f"\n  {line.replace(' ', ': ')} -> (not set)\n" in shown for line in taken)


def test_variables_that_the_deployment_decides_are_taken_out_and_shown() -> None:
    decided = (
        "export SPARK_EXECUTOR_CORES=4",
        "SPARK_WORKER_MEMORY=900g",
        "SPARK_DAEMON_MEMORY=2g",
        "SPARK_LOG_DIR=/var/log/spark",
        "export JAVA_HOME=/opt/jdk8",
    )
    script = "# ours\nexport HADOOP_CONF_DIR=/etc/hadoop\n" + "\n".join(decided) + "\n"
    texts = {"spark-env.sh": script, "spark-defaults.conf": ""}
    found = layout(texts)
    assert found.files["conf/spark-env.sh"] == "# ours\nexport HADOOP_CONF_DIR=/etc/hadoop\n"
    shown = changes(UserTree("/etc/spark", texts), found.files)
    for line in decided:
        setting = line.removeprefix("export ").replace("=", ": ")
        assert f"\n  {setting} -> (not set)\n" in shown
    for spec in found.processes:
        assert spec.env["HADOOP_CONF_DIR"] == "/etc/hadoop"
        assert spec.env["JAVA_HOME"] == "/opt/jdk"
        assert not {"SPARK_EXECUTOR_CORES", "SPARK_DAEMON_MEMORY"} & spec.env.keys()
        assert spec.env["SPARK_ENV_LOADED"] == "1", "no shell runs it again"


def test_folders_with_blanks_stay_one_option() -> None:
    for texts in (None, {"spark-defaults.conf": "spark.executor.extraJavaOptions -Da=b\n"}):
        made = layout(texts, scratch='/var/a b/"c"\\d')
        read = read_properties(made.files["conf/spark-defaults.conf"], where="f")
        worker = next(one for one in made.processes if one.role is Role.WORKER)
        given = (read["spark.driver.extraJavaOptions"], worker.env["JDK_JAVA_OPTIONS"])
        for words in map(shlex.split, given):
            assert '-Djava.io.tmpdir=/var/a b/"c"\\d' in words
        assert read["spark.eventLog.dir"] == "file:///var/a%20b/%22c%22%5Cd/events"


def test_literal_exports_of_the_script_are_honoured_below_ours() -> None:
    script = (
        "#!/usr/bin/env bash\n\nexport HADOOP_CONF_DIR=/etc/hadoop  # why\nA='b c'\n"
        "export SPARK_LOCAL_DIRS=/data\nB=\n"
    )
    master, *_ = layout({"spark-env.sh": script, "spark-defaults.conf": ""}).processes
    assert master.env["HADOOP_CONF_DIR"] == "/etc/hadoop"
    assert (master.env["A"], master.env["B"]) == ("b c", "")
    assert master.env["SPARK_LOCAL_DIRS"] == "/var/x/local"


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("export A=$(hadoop classpath)", {}),
        ("if true; then", {}),
        ("A=`date`", {}),
        ("A=~/x", {}),
        ('A="$HOME/x"', {}),
        ("export A=b c", {"name": "A"}),
        ('A="b', {}),
        ("_JAVA_OPTIONS=-Xmx900g", {"name": "_JAVA_OPTIONS"}),
        ("SPARK_DAEMON_JAVA_OPTS=-Dx=y", {"name": "SPARK_DAEMON_JAVA_OPTS"}),
    ],
)
def test_a_line_of_the_script_that_is_not_honoured_is_refused(
    line: str, fields: dict[str, str]
) -> None:
    with fails(UsageError, where="/etc/spark/spark-env.sh:2", **fields):
        SparkEngine().on(UserTree("/etc/spark", {"spark-env.sh": f"# x\n{line}\n"}))


@pytest.mark.parametrize(
    ("texts", "where"),
    [
        ({"config.properties": "a=1\n"}, "/etc/spark"),
        ({"spark-defaults.conf": "spark.master\n"}, "/etc/spark/spark-defaults.conf:1"),
        (
            {"spark-defaults.conf": "spark.executor.extraJavaOptions -Da='b\n"},
            "/etc/spark/spark-defaults.conf: spark.executor.extraJavaOptions",
        ),
    ],
)
def test_a_tree_that_cannot_be_read_is_refused(texts: dict[str, str], where: str) -> None:
    with fails(UsageError, where=where):
        SparkEngine().on(UserTree("/etc/spark", texts))
