"""An engine's complaint about a setting names the user's own file and line."""

from __future__ import annotations

import pytest

from atoll.engines.userconfig.blame import in_users_files, naming_users_files
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import EngineFailed, PortTaken

TREE = UserTree(
    "/etc/mine",
    {
        "config.properties": "coordinator=true\nquery.max-memory=5XB\n",
        "catalog/lake.properties": "connector.name=tpch\n\ntpch.nosuch=5\n",
        "catalog/other.properties": "connector.name=hive\ntpch.nosuch = 6\n",
        "postgresql.conf": "# ours\nwork_mem = 5XB\nmax_connections=-3\n",
        "my.cnf": "[mysqld]\nno-such = 5\n",
        "jvm.config": "-server\n-Dtpch.flag=1\n",
    },
)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        # Trino and Presto name a property.
        (
            "b: worker-0 died (exit status 100) while it started: 1) Error: Configuration property "
            "'tpch.nosuch' was not used (log: /l/worker-0.log)",
            "{}; the setting is in /etc/mine/catalog/lake.properties:3, "
            "/etc/mine/catalog/other.properties:2",
        ),
        (
            "1) Error: Invalid value '5XB' for type DataSize (property 'query.max-memory')",
            "{}; the setting is in /etc/mine/config.properties:2",
        ),
        (
            "Invalid configuration property query.max-memory: must be more",
            "{}; the setting is in /etc/mine/config.properties:2",
        ),
        (
            "Configuration property 'tpch.flag' was not used",
            "{}; the setting is in /etc/mine/jvm.config:2",
        ),
        # PostgreSQL names a copy, or a parameter.
        (
            'LOG: unrecognized parameter "x" in file "/run/b1/server-0/postgresql.conf" line 3',
            'LOG: unrecognized parameter "x" in file "/etc/mine/postgresql.conf" line 3',
        ),
        (
            'LOG: -3 is outside the range for parameter "max_connections" (1 .. 2)',
            "{}; the setting is in /etc/mine/postgresql.conf:3",
        ),
        # MariaDB names an option, in its own spelling.
        (
            "[ERROR] /usr/sbin/mariadbd: unknown variable 'no_such=5'",
            "{}; the setting is in /etc/mine/my.cnf:2",
        ),
        # Nothing of the user's.
        ("b: coordinator died (exit status 1): it wrote nothing", "{}"),
        ("Configuration property 'a.b' was not used (log: /l/worker-0.log)", "{}"),
    ],
)
def test_the_users_file_and_line_are_named(said: str, expected: str) -> None:
    assert in_users_files(said, TREE) == expected.replace("{}", said)


def test_a_fault_of_an_engine_stays_of_its_kind() -> None:
    said = "a port is taken: 'tpch.flag'"
    with pytest.raises(PortTaken, match=r"jvm\.config:2"), naming_users_files(TREE):
        raise PortTaken(said)
    for tree in (None, UserTree("/etc/mine", {})):
        with pytest.raises(EngineFailed) as caught, naming_users_files(tree):
            raise EngineFailed(said)
        assert str(caught.value) == said
