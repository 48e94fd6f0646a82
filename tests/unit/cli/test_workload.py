"""`atoll workload run` with the real program, at a size of milliseconds."""

from __future__ import annotations

import resource
import signal
import subprocess
from pathlib import Path

import pytest

from atoll.cli import run
from atoll.host.programs import find_program
from atoll.schema.base import parse
from atoll.schema.workload import WorkloadResult
from tests.parts.faults import check_complaint

Capture = pytest.CaptureFixture[str]
SMALL = ("--records", "30000", "--threads", "2", "--runs", "2")


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


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").write_text("")
    assert run(["workload", "run", "w1", *SMALL, "--save", str(tmp_path / "file/below")]) == 5
    said = capsys.readouterr().err
    assert str(tmp_path / "file/below") in said and said.count("\n") == 1
