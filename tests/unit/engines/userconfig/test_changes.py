"""What a user is shown of what Atoll changed in their configuration."""

from __future__ import annotations

import pytest

from atoll.engines.userconfig import changes as module
from atoll.engines.userconfig.changes import changes, masked
from atoll.engines.userconfig.tree import UserTree

TREE = UserTree(
    "/etc/trino",
    {
        "config.properties": "a=1\nb=2\nkeystore.password=hunter2\nc=3\n",
        "jvm.config": "-server\n-Xmx16G\n-Djavax.net.ssl.trustStorePassword=hunter2\n",
        "catalog/db.properties": "connection-url=jdbc:x://me:hunter2@db/x\n"
        "secret.key=hun\\\n  ter2\n",
    },
)


def test_only_changed_settings_are_shown_and_no_secret() -> None:
    files = {
        "w/etc/config.properties": "a=1\n# why\nc=4\nkeystore.password=hunter3\nport=1\n",
        "w/etc/jvm.config": "-server\n-Xmx4G\n"
        "-Djavax.net.ssl.trustStorePassword=hunter2\n-XX:+UseNUMA\n",
        "w/etc/catalog/db.properties": "connection-url=jdbc:x://me:hunter3@db/x\nsecret.key=x\n",
        "w/etc/node.properties": "node.id=hunter1\ninternal.shared-secret=hunter2\n",
    }
    assert changes(TREE, files) == (
        "/etc/trino/catalog/db.properties -> w/etc/catalog/db.properties\n"
        "  connection-url: jdbc:x://me:***@db/x -> jdbc:x://me:***@db/x\n"
        "  secret.key: *** -> ***\n"
        "/etc/trino/config.properties -> w/etc/config.properties\n"
        "  b: 2 -> (not set)\n"
        "  keystore.password: *** -> ***\n"
        "  c: 3 -> 4\n"
        "  port: (not set) -> 1\n"
        "/etc/trino/jvm.config -> w/etc/jvm.config\n"
        "  -Xmx: -Xmx16G -> -Xmx4G\n"
        "  -XX:UseNUMA: (not set) -> -XX:+UseNUMA\n"
        "w/etc/node.properties: added by Atoll\n"
    )


def test_a_setting_that_stands_several_times_is_shown_with_all_values() -> None:
    tree = UserTree("/etc/x", {"a.cnf": "[server]\nx = 1\n[mysqld]\nx = 2\nskip-y\n"})
    shown = changes(tree, {"s/a.cnf": "[server]\nx = 9\n[mysqld]\nx = 9\n"})
    assert shown == "/etc/x/a.cnf -> s/a.cnf\n  x: 1, 2 -> 9, 9\n  skip_y:  -> (not set)\n"


def test_unchanged_copies_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    # A comparison of a large file takes a while, and every instance has a copy of each.
    monkeypatch.setattr(module, "setting_lines", None)
    same = {f"w-{n}/etc/{path}": text for n in (0, 1) for path, text in TREE.texts.items()}
    assert changes(TREE, same) == ""


def test_flags_for_java_are_shown_once() -> None:
    files = {"w/etc/jvm.config": "-Xmx1G\n", "w/java.args": '"-Xmx1G"\n'}
    assert "java.args" not in changes(TREE, files)


@pytest.mark.parametrize(
    "line",
    [
        "http-server.https.keystore.key=hunter2",
        'gcs.json-key={"private": "hunter2"}',
        "exchange.azure.connection-string=AccountName=x;AccountKey=hunter2;",
        "fs.azure.account.key.mine.dfs.core.windows.net=hunter2",
        "-Dldap.pwd=hunter2",
        "-Dpassword=hunter2",
        "ldap.bind-password : hunter2",
        "spark.ssl.keyPassword hunter2",
        "spark.ssl.keyStore.pwd\thunter2",
        "spark.redis.auth hunter2",
        "spark.driver.extraJavaOptions -Da=b -Djavax.net.ssl.trustStorePassword=hunter2",
        "spark.hadoop.fs.azure.sas.box.account.blob.core.windows.net hunter2",
        "export AWS_SECRET_ACCESS_KEY=hunter2",
        "primary_conninfo = 'host=x password=hunter2'",
        "wsrep_sst_auth = me:hunter2",
        "keystore.password=<hunter2>",
        'http-event-listener.connect-http-headers="Authorization: Basic hunter2"',
        "connection-url=jdbc:postgresql://me:hunter2@host/db",
        "connection-url=jdbc:postgresql://me:p@hunter2@host/db",
        "connection-url=jdbc:mysql://host/db?user=me&password=hunter2",
        "connection-url=jdbc:oracle:thin:me/hunter2@//host:1521/db",
        "archive_command = 'curl -u me:hunter2 -T %p https://backup'",
        "archive_command = 'curl --user=me:hunter2 https://backup'",
        "restore_command = 'fetch --password hunter2 %f'",
        "-XX:OnOutOfMemoryError=alert --api-token hunter2",
        "init_connect = \"alter user me identified by 'hunter2'\"",
        "init_connect = 'create user me IDENTIFIED VIA ed25519 USING PASSWORD hunter2'",
    ],
)
def test_a_secret_is_not_printed(line: str) -> None:
    shown = masked(line)
    assert "hunter2" not in shown
    assert shown.startswith(line[:5])


@pytest.mark.parametrize(
    "line",
    [
        "hive.s3.sse.kms-key-id=x",
        "key_buffer_size = 1",
        "a.path=/k",
        "http-server.authentication.type=PASSWORD",
        "spark.sql.hive.metastore.authorization.enabled true",
        "discovery.uri=http://127.0.0.1:8080",
        "spark.sasl.timeout=9",
        "spark.a.keyboard x",
        "-url=jdbc:mysql://host/x",
        "archive_command = 'test ! -f /a/%f && cp -u %p /a/%f'",
        "-XX:OnError=notify --user ann",
    ],
)
def test_other_values_are_printed(line: str) -> None:
    assert masked(line) == line


def test_a_long_value_is_masked_in_time() -> None:
    # With a search from every letter it would take ten minutes.
    assert masked(f"gcs.json-key={'a1B' * 10_000}") == "gcs.json-key=***"
    for line in (f"x={'a1B' * 10_000}", "jdbc:oracle:a:/" * 8000):
        assert masked(line) == line
