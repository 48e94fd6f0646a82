"""System V segments: which of them are removed."""

from __future__ import annotations

import pytest

from atoll.host.shared_memory import Segment, unattached

NAMED = Segment(id=4, key=10021230, creator_pid=4242)
HEAD = "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap"


def row(key: int, shmid: int, cpid: int, nattch: int = 0, uid: int = 1000) -> str:
    return f"{key} {shmid} 600 56 {cpid} 102 {nattch} {uid} 1000 1000 1000 1 2 3 4096 0"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (row(10021230, 4, 4242), [4]),
        (row(10021230, 4, 4242, nattch=1), []),
        (row(10021230, 4, 4242, uid=1001), []),
        (row(10021230, 5, 4242), []),  # a program that was given the same pid, and its key
        (row(10021231, 4, 4242), []),
        (row(10021230, 4, 4243), []),
    ],
)
def test_only_the_named_one_of_this_user_and_unattached(line: str, found: list[int]) -> None:
    table = f"{HEAD}\n{row(1, 2, 3)}\n{line}\n"
    assert unattached(table, named={NAMED}, uid=1000) == found
    assert unattached(table, named=set(), uid=1000) == []


@pytest.mark.parametrize("table", ["", HEAD])
def test_a_table_without_rows(table: str) -> None:
    assert unattached(table, named={NAMED}, uid=1000) == []
