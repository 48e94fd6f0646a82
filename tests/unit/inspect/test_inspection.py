"""One process inspected on a made-up /proc: unreadable parts, ended processes, lookup by name."""

from __future__ import annotations

import errno

import pytest

from atoll.errors import NotPermitted, ProcessGone, UsageError
from atoll.inspect.clues import NO_CLUES, parse_free, read_clues, read_numa_system
from atoll.inspect.inspection import cpu_seconds_by_node, inspect_process
from atoll.inspect.policy import Policy, parse_policy, plain, process_policy
from atoll.inspect.targets import find_processes, refuse_foreign
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails
from tests.parts.inspect import MACHINE, MIB, NODE_CPUS, ONE_NODE, thread
from tests.parts.proc import Proc


@pytest.fixture
def proc() -> Proc:
    host = Proc()
    host.add(60, argv="/opt/bin/the-server\0-D\0x\0")
    return host


def test_what_can_be_read_is_there(proc: Proc) -> None:
    found = inspect_process(proc, 60, MACHINE)
    assert (found.process, found.command) == ("server", "/opt/bin/the-server -D x")
    assert (found.expected.source, found.expected.cpus) == ("process", "0-3")
    assert found.memory_policy == found.expected.memory_policy == "bind:0"
    assert found.memory is not None and found.memory.bytes_by_node == {0: 8192}
    assert found.findings == ()


@pytest.mark.parametrize(
    ("file", "what"),
    [("numa_maps", "memory"), ("maps", "malloc"), ("maps", "JVM"), ("numa_maps", "memory policy")],
)
@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EIO])
def test_what_cannot_be_read_is_a_line(proc: Proc, file: str, what: str, number: int) -> None:
    proc.faults[f"/proc/60/{file}"] = number
    found = inspect_process(proc, 60, MACHINE)
    assert any(line.startswith(f"{what}: ") for line in found.unknown), found.unknown
    assert len(found.threads) == 1


def test_a_process_that_is_not_there_or_ends_meanwhile(proc: Proc) -> None:
    with fails(ProcessGone, pid=61):
        inspect_process(proc, 61, MACHINE)

    def ends(path: str) -> None:
        if path == "/proc/60/maps" and proc.identify(60):
            proc.end(60, 0)
            raise ProcessLookupError(errno.ESRCH, "No such process", path)

    proc._check = ends  # type: ignore[method-assign]  # it ends in the middle
    with fails(ProcessGone, pid=60):
        inspect_process(proc, 60, MACHINE)


def test_cpu_time_counts_where_a_thread_ran_last() -> None:
    threads = [thread(ran=2), thread(ran=3).model_copy(update={"last_cpu": 5})]
    elsewhere = thread(ran=9).model_copy(update={"last_cpu": 99})
    assert cpu_seconds_by_node([*threads, elsewhere], NODE_CPUS) == {0: 2, 1: 3}


# ---- whom a pid or a name means


def test_names_and_pids(proc: Proc) -> None:
    proc.add(61, argv="server\0")
    proc.add(62, comm="other", uid=7)
    proc.add(63, comm="bash", argv="-bash\0")
    assert find_processes(proc, "60", uid=0) == [60]
    assert find_processes(proc, "server", uid=0) == [60, 61]
    assert find_processes(proc, "the-server", uid=0) == [60]
    assert find_processes(proc, "bash", uid=0) == [63]
    assert find_processes(proc, "other", uid=7) == [62]
    with fails(NotPermitted, count=1):
        find_processes(proc, "other", uid=8)
    with fails(UsageError, name="nothing"):
        find_processes(proc, "nothing", uid=0)
    with fails(ProcessGone, pid=99):
        find_processes(proc, "99", uid=0)
    proc.files["/proc/70/status"] = "Tgid:\t60\n"
    with fails(UsageError, tid=70, pid=60):
        find_processes(proc, "70", uid=0)


def test_no_name_is_nobody_s(proc: Proc) -> None:
    proc.add(61, comm="kthreadd", argv="")
    with fails(UsageError):
        find_processes(proc, "", uid=0)


def test_we_are_not_among_those_of_our_name(proc: Proc) -> None:
    proc.files["/proc/self"] = "60"
    proc.add(61)
    assert find_processes(proc, "server", uid=0) == [61]


def test_a_process_that_the_kernel_hides(proc: Proc) -> None:
    refuse_foreign(proc, 60, uid=7)
    refuse_foreign(proc, 61, uid=7)  # gone: told by whoever looks
    proc.faults["/proc/60/exe"] = errno.EACCES
    with fails(NotPermitted, pid=60, remedy="run as root"):
        refuse_foreign(proc, 60, uid=7)
    with fails(NotPermitted, pid=60, lacking="capabilities"):  # init, from inside a sandbox
        refuse_foreign(proc, 60, uid=0)


# ---- policies


@pytest.mark.parametrize(
    ("text", "mode", "nodes"),
    [
        ("bind:0-1", "bind", {0, 1}),
        ("bind=static|balancing:1", "bind", {1}),
        ("prefer (many):0,2", "prefer (many)", {0, 2}),
        ("weighted interleave:0-3", "weighted interleave", {0, 1, 2, 3}),
        ("default", "default", set()),
        ("", "", set()),
        ("bind:?", "bind", set()),
    ],
)
def test_policies_are_read(text: str, mode: str, nodes: set[int]) -> None:
    assert parse_policy(text) == Policy(mode, frozenset(nodes))


