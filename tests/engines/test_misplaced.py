"""Real processes, misplaced on purpose, through `atoll inspect`; and healthy ones, in peace.

What needs several memory nodes is in tests/vm/test_misplaced.py.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from atoll.cli import cli
from atoll.engines.java import find_java
from atoll.errors import CheckFailed, EngineFailed, NotPermitted, UsageError
from atoll.install import installed
from tests.parts.deployment import HOST, start
from tests.parts.jvm_program import write_program
from tests.parts.live_process import live

CPUS = sorted(os.sched_getaffinity(0))
WAIT = "print('ready', flush=True); import time; time.sleep(600)"
# Threads that move themselves: those named in argv[1:], each to the CPU given.
MOVES_ITSELF = f"""
import os, sys, threading
moved = threading.Barrier(4)
def run(cpus):
    if cpus:
        os.sched_setaffinity(threading.get_native_id(), cpus)
    moved.wait()
    threading.Event().wait()
for cpu in sys.argv[1:]:
    cpus = [int(cpu)] if cpu != "-" else None
    threading.Thread(target=run, args=(cpus,), daemon=True).start()
moved.wait()
{WAIT}
"""
DUCKDB = f"""
import duckdb
connection = duckdb.connect(config={{"threads": 3, "pin_threads": "PIN"}})
connection.sql("select sum(i) from range(1000000) t(i)").fetchall()
{WAIT}
"""

two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs: nothing drifts on one")


def inspect(target: object, *flags: str) -> Result:
    return CliRunner().invoke(cli, ["inspect", str(target), *flags])


def findings(target: object) -> list[dict[str, Any]]:
    """As a user gets them, with the exit code that belongs to them."""
    result = inspect(target, "--json")
    found = [finding for one in json.loads(result.stdout) for finding in one["findings"]]
    drifted = any(finding["severity"] == "drift" for finding in found)
    assert isinstance(result.exception, CheckFailed) is drifted, result.output
    return found


def python(code: str, *arguments: str, cpu: int | None = None) -> list[str]:
    pinned = [] if cpu is None else ["taskset", "-c", str(cpu)]
    return [*pinned, sys.executable, "-c", code, *arguments]


# ---- threads


@two_cpus
def test_duckdb_that_pins_its_threads_under_a_one_cpu_mask(tmp_path: Path) -> None:
    """DuckDB 1.5.5: worker 1 of 3 goes to CPU 1 although the process may use CPU 0 only."""
    if CPUS[:2] != [0, 1]:
        pytest.skip(f"needs CPUs 0 and 1, since DuckDB pins to these; may use {CPUS}")
    with live(python(DUCKDB.replace("PIN", "on"), cpu=0), tmp_path / "out") as pid:
        (found,) = findings(pid)
        assert (found["code"], found["severity"]) == ("thread-outside", "drift")
        assert (found["expected"], found["found"]) == ("CPUs 0", "CPUs 1")
        assert "pin_threads" in found["cause"] and "pin_threads='off'" in found["remedy"]
        assert Path(f"/proc/{pid}/task/{found['tid']}").exists()
        text = inspect(pid).stdout
        assert f"tid {found['tid']} " in text and "pin_threads='off'" in text


@two_cpus
def test_duckdb_that_leaves_its_threads_alone(tmp_path: Path) -> None:
    with live(python(DUCKDB.replace("PIN", "off"), cpu=CPUS[0]), tmp_path / "out") as pid:
        assert findings(pid) == []


@two_cpus
def test_a_thread_that_moves_itself_is_named_alone(tmp_path: Path) -> None:
    command = python(MOVES_ITSELF, "-", str(CPUS[1]), "-", cpu=CPUS[0])
    with live(command, tmp_path / "out") as pid:
        (found,) = findings(pid)
        tids = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
        (moved,) = [tid for tid in tids if os.sched_getaffinity(tid) == {CPUS[1]}]
        assert (found["code"], found["tid"]) == ("thread-outside", moved)
        assert "sched_setaffinity" in found["cause"]
        os.sched_setaffinity(moved, {CPUS[0]})  # the remedy
        assert findings(pid) == []


@two_cpus
def test_a_thread_that_narrows_itself_is_a_note(tmp_path: Path) -> None:
    with live(python(MOVES_ITSELF, "-", str(CPUS[0]), "-"), tmp_path / "out") as pid:
        assert [(f["code"], f["severity"]) for f in findings(pid)] == [("thread-narrower", "note")]


@two_cpus
def test_taskset_without_a_moves_the_main_thread_alone(tmp_path: Path) -> None:
    with live(python(MOVES_ITSELF, "-", "-", "-"), tmp_path / "out") as pid:
        assert findings(pid) == []
        subprocess.run(["taskset", "-c", "-p", str(CPUS[0]), str(pid)], check=True)
        found = findings(pid)
        assert [f["code"] for f in found] == ["thread-outside"] * 3
        assert all("only the main thread" in f["cause"] for f in found)
        subprocess.run(["taskset", "-a", "-c", "-p", str(CPUS[0]), str(pid)], check=True)
        assert findings(pid) == []


@two_cpus
def test_a_process_whose_main_thread_has_ended(tmp_path: Path) -> None:
    """The kernel shows its memory through another thread, and its mask still."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++ to build a program that leaves its main thread")
    source, program = tmp_path / "leaves.cpp", tmp_path / "leaves"
    source.write_text(
        "#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <pthread.h>\n"
        "#include <sched.h>\n#include <sys/mman.h>\n#include <unistd.h>\n"
        "void *run(void *cpu) {\n  cpu_set_t set;\n  CPU_ZERO(&set);\n"
        "  CPU_SET(*(int *)cpu, &set);\n  sched_setaffinity(0, sizeof set, &set);\n"
        '  while (!access("/proc/self/exe", F_OK)) usleep(1000);\n'
        '  puts("ready"); fflush(stdout); for (;;) pause();\n}\n'
        "int main(int, char **argv) {\n  static int cpu = atoi(argv[1]);\n"
        "  memset(mmap(0, 32 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 32 << 20);\n"
        "  pthread_t thread; pthread_create(&thread, 0, run, &cpu); pthread_exit(0);\n}\n"
    )
    subprocess.run(["g++", "-pthread", "-o", program, source], check=True)
    command = ["taskset", "-c", str(CPUS[0]), str(program), str(CPUS[1])]
    with live(command, tmp_path / "out") as pid:
        assert Path(f"/proc/{pid}/maps").read_text() == ""
        result = inspect(pid, "--json")
        assert isinstance(result.exception, CheckFailed)
        (found,) = json.loads(result.stdout)
        assert [f["code"] for f in found["findings"]] == ["thread-outside"]
        assert found["expected"]["cpus"] == str(CPUS[0])
        assert found["memory"]["bytes_by_kind"]["anonymous"]["0"] >= 32 << 20
        assert found["malloc"]["reached"] == "libc.so.6" and found["unknown"] == []


