"""A user's tree of Trino or Presto: what is kept, what placement changes, what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from atoll.engines import registry
from atoll.engines.api import ConfigurableEngine, Engine, UnattendedEngine
from atoll.engines.userconfig.merge import read_properties
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from atoll.render.native import render_native
from tests.parts.faults import fails
from tests.parts.render import unattended
from tests.parts.trino_plans import BOTH, INSTALLED, a_plan, a_tree, config, flags, lay_out


def on(name: str, tree: UserTree) -> Engine:
    engine = registry.get(name)
    assert isinstance(engine, ConfigurableEngine)
    return engine.on(tree)


def test_a_users_tree_is_kept_but_for_placement() -> None:
    tree = a_tree(
        config_properties=(
            "# ours\ncoordinator=true\nhttp-server.http.port=8080\nquery.max-run-time=1h\n"
            "http-server.https.enabled=true\nhttp-server.https.port=8443\n"
            "http-server.https.keystore.path=etc/keystore.jks\n"
            "http-server.authentication.type=PASSWORD\n"
        ),
        node_properties="node.environment=production\nnode.id=abc\n",
        jvm_config="-server\n-Xmx54G\n-XX:G1HeapRegionSize=32M\n",
        catalog__hive_properties="connector.name=hive\n",
    )
    plan = a_plan()
    layout = lay_out("trino", plan, tree)
    coordinator, worker = config(layout, "coordinator"), config(layout, "worker-0")
    assert layout.files["coordinator/etc/config.properties"].startswith("# ours\n")
    assert coordinator["query.max-run-time"] == worker["query.max-run-time"] == "1h"
    assert coordinator["http-server.https.keystore.path"] == "etc/keystore.jks"
    assert coordinator["http-server.https.port"] == "7000", "the first: clients connect there"
    assert coordinator["http-server.http.port"] == "7001"
    (access,) = layout.access
    assert access.address == "https://127.0.0.1:7000"
    server = "--server https://127.0.0.1:7000"
    assert access.command == f'trino {server} --user "$USER" --password'
    assert "password that your configuration gives" in access.remark
    assert coordinator["http-server.authentication.type"] == "PASSWORD"
    assert not any(key.startswith("http-server.https") for key in worker)
    assert layout.copies["worker-0/etc/keystore.jks"] == "/etc/trino/keystore.jks"
    assert layout.files["worker-1/etc/catalog/hive.properties"] == "connector.name=hive\n"
    assert "-XX:G1HeapRegionSize=32M" in flags(layout, "worker-0")
    assert "-Xmx54G" not in flags(layout, "worker-0")
    node = read_properties(layout.files["worker-0/etc/node.properties"], where="")
    assert (node["node.environment"], node["node.id"]) == ("production", "worker-0")
    assert coordinator["plugin.dir"] == "/opt/engine/plugin", "its catalogs may want any"
    assert "access-control.properties" not in str(layout.files)


@BOTH
def test_what_goes_before_config_properties_does_not_outdo_the_plan(name: str) -> None:
    """node.properties become the JVM's own properties, which do."""
    nodes = "node.environment=p\nhttp-server.http.port=9999\ndiscovery.uri=http://real:8080\n"
    nodes += "http-server.https.enabled=true\nhttp-server.https.port=8443\nlog.level=x\n"
    layout = lay_out(name, a_plan(name), a_tree(node_properties=nodes))
    for spec in layout.processes:
        given = layout.files[f"{spec.name}/java.args"].splitlines()
        assert not [flag for flag in given if "http.port" in flag or "discovery.uri" in flag]
        assert '"-Dlog.level=x"' in given, "what the plan does not decide stays"
        assert ('"-Dhttp-server.https.enabled=true"' in given) == (spec.name == "coordinator")
    assert config(layout, "coordinator")["http-server.https.port"] == "7000"
    assert [spec.ready_port for spec in layout.processes][:2] == [7001, 7002]


