"""`atoll workload` with the real programs, at a size of milliseconds."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from atoll.cli import run
from atoll.cli import workload as command
from atoll.host.programs import find_program
from atoll.schema.base import parse
from atoll.schema.kernel import KernelResult
from atoll.schema.workload import WORKLOADS, WorkloadResult
from tests.parts.deployment import until
from tests.parts.faults import check_complaint

Capture = pytest.CaptureFixture[str]
SMALL = ("--records", "30000", "--threads", "2", "--runs", "2")
GUPS = ("gups", "--table-mib", "1", "--workers", "2", "--runs", "2")


def document(capsys: Capture, *arguments: str) -> WorkloadResult:
    assert run(["workload", "run", *arguments, *SMALL, "--json"]) == 0
    return parse(WorkloadResult, capsys.readouterr().out, where="stdout")


@pytest.mark.parametrize("workload", ["w1", "w2", "w3"])
def test_variants_and_schedulers_have_one_answer(workload: str, capsys: Capture) -> None:
    found = [
        document(capsys, workload, "--variant", variant, "--scheduler", scheduler)
        for variant in ("paper", "fast")
        for scheduler in ("plain", "atoll")
    ]
    assert len({one.answer.sums for one in found}) == 1
    assert {one.answer.rows for one in found} == {30_000 if workload == "w3" else 300}
    assert all(one.checked and len(one.runs_s) == 2 and one.launch == () for one in found)
    assert all(one.peak_bytes > one.input_bytes for one in found)


@pytest.mark.parametrize("index", ["art", "masstree", "btree", "skiplist"])
def test_an_index_joins_what_a_hash_table_joins(index: str, capsys: Capture) -> None:
    (hashed,) = {document(capsys, "w3").answer.sums}
    for variant in ("paper", "fast"):
        for scheduler in ("plain", "atoll"):
            flags = ("--index", index, "--variant", variant, "--scheduler", scheduler)
            found = document(capsys, "w4", *flags)
            assert found.answer.sums == hashed and found.checked
            assert found.index == index and found.build_s is not None and found.build_s > 0


def test_the_launcher_places_it(capsys: Capture) -> None:
    found = document(capsys, "w1", "--memory", "local", "--no-thp", "--malloc", "system")
    assert found.launch == ("-l", "--malloc", "system", "--no-thp")


@pytest.mark.parametrize("placement", ["sparse", "dense"])
def test_a_placement_binds_each_thread(placement: str, capsys: Capture) -> None:
    found = document(capsys, "w1", "--placement", placement)
    assert found.pin and len({*found.pin}) == len(found.pin) and found.migrations in (0, None)
    assert found.overhead and found.overhead > 1
    workers = document(capsys, "w1", "--placement", placement, "--scheduler", "atoll")
    assert workers.pin == () and workers.launch[0] == "-C"


def test_the_text_fits_80_columns(capsys: Capture) -> None:
    assert run(["workload", "run", "w4", "--keep", "--memory", "local", *SMALL]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert said.startswith("w4, paper, rows kept\n")
    assert "index   art, built in 0." in said
    assert "30,000 rows, right" in said


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["w1", "--records", "10", "--groups", "20"], {"groups": "20", "records": "10"}),
        (["w2", "--keep"], {"flag": "--keep"}),
        (["w1", "--cpus", "0", "--placement", "sparse"], {"flag": "--placement"}),
        (["w3", "--index", "btree"], {"flag": "--index"}),
        (["w1", "--records", "5000000000"], {"records": "5000000000"}),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str], named: dict[str, str], capsys: Capture
) -> None:
    assert run(["workload", "run", *arguments]) == 2
    check_complaint(capsys.readouterr().err, **named)


def test_more_than_the_memory_is_refused_at_once(capsys: Capture) -> None:
    assert run(["workload", "run", "w1", "--records", "4000000000"]) == 2
    said = capsys.readouterr().err
    assert "MiB of memory are available; use fewer --records" in said


@pytest.mark.parametrize("workload", ["w1", "w3"])
def test_a_full_disk_leaves_the_saved_files_as_they_were(workload: str, tmp_path: Path) -> None:
    """The limit of a file's size stands for the disk: an answer fits, the records do not."""
    save = [str(find_program("atoll-workload")), workload, *SMALL, "--save", str(tmp_path)]
    subprocess.run(save, check=True, capture_output=True)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(before) == 2

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    full = [*save, "--seed", "2"]
    done = subprocess.run(full, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 5 and str(tmp_path) in done.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_full_disk_behind_a_kernels_output_is_told() -> None:
    with open("/dev/full", "w") as full:
        small = [str(find_program("atoll-kernels")), *GUPS]
        done = subprocess.run(small, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 5
    assert done.stderr == "atoll-kernels: standard output: No space left on device\n"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").write_text("")
    assert run(["workload", "run", "w1", *SMALL, "--save", str(tmp_path / "file/below")]) == 5
    said = capsys.readouterr().err
    assert str(tmp_path / "file/below") in said and said.count("\n") == 1


def test_the_list_has_both_families(capsys: Capture) -> None:
    assert run(["workload", "list", "--json"]) == 0
    found = {one["name"]: one["unit"] for one in json.loads(capsys.readouterr().out)}
    assert [*found][:4] == [*WORKLOADS] and found["w1"] == "records" and found["gups"] == "updates"
    assert run(["workload", "list"]) == 0
    said = capsys.readouterr().out
    assert all(f"\n{name} " in said for name in found)
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize("name", ["w4", "gups"])
def test_each_workload_shows_its_own_options(name: str, capsys: Capture) -> None:
    assert run(["workload", "run", name, "--help"]) == 0
    said = capsys.readouterr().out
    assert ("--index" in said) == (name == "w4") and ("--table-mib N" in said) == (name == "gups")
    assert "--malloc" in said and f"Usage: atoll workload run {name} [OPTIONS]" in said
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["run", "w1", "--help"]])
def test_the_program_is_asked_only_for_a_name_of_its_own(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(_: object) -> object:
        raise AssertionError("atoll-kernels was started")

    monkeypatch.setattr(command, "kernels", asked)
    assert run(["workload", *arguments]) == 0
    assert run(["workload", "run", "gups"]) == 70


def test_a_kernel_runs_under_the_launcher(capsys: Capture) -> None:
    flags = ("--scheduler", "os", "--memory", "local", "--malloc", "system")
    assert run(["workload", "run", *GUPS, *flags, "--json"]) == 0
    found = parse(KernelResult, capsys.readouterr().out, where="stdout")
    assert (found.workload, found.scheduler, found.workers) == ("gups", "os", 2)
    assert found.launch == ("-l", "--malloc", "system") and len(found.runs_s) == 2
    assert found.parameters["table-mib"] == "1" and found.work == 4 * (1 << 17)


def test_the_text_of_a_kernel_fits_80_columns(capsys: Capture) -> None:
    assert run(["workload", "run", *GUPS, "--spread", "1"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert said.startswith("gups\n  input   table-mib 1") and "\n  answer  right; " in said
    assert "\n  workers 2, scheduled by atoll, static:1\n" in said


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["gups", "--table-mib", "0"], {"flag": "--table-mib"}),
        (["gups", "--arrays", "near"], {"flag": "--arrays", "arrays": "near"}),
        (["gups", "--spread", "1", "--approach", "adaptive"], {"flag": "--approach"}),
    ],
)
def test_a_wrong_flag_of_a_kernel_is_one_line(
    arguments: list[str], named: dict[str, str], capsys: Capture
) -> None:
    assert run(["workload", "run", *arguments]) == 2
    check_complaint(capsys.readouterr().err, **named)


