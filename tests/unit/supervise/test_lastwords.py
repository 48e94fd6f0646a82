"""Which line of a server's log explains why it died."""

from __future__ import annotations

import pytest

from atoll.engines import registry
from atoll.engines.facts import facts_of
from atoll.supervise.lastwords import telling_line

ENGINES = ("postgresql", "mariadb")
UNKNOWN = (
    'LOG:  unrecognized configuration parameter "x" in file "/run/x/postgresql.conf" line 2',
    "[ERROR] /usr/sbin/mariadbd: unknown variable 'x=1'",
)
SUMMARY = (
    'FATAL:  configuration file "/run/x/postgresql.conf" contains errors',
    "2026-01-01 [ERROR] Aborting",
)


@pytest.mark.parametrize(
    ("engine", "unknown", "summary"), list(zip(ENGINES, UNKNOWN, SUMMARY, strict=True))
)
def test_the_fault_is_shown_and_not_the_summary(engine: str, unknown: str, summary: str) -> None:
    pattern = facts_of(registry.get(engine)).log_summary
    assert telling_line(f"Starting\n{unknown}\n{summary}\n", pattern) == unknown
    assert telling_line(f"{summary}\n", pattern) == summary
    assert telling_line(f"Starting\n{unknown}\n{summary}\n") == summary
