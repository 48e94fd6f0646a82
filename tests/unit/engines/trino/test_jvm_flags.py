"""A user's flags of a JVM, in a tree of Trino or Presto: what is kept, what placement changes."""

from __future__ import annotations

import pytest

from tests.parts.trino_plans import BOTH, INSTALLED, a_plan, a_tree, config, flags, lay_out


@BOTH
def test_tls_in_the_jvms_flags_is_the_coordinators_alone(name: str) -> None:
    tls = "-Dhttp-server.https.enabled=true\n-Dhttp-server.https.port=8443\n"
    layout = lay_out(name, a_plan(name), a_tree(jvm_config=tls))
    for spec in layout.processes:
        given = [flag for flag in flags(layout, spec.name) if "https" in flag]
        is_coordinator = spec.name == "coordinator"
        assert given == (["-Dhttp-server.https.enabled=true"] if is_coordinator else [])
    assert config(layout, "coordinator")["http-server.https.port"] != "8443"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("-XX:HeapDumpPath=/var/dumps", True),
        ("# -XX:HeapDumpPath=/old", False),
        ("-XX:HeapDumpPath=/var/heap.hprof", False),
        ("-XX:HeapDumpPath=dumps", False),
    ],
)
def test_heap_dumps_go_where_instances_can_share(text: str, kept: bool) -> None:
    tree = a_tree(jvm_config=f"-XX:+HeapDumpOnOutOfMemoryError\n{text}\n")
    given = flags(lay_out("trino", a_plan(), tree), "worker-0")
    paths = [flag for flag in given if flag.startswith("-XX:HeapDumpPath")]
    assert paths == [text if kept else "-XX:HeapDumpPath=/var/x"]


# As users may have them: all are taken out.
MACHINE_WIDE = """\
-XX:MinHeapSize=64g
-XX:SoftMaxHeapSize=96g
-XX:ActiveProcessorCount=96
-XX:ParallelGCThreads=48
-Xlog:gc*:file=/var/log/gc.log:time
-Xlog:gc:gc.log
-Xmn100G
-agentlib:jdwp=transport=dt_socket,server=y,address=5005
-agentpath:/opt/libjdwp.so=transport=dt_socket,server=y,address=*:5005
-Dhttp-server.http.port=7777
-Dnode.id=mine
"""


def test_a_jvm_is_told_nothing_of_the_whole_machine() -> None:
    kept = ["-Xlog:gc*:stdout:time", "-Xlog:gc", "-XX:NewRatio=2", "-Dcom.sun.management.x=1"]
    kept += ["-javaagent:/opt/otel.jar", "-javaagent:/opt/a.jar=licence:x1,level=2"]
    kept += ["-agentpath:/opt/libprofile.so=start,event=cpu", "-Dhttp-server.http.port.mine=1"]
    kept += ["-javaagent:/opt/tell.jar=service=x,host=collector,port=4317"]
    kept += ["-Xlog:gc*:file=/var/log/gc-%p.log:time"]
    tree = a_tree(jvm_config=MACHINE_WIDE + "\n".join(kept) + "\n")
    plan = a_plan()
    layout = lay_out("trino", plan, tree)
    for spec in layout.processes:
        given = flags(layout, spec.name)
        assert not set(MACHINE_WIDE.splitlines()) & set(given)
        assert set(kept) <= set(given)
    counts = [flag for flag in flags(layout, "worker-0") if "ActiveProcessorCount" in flag]
    assert counts == [f"-XX:ActiveProcessorCount={plan.slots[0].threads}"]


@BOTH
def test_the_collector_does_not_depend_on_how_many_cpus_an_instance_has(name: str) -> None:
    """On a machine with one CPU, a JVM takes Serial, with which the server does not start."""
    layout = lay_out(name, a_plan(name), a_tree(jvm_config="-server\n"))
    users = lay_out(name, a_plan(name), a_tree(jvm_config="-server\n-XX:+UseZGC\n"))
    for spec in layout.processes:
        assert "-XX:+UseG1GC" in flags(layout, spec.name)
        assert "-XX:+UseG1GC" not in flags(users, spec.name)


@BOTH
def test_a_users_flags_are_on_no_command_line(name: str) -> None:
    tree = a_tree(
        jvm_config='-server\n-javaagent:/a.jar=licence:hunter2\n-Dx="y\\z"\n',
        node_properties="node.environment=p\nx.y=hunter2\n",
    )
    layout = lay_out(name, a_plan(name), tree)
    for spec in layout.processes:
        java, arguments, *rest = spec.argv
        assert (java, arguments) == (INSTALLED.java, f"@/run/x/{spec.name}/java.args")
        assert "hunter2" not in " ".join(rest)
        told = layout.files[f"{spec.name}/java.args"].splitlines()
        assert told[:3] == ['"-server"', '"-javaagent:/a.jar=licence:hunter2"', r'"-Dx=\"y\\z\""']
        assert {f'"-Dnode.id={spec.name}"', '"-Dx.y=hunter2"'} <= set(told)
        assert {f'"{flag}"' for flag in flags(layout, spec.name)[3:]} <= set(told)
