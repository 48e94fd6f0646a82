"""How sources are distinguished, and the errors of unreadable ones."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest

from atoll import _native
from atoll.errors import EXIT_INTERNAL, AtollError, TopologyError
from atoll.host.topology import read_machine
from atoll.host.unpack import unpack
from tests.parts.faults import fails
from tests.parts.paths import GOLDEN

CAPTURE = GOLDEN / "captures/two-core-vm"
MILAN = GOLDEN / "machines/dual-milan.xml"


def refusal(source: str | None = None, synthetic: str | None = None) -> str:
    with pytest.raises(TopologyError) as caught:
        read_machine(source, synthetic)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    return message


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("hwloc3.xml", "lstopo --export-xml-flags v2 OUT.xml"),
        ("truncated.xml", "truncated or damaged hwloc XML"),
        ("empty.xml", "is empty"),
        ("text.xml", "not hwloc XML"),
        ("html.xml", "not hwloc XML"),
        ("diff.xml", "difference of two topologies"),
        ("pu-twice.xml", "contradicts itself"),
        ("package-overlap.xml", "PU 15 is in two packages"),
        ("no-pu.xml", "has no PU"),
    ],
)
def test_refused_files(name: str, says: str) -> None:
    path = str(GOLDEN / "refused" / name)
    message = refusal(path)
    assert says in message
    assert message.startswith(path)


def test_every_truncation_is_refused() -> None:
    content = (GOLDEN / "machines/vm-l3-per-cpu.xml").read_text()
    end = content.rindex("</topology>")
    for cut in range(0, end, 257):
        with pytest.raises(TopologyError):
            read_xml(content[:cut])


def read_xml(text: str) -> None:
    """Through a pipe, as `--machine <(lstopo --of xml)` gives it."""
    reading, writing = os.pipe()
    writer = threading.Thread(target=lambda: write_and_close(writing, text.encode()))
    writer.start()
    try:
        read_machine(f"/proc/self/fd/{reading}")
    finally:
        writer.join()
        os.close(reading)


def write_and_close(descriptor: int, content: bytes) -> None:
    with open(descriptor, "wb") as file:
        file.write(content)


def test_a_pipe_can_be_read() -> None:
    read_xml(MILAN.read_text())


@pytest.mark.parametrize("text", ["gibberish", "", "Package:0", "Package:2 PU", "PU:-1", "a\0b"])
def test_nonsense_synthetic(text: str) -> None:
    assert "synthetic" in refusal(synthetic=text)


def test_a_synthetic_machine_beyond_reason() -> None:
    assert "over 65536 PUs" in refusal(synthetic="Core:100000000 PU:1")


def test_both_sources() -> None:
    assert "not both" in refusal(str(MILAN), "PU:2")


def test_missing_and_wrong_places(tmp_path: Path) -> None:
    assert "No such file" in refusal(str(tmp_path / "none.xml"))
    assert "hwloc-gather-topology" in refusal(str(tmp_path))
    assert "NUL" in refusal("a\0b")


def test_an_empty_sysfs_is_not_this_machine(tmp_path: Path) -> None:
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
    assert "hwloc-gather-topology" in refusal(str(tmp_path))


def test_captured_folder_in_each_form() -> None:
    whole = read_machine(str(CAPTURE))
    assert whole.origin.kind == "sysfs"
    for part in (CAPTURE.parent, CAPTURE / "sys", CAPTURE / "sys/devices/system"):
        machine = read_machine(str(part))
        assert machine.summary == whole.summary
        assert machine.machine_id == whole.machine_id


def tarball(path: Path, *extra: tuple[tarfile.TarInfo, bytes]) -> str:
    with tarfile.open(path, "w:bz2") as archive:
        archive.add(CAPTURE, arcname="vm")
        for member, content in extra:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return str(path)


def test_captured_tarball(tmp_path: Path) -> None:
    path = tarball(tmp_path / "vm.tar.bz2")
    machine = read_machine(path)
    assert machine.origin.where == path
    assert machine.machine_id == read_machine(str(CAPTURE)).machine_id
    assert machine.nics == read_machine(str(CAPTURE)).nics


def test_a_tarball_cannot_write_outside(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    path = tarball(tmp_path / "a.tar.bz2", (tarfile.TarInfo("../outside"), b"x"))
    assert "outside itself" in refusal(path)
    link = tarfile.TarInfo("vm/link")
    link.type = tarfile.SYMTYPE
    link.linkname = str(tmp_path)
    path = tarball(tmp_path / "b.tar.bz2", (link, b""), (tarfile.TarInfo("vm/link/outside"), b"x"))
    read_machine(path)
    assert not outside.exists()


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type = tarfile.SYMTYPE
    member.linkname = target
    return member, b""


def test_no_chain_of_links_leads_outside(tmp_path: Path) -> None:
    """Each link by itself stays inside; together they would write next to the tarball's folder."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "folder").mkdir()
    path = tarball(
        tmp_path / "a.tar.bz2",
        link("a/b/up", "../.."),
        link("out", "a/b/up/../outside"),
        link("out/made/planted", "x"),
        link("later", "c/up/../outside"),
        link("c/up", ".."),
        link("later/planted", "x"),
        link("vm/good", "../a/b"),
    )
    unpack(
        Path(path),
        tmp_path / "folder",
        error=TopologyError,
        most_bytes=10 << 20,
        skips_links=True,
    )
    assert list((tmp_path / "outside").iterdir()) == []
    inside = (tmp_path / "folder").resolve()
    for found in inside.rglob("*"):
        assert found.resolve().is_relative_to(inside), found
    assert (inside / "vm/good").resolve() == inside / "a/b"