@pytest.mark.parametrize(("name", "taken"), [("trino", True), ("presto", False)])
def test_secrets_come_from_the_providers_of_the_tree(name: str, taken: bool) -> None:
    """As bin/launcher does: it names etc/secrets.toml, and links the plugins beside etc."""
    layout = lay_out(name, a_plan(name), a_tree(secrets_toml="[keystore]\n"))
    for spec in layout.processes:
        assert ("-DsecretsConfig=etc/secrets.toml" in spec.argv) == taken
        link = {f"{spec.name}/secrets-plugin": "/opt/engine/secrets-plugin"}
        assert (link.items() <= layout.links.items()) == taken
    assert lay_out(name, a_plan(name), a_tree()).links == {}


COORDINATORS_OWN = """\
catalog.store=file
cluster.required-workers-active=20
discovery-server.enabled=true
event.max-output-stage-size=1MB
failure-detector.enabled=false
oauth2-jwk.http-client.connect-timeout=1s
password-authenticator.config-files=/a,/b
scheduler.http-client.idle-timeout=1m
transaction.idle-timeout=1h
web-ui.enabled=true
"""


@BOTH
def test_a_worker_gets_no_setting_that_it_refuses(name: str) -> None:
    kept = "event-listener.config-files=/l.properties\nquery.max-run-time=1h\n"
    layout = lay_out(name, a_plan(name), a_tree(config_properties=COORDINATORS_OWN + kept))
    worker, coordinator = config(layout, "worker-0"), config(layout, "coordinator")
    theirs = read_properties(COORDINATORS_OWN, where="")
    assert not set(theirs) & set(worker)
    assert set(theirs) - set(coordinator) == {"cluster.required-workers-active"}
    assert set(read_properties(kept, where="")) <= set(worker)


@BOTH
def test_instances_share_no_port_no_log_and_no_spill_folder(name: str) -> None:
    tree = a_tree(
        config_properties=(
            "jmx.rmiregistry.port=9080\njmx.rmiserver.port=9081\nlog.path=/var/log/s.log\n"
            "log.enable-console=false\nquery-manager.required-workers=20\n"
            "spiller-spill-path=/a,/b\n"
        )
    )
    layout = lay_out(name, a_plan(name), tree)
    folders, ports = set(), []
    for spec in layout.processes:
        found = config(layout, spec.name)
        assert not [key for key in found if key.startswith(("log.", "query-manager."))]
        ports += [found[key] for key in ("jmx.rmiregistry.port", "jmx.rmiserver.port")]
        folders |= set(found["spiller-spill-path"].split(","))
    assert "/var/x/worker-0/spill-config-1" in folders
    assert len(folders) == 2 * len(layout.processes)
    assert ports[:4] == ["9080", "9081", "9082", "9083"]
    assert len(set(ports)) == 2 * len(layout.processes)


@BOTH
def test_a_users_cluster_that_outlives_atoll_gets_no_catalog_of_all_files(name: str) -> None:
    engine, plan = on(name, a_tree()), a_plan(name)
    assert isinstance(engine, UnattendedEngine)
    for each, has_it in ((engine, True), (engine.unattended(), False)):
        ports = list(range(7000, 7000 + engine.ports(plan)))
        files = each.layout(plan, INSTALLED, run_dir="/run/x", ports=ports).files
        assert ("worker-0/etc/catalog/atoll.properties" in files) is has_it


@pytest.mark.parametrize(("name", "needed"), [("trino", True), ("presto", False)])
def test_only_trino_needs_a_setting_to_answer_over_http(name: str, needed: bool) -> None:
    tree = a_tree(config_properties="http-server.authentication.type=PASSWORD\n")
    key = "http-server.authentication.allow-insecure-over-http"
    assert (key in config(lay_out(name, a_plan(name), tree), "coordinator")) is needed


