"""The guest's initramfs, its modules in order, QEMU's words, and a command's output as it grows."""

from __future__ import annotations

import itertools
import lzma
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.guest import initramfs, output, qemu
from atoll.guest.output import MARK, Output


def test_an_archive_is_what_cpio_reads(tmp_path: Path) -> None:
    files = [("init", 0o100755, b"#!/bin/sh\n"), ("a/b/c", 0o100644, b"12345")]
    archive = initramfs.archive(files)
    assert len(archive) % 4 == 0
    assert _names(archive) == ["a", "a/b", "init", "a/b/c", "TRAILER!!!"]
    if shutil.which("cpio"):
        subprocess.run(["cpio", "-id", "--quiet"], input=archive, cwd=tmp_path, check=True)
        assert (tmp_path / "a/b/c").read_bytes() == b"12345"
        assert (tmp_path / "init").stat().st_mode == 0o100755


def _names(archive: bytes) -> list[str]:
    """The names in a newc archive, its fields parsed independently."""
    found, at = [], 0
    while at < len(archive):
        assert archive[at : at + 6] == b"070701"
        size, named = (int(archive[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in (6, 11))
        found.append(archive[at + 110 : at + 110 + named - 1].decode())
        at += (110 + named + 3) // 4 * 4 + (size + 3) // 4 * 4
    return found


def test_modules_come_after_what_they_need(tmp_path: Path) -> None:
    needs = {"9p": "netfs,9pnet", "9pnet-virtio": "9pnet", "overlay": "", "netfs": "", "9pnet": ""}
    needs["virtio_net"] = ""
    for name, depends in needs.items():
        data = b"\x7fELF\0license=GPL\0depends=" + depends.encode() + b"\0name=x\0"
        if name == "9p":
            (tmp_path / "9p.ko").write_bytes(data)
        else:
            (tmp_path / f"{name}.ko.xz").write_bytes(lzma.compress(data))
    found = initramfs.read_modules(tmp_path)
    assert list(found) == ["netfs", "9pnet", "9p", "9pnet_virtio", "overlay", "virtio_net"]
    assert all(data.startswith(b"\x7fELF") for data in found.values())


@given(st.dictionaries(st.integers(1, 9), st.sets(st.integers(1, 9))))
def test_an_order_of_anything_without_a_circle(graph: dict[int, set[int]]) -> None:
    needs = {n: sorted(other for other in others if other < n) for n, others in graph.items()}
    names = [str(n) for n in needs]
    order = initramfs.in_order(names, lambda name: map(str, needs.get(int(name), [])))
    assert len(set(order)) == len(order) and set(names) <= set(order)
    for name in order:
        for other in needs.get(int(name), []):
            assert order.index(str(other)) < order.index(name)


def test_the_kernel_is_told_its_clock() -> None:
    words = qemu.kernel_arguments(2_450_000, simulated=False)
    assert {"tsc=reliable", "tsc_early_khz=2450000", "lpj=9800000"} <= set(words)
    words = qemu.kernel_arguments(2_450_000, simulated=True)
    assert "notsc" in words and "tsc=reliable" not in words


def test_what_was_killed_for_memory_is_found_on_the_console() -> None:
    console = """\
[   71.2] Out of memory: Killed process 212 (python3) total-vm:91kB, anon-rss:8kB, UID:0
Killed
[   93.0] Memory cgroup out of memory: Killed process 240 (tail) total-vm:9kB
[   95.1] postgres invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE), order=0
"""
    assert qemu.killed_for_memory(console) == [
        "Out of memory: Killed process 212 (python3)",
        "Memory cgroup out of memory: Killed process 240 (tail)",
    ]


@pytest.mark.parametrize(
    ("data", "sure", "held", "ended"),
    [
        (b"", b"", b"", False),
        (b"out\n", b"out\n", b"", False),
        (b"out\n" + MARK, b"out\n", b"", True),
        (b"out\n" + MARK + b"of a daemon", b"out\n", b"", True),
        (b"out\n" + MARK[:5], b"out\n", MARK[:5], False),
        (b"out\0", b"out", b"\0", False),
        (b"\0\0" + MARK[:1], b"\0\0", b"\0", False),
    ],
)
def test_the_mark_of_the_end(data: bytes, sure: bytes, held: bytes, ended: bool) -> None:
    assert output.split(data) == (sure, held, ended)


@given(st.binary(max_size=40), st.lists(st.integers(0, 60), max_size=5), st.binary(max_size=9))
def test_output_is_whole_wherever_it_is_cut(data: bytes, cuts: list[int], after: bytes) -> None:
    held, found, ended = b"", b"", False
    whole = data + MARK + after
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    for start, end in itertools.pairwise(edges):
        if not ended:
            sure, held, ended = output.split(held + whole[start:end])
            found += sure
    assert ended and found == data.partition(MARK)[0]


def test_output_that_is_cut_off_is_not_taken_for_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "PATIENCE_S", 0)
    (tmp_path / "1.out").write_bytes(b"a part" + MARK[:4])
    with pytest.raises(qemu.GuestDied, match=r"1\.out: a command's output is cut off"):
        Output(tmp_path / "1.out").read_all()


def test_output_is_read_once_and_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "1.out"
    stream = Output(path)
    assert stream.read_new() == b""
    path.write_bytes(b"one")
    assert stream.read_new() == b"one"
    with path.open("ab") as file:
        file.write(b"two" + MARK + b"late")
    assert (stream.read_all(), stream.read_new(), Output(path).read_text()) == (
        b"two",
        b"",
        "onetwo",
    )
