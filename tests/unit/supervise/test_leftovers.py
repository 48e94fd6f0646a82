"""What a killed PostgreSQL leaves: its own shared memory is removed, and no other."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from atoll.engines.postgresql.leftovers import named_by
from atoll.host.shared_memory import Segment
from atoll.schema.deployment import Deployment
from atoll.supervise.leftovers import remove_leftovers
from tests.parts.toy import toy_plan

# As PostgreSQL 15 writes it; the last line is its state.
LOCK_FILE = """\
4242
/var/x/data-0
1795237278
5432
/run/x

 10021230         4
ready
"""
_IPC_PRIVATE = 0  # a key that every such segment has
NAMED = Segment(id=4, key=10021230, creator_pid=4242)


def test_the_lock_file_names_the_segment() -> None:
    assert named_by(LOCK_FILE) == NAMED
    # A negative key as an unsigned long, as C casts it.
    assert named_by(LOCK_FILE.replace(" 10021230", str((1 << 64) - 5))) == Segment(
        4, (1 << 32) - 5, 4242
    )


@given(st.text(max_size=200) | st.integers(0, len(LOCK_FILE)).map(lambda end: LOCK_FILE[:end]))
def test_any_other_text_names_none_or_a_whole_one(text: str) -> None:
    found = named_by(text)
    assert found is None or all(isinstance(number, int) for number in found)


@pytest.fixture
def made() -> Iterator[list[int]]:
    """Two segments that this process has made and that nobody has attached."""
    ids = [ctypes.CDLL(None).shmget(_IPC_PRIVATE, 56, 0o600) for _ in range(2)]
    assert all(each >= 0 for each in ids)
    yield ids
    for each in ids:
        ctypes.CDLL(None).shmctl(each, 0, None)


def test_of_two_real_ones_of_one_process_the_named_one_goes(
    made: list[int], tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    deployment = Deployment.model_construct(
        plan=toy_plan().model_copy(update={"engine": "postgresql"}),
        run_dir=str(tmp_path / "run"),
        scratch_dir=str(tmp_path / "scratch"),
    )

    def there() -> set[int]:
        rows = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
        return {int(each.split()[1]) for each in rows} & set(made)

    remove_leftovers(deployment)  # its data is gone: it cannot be told, so nothing is touched
    assert there() == set(made)
    (tmp_path / "scratch/data-0").mkdir(parents=True)
    text = LOCK_FILE.replace("4242", str(os.getpid())).replace("10021230         4", "{}")
    (tmp_path / "scratch/data-0/postmaster.pid").write_text(
        text.format(f"{_IPC_PRIVATE} {made[0]}")
    )
    remove_leftovers(deployment)
    assert there() == {made[1]}
