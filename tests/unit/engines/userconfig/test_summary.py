"""The short list of what Atoll changes in a user's configuration."""

from __future__ import annotations

import pytest

from atoll.engines import registry
from atoll.engines.api import ConfigurableEngine, Installation, Layout
from atoll.engines.explained import Why
from atoll.engines.userconfig.summary import summary
from atoll.engines.userconfig.tree import UserTree
from atoll.plan import make_plan
from tests.parts.machines import milan

THERE = Installation("10.11.19", "/usr", "/opt/jdk/bin/java", cache="/cache/x")


def listed(
    engine: str, *policies: str, texts: dict[str, str], any_ports: bool = False
) -> list[str]:
    found = registry.get(engine)
    assert isinstance(found, ConfigurableEngine)
    tree = UserTree("/etc/x", texts)
    found = found.on(tree)
    layouts: list[Layout] = []
    for policy in policies:
        plan = make_plan(milan(2), found.traits, policy)
        ports = list(range(7000, 7000 + found.ports(plan)))
        layouts.append(found.layout(plan, THERE, run_dir="RUN", ports=ports, scratch_dir="DISK"))
    return summary(tree, layouts, any_ports=range(7000, 7100) if any_ports else ())


def test_the_list_of_trino() -> None:
    assert listed(
        "trino",
        "wicp",
        any_ports=True,
        texts={
            "config.properties": "coordinator=true\nhttp-server.http.port=8080\n"
            "query.max-memory=40GB\nquery.max-memory-per-node=300GB\nquery-manager.required-workers=10\n"
            "http-server.https.keystore.key=hunter2\nweb-ui.enabled=true\n",
            "jvm.config": "-Xmx54G\n-XX:ParallelGCThreads=9\n-XX:ConcGCThreads=2\n-server\n"
            "-javaagent:/jmx.jar=9404:/x\n"
            "-javaagent:/jolokia.jar=host=0.0.0.0,password=hunter2\n",
        },
    ) == [
        "/etc/x/config.properties",
        "  coordinator: true -> false on workers (one coordinator plans for all workers)",
        "  http-server.http.port: 8080 -> PORT (each instance on the machine has its own port)",
        "  query.max-memory-per-node: 300GB -> 22219MB (a heap of 31 GiB has no more for queries)",
        "  left out: query-manager.required-workers: 10 (the plan decides the number of workers)",
        "  left out: http-server.https.keystore.key: ***, web-ui.enabled: true on workers "
        "(a worker does not start with settings that only the coordinator reads)",
        "/etc/x/jvm.config",
        "  -Xmx54G -> -Xmx31744m (a worker's heap is 75 % of its slot's memory, unless --heap or "
        "--page-cache say otherwise, the coordinator's 1/32 of the machine's)",
        "  -javaagent:/jmx.jar: port 9404 -> 9405, 9406 ... 9420 on workers "
        "(each instance has its own port)",
        "  left out: -XX:ParallelGCThreads=9, -XX:ConcGCThreads=2 "
        "(the number of threads follows from the instance's CPUs)",
        "  left out: -javaagent:/jolokia.jar=host=0.0.0.0,password=*** on workers "
        "(it names no port, so only one instance can have it)",
    ]


def test_flags_within_a_setting_of_spark_are_listed_each() -> None:
    exporter = "-javaagent:/jmx.jar=9404"
    options = f"{exporter} -Da=b -XX:ParallelGCThreads=9 -Dpassword=hunter2"
    assert listed(
        "spark",
        "win",
        texts={
            "spark-defaults.conf": f"spark.executor.extraJavaOptions {options}\n"
            f"spark.driver.extraJavaOptions {exporter}\nspark.executor.cores 4\n"
        },
    ) == [
        "/etc/x/spark-defaults.conf",
        "  spark.executor.extraJavaOptions: -javaagent:/jmx.jar: port 9404 -> 9405, 9406 "
        "(each instance has its own port)",
        "  left out: spark.executor.extraJavaOptions: -XX:ParallelGCThreads=9 "
        "(the number of threads follows from the instance's CPUs)",
        "  left out: spark.executor.cores: 4 (the plan decides it)",
    ]


def test_a_setting_of_an_included_file_is_listed_there() -> None:
    texts = {
        "postgresql.conf": "shared_buffers = 900GB  # large\nport = 5432\ninclude 'own.conf'\n",
        "own.conf": "ssl = on # why\nmax_parallel_workers = 2\n",
    }
    assert listed("postgresql", "wim", texts=texts) == [
        "/etc/x/own.conf",
        "  ssl: on -> off (nobody connects over the network, and the key may belong to another "
        "account)",
        "/etc/x/postgresql.conf",
        "  shared_buffers: 900GB -> 268435456kB (25 % of the slot's memory, with which the manual "
        "starts, unless --heap or --page-cache say otherwise)",
    ]


@pytest.mark.parametrize(
    ("engine", "main", "including", "there", "setting"),
    [
        ("postgresql", "postgresql.conf", "include '/etc/x/d/a.conf'", "d/a.conf", "port = 1"),
        ("postgresql", "postgresql.conf", "include_dir = '/etc/x/d'", "d/a.conf", "port = 1"),
        ("mariadb", "my.cnf", "!includedir /etc/x/d/", "d/a.cnf", "[mysqld]\ndatadir = /x"),
    ],
)
def test_a_file_that_is_included_where_it_lies(
    engine: str, main: str, including: str, there: str, setting: str
) -> None:
    file, line = listed(engine, "wic", texts={main: f"{including}\n", there: f"{setting}\n"})
    assert file == f"/etc/x/{there}"
    assert line.startswith(("  port: 1 -> ", "  datadir: /x -> "))


def test_a_file_that_no_server_reads_is_not_listed() -> None:
    texts = {"postgresql.conf": "work_mem = 4MB\n", "old/postgresql.conf": "port = 1\n"}
    assert listed("postgresql", "wic", texts=texts) == []


def test_files_of_an_engine_that_includes_none_are_apart() -> None:
    texts = {
        "spark-defaults.conf": "spark.eventLog.enabled true\n",
        "x.conf": "spark.master yarn\n",
    }
    assert listed("spark", "wic", texts=texts) == []


def test_a_property_in_a_flag_has_its_name() -> None:
    texts = {"jvm.config": "-Dcom.sun.management.jmxremote.port=9080\n"}
    _, line = listed("trino", "win", texts={"config.properties": "", **texts})[-2:]
    assert line.startswith("  -Dcom.sun.management.jmxremote.port: 9080 -> 9081")


def test_what_one_policy_changes_is_listed_without_a_folder() -> None:
    texts = {"spark-defaults.conf": "spark.cores.max 3\n"}  # enough for the two instances of win
    _, line = listed("spark", "wic", "win", texts=texts)
    assert line == "  spark.cores.max: 3 -> 128 (all threads of the plan, for one application)"


def test_policies_of_a_bench_are_listed_together() -> None:
    texts = {"my.cnf": "[mysqld]\ninnodb-buffer-pool-size = 9T\n"}
    file, size = listed("mariadb", "wim", "win", texts=texts)
    assert file == "/etc/x/my.cnf"
    assert size.startswith("  innodb_buffer_pool_size: 9T -> ")
    assert len(size.split(" (")[0].split(", ")) == 3


def test_a_configuration_without_changes_has_no_list() -> None:
    tree = UserTree("/etc/x", {"a.properties": "a=1\n"})
    same = Layout(processes=(), files={"w-0/a.properties": "a=1\nb=2\n"}, reasons={"b": Why("x")})
    assert summary(tree, [same]) == []
