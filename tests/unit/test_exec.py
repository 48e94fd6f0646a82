"""The real atoll-exec beside the real numactl: what the kernel then says of the child.

Runs the launcher that is installed beside this Python; ATOLL_EXEC names another build (with
ASan the LD_PRELOAD tests fail: it wants to be first). Placement on many nodes is proved in
the emulated guest; place syntax is compared with hwloc-calc in exec_places_hwloc_test.cpp.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from atoll.schema.machine import Machine

EXEC = os.environ.get("ATOLL_EXEC", str(Path(sys.executable).parent / "atoll-exec"))
NUMACTL = "numactl"
CPUS = sorted(os.sched_getaffinity(0))
STATUS = ["grep", "-E", "^(Cpus|Mems)_allowed_list", "/proc/self/status"]
ALLOCATORS = {
    "jemalloc": ("libjemalloc.so.2", "libjemalloc2"),
    "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    "mimalloc": ("libmimalloc.so.2", "libmimalloc2.0"),
    "tbbmalloc": ("libtbbmalloc_proxy.so.2", "libtbbmalloc2"),
}


def run(
    *argv: str,
    env: Mapping[str, str] | None = None,
    preexec: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | (env or {}),
        preexec_fn=preexec,  # this process has one thread
    )


def refused(*flags: str, status: int = 125, **options: Any) -> str:
    """The one line with which atoll-exec refuses."""
    done = run(EXEC, *flags, **options)
    assert done.returncode == status, done
    assert done.stdout == ""
    assert done.stderr.startswith("atoll-exec: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def machine_file(folder: Path, chiplets: Sequence[Sequence[int]]) -> str:
    """An atoll/machine file whose chiplets have these CPUs, one core per CPU."""
    pus = sorted(pu for chiplet in chiplets for pu in chiplet)
    text = json.dumps(
        {
            "summary": {
                "packages": 1,
                "numa_nodes": 1,
                "chiplets": len(chiplets),
                "l3": 0,
                "cores": len(pus),
                "pus": len(pus),
            },
            "chiplets": [
                {
                    "index": index,
                    "pus": list(own),
                    "cores": [pus.index(pu) for pu in own],
                    "node": 0,
                    "package": 0,
                    "source": "user",
                }
                for index, own in enumerate(chiplets)
            ],
            "format": "atoll/machine",
            "version": 1,
            "origin": {"kind": "live"},
            "memory_bytes": 1 << 30,
            "smt": False,
            "packages": [{"index": 0, "os_index": 0, "pus": pus}],
            "dies": [],
            "nodes": [
                {"index": 0, "os_index": 0, "package": 0, "pus": pus, "memory_bytes": 1 << 30}
            ],
            "l3": [],
            "cores": [
                {
                    "index": index,
                    "os_index": index,
                    "pus": [pu],
                    "package": 0,
                    "die": None,
                    "l3": None,
                    "node": 0,
                }
                for index, pu in enumerate(pus)
            ],
            "caches": [],
            "allowed": {"pus": pus, "nodes": [0]},
        }
    )
    Machine.model_validate_json(text)  # the contract that the launcher reads
    path = folder / "machine.json"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    "flags",
    [
        "-C 0",
        "-C0",
        "-C 1",
        "-C all",
        "-C 0-1",
        "-C !0",
        "-C +1",
        "-C !+0",
        "-N 0",
        "-N all",
        "-N +0",
        "--physcpubind=0",
        "--physcpubind 1",
        "--phys 1",
        "--cpunodebind=0",
        "-N 0 -C 1",
        "-C 1 -N 0",
        "-C 0 -C 1",
        "-N 0 -m same",
        "-C 1 -m 0",
    ],
)
def test_same_masks_as_numactl(flags: str) -> None:
    ours, theirs = (run(tool, *flags.split(), *STATUS) for tool in (EXEC, NUMACTL))
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout), ours.stderr
    assert ours.returncode == 0


@pytest.mark.parametrize(
    "flags",
    [
        "-m 0",
        "-m0",
        "--membind=0",
        "--membind 0",
        "-m all",
        "-i 0",
        "-i all",
        "--interleave=all",
        "-p 0",
        "--preferred=0",
        "-P 0",
        "--preferred-many=0",
        "-l",
        "--localalloc",
        "-C 0",
    ],
)
def test_same_memory_policy_as_numactl(flags: str) -> None:
    ours, theirs = (policy_of_child(tool, *flags.split()) for tool in (EXEC, NUMACTL))
    assert ours == theirs


def policy_of_child(*launcher: str) -> str:
    done = run(*launcher, "cat", "/proc/self/numa_maps")
    assert done.returncode == 0, done.stderr
    # A policy's name may hold spaces: ADDRESS POLICY file=... ; ADDRESS POLICY anon=...
    policies = {
        line.split(" ", 1)[1].split(" file=")[0]
        for line in done.stdout.splitlines()
        if "file=" in line
    }
    assert len(policies) == 1
    return policies.pop()


def test_weighted_interleave() -> None:
    major, minor = (int(part) for part in os.uname().release.split(".")[:2])
    if (major, minor) >= (6, 9):
        assert policy_of_child(EXEC, "-w", "0") == "weighted interleave:0"
        assert policy_of_child(EXEC, "--weighted-interleave=all") == "weighted interleave:0"
    else:
        assert "Linux 6.9" in refused("-w", "0", "true")


def test_a_policy_of_the_caller_stays() -> None:
    assert policy_of_child(NUMACTL, "-i", "0", EXEC, "-C", "0") == "interleave:0"


def test_nothing_asked_changes_nothing() -> None:
    assert run(EXEC, *STATUS).stdout == run(*STATUS).stdout
    assert run(EXEC, "env").stdout == run("env").stdout


def test_same_pid() -> None:
    child = subprocess.Popen(
        [EXEC, "-C", "0", "sh", "-c", "echo $$"], stdout=subprocess.PIPE, text=True
    )
    out, _ = child.communicate(timeout=60)
    assert int(out) == child.pid


def test_exit_status_is_the_commands() -> None:
    assert run(EXEC, "-C", "0", "--", "sh", "-c", "exit 7").returncode == 7
    assert run(EXEC, "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM


def test_flags_of_the_command_are_its_own() -> None:
    assert run(EXEC, "-C", "0", "echo", "-m", "--", "x").stdout == "-m -- x\n"
    assert run(EXEC, "-C", "0", "--", "echo", "-m", "x").stdout == "-m x\n"
    assert run(EXEC, "all", "--", "echo", "-m", "--", "x").stdout == "-m -- x\n"


def test_command_that_is_not_there(tmp_path: Path) -> None:
    assert "no-such-command" in refused("no-such-command", status=127)
    assert "no-such-command" in refused("--dry-run", "no-such-command", status=127)
    plain = tmp_path / "plain"
    plain.write_text("")
    assert str(plain) in refused(str(plain), status=126)
    assert str(plain) in refused("--dry-run", str(plain), status=126)
    refused(str(tmp_path), status=126)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ([], "no command"),
        (["-C", "0"], "no command"),
        (["-C", "0", "--"], "no command"),
        (["-C"], "-C: a value is missing"),
        (["--membind"], "--membind: a value is missing"),
        (["--bogus", "true"], "--bogus"),
        (["-Z", "true"], "-Z"),
        (["--localalloc=1", "true"], "--localalloc=1"),
        (["-m", "0", "-i", "0", "true"], "conflicting memory policies: --membind and --interleave"),
        (["-m", "0", "-l", "true"], "conflicting"),
        (["-C", "999999", "true"], "allowed CPUs"),
        (["-C", "foo", "true"], "foo"),
        (["-C", "", "true"], "allowed CPUs"),
        (["-m", "999", "true"], "allowed nodes"),
        (["-N", "999", "true"], "allowed nodes"),
        (["-m", "foo", "true"], "foo"),
        (["-m", "", "true"], "names no node"),
        (["-m", "netdev:no-such-device", "true"], "no-such-device"),
        (["-m", "same", "true"], "'same'"),
        (["--malloc", "dlmalloc", "true"], "there are jemalloc"),
        (["core:0", "true"], "'--' is missing"),
        (["core:0", "-m", "0", "--", "true"], "flags come before places"),
        (["core:0", "--"], "no command"),
        (["core:999999", "--", "true"], "has no core:999999"),
        (["warp:0", "--", "true"], "no type of object"),
        (["core:x", "--", "true"], "no index"),
        (["os=eth0", "--", "true"], "devices are no places"),
        (["0x0", "--", "true"], "no CPU is left"),
        (["all", "~all", "--", "true"], "no CPU is left"),
        (["0x" + "f" * 300, "--", "true"], "outside"),
        (["--machine", "/no/such/file", "core:0", "--", "true"], "No such file"),
        (["--machine", "/", "core:0", "--", "true"], "Is a directory"),
    ],
)
def test_bad_input_is_one_line(flags: list[str], says: str) -> None:
    assert says in refused(*flags)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "not an atoll/machine"),
        ('{"format": "atoll/plan", "version": 1}', "not an atoll/machine"),
        ('{"format": "atoll/machine", "version": 2}', "version 1, not 2"),
        ('{"format": "atoll/machine", "version": 1}', "packages"),
        ('{"format": "atoll/machine", "version": 1, "packages": [{"index": 0}]}', "pus"),
        (
            '{"format": "atoll/machine", "version": 1, "packages": [{"index": 0, "pus": [-1]}]}',
            "out of range",
        ),
        (
            '{"format": "atoll/machine", "version": 1, "packages": [{"index": 7, "pus": [0]}]}',
            "order",
        ),
    ],
)
def test_bad_machine_file_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "machine.json"
    path.write_text(text)
    assert says in refused("--machine", str(path), "core:0", "--", "true")


def test_live_places() -> None:
    everything = run(*STATUS).stdout
    for place in ("all", "machine:0", "core:all", "package:all", "pu:0-"):
        done = run(EXEC, place, "--", *STATUS)
        assert done.stdout == everything, (place, done.stderr)
    first = run("hwloc-calc", "--po", "-I", "pu", "core:0").stdout.strip()
    assert mask_of(run(EXEC, "core:0", "--", *STATUS)) == {int(pu) for pu in first.split(",")}


def mask_of(done: subprocess.CompletedProcess[str]) -> set[int]:
    assert done.returncode == 0, done.stderr
    cpus = set()
    for part in done.stdout.splitlines()[0].split(":")[1].strip().split(","):
        first, _, last = part.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


def test_chiplets_of_a_machine_file(tmp_path: Path) -> None:
    one, other = CPUS[:2]
    machine = ["--machine", machine_file(tmp_path, [[one], [other]])]
    assert mask_of(run(EXEC, *machine, "chiplet:1", "--", *STATUS)) == {other}
    assert mask_of(run(EXEC, *machine, "chiplet:0", "chiplet:1", "--", *STATUS)) == {one, other}
    assert mask_of(run(EXEC, *machine, "chiplet:0-1", "~chiplet:0", "--", *STATUS)) == {other}
    assert mask_of(run(EXEC, "-C", str(one), *machine, "all", "--", *STATUS)) == {one}
    assert "none in common" in refused("-C", str(one), *machine, "chiplet:1", "--", "true")
    assert "has no chiplet:2; it has chiplet:0-1" in refused(*machine, "chiplet:2", "--", "true")


def test_cpus_outside_the_mask_are_named(tmp_path: Path) -> None:
    machine = ["--machine", machine_file(tmp_path, [[0, 1, 4096, 4097], [4098, 4099]])]
    line = refused(*machine, "chiplet:0", "--", "true")
    assert "CPUs 4096-4097 are outside" in line
    assert "allowed CPUs: " in line
    assert mask_of(run(EXEC, *machine, "chiplet:0", "xall", "--", *STATUS)) <= set(CPUS)

    def narrow() -> None:
        os.sched_setaffinity(0, {CPUS[0]})

    machine = ["--machine", machine_file(tmp_path, [[CPUS[0]], [CPUS[1]]])]
    line = refused(*machine, "chiplet:1", "--", "true", preexec=narrow)
    assert f"CPUs {CPUS[1]} are outside" in line
    assert f"allowed CPUs: {CPUS[0]}" in line


def test_the_topology_library_is_loaded_for_live_places_only(tmp_path: Path) -> None:
    def loaded(*flags: str) -> bool:
        done = run(EXEC, *flags, env={"LD_DEBUG": "files"})
        assert done.returncode == 0, done.stderr
        return "hwloc" in done.stderr

    machine = machine_file(tmp_path, [CPUS[:1], CPUS[1:2]])
    assert not loaded("-C", "0", "-m", "0", "--no-thp", "true")
    assert not loaded("--machine", machine, "chiplet:0", "--", "true")
    assert loaded("core:0", "--", "true")


@pytest.mark.parametrize("name", ALLOCATORS)
def test_malloc_prepends_to_what_the_user_has(tmp_path: Path, name: str) -> None:
    library = tmp_path / ALLOCATORS[name][0]
    shutil.copyfile(a_shared_library(), library)
    env = {"LD_LIBRARY_PATH": str(tmp_path), "LD_PRELOAD": ""}
    assert preload_of(EXEC, "--malloc", name, env=env) == str(library)
    theirs = a_shared_library()
    env["LD_PRELOAD"] = theirs
    assert preload_of(EXEC, f"--malloc={name}", env=env) == f"{library}:{theirs}"


def a_shared_library() -> str:
    """Some real shared library, harmless to preload."""
    with Path("/proc/self/maps").open() as maps:
        return next(line.split()[-1] for line in maps if "/libc.so.6" in line)


def preload_of(*argv: str, env: Mapping[str, str]) -> str | None:
    done = run(*argv, "env", env=env)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("LD_PRELOAD=")]
    return lines[0].removeprefix("LD_PRELOAD=") if lines else None


@pytest.mark.parametrize("name", ALLOCATORS)
def test_malloc_as_installed_here(name: str) -> None:
    library, package = ALLOCATORS[name]
    known = run("/sbin/ldconfig", "-p").stdout
    if f"\t{library} " in known:
        found = preload_of(EXEC, "--malloc", name, env={"LD_PRELOAD": ""})
        assert found is not None
        assert Path(found).name == library
    elif name != "tcmalloc" or "\tlibtcmalloc.so.4 " not in known:
        line = refused("--malloc", name, "true")
        assert f"install the package {package}" in line


def test_malloc_skips_what_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "libtbbmalloc_proxy.so.2").write_text("not ELF")
    done = run(
        EXEC, "--malloc", "tbbmalloc", "--dry-run", "true", env={"LD_LIBRARY_PATH": str(tmp_path)}
    )
    assert str(tmp_path) not in done.stdout


def test_malloc_system_removes_known_preloads(tmp_path: Path) -> None:
    ours = tmp_path / "libjemalloc.so.2"
    shutil.copyfile(a_shared_library(), ours)
    theirs = a_shared_library()
    mixed = {"LD_PRELOAD": f"{ours}:{theirs}"}
    assert preload_of(EXEC, "--malloc", "system", env=mixed) == theirs
    assert preload_of(EXEC, "--malloc", "system", env={"LD_PRELOAD": str(ours)}) is None


def test_no_thp_reaches_the_command() -> None:
    ask = "import ctypes; print(ctypes.CDLL(None).prctl(42, 0, 0, 0, 0))"  # PR_GET_THP_DISABLE
    assert run(EXEC, "--no-thp", sys.executable, "-c", ask).stdout == "1\n"
    assert run(EXEC, sys.executable, "-c", ask).stdout == "0\n"


def test_dry_run_checks_and_starts_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    done = run(
        EXEC,
        *("-C", str(CPUS[1]), "-m", "0", "--no-thp", "--malloc", "system", "--dry-run"),
        *("touch", str(trace)),
        env={"LD_PRELOAD": ""},
    )
    assert done.returncode == 0, done.stderr
    assert not trace.exists()
    shown = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert shown == {
        "cpus": str(CPUS[1]),
        "memory": "bind: 0",
        "thp": "disabled",
        "env": "LD_PRELOAD unset",
        "command": f"{shutil.which('touch')} {trace}",
    }
    refused("--dry-run", "-C", "999999", "true")


def forbid_memory_policies() -> None:
    """As a container's default seccomp profile without CAP_SYS_NICE: EPERM for the policy calls."""
    numbers = {"x86_64": (237, 238, 239), "aarch64": (235, 236, 237)}[os.uname().machine]
    load, jump_equal, ret = 0x20, 0x15, 0x06  # BPF: LD|W|ABS, JMP|JEQ|K, RET|K
    program = [(load, 0, 0, 0)]
    for position, number in enumerate(numbers):
        program.append((jump_equal, len(numbers) - position, 0, number))
    program.append((ret, 0, 0, 0x7FFF0000))  # SECCOMP_RET_ALLOW
    program.append((ret, 0, 0, 0x00050000 | 1))  # SECCOMP_RET_ERRNO | EPERM
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    fprog = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, ctypes.c_char_p(fprog), 0, 0) == 0  # PR_SET_SECCOMP, filter


@pytest.mark.parametrize("flag", ["-m0", "-i0", "-p0", "-P0", "-l", "-w0"])
def test_eperm_of_a_container_is_explained(flag: str) -> None:
    line = refused(flag, "true", preexec=forbid_memory_policies)
    assert "CAP_SYS_NICE" in line
    assert "cpuset.mems" in line


def test_cpu_flags_work_where_memory_policies_are_forbidden() -> None:
    done = run(EXEC, "-N", "0", *STATUS, preexec=forbid_memory_policies)
    assert mask_of(done) == mask_of(run(NUMACTL, "-N", "0", *STATUS))


def test_help_and_version_fit_a_terminal() -> None:
    text = run(EXEC, "--help").stdout
    assert "Example: " in text
    assert max(map(len, text.splitlines())) <= 80
    assert run(EXEC, "--version").stdout.startswith("atoll-exec ")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([EXEC, "--help"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 125
