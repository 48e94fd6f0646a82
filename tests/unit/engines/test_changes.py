"""What a user is shown of what Atoll changed in their configuration."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atoll.engines.userconfig.changes import changes, count_changes
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


def test_copies_that_are_as_they_were_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(*_: object, **__: object) -> Iterator[str]:
        raise AssertionError("takes seconds for a large file, for each instance")

    monkeypatch.setattr("difflib.SequenceMatcher", compared)
    monkeypatch.setattr("difflib.unified_diff", compared)
    same = {
        f"worker-{number}/etc/{path}": text
        for number in (0, 1)
        for path, text in TREE.texts.items()
    }
    assert changes(TREE, same) == ""
    assert count_changes(TREE, same) == (0, 0)


def test_a_line_is_hidden_where_it_is_a_secret_and_there_alone() -> None:
    text = "hunter2=1\nx=1\nsecret=\\\nhunter2=1\n"
    shown = changes(UserTree("/etc", {"a.properties": text}), {"w/a.properties": text + "c=3\n"})
    assert shown == (
        "--- /etc/a.properties\n+++ w/a.properties\n@@ -2,3 +2,4 @@\n"
        " x=1\n secret=***\n ***\n+c=3\n"
    )


def test_what_is_ours_alone_begins_at_nothing() -> None:
    shown = changes(UserTree("/etc", {}), {"w/b.conf": "a=1\nb=2\n"})
    assert shown == "--- /dev/null\n+++ w/b.conf\n@@ -0,0 +1,2 @@\n+a=1\n+b=2\n"


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