BROKEN = {
    "config.properties:2": {"config_properties": "coordinator=true\nquery.max-memory\n"},
    "node.properties:1": {"node_properties": "=production\n"},
    "jvm.config:2": {"jvm_config": "-server\nXmx4G\n"},
    "jvm.config:1": {"jvm_config": "-Xmx 4G\n"},
    "jvm.config:3": {"jvm_config": "-server\n-Da=b\n@etc/more.args\n", "more_args": "-Dc=d\n"},
    "catalog/h.properties:2": {"catalog__h_properties": "a=1\n=2\n"},
    "groups.json:3": {
        "resource-groups_properties": "resource-groups.config-file=etc/groups.json\n",
        "groups_json": '{\n "rootGroups": [],\n "selectors" []\n}\n',
    },
    "rules.json:1": {
        "access-control_properties": "security.config-file=/etc/trino/rules.json\n",
        "rules_json": "",
    },
}


@pytest.mark.parametrize(("where", "texts"), BROKEN.items())
@BOTH
def test_a_syntax_error_is_reported_with_its_line(
    name: str, texts: dict[str, str], where: str
) -> None:
    with fails(UsageError, where=f"/etc/trino/{where}"):
        on(name, a_tree(**texts))


@BOTH
def test_json_nested_too_deeply_is_reported(name: str) -> None:
    rules = {
        "access-control_properties": "security.config-file=/etc/trino/rules.json\n",
        "rules_json": "[" * 100_000,
    }
    with fails(UsageError, path="/etc/trino/rules.json"):
        on(name, a_tree(**rules))


# (where, path): the files that name the path
LOST = {
    # Not in the tree.
    ("resource-groups.properties:1", "etc/groups.json"): {
        "resource-groups_properties": "resource-groups.config-file=etc/groups.json\n"
    },
    ("password-authenticator.properties:2", "etc/.password.db"): {
        "password-authenticator_properties": (
            "password-authenticator.name=file\nfile.password-file=etc/.password.db\n"
        )
    },
    ("jvm.config:1", "etc/jaas.conf"): {
        "jvm_config": "-Djava.security.auth.login.config=etc/jaas.conf\n"
    },
    # Not where the server would look.
    ("catalog/h.properties:1", "core-site.xml"): {
        "catalog__h_properties": "hive.config.resources=core-site.xml\n"
    },
    ("node.properties:1", "/opt/catalogs"): {
        "node_properties": "catalog.config-dir=/opt/catalogs\n"
    },
}


@pytest.mark.parametrize(("place", "texts"), LOST.items())
@BOTH
def test_a_file_that_an_instance_would_not_find_is_reported(
    name: str, texts: dict[str, str], place: tuple[str, str]
) -> None:
    where, path = place
    with fails(UsageError, where=f"/etc/trino/{where}", path=path):
        on(name, a_tree(**texts))


@BOTH
def test_files_that_are_found_are_let_be(name: str) -> None:
    tree = a_tree(
        config_properties=(
            "http-server.https.keystore.path=etc/keystore.jks\n"
            "event-listener.config-files=etc/a.properties,/opt/b.properties\n"
        ),
        a_properties="event-listener.name=http\n",
        log_properties="=WARN\n",
        **{
            "access-control_properties": "security.config-file=http://h/rules.json\n",
            "catalog__h_properties": "hive.config.resources=${ENV:RESOURCES}\n",
            "jvm_config": "-Djava.security.krb5.conf=etc/krb5.conf\n-Dx=etcetera\n",
            "krb5_conf": "[libdefaults]\n",
        },
    )
    layout = lay_out(name, a_plan(name), tree)
    assert layout.files["worker-1/etc/a.properties"] == "event-listener.name=http\n"
    assert flags(layout, "worker-0")[0] == "-Djava.security.krb5.conf=etc/krb5.conf"


