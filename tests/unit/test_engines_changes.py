"""What a user is shown of what Atoll changed in their configuration."""

from __future__ import annotations

import pytest

from atoll.engines.base import Base
from atoll.engines.changes import changes, count_changes, without_secrets

TREE = Base(
    "/etc/trino",
    {
        "config.properties": "a=1\nb=2\nkeystore.password=hunter2\nc=3\n",
        "jvm.config": "-server\n-Xmx16G\n-Djavax.net.ssl.trustStorePassword=hunter2\n",
        "catalog/db.properties": "connection-url=jdbc:x://me:hunter2@db/x\n"
        "secret.key=hun\\\n  ter2\n",
    },
)


def test_only_what_changed_is_shown_and_no_secret() -> None:
    files = {
        "worker-0/etc/config.properties": TREE.texts["config.properties"].replace("c=3", "c=4"),
        "worker-0/etc/jvm.config": "-server\n-Xmx4G\n"
        "-Djavax.net.ssl.trustStorePassword=hunter2\n-XX:+UseNUMA\n",
        "worker-0/etc/catalog/db.properties": TREE.texts["catalog/db.properties"] + "d=1\n",
        "worker-0/etc/node.properties": "node.id=hunter1\ninternal.shared-secret=hunter2\n",
    }
    shown = changes(TREE, files)
    assert "hunter2" not in shown
    assert "ter2" not in shown
    assert "--- /etc/trino/jvm.config\n+++ worker-0/etc/jvm.config\n" in shown
    assert "\n-c=3\n+c=4\n" in shown
    assert "\n--Xmx16G\n+-Xmx4G\n" in shown
    assert "--- /dev/null\n+++ worker-0/etc/node.properties\n" in shown
    assert "\n+node.id=hunter1\n+internal.shared-secret=***\n" in shown
    assert " connection-url=jdbc:x://me:***@db/x\n" in shown
    # c, -Xmx, UseNUMA and d; what is ours alone changes nothing of theirs.
    assert count_changes(TREE, files) == (4, 3)


@pytest.mark.parametrize(
    "line",
    [
        "http-server.https.keystore.key=hunter2",
        'gcs.json-key={"private": "hunter2"}',
        "exchange.azure.connection-string=AccountName=x;AccountKey=hunter2;",
        "-Dldap.pwd=hunter2",
        "ldap.bind-password : hunter2",
    ],
)
def test_what_looks_like_a_secret_is_not_told(line: str) -> None:
    told = without_secrets(line)
    assert "hunter2" not in told
    assert told.startswith(line[:5])


@pytest.mark.parametrize("line", ["hive.s3.sse.kms-key-id=x", "key_buffer_size = 1", "a.path=/k"])
def test_what_is_none_is(line: str) -> None:
    assert without_secrets(line) == line


def test_flags_for_java_are_told_once() -> None:
    files = {"w/etc/jvm.config": "-Xmx1G\n", "w/java.args": '"-Xmx1G"\n'}
    assert "java.args" not in changes(TREE, files)


def test_a_setting_of_many_instances_is_one_setting() -> None:
    files = {f"worker-{n}/etc/config.properties": f"a={n}\nb=2\n" for n in range(4)}
    settings, touched = count_changes(TREE, files)
    assert touched == 1
    assert settings == len(["a", "keystore.password", "c"])


def test_nothing_changed_shows_nothing() -> None:
    files = {f"worker-0/etc/{path}": text for path, text in TREE.texts.items()}
    assert changes(TREE, files) == ""
    assert count_changes(TREE, files) == (0, 0)