def test_flags_of_a_policy_are_left_out() -> None:
    assert plain("bind=static:0-1") == "bind:0-1"
    assert plain("weighted interleave:0") == "weighted interleave:0"


@pytest.mark.parametrize(
    ("numa_maps", "policy"),
    [
        ("1 bind:0 file=/a\n2 interleave:0-3 stack anon=3\n", "bind:0"),
        ("1 prefer:1 anon=3\n2 bind:0 file=/a\n", "bind:0"),  # a heap below, with its own
        ("1 prefer:1 huge file=/anon_hugepage N0=1\n2 default stack anon=3\n", "default"),
        ("1 prefer:1 anon=3\n" * 300 + "2 local stack anon=3\n", "local"),  # far behind
        ("1 prefer:1 anon=3\n", "prefer:1"),
        ("", ""),
    ],
)
def test_the_process_s_policy_is_that_of_its_program(
    proc: Proc, numa_maps: str, policy: str
) -> None:
    proc.files["/proc/60/numa_maps"] = numa_maps
    assert process_policy(proc, 60) == policy


def test_no_more_of_numa_maps_is_asked_for_than_needed(proc: Proc) -> None:
    """The kernel counts the pages of every line that it hands out."""
    asked = []

    def read_bytes(path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        asked.append(size)
        return FakeHost.read_bytes(proc, path, offset=offset, size=size)

    proc.read_bytes = read_bytes  # type: ignore[method-assign]  # it takes notes
    line = "00400000 bind:0 file=/usr/bin/server mapped=3 N0=3 kernelpagesize_kB=4\n"
    proc.files["/proc/60/numa_maps"] = line * 5 + "01000000 bind:0 heap anon=9 N0=9\n"
    assert process_policy(proc, 60) == "bind:0"
    assert asked == [128]


def test_a_kernel_without_numa_has_no_policy(proc: Proc) -> None:
    del proc.files["/proc/60/numa_maps"]
    assert process_policy(proc, 60) == ""
    with pytest.raises(FileNotFoundError):
        process_policy(proc, 61)


# ---- what explains a finding

MEMINFO = """Node 0 MemTotal:       1048576 kB
Node 0 MemFree:          10240 kB
Node 0 FilePages:        20480 kB
Node 0 Shmem:             2048 kB
"""


def test_the_machine_is_read(proc: Proc) -> None:
    proc.files |= {
        "/sys/devices/system/node/has_memory": "0,2\n",
        "/sys/devices/system/node/node0/cpulist": "0-3\n",
        "/sys/devices/system/node/node2/cpulist": "\n",
        "/sys/devices/system/cpu/online": "0-3\n",
        "/proc/sys/kernel/numa_balancing": "1\n",
        "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    }
    machine = read_numa_system(proc)
    assert machine.node_cpus == {0: frozenset(range(4)), 2: frozenset()}
    assert (machine.balancing, machine.thp, len(machine.online)) == (True, "madvise", 4)
    assert read_numa_system(FakeHost()).several_nodes is False


def test_page_cache_counts_as_free() -> None:
    assert parse_free(MEMINFO) == ((10 + 20 - 2) * MIB, 1024 * MIB)
    assert parse_free("") is None


@pytest.mark.parametrize(
    ("line", "duckdb"),
    [
        ("1-2 r-xp 0 08:01 7 /site-packages/_duckdb.cpython-311-x86_64-linux-gnu.so", True),
        ("1-2 r-xp 0 08:01 7 /usr/lib/libduckdb.so", True),
        ("1-2 r-xp 0 08:01 7 /usr/bin/duckdb", True),
        ("1-2 r-xp 0 08:01 7 /srv/duckdb/bin/server", False),
        ("1-2 r-xp 0 08:01 7 /usr/lib/libother.so", False),
    ],
)
def test_duckdb_is_known_by_its_file(proc: Proc, line: str, duckdb: bool) -> None:
    proc.files["/proc/60/maps"] = f"{line}\n"
    assert (read_clues(proc, 60, MACHINE).pinning is not None) is duckdb


@pytest.mark.parametrize(
    ("cgroup", "file"),
    [
        ("3:cpuset:/box\n0::/\n", "/sys/fs/cgroup/cpuset/box/cpuset.effective_cpus"),
        ("0::/box\n", "/sys/fs/cgroup/box/cpuset.cpus.effective"),
    ],
)
def test_the_cpuset_of_either_version(proc: Proc, cgroup: str, file: str) -> None:
    proc.files |= {"/proc/60/cgroup": cgroup, file: "2-3\n"}
    clues = read_clues(proc, 60, MACHINE)
    assert (clues.cpuset, clues.cpuset_name) == (frozenset({2, 3}), "/box")


def test_each_thread_s_own_policy_is_a_clue(proc: Proc) -> None:
    proc.add(61)
    proc.files["/proc/60/task/61/stat"] = ""  # the kernel shows a thread under its own number, too
    proc.files["/proc/61/numa_maps"] = "5500 interleave:0-1 file=/bin/server mapped=2 N0=2\n"
    assert read_clues(proc, 60, MACHINE).policies == {60: "bind:0", 61: "interleave:0-1"}
    assert read_clues(proc, 60, ONE_NODE).policies == {}


def test_what_cannot_be_read_gives_no_clue() -> None:
    assert read_clues(FakeHost(), 60, MACHINE) == NO_CLUES
