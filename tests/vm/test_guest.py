"""The guest itself: commands, what they see, time limits, and that nothing is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from atoll.errors import GuestFailed
from atoll.guest.guest import CommandTimedOut, Guest
from atoll.guest.qemu import CONSOLE_LINES

in_milan2 = pytest.mark.parametrize("guest", ["milan2"], indirect=True)
TOOL = [sys.executable, "-m", "tests.vm"]


@in_milan2
def test_output_and_status_come_back_apart(guest: Guest) -> None:
    done = guest.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert guest.run(["no-such-command"]).returncode == 127
    for number in (signal.SIGSEGV, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
        script = f"ulimit -c 0; kill -{number:d} $$"
        assert guest.run(["sh", "-c", script]).returncode == 128 + number


@in_milan2
def test_arguments_environment_and_folder_are_passed_on(guest: Guest) -> None:
    script = 'printf "%s|" "$@" "$GIVEN" "$PWD"; cat'
    argv = ["sh", "-c", script, "sh", "two words", "it's $HOME", "", "a\nb", "*"]
    done = guest.run(argv, env={"GIVEN": "x=1 'y'", "PATH": "/usr/bin:/bin"}, cwd="/usr/share")
    assert done.stdout == "two words|it's $HOME||a\nb|*|x=1 'y'|/usr/share|"
    assert guest.run(["pwd"], cwd="/no/such").returncode == 126


@in_milan2
def test_a_time_limit_kills_the_whole_process_group(guest: Guest) -> None:
    # On a busy host the limit may come before the first word: then a longer one.
    for timeout_s in (3, 30, 90):
        with pytest.raises(CommandTimedOut) as raised:
            guest.run(["sh", "-c", "echo before; sleep 1234 & sleep 1234"], timeout_s=timeout_s)
        if raised.value.output:
            break
    assert raised.value.output == b"before\n"
    # Only the leader's end is waited for; the others die in their own time.
    deadline = time.monotonic() + 60
    while (left := guest.run(["pgrep", "-f", "sleep 1234"]).stdout) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == ""


@in_milan2
def test_a_daemon_outlives_its_command_and_is_reaped(guest: Guest) -> None:
    """A zombie looks alive to kill(pid, 0), by which pg_ctl and others wait for an end."""
    pid = guest.run(["sh", "-c", "setsid sleep 1000 & echo $!"]).stdout.strip()
    script = f"kill -0 {pid} && kill {pid} && while kill -0 {pid}; do sleep 0.1; done 2>/dev/null"
    assert guest.run(["sh", "-c", script], timeout_s=60).returncode == 0


@in_milan2
def test_the_host_is_read_only_and_the_share_is_not(guest: Guest, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("host")
    inside, share = guest.share / "made inside", guest.share / "made outside"
    share.write_text("outside")
    script = 'cat "$1" "$3"; echo guest >"$1"; echo guest >/etc/atoll-test; cat "$1"; echo in >"$2"'
    done = guest.run(["sh", "-c", script, "sh", str(file), str(inside), str(share)])
    assert done.stdout == "hostoutsideguest\n"
    assert file.read_text() == "host" and not Path("/etc/atoll-test").exists()
    assert inside.read_text() == "in\n"


@in_milan2
def test_what_a_linux_system_has_is_there(guest: Guest) -> None:
    script = """
    cat /sys/fs/cgroup/cgroup.subtree_control
    mkdir /sys/fs/cgroup/a && cat /sys/fs/cgroup/a/cpuset.mems.effective && rmdir /sys/fs/cgroup/a
    hostname; id -u; stat -c %a /tmp /dev/shm /run
    for where in /tmp /dev/shm /run; do rm $(mktemp -p $where); done
    ping -c 1 -W 5 localhost >/dev/null 2>&1 || bash -c 'echo >/dev/tcp/127.0.0.1/9' 2>&1 |
        grep -c refused
    echo once >/dev/stderr; echo twice >/dev/stderr; echo via-fd >/dev/stdout
    """
    done = guest.run(["bash", "-c", script])
    lines = done.stdout.split("\n")
    assert {"cpuset", "cpu", "memory"} <= set(lines[0].split())
    assert lines[1:5] == ["0-1", "guest", "0", "1777"]
    assert lines[-2] == "via-fd" and done.stderr == "once\ntwice\n"


@in_milan2
def test_a_command_that_is_killed_for_memory_says_so(guest: Guest) -> None:
    script = """
    cgroup=/sys/fs/cgroup/small
    mkdir $cgroup && echo 16M >$cgroup/memory.max && sh -c "echo \\$\\$ >$cgroup/cgroup.procs
    exec tail /dev/zero"
    ended=$?
    rmdir $cgroup
    exit $ended
    """
    done = guest.run(["sh", "-c", script])
    assert done.returncode == 128 + signal.SIGKILL
    assert re.search(
        r"^Memory cgroup out of memory: Killed .* \(tail\)$", done.stderr, re.MULTILINE
    )


# ---- a guest that is lost ------------------------------------------------------------------------


@pytest.mark.long
def test_the_next_test_gets_a_fresh_boot(root: Path, tmp_path: Path) -> None:
    """A guest that is given up fails its test with the kernel's own words, and no other test. A
    test whose guest had a stuck kernel runs once more."""
    file = tmp_path / "test_lost.py"
    file.write_text(
        f"""
