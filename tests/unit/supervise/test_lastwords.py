"""Which line of a server's log is told when it died."""

from __future__ import annotations

import pytest

from atoll.supervise.lastwords import telling_line

UNKNOWN = (
    'LOG:  unrecognized configuration parameter "x" in file "/run/x/postgresql.conf" line 2',
    "[ERROR] /usr/sbin/mariadbd: unknown variable 'x=1'",
)
SUMMARY = (
    'FATAL:  configuration file "/run/x/postgresql.conf" contains errors',
    "2026-01-01 [ERROR] Aborting",
)


@pytest.mark.parametrize(("unknown", "summary"), list(zip(UNKNOWN, SUMMARY, strict=True)))
def test_what_is_wrong_is_told_and_not_that_something_is(unknown: str, summary: str) -> None:
    assert telling_line(f"Starting\n{unknown}\n{summary}\n") == unknown
    assert telling_line(f"{summary}\n") == summary
