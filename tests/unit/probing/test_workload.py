"""How atoll-workload and atoll-kernels are started, and what becomes of their ends."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from atoll.errors import CheckFailed, EngineFailed, UsageError
from atoll.host.processes import Finished
from atoll.probing import workload
from atoll.probing.workload import (
    kernels,
    launch_flags,
    run_kernel,
    run_workload,
    thread_places,
)
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails
from tests.parts.kernels import kernel
from tests.parts.machines import NodeShape, build

RESULT = {
    "format": "atoll/workload",
    "version": 1,
    "workload": "w1",
    "scheduler": "plain",
    "variant": "paper",
    "dataset": "runs",
    "records": 200,
    "groups": 2,
    "seed": 1,
    "threads": 2,
    "keep": False,
    "generate_s": 0.1,
    "runs_s": [0.5],
    "records_per_s": 400.0,
    "input_bytes": 3200,
    "peak_bytes": 9000,
    "migrations": None,
    "checked": True,
    "answer": {"rows": 2, "sums": [7]},
}


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload, "find_program", lambda name: f"/bin/{name}")


def ends(returncode: int, stdout: str = "", stderr: str = "") -> FakeHost:
    return FakeHost(on_run=lambda argv: Finished(returncode, stdout, stderr))


def test_flags_of_the_launcher() -> None:
    plain = launch_flags(cpus=None, memory="first-touch", malloc=None, no_thp=False)
    assert plain == ()
    every = launch_flags(cpus="0-3", memory="interleave", malloc="tbbmalloc", no_thp=True)
    assert every == ("-C", "0-3", "-i", "all", "--malloc", "tbbmalloc", "--no-thp")


def test_places_of_threads() -> None:
    nodes = build([[NodeShape(chiplets=(2, 2))]] * 2)  # CPUs 0-3 and 4-7

    def places(placement: str, threads: int | None, scheduler: str = "plain") -> object:
        return thread_places(nodes, placement, threads=threads, scheduler=scheduler)

    assert places("none", 4) == ((), None)
    assert places("dense", 3) == (("--pin", "0,1,2"), None)
    assert places("sparse", 3) == (("--pin", "0,4,2"), None)
    assert places("sparse", None) == (("--pin", "0,4,2,6,1,5,3,7"), None)
    assert places("sparse", 3, "atoll") == ((), "0,2,4")


@pytest.mark.parametrize("launch", [(), ("-l", "--no-thp")])
def test_the_launcher_starts_it_only_if_it_has_flags(launch: tuple[str, ...]) -> None:
    started: list[Sequence[str]] = []

    def on_run(argv: Sequence[str]) -> Finished:
        started.append(argv)
        return Finished(0, json.dumps(RESULT), "")

    found = run_workload(FakeHost(on_run=on_run), ["w1", "--runs", "1"], launch)
    own = ["/bin/atoll-workload", "w1", "--runs", "1"]
    assert [*started[0]] == (["/bin/atoll-exec", *launch, "--", *own] if launch else own)
    assert found.launch == launch
    assert found.answer.sums == (7,)


@pytest.mark.parametrize(
    ("returncode", "program", "kind"),
    [
        (1, "atoll-workload", CheckFailed),
        (2, "atoll-workload", UsageError),
        (5, "atoll-workload", EngineFailed),
        (125, "atoll-exec", UsageError),
    ],
)
def test_a_failure_is_its_line_with_the_fitting_exit_code(
    returncode: int, program: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind) as fault:
        run_workload(ends(returncode, stderr=f"{program}: the reason\n"), ["w1"], ())
    assert str(fault.value) == "the reason"


def test_a_kill_names_the_signal() -> None:
    with fails(EngineFailed, signal="SIGKILL"):
        run_workload(ends(-9), ["w1"], ())


def test_a_failure_without_a_word_names_the_status() -> None:
    with fails(EngineFailed, status="3"):
        run_workload(ends(3), ["w1"], ())


def test_nonsense_is_refused() -> None:
    with fails(EngineFailed, field="variant"):
        run_workload(ends(0, json.dumps(RESULT | {"variant": "quick"})), ["w1"], ())


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload, "find_program", lambda name: None)
    with fails(EngineFailed, program="atoll-workload"):
        run_workload(ends(0), ["w1"], ())


def test_a_kernel_is_started_in_the_same_way() -> None:
    started: list[Sequence[str]] = []

    def on_run(argv: Sequence[str]) -> Finished:
        started.append(argv)
        return Finished(0, kernel(figures={"reached": 7}).model_dump_json(), "")

    found = run_kernel(FakeHost(on_run=on_run), ["bfs", "--runs", "1"], ("-l",))
    assert [*started[0]] == [
        "/bin/atoll-exec",
        "-l",
        "--",
        "/bin/atoll-kernels",
        *["bfs", "--runs", "1"],
    ]
    assert found.launch == ("-l",) and found.figures == {"reached": 7}
    with fails(CheckFailed, workload="bfs"):
        run_kernel(ends(1, stderr="atoll-kernels: bfs: no such parent\n"), ["bfs"], ())


def test_flags_and_help_are_named_as_the_user_knows_them() -> None:
    said = "--scale 99: too much (see atoll-kernels --help)"
    with pytest.raises(UsageError) as fault:
        run_kernel(ends(2, stderr=f"atoll-kernels: {said}\n"), ["bfs"], ())
    assert str(fault.value) == "--scale 99: too much (see 'atoll workload run bfs --help')"
    said = "--physcpubind 99: out of range"
    with pytest.raises(UsageError) as fault:
        run_kernel(ends(125, stderr=f"atoll-exec: {said}\n"), ["bfs"], ("-C", "99"))
    assert str(fault.value) == "--cpus 99: out of range"


def test_what_the_kernels_are_is_asked_of_the_program() -> None:
    flag = {"name": "scale", "default": "20", "help": "of the graph", "least": 1, "most": 40}
    one = {"name": "bfs", "what": "a search", "unit": "edges", "parameters": [flag]}
    said = {"schedulers": "atoll, os", "parameters": [], "workloads": [one]}
    (found,) = kernels(ends(0, json.dumps(said))).workloads
    assert found.name == "bfs" and found.parameters[0].most == 40
    with fails(EngineFailed, field="schedulers"):
        kernels(ends(0, "{}"))
