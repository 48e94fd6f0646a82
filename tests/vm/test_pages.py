"""Pages by node in a guest with two nodes: Atoll's answers beside the kernel's and numastat's."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from atoll.guest.guest import Guest
from tests.vm.proof import ROOM

pytestmark = pytest.mark.parametrize("guest", ["milan2:pages"], indirect=True)
MIB = 1 << 20
FILE_BYTES = 16 * MIB


@pytest.fixture(scope="module")
def file(root: Path) -> Iterator[Path]:
    """On the host's root, which the guest reads through its page cache."""
    folder = root / "build"
    folder.mkdir(exist_ok=True)
    path = folder / f"test-pages-{os.getpid()}"
    path.write_bytes(os.urandom(FILE_BYTES))
    yield path
    path.unlink()


_ANSWERS: dict[int, dict[str, Any]] = {}


@pytest.fixture
def answers(guest: Guest, file: Path, root: Path) -> dict[str, Any]:
    """All of it in one process of the guest, once for all tests here."""
    if id(guest) not in _ANSWERS:
        # AutoNUMA would move pages between two looks, khugepaged and compaction too. A test that
        # asks for huge pages gets them.
        still = (
            "echo 0 >/proc/sys/kernel/numa_balancing && "
            "echo 0 >/proc/sys/vm/compaction_proactiveness && "
            f"echo madvise >/sys/kernel/mm/transparent_hugepage/enabled && {ROOM}"
        )
        room = guest.run(["sh", "-c", still])
        assert room.returncode == 0, room.stderr
        done = guest.run(
            [sys.executable, "-m", "tests.vm.inside.pages", str(file)],
            timeout_s=900,
            cwd=str(root),
        )
        assert done.returncode == 0, done.stderr
        _ANSWERS[id(guest)] = json.loads(done.stdout)
    return _ANSWERS[id(guest)]


def by_node(look: dict[str, Any]) -> dict[int, int]:
    return {int(node): size for node, size in look["bytes_by_node"].items()}


CASES = ("bound", "mixed", "before", "migrated")


def test_what_is_counted_equals_numa_maps(answers: dict[str, Any]) -> None:
    for case in CASES:
        sums: dict[int, int] = {}
        for line in answers[case]["numa_maps"].splitlines():
            kib = re.search(r"kernelpagesize_kB=(\d+)", line)
            for node, pages in re.findall(r" N(\d+)=(\d+)", line):
                assert kib is not None
                sums[int(node)] = sums.get(int(node), 0) + int(pages) * int(kib[1]) * 1024
        found = answers[case]["counted"]
        assert (found["method"], found["share_error"], found["unknown"]) == ("numa_maps", 0, [])
        assert by_node(found) == sums, case
        assert found["resident_bytes"] == sum(sums.values())


def test_what_is_counted_equals_numastat(answers: dict[str, Any]) -> None:
    """It rounds to hundredths of a MiB."""
    for case in CASES:
        text = answers[case]["numastat"]
        nodes = re.findall(r"Node (\d+)", text)
        total = re.search(r"^Total +(.*)$", text, re.MULTILINE)
        assert total is not None, text
        found = by_node(answers[case]["counted"])
        for node, mib in zip(nodes, total[1].split()[:-1], strict=True):
            assert found.get(int(node), 0) / MIB == pytest.approx(float(mib), abs=0.05), case


def test_a_sample_is_within_its_stated_error(answers: dict[str, Any]) -> None:
    for case in CASES:
        counted, sampled = answers[case]["counted"], answers[case]["sampled"]
        assert sampled["method"] == "move_pages" and sampled["sampled_pages"] > 0
        assert 0 < sampled["share_error"] < 0.1
        assert sampled["resident_bytes"] == pytest.approx(counted["resident_bytes"], rel=0.02)
        for node in (0, 1):
            shares = [
                by_node(look).get(node, 0) / look["resident_bytes"] for look in (counted, sampled)
            ]
            # 95 of 100 times; twice the error leaves one in ten thousand.
            assert abs(shares[0] - shares[1]) <= 2 * sampled["share_error"] + 0.005, case


def test_bound_memory_is_where_it_was_bound(answers: dict[str, Any]) -> None:
    (region,) = answers["bound"]["counted"]["regions"]
    assert region is not None
    assert (region["policy"], by_node(region)) == ("bind:1", {1: 16 * MIB})


def test_every_policy_of_a_mapping(answers: dict[str, Any]) -> None:
    regions = answers["mixed"]["counted"]["regions"]
    assert [region and region["policy"] for region in regions] == [
        "interleave:0-1",
        "bind=static:1",
        "prefer (many):0-1",
        "weighted interleave:0-1",
        "prefer:0",
    ]
    interleaved, bound, _, weighted, preferred = map(by_node, regions)
    assert interleaved == {0: 12 * MIB, 1: 12 * MIB}
    assert bound == {1: 4 * MIB}
    assert weighted == {0: MIB, 1: MIB}  # the weights are 1 and 1
    assert preferred == {0: 16 * MIB}


def test_transparent_huge_pages(answers: dict[str, Any]) -> None:
    counted = answers["mixed"]["counted"]["huge_bytes"]
    sampled = answers["mixed"]["sampled"]["huge_bytes"]
    assert counted >= 16 * MIB
    assert sampled == pytest.approx(counted, rel=0.2)


def test_pages_that_were_moved_behind_the_process(answers: dict[str, Any]) -> None:
    for way in ("counted", "sampled"):
        before, after = answers["before"][way], answers["migrated"][way]
        assert by_node(before["regions"][0]).keys() == {0}
        assert by_node(after["regions"][0]).keys() == {1}
        assert after["own_nodes_share"] > before["own_nodes_share"] + 0.2
        assert after["local_share"] == pytest.approx(after["own_nodes_share"])


def test_the_page_cache_of_a_file_is_on_the_node_of_its_reader(
    answers: dict[str, Any], file: Path
) -> None:
    (found,) = answers["cached"]["found"]
    assert found["path"] == str(file) and found["size_bytes"] == FILE_BYTES
    # Read ahead takes some more than was asked for.
    assert FILE_BYTES // 2 <= found["cached_bytes"] < FILE_BYTES
    assert by_node(found).keys() == {1}
    assert by_node(found)[1] == pytest.approx(found["cached_bytes"], abs=4096)
