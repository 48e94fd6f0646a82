"""/proc/PID/maps and numa_maps: written as the kernel writes them and read back; and mangled."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.inspect.mappings import Vma, kind_of, parse_maps, parse_mountinfo, unescape
from atoll.inspect.numa_maps import NumaLine, parse_numa_maps
from atoll.schema.cpulist import format_cpulist
from atoll.schema.inspection import MappingKind

MODES = ["prefer", "bind", "interleave", "weighted interleave", "prefer (many)"]
FLAGS = ["", "=static", "=relative", "=static|balancing", "=balancing"]
PATH = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20
).map("/".__add__)


def escaped(name: str, characters: str) -> str:
    return "".join(f"\\{ord(c):03o}" if c in characters else c for c in name)


@st.composite
def policies(draw: st.DrawFn) -> str:
    mode = draw(st.sampled_from([*MODES, "default", "local"]))
    if mode in ("default", "local"):
        return mode
    nodes = draw(st.frozensets(st.integers(0, 1023), min_size=1, max_size=9))
    return f"{mode}{draw(st.sampled_from(FLAGS))}:{format_cpulist(nodes)}"


@st.composite
def numa_lines(draw: st.DrawFn) -> tuple[NumaLine, str]:
    """A line and its text, in the order of show_numa_map."""
    kib = draw(st.sampled_from([4, 16, 64, 2048, 1 << 20]))
    pages = draw(st.dictionaries(st.integers(0, 1023), st.integers(1, 1 << 40), max_size=5))
    kind = draw(st.sampled_from(["file", "heap", "stack", ""]))
    line = NumaLine(
        start=draw(st.integers(1, 2**47)),
        policy=draw(policies()),
        # A backslash is not escaped by the kernel, so such names cannot be told apart.
        file=draw(PATH).replace("\\", "") if kind == "file" else "",
        heap=kind == "heap",
        stack=kind == "stack",
        hugetlb=draw(st.booleans()),
        bytes_by_node={node: count * kib << 10 for node, count in sorted(pages.items())},
    )
    words = [f"{line.start:08x} {line.policy}"]
    if kind:
        words.append(f"file={escaped(line.file, ' =' + chr(9) + chr(10))}" if line.file else kind)
    if line.hugetlb:
        words.append("huge")
    if pages:
        counts = ("anon", "dirty", "mapped", "mapmax", "swapcache", "active", "writeback")
        words += [f"{name}={draw(st.integers(0, 99))}" for name in counts if draw(st.booleans())]
        words += [f"N{node}={count}" for node, count in sorted(pages.items())]
        words.append(f"kernelpagesize_kB={kib}")
    return line, " ".join(words)


@given(st.lists(numa_lines(), max_size=5))
def test_numa_maps_is_read_as_it_is_written(lines: list[tuple[NumaLine, str]]) -> None:
    text = "".join(f"{text}\n" for _, text in lines)
    assert parse_numa_maps(text) == [line for line, _ in lines]


@given(
    st.integers(1, 2**46),
    st.integers(1, 2**30),
    st.sampled_from(["r--p", "r-xp", "rw-s", "---p"]),
    st.integers(0, 255),
    st.one_of(st.just(""), st.sampled_from(["[heap]", "[anon: glibc: malloc]"]), PATH),
)
def test_maps_is_read_as_it_is_written(
    start: int, pages: int, permissions: str, device: int, name: str
) -> None:
    name = name.replace("\\", "")
    end = start + pages * 4096
    text = f"{start:08x}-{end:08x} {permissions} 00000000 fe:{device:02x} 17"
    line = text.ljust(73) + escaped(name, "\n") if name else text + " "
    expected = Vma(start, end, "x" in permissions, f"fe:{device:02x}", name)
    assert parse_maps(f"{line}\n{line}\n") == [expected] * 2


REAL = """\
55d2c8a00000 default file=/usr/bin/python3.11 mapped=100 mapmax=3 N0=60 N1=40 kernelpagesize_kB=4
55d2c9000000 prefer=relative:1 heap anon=9 dirty=9 N1=9 kernelpagesize_kB=4
7f0000000000 weighted interleave:0-1 anon=512 dirty=512 N0=256 N1=256 kernelpagesize_kB=4
7f0040000000 bind=static:0 file=/anon_hugepage\\040(deleted) huge N0=2 kernelpagesize_kB=2048
7fff00000000 prefer (many):0-1 stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4
7fff10000000 local
"""


@given(st.data())
def test_mangled_text_raises_nothing(data: st.DataObject) -> None:
    maps = Path("/proc/self/maps").read_text()[:600]
    mountinfo = Path("/proc/self/mountinfo").read_text()[:600]
    for text, parse in ((REAL, parse_numa_maps), (maps, parse_maps), (mountinfo, parse_mountinfo)):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 20))
        parse(text[:at] + data.draw(st.text(max_size=8)) + text[at + cut :])


def test_what_a_kernel_wrote() -> None:
    found = parse_numa_maps(REAL)
    assert [line.policy for line in found] == [
        "default",
        "prefer=relative:1",
        "weighted interleave:0-1",
        "bind=static:0",
        "prefer (many):0-1",
        "local",
    ]
    assert found[0].bytes_by_node == {0: 60 * 4096, 1: 40 * 4096}
    assert found[3].bytes_by_node == {0: 4 << 20}
    assert found[3].file == "/anon_hugepage (deleted)"
    assert (found[1].heap, found[4].stack, found[3].hugetlb) == (True, True, True)
    assert found[5].bytes_by_node == {}


@pytest.mark.parametrize(
    ("name", "device", "kind"),
    [
        ("", "00:00", MappingKind.ANONYMOUS),
        ("[anon: arena]", "00:00", MappingKind.ANONYMOUS),
        ("[heap]", "00:00", MappingKind.HEAP),
        ("[anon: glibc: malloc arena]", "00:00", MappingKind.HEAP),
        ("[stack]", "00:00", MappingKind.STACK),
        ("[anon: glibc: pthread stack: 17]", "00:00", MappingKind.STACK),
        ("[anon_shmem:x]", "00:01", MappingKind.SHARED),
        ("/memfd:x (deleted)", "00:01", MappingKind.SHARED),
        ("/memfd:x (deleted)", "00:10", MappingKind.HUGETLB),
        ("/SYSV00000000 (deleted)", "00:01", MappingKind.SHARED),
        ("/dev/zero (deleted)", "00:01", MappingKind.SHARED),
        ("/anon_hugepage (deleted)", "00:10", MappingKind.HUGETLB),
        ("/dev/shm/x", "00:1b", MappingKind.SHARED),
        ("/mnt/huge/x", "00:2a", MappingKind.HUGETLB),
        ("/usr/lib/libc.so.6", "fe:00", MappingKind.FILE),
        ("[vdso]", "00:00", MappingKind.KERNEL),
        ("anon_inode:[io_uring]", "00:0e", MappingKind.KERNEL),
    ],
)
def test_kinds(name: str, device: str, kind: MappingKind) -> None:
    file_systems = parse_mountinfo(
        "25 24 0:27 / /dev/shm rw,relatime shared:4 - tmpfs tmpfs rw\n"
        "26 24 0:42 / /mnt/huge rw - hugetlbfs none rw\n"
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
    )
    assert file_systems == {"00:1b": "tmpfs", "00:2a": "hugetlbfs", "fe:00": "ext4"}
    assert kind_of(Vma(0, 4096, False, device, name), file_systems) is kind


def test_our_own_memory_has_a_kind_for_everything() -> None:
    vmas = parse_maps(Path("/proc/self/maps").read_text())
    file_systems = parse_mountinfo(Path("/proc/self/mountinfo").read_text())
    kinds = {kind_of(vma, file_systems) for vma in vmas}
    assert {MappingKind.HEAP, MappingKind.STACK, MappingKind.FILE, MappingKind.KERNEL} <= kinds


def test_unescape() -> None:
    assert unescape(r"/a\040b\075\012c\9") == "/a b=\nc\\9"