import pytest

pytestmark = pytest.mark.parametrize("guest", [{_one_cpu(tmp_path)!r}], indirect=True)
times = {{}}
WORDS = ("__wait_rcu_gp+0x1/0x2", "7 (subject) thread 9\\n[<0>] hrtimer_nanosleep+0x1/0x2")


def test_one(guest):
    guest.give_up("it hangs")


@pytest.mark.parametrize("where", WORDS, ids=["rcu", "nap"])
def test_other(guest, where):
    times.setdefault(where, []).append(guest.run(["echo", "up"]).stdout)
    if len(times[where]) == 1:
        guest.give_up(where)
    assert times[where] == ["up\\n", "up\\n"]
"""
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.vm.conftest", "-c", "/dev/null", str(file)],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "GUEST LOST at test_one" in done.stdout
    for where in ("rcu", "nap"):
        assert re.search(rf"GUEST LOST at test_other\[.*{where}.*\], which", done.stdout)
    assert "GuestDied: guest one: lost: it hangs\n" in done.stdout
    assert "Node 0 " in done.stdout
    assert re.search(r"\(busybox\) thread \d+\n.*\[<0>\] \w+", done.stdout)
    # A boot may have been retried, as anywhere.
    assert re.search(r"guest: 4 boots, \d+ boots retried, 0 boots given up, 3 lost", done.stdout)


# ---- the tool ------------------------------------------------------------------------------------


@pytest.fixture
def tmpdir_of_its_own(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a tool whose temporary folder can be looked into."""
    folder = tmp_path / "tmp, with a comma"
    folder.mkdir()
    yield os.environ | {"TMPDIR": str(folder)}
    deadline = time.monotonic() + 60
    while list(folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert list(folder.iterdir()) == []


def _one_cpu(folder: Path) -> str:
    file = folder / "one.toml"
    file.write_text("packages = 1\ncores = 1\nmemory_mib = 1024\n")
    return str(file)


def _booted(
    argv: Sequence[str], root: Path, env: Mapping[str, str] | None = None
) -> tuple[subprocess.Popen[str], str]:
    """The tool, and the first line that its command said."""
    tool = subprocess.Popen(
        argv, cwd=root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert tool.stdout is not None and tool.stderr is not None
    line = tool.stdout.readline()
    assert line, tool.stderr.read()
    return tool, line


def test_the_tool_passes_on_output_and_status(
    root: Path, tmp_path: Path, tmpdir_of_its_own: dict[str, str]
) -> None:
    shared = tmp_path / "shared, too"
    shared.mkdir()
    script = f"nproc; echo err >&2; echo kept >'{shared}/file'; exit 5"
    share = ["--share", str(shared)]
    argv = [*TOOL, "--topology", _one_cpu(tmp_path), *share, "--", "sh", "-c", script]
    tool, line = _booted(argv, root, tmpdir_of_its_own)
    rest, said = tool.communicate()
    assert (tool.returncode, line + rest, said) == (5, "1\n", "err\n")
    assert (shared / "file").read_text() == "kept\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_however_the_tool_ends_nothing_stays(
    root: Path, tmpdir_of_its_own: dict[str, str], number: signal.Signals
) -> None:
    """QEMU's only way to the outside is the folder; the fixture waits for that to be gone. Its
    keeper gets a TERM first, as when all processes of a service do."""
    argv = [*TOOL, "--topology", "hidden", "--", "sh", "-c", "echo up; sleep 1000"]
    # What a shell starts in its background ignores SIGINT, these tests and then the tool too.
    tool, line = _booted(["env", "--default-signal=INT", *argv], root, tmpdir_of_its_own)
    with tool:
        try:
            assert line == "up\n"
            (folder,) = Path(tmpdir_of_its_own["TMPDIR"]).iterdir()
            keeper = subprocess.check_output(["pgrep", "-f", "-P", str(tool.pid), "guest.keeper"])
            os.kill(int(keeper), signal.SIGTERM)
            tool.send_signal(number)
            assert tool.wait(60) == (-number if number == signal.SIGKILL else 130)
        finally:
            tool.kill()  # leaving the block waits for it
    assert _processes_naming(str(folder)) == []


def _processes_naming(text: str) -> list[str]:
    """The processes with `text` in their arguments, once those that end have ended."""
    deadline = time.monotonic() + 60
    while True:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes().decode(errors="replace")
            except OSError:
                continue  # it ended meanwhile
            if text in line.replace(",,", ","):
                found.append(line)
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("cpu", "fault"),
    [("Zen9", "QEMU: unable to find CPU model 'Zen9'"), ("host", "QEMU: "), ("n270", "64-bit")],
)
def test_a_cpu_that_cannot_be_is_refused(root: Path, tmp_path: Path, cpu: str, fault: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(f'cpu = "{cpu}"\npackages = 2\ncores = 2\n')
    done = _run(root, "--topology", str(file), "--", "true")
    assert done.returncode == 2, done.stderr
    assert fault in done.stderr and done.stderr.count("\n") == 1


def test_a_reader_that_goes_away_ends_it(root: Path, tmp_path: Path) -> None:
    tool, line = _booted([*TOOL, "--topology", _one_cpu(tmp_path), "--", "yes"], root)
    with tool:
        assert tool.stdout is not None and tool.stderr is not None
        assert line == "y\n"
        tool.stdout.close()
        assert (tool.wait(60), tool.stderr.read()) == (141, "")


def test_a_host_without_room_is_told_in_one_line(root: Path, tmp_path: Path) -> None:
    """As a file-size limit, which a host has for everybody: the initramfs does not fit."""
    argv = [*TOOL, "--topology", _one_cpu(tmp_path), "--", "true"]
    done = subprocess.run(
        ["prlimit", f"--fsize={2**20}", "--", *argv], cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 97 and "File too large" in done.stderr
    assert done.stderr.startswith("guest: ") and done.stderr.count("\n") == 1


def test_a_boot_that_fails_says_so_with_the_console(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "panics.toml"
    file.write_text(
        'packages = 1\ncores = 1\nmemory_mib = 1024\nkernel = "rdinit=/nowhere root="\n'
    )
    done = _run(root, "--topology", str(file), "--", "true")
    assert done.returncode == GuestFailed.exit_code
    assert re.match(r"guest: guest panics: ended: .*Kernel panic.*; try again", done.stderr)


@pytest.mark.parametrize("before", [0, CONSOLE_LINES])
def test_a_guest_that_dies_says_so_in_a_line_and_shows_the_end_of_its_console(
    root: Path, tmp_path: Path, before: int
) -> None:
    """The kernel's own last words are sometimes more lines than are shown, sometimes fewer."""
    speak = f"for line in $(seq {before}); do echo '<0>before' >/dev/kmsg; done"
    crash = ["sh", "-c", f"{speak}; echo c >/proc/sysrq-trigger; sleep 100"]
    done = _run(root, "--topology", _one_cpu(tmp_path), "--", *crash)
    assert done.returncode == GuestFailed.exit_code
    line, *console = done.stderr.splitlines()
    assert re.fullmatch(r"guest: guest one: ended: .*Kernel panic.*: sysrq triggered crash", line)
    is_whole = not before and console[0].endswith("sysrq: Trigger a crash")
    assert len(console) == CONSOLE_LINES or (is_whole and len(console) < CONSOLE_LINES), console
    assert "Kernel Offset" in console[-1], console


def test_without_qemu_one_line_says_what_is_missing(root: Path, tmp_path: Path) -> None:
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PATH": ""}
    done = _run(root, "--topology", "milan2", "--", "true", env=env)
    assert done.returncode == 6
    assert done.stderr.count("\n") == 1 and "qemu-system-x86 of bookworm-backports: " in done.stderr


def _run(
    root: Path, *words: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TOOL, *words], cwd=root, env=env, capture_output=True, text=True)