@two_cpus
def test_openmp_that_binds_its_threads_has_no_drift(tmp_path: Path) -> None:
    """Its main thread is bound too, so that its mask is not what the program was given."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++ to build a program with OpenMP")
    source, program = tmp_path / "team.cpp", tmp_path / "team"
    source.write_text(
        "#include <cstdio>\n#include <unistd.h>\nint main() {\n#pragma omp parallel\n{\n"
        '#pragma omp barrier\n#pragma omp master\n{ puts("ready"); fflush(stdout); pause(); }\n'
        "}\n}\n"
    )
    subprocess.run(["g++", "-fopenmp", "-o", program, source], check=True)
    environment = {"OMP_PROC_BIND": "close", "OMP_PLACES": "threads"}
    with live([str(program)], tmp_path / "out", env=environment) as pid:
        assert {(f["code"], f["severity"]) for f in findings(pid)} == {("thread-narrower", "note")}


# ---- preloads


def test_a_preload_that_is_not_there(tmp_path: Path) -> None:
    environment = {"LD_PRELOAD": "/nowhere/libjemalloc.so.2"}
    with live(python(WAIT), tmp_path / "out", env=environment) as pid:
        (found,) = findings(pid)
        assert found["code"] == "preload-without-effect"
        assert (found["expected"], found["cause"]) == (
            "LD_PRELOAD=/nowhere/libjemalloc.so.2",
            "no such file",
        )


def test_a_preload_into_a_static_program(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("needs g++ to build a static program")
    source, program = tmp_path / "waits.cpp", tmp_path / "waits"
    source.write_text(
        "#include <cstdio>\n#include <unistd.h>\n"
        'int main() { puts("ready"); fflush(stdout); pause(); }\n'
    )
    subprocess.run(["g++", "-static", "-o", program, source], check=True)
    libc = next(
        line.split()[5]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "/libc.so.6" in line
    )
    with live([str(program)], tmp_path / "out", env={"LD_PRELOAD": libc}) as pid:
        (found,) = findings(pid)
        assert found["code"] == "preload-without-effect"
        assert "statically linked" in found["cause"]


# ---- healthy processes


@pytest.mark.parametrize(
    "command",
    [
        ["sleep", "600"],
        python(MOVES_ITSELF, "-", "-", "-"),
        ["taskset", "-c", str(CPUS[-1]), "sleep", "600"],
        ["numactl", "-m", "0", "sleep", "600"],
    ],
    ids=["sleep", "threads", "pinned", "bound"],
)
def test_a_healthy_process_has_no_finding(command: Sequence[str]) -> None:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 180
        while not Path(f"/proc/{process.pid}/comm").read_text().startswith(("sleep", "python")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert findings(process.pid) == []
    finally:
        process.kill()
        process.wait()


@pytest.mark.installed
def test_a_healthy_jvm_has_no_finding(tmp_path: Path) -> None:
    try:
        java, _ = find_java(
            HOST, major=17, wanted_by="spark", engine="spark", part=installed("openjdk-17")
        )
    except EngineFailed as fault:
        pytest.skip(str(fault))
    with live([java, "-Xmx64m", *write_program(tmp_path)], tmp_path / "out") as pid:
        assert findings(pid) == []
    Path(f"/tmp/.java_pid{pid}").unlink(missing_ok=True)  # a JVM that is killed leaves it


# ---- whom a name means


def test_a_deployment_by_its_name_is_held_against_its_plan() -> None:
    with start("islets"):
        documents = json.loads(inspect("islets", "--json").stdout)
        assert {one["process"] for one in documents} == {"coordinator", "worker-0", "worker-1"}
        assert all(one["expected"]["source"] == "plan" for one in documents)
        assert all(one["findings"] == [] for one in documents)


def test_a_process_of_a_deployment_that_is_gone_is_drift() -> None:
    with start("islets") as running:
        ids = {each.spec.name: each.id for each in running.deployment.processes}
        supervisor, worker = running.deployment.supervisor, ids["worker-1"]
        assert supervisor is not None and worker is not None
        os.kill(supervisor.pid, signal.SIGSTOP)  # else it would end the others as well
        try:
            os.kill(worker.pid, signal.SIGKILL)
            deadline = time.monotonic() + 180
            while HOST.identify(worker.pid) == worker:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            result = inspect("islets")
        finally:
            os.kill(supervisor.pid, signal.SIGCONT)
    assert isinstance(result.exception, CheckFailed)
    assert "worker-1" in result.output and "process-missing: gone" in result.output


def test_all_processes_of_a_name(tmp_path: Path) -> None:
    program = tmp_path / "atoll-waits"
    program.symlink_to(sys.executable)
    command = [str(program), "-c", WAIT]
    with live(command, tmp_path / "a") as one, live(command, tmp_path / "b") as other:
        documents = json.loads(inspect("atoll-waits", "--json").stdout)
        assert {each["pid"] for each in documents} == {one, other}
        assert all(each["expected"]["source"] == "process" for each in documents)


def test_what_cannot_be_inspected_is_one_line(tmp_path: Path) -> None:
    def fault(target: object) -> BaseException | None:
        return inspect(target).exception

    gone = subprocess.Popen(["true"])
    gone.wait()
    assert isinstance(fault(gone.pid), UsageError)
    assert isinstance(fault("no-program-has-this-name"), UsageError)
    with live(python(MOVES_ITSELF, "-", "-", "-"), tmp_path / "out") as pid:
        thread = next(name for name in os.listdir(f"/proc/{pid}/task") if name != str(pid))
        assert f"is a thread of process {pid}" in str(fault(thread))


def test_a_process_of_another_user_is_not_permitted(tmp_path: Path, root: Path) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root, to become another user with setpriv")
    with live(python(WAIT), tmp_path / "out") as pid:
        asked = subprocess.run(
            [
                *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
                *(sys.executable, "-m", "atoll", "inspect", str(pid)),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert asked.returncode == NotPermitted.exit_code, asked.stderr
        assert asked.stderr.count("\n") == 1 and "run as root (sudo)" in asked.stderr
