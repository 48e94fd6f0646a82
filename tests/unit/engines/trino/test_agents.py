"""Agents and exporters in a user's tree: each instance has them, at a port of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from atoll.errors import UsageError
from tests.parts.faults import fails
from tests.parts.trino_plans import BOTH, a_plan, a_tree, config, flags, lay_out

JMX = "-Dcom.sun.management.jmxremote"
EXPORTER = "-javaagent:/opt/jmx.jar={}:/etc/jmx.yaml"


@BOTH
@pytest.mark.parametrize(
    "flag",
    [
        EXPORTER,
        "-javaagent:/opt/jmx.jar={}",
        "-javaagent:/opt/jmx.jar=127.0.0.1:{}:/etc/jmx.yaml",
        "-javaagent:/opt/jmx.jar=[::1]:{}:/etc/jmx.yaml",
        "-javaagent:/opt/other.jar=mode=fast,port={},x=y",
        "-javaagent:/opt/jolokia.jar=port={},host=0.0.0.0",
        "-agentpath:/opt/libyjp.so=port={},listen=all",
        f"{JMX}.port={{}}",
        "-Dotel.exporter.prometheus.port={}",
    ],
)
def test_each_instance_has_the_agent_at_its_own_port(name: str, flag: str) -> None:
    layout = lay_out(name, a_plan(name), a_tree(jvm_config=f"{flag.format(9404)}\n-server\n"))
    for number, spec in enumerate(layout.processes):
        assert flags(layout, spec.name)[0] == flag.format(9404 + number)


@BOTH
def test_agents_next_to_each_other_do_not_meet(name: str) -> None:
    text = f"{EXPORTER.format(9404)}\n-javaagent:/opt/b.jar=9405\n{JMX}.port=9010\n"
    text += f"{JMX}.rmi.port=9010\n"
    layout = lay_out(name, a_plan(name), a_tree(jvm_config=text))
    ports = []
    for spec in layout.processes:
        exporter, other, jmx, rmi, *_ = flags(layout, spec.name)
        ports += [exporter.split("=")[1].split(":")[0], other.split("=")[1], jmx.split("=")[1]]
        assert rmi.split("=")[1] == ports[-1], "JMX may use one port for both"
        assert f"{JMX}.host=127.0.0.2" not in spec.argv
    assert ports[:6] == ["9404", "9405", "9010", "9406", "9407", "9011"]
    assert len(set(ports)) == 3 * len(layout.processes)


def test_ports_that_are_taken_are_skipped() -> None:
    """By other programs, and by the instances themselves."""
    tree = replace(
        a_tree(jvm_config=f"{EXPORTER.format(6999)}\n"), taken_ports=frozenset({6999, 7018})
    )
    plan = a_plan()
    layout = lay_out("trino", plan, tree)
    found = [
        int(flags(layout, spec.name)[0].split("=")[1].split(":")[0]) for spec in layout.processes
    ]
    # The instances listen at 7000 to 7016.
    assert found == [7017, *range(7019, 7019 + len(plan.slots))]


def test_an_agent_with_a_port_that_is_not_named_is_the_first_instances() -> None:
    agent = "-javaagent:/opt/jolokia.jar=mode=fast,host=0.0.0.0"
    layout = lay_out("trino", a_plan(), a_tree(jvm_config=f"{agent}\n"))
    has_it = [spec.name for spec in layout.processes if agent in flags(layout, spec.name)]
    assert has_it == ["coordinator"]


def test_an_agent_that_sends_to_another_machine_is_as_it_was() -> None:
    agent = "-javaagent:/opt/otel.jar=host=collector,port=4317"
    layout = lay_out("trino", a_plan(), a_tree(jvm_config=f"{agent}\n"))
    assert all(agent in flags(layout, spec.name) for spec in layout.processes)


@BOTH
@pytest.mark.parametrize(
    ("texts", "where", "first"),
    [
        (
            {"jvm_config": f"-server\n{EXPORTER.format(9404)}\n-javaagent:/opt/b.jar=9404\n"},
            "jvm.config:3",
            "jvm.config:2",
        ),
        (
            {
                "jvm_config": f"{EXPORTER.format(9404)}\n",
                "config_properties": "coordinator=true\njmx.rmiregistry.port=9404\n",
            },
            "config.properties:2",
            "jvm.config:1",
        ),
    ],
)
def test_two_agents_on_one_port_are_refused(
    name: str, texts: dict[str, str], where: str, first: str
) -> None:
    with fails(UsageError, where=f"/etc/trino/{where}", port=9404, first=f"/etc/trino/{first}"):
        lay_out(name, a_plan(name), a_tree(**texts))


def test_too_few_ports_are_reported() -> None:
    with fails(UsageError, where="/etc/trino/jvm.config:1", port=65530, instances=17, last=65535):
        lay_out("trino", a_plan(), a_tree(jvm_config=f"{EXPORTER.format(65530)}\n"))


@BOTH
def test_a_port_that_only_the_server_knows_is_the_first_instances(name: str) -> None:
    tree = a_tree(config_properties="coordinator=true\njmx.rmiregistry.port=${ENV:JMX}\n")
    layout = lay_out(name, a_plan(name), tree)
    has_it = [s.name for s in layout.processes if "jmx.rmiregistry.port" in config(layout, s.name)]
    assert has_it == ["coordinator"]


@BOTH
def test_a_port_of_the_servers_may_be_a_property_of_the_jvm(name: str) -> None:
    tree = a_tree(jvm_config="-Djmx.rmiregistry.port=9080\n")
    layout = lay_out(name, a_plan(name), tree)
    ports = [config(layout, spec.name)["jmx.rmiregistry.port"] for spec in layout.processes]
    assert ports == [str(9080 + at) for at in range(len(layout.processes))]
    for spec in layout.processes:
        assert not [flag for flag in flags(layout, spec.name) if "rmiregistry" in flag]


@BOTH
def test_the_port_zero_stays_any_free_port(name: str) -> None:
    tree = a_tree(config_properties="coordinator=true\njmx.rmiserver.port=0\n")
    layout = lay_out(name, a_plan(name), tree)
    ports = {config(layout, spec.name).get("jmx.rmiserver.port", "0") for spec in layout.processes}
    assert ports == {"0"}