@BOTH
def test_variables_that_the_tree_names_are_passed_on(name: str) -> None:
    tree = a_tree(
        catalog__pg_properties="# ${ENV:NOT}\nconnection-password=x${ENV:PG_SECRET}\n",
        node_properties="node.environment=${ENV:WHERE}\n",
    )
    environment = {"PG_SECRET": "hunter2", "WHERE": "here", "OTHER": "no"}
    layout = lay_out(name, a_plan(name), replace(tree, environment=environment))
    for spec in layout.processes:
        assert spec.env["PG_SECRET"] == "hunter2"
        assert set(spec.env) == {"PG_SECRET", "WHERE", "JAVA_HOME"}
        assert "hunter2" not in " ".join(spec.argv)
    assert not [text for text in layout.files.values() if "hunter2" in text]
    del environment["PG_SECRET"]
    with fails(UsageError, where="/etc/trino/catalog/pg.properties:2", name="PG_SECRET"):
        on(name, replace(tree, environment=environment))
    # To render it, nothing need be known of the environment where it will be started.
    page = render_native(unattended(on(name, tree))).files["README.md"]
    assert "reads PG_SECRET, WHERE from the environment" in page


@pytest.mark.parametrize("said", ["etc/cats", "/etc/trino/cats", "etc/../etc/cats/"])
@BOTH
def test_catalogs_are_read_from_the_folder_that_the_user_named(name: str, said: str) -> None:
    tree = a_tree(
        node_properties=f"catalog.config-dir={said}\n", cats__hive_properties="connector.name=h\n"
    )
    layout = lay_out(name, a_plan(name), tree)
    for spec in layout.processes:
        assert config(layout, spec.name)["catalog.config-dir"] == "etc/cats"
        assert layout.files[f"{spec.name}/etc/cats/hive.properties"] == "connector.name=h\n"
        assert f"{spec.name}/etc/cats/atoll.properties" in layout.files
        assert "catalog.config-dir" not in layout.files[f"{spec.name}/etc/node.properties"]


CACHES = """\
fs.cache.enabled=true
fs.cache.directories=/ssd1,/ssd2
fs.cache.max-sizes=1GB,2GB
cache.base-directory=file:///ssd
"""


@BOTH
def test_each_instance_has_caches_of_its_own(name: str) -> None:
    tree = a_tree(catalog__lake_properties=CACHES, catalog__other_properties=CACHES)
    layout = lay_out(name, a_plan(name), tree)
    found = []
    for spec in layout.processes:
        for catalog in ("lake", "other"):
            text = layout.files[f"{spec.name}/etc/catalog/{catalog}.properties"]
            read = read_properties(text, where="")
            assert read["cache.base-directory"].startswith(f"file:///var/x/{spec.name}/")
            assert read["fs.cache.max-sizes"] == "1GB,2GB"
            found += read["fs.cache.directories"].split(",")
    assert len(set(found)) == len(found) == 4 * len(layout.processes)


TLS = """\
http-server.https.enabled=true
http-server.https.port=8443
http-server.authentication.type=PASSWORD
"""


@BOTH
def test_a_cluster_that_outlives_atoll_keeps_its_port_and_its_passwords(name: str) -> None:
    plan, engine = a_plan(name), on(name, a_tree(config_properties=TLS))
    assert isinstance(engine, UnattendedEngine)
    its_own = engine.unattended()
    assert its_own.ports(plan) == engine.ports(plan) - 1
    ports = list(range(9000, 9000 + its_own.ports(plan)))
    layout = its_own.layout(plan, INSTALLED, run_dir="/run/x", ports=ports)
    coordinator = config(layout, "coordinator")
    assert coordinator["http-server.https.port"] == "8443"
    assert "http-server.authentication.allow-insecure-over-http" not in coordinator
    with fails(UsageError, where="/etc/trino/config.properties", port=8443, ports="8441 to 8457"):
        its_own.layout(plan, INSTALLED, run_dir="/run/x", ports=[p - 559 for p in ports])


def test_a_folder_that_is_no_tree_is_refused() -> None:
    with fails(UsageError, where="/x", file="config.properties"):
        lay_out("trino", a_plan(), UserTree(root="/x", texts={"a": ""}))
