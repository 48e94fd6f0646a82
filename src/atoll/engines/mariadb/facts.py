"""What the rest of Atoll knows of MariaDB."""

from __future__ import annotations

from pathlib import Path

from atoll.engines.facts import EngineFacts
from atoll.install.catalog import MB, Packages, Part

FACTS = EngineFacts(
    account="mysql",
    home="/usr",
    ports={"mariadb": 3306, "mysql": 3306},
    # Two dashes begin a comment only before a blank: 5--1 is 6.
    comments_and_quotes=r"""(?P<comment>--(?!\S)[^\n]*|\#[^\n]*|/\*.*?\*/)
        |'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`""",
    rewrites={
        "tpch": {
            # MariaDB names the columns of a derived table only inside it.
            "q13": (
                ("count(o_orderkey)", "count(o_orderkey) AS c_count"),
                (" AS c_orders (c_custkey,\n        c_count)", " AS c_orders"),
            ),
        },
    },
    parts=(
        Part(
            "mariadb-10.11",
            "10.11",
            Packages(("mariadb-server-core", "mariadb-client-core"), with_depends=True),
            9 * MB,
            63 * MB,
            "GPL-2.0",
        ),
    ),
    log_summary=r"\[ERROR\] Aborting$",
    dialects=Path(__file__).parent / "dialects",
)