def test_a_tarball_with_a_negative_size(tmp_path: Path) -> None:
    member = tarfile.TarInfo("vm/back")
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    header[124:136] = (256**12 - 1024).to_bytes(12, "big")  # base-256, as GNU tar
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(bytes(header) + bytes(4096)))
    assert "damaged" in refusal(str(path))


def test_a_tarball_of_something_else_is_named(tmp_path: Path) -> None:
    path = tmp_path / "plain.tar.bz2"
    with tarfile.open(path, "w:bz2") as archive:
        archive.add(MILAN, arcname="notes.txt")
    assert refusal(str(path)).startswith(f"{path}: contains no captured sysfs")


def test_a_damaged_tarball(tmp_path: Path) -> None:
    path = tarball(tmp_path / "vm.tar.bz2")
    content = Path(path).read_bytes()
    Path(path).write_bytes(content[: len(content) // 2])
    assert "tarball" in refusal(path)
    Path(path).write_bytes(content[:3] + b"no such thing")
    assert "tarball" in refusal(path)


def test_a_fault_of_the_library_is_no_fault_of_the_topology(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> str:
        reason = "internal error (a bug in Atoll): reading gave up (signal 11)"
        raise _native.OwnFault(f"m.xml: {reason}")

    monkeypatch.setattr(_native, "discover", fail)
    with fails(AtollError, path="m.xml", signal="signal 11") as caught:
        read_machine(str(MILAN))
    assert caught.value.exit_code == EXIT_INTERNAL
    assert not issubclass(_native.OwnFault, _native.TopologyFault)


def test_our_own_machine_file(tmp_path: Path) -> None:
    machine = read_machine(str(MILAN))
    path = tmp_path / "machine.json"
    path.write_text(machine.model_dump_json(indent=1))
    assert read_machine(str(path)) == machine
    path.write_text('{"format": "atoll/plan", "version": 1}')
    assert "not an atoll/machine file" in refusal(str(path))


def test_live_machine_and_its_mask() -> None:
    """In a process of its own, whose mask is one CPU: the machine stays whole."""
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os; cpu = min(os.sched_getaffinity(0)); os.sched_setaffinity(0, {cpu})\n"
            "from atoll.host.topology import read_machine\n"
            "m = read_machine()\n"
            "assert m.allowed.pus == (cpu,), m.allowed\n"
            "assert os.sched_getaffinity(0) == {cpu}\n"
            "print(m.summary.pus)",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stderr == ""
    assert int(told.stdout) == read_machine().summary.pus


def test_nothing_of_the_user_redirects_the_live_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HWLOC_XMLFILE", str(MILAN))
    monkeypatch.setenv("HWLOC_COMPONENTS", "xml,stop")
    assert read_machine().summary.pus != 128


def test_reading_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before, children = set(os.listdir("/proc/self/fd")), own_children()
    read_machine(str(CAPTURE / "sys/devices/system"))
    refusal(str(GOLDEN / "refused/no-pu.xml"))
    # No more than before; what earlier tests have left may go at any time.
    assert set(os.listdir("/proc/self/fd")) <= before
    assert list(tmp_path.iterdir()) == []
    assert own_children() <= children


def own_children() -> set[str]:
    """Of all threads, zombies among them; other tests of this process may have left some."""
    children: set[str] = set()
    for found in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread has just ended
            children.update(found.read_text().split())
    return children
