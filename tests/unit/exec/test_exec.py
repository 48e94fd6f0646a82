"""The real atoll-exec beside the real numactl: what the kernel then says of the child."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts.exec import CPUS, EXEC, STATUS, mask_of, refused, run

NUMACTL = "numactl"


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
        (["-m", "", "true"], "contains no node"),
        (["-m", "netdev:no-such-device", "true"], "no-such-device"),
        (["-m", "same", "true"], "'same'"),
        (["--malloc", "dlmalloc", "true"], "choose from jemalloc"),
        (["core:0", "true"], "'--' is missing"),
        (["core:0", "-m", "0", "--", "true"], "flags come before places"),
        (["core:0", "--"], "no command"),
        (["core:999999", "--", "true"], "has no core:999999"),
        (["warp:0", "--", "true"], "not an object type"),
        (["core:x", "--", "true"], "not an index"),
        (["os=eth0", "--", "true"], "devices are not places"),
        (["0x0", "--", "true"], "no CPU is left"),
        (["all", "~all", "--", "true"], "no CPU is left"),
        (["0x" + "f" * 300, "--", "true"], "outside"),
        (["--machine", "/no/such/file", "core:0", "--", "true"], "No such file"),
        (["--machine", "/", "core:0", "--", "true"], "Is a directory"),
    ],
)
def test_bad_input_is_one_line(flags: list[str], says: str) -> None:
    assert says in refused(*flags)


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
    for written in ([], ["stdbuf", "-oL"]):  # at the end, and line by line
        with Path("/dev/full").open("w") as full:
            command = [*written, EXEC, "--help"]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 125