def test_a_name_that_is_no_workload_gets_the_names(capsys: Capture) -> None:
    assert run(["workload", "run", "w5"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("atoll: w5: not a workload; there are w1, w2, w3, w4, ")
    assert "gups" in said and said.count("\n") == 1


def test_after_an_interrupt_nothing_is_left() -> None:
    """Of 4 GiB, which would take a minute."""
    atoll = [sys.executable, "-m", "atoll", "workload", "run", "gups", "--table-mib", "4096"]
    with subprocess.Popen(atoll, stderr=subprocess.PIPE, text=True) as process:
        while not (kernels := _below(process.pid)):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and said == "atoll: interrupted\n"
    # The kernel ends one that was being started when its parent ends, so a moment later.
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in kernels), lambda: kernels)


def _below(pid: int) -> list[int]:
    """The children of a process that are atoll-kernels and do not describe themselves."""
    found = []
    for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(OSError):  # it has just ended
            if b"\0--table-mib\0" in Path(f"/proc/{one}/cmdline").read_bytes():
                found.append(int(one))
    return found


def test_a_long_run_says_so_once_and_only_to_a_person(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(command, "_NOTE_AFTER_S", 0.0)
    tick = command._note("bfs")
    tick()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    tick = command._note("bfs")
    tick()
    tick()
    assert capsys.readouterr().err == "atoll: bfs makes its data and runs; Ctrl-C ends it\n"
