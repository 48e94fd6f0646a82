"""The chart of running threads: a line for each setting, of its last run."""

from __future__ import annotations

from atoll.experiments.catalog import get
from atoll.experiments.ours import of_workloads
from atoll.experiments.workload_settings import Setting
from atoll.report.experiment.concurrency import concurrency_charts
from atoll.report.experiment.page import experiment_page
from atoll.schema.kernel import Concurrency, KernelResult
from tests.parts.kernels import kernel, runs

SETTINGS = [{"system": name, "concurrency": "yes"} for name in ("arcas-async", "arcas")]


def of(setting: Setting, block: int) -> KernelResult:
    running = (block, 2 * block) * 500 if setting["system"] == "arcas" else (9,) * 300
    return kernel(
        workload="sgd",
        concurrency=Concurrency(every_s=0.005, running=running, threads_created=34),
    )


def test_each_setting_has_a_line_of_its_last_run() -> None:
    experiment = get("arcas-fig11")
    ours = of_workloads(experiment, runs(SETTINGS, of), "r.json")
    assert [*ours.threads] == ["arcas-async", "arcas"]
    assert max(ours.threads["arcas"].running) == 10
    (picture,) = concurrency_charts([ours])
    assert "arcas (34 threads)" in picture.body and "seconds" in picture.body
    assert "Threads that ran at a time, A" in experiment_page(experiment, [ours])


def test_without_counts_there_is_no_chart() -> None:
    ours = of_workloads(get("arcas-fig11"), runs(SETTINGS, lambda *_: kernel()), "r.json")
    assert concurrency_charts([ours]) == []


def test_a_long_course_is_thinned_to_means_and_a_short_one_stays() -> None:
    def course(*running: int, most: int = 2) -> list[float]:
        return Concurrency(every_s=1, running=running, threads_created=1).course(most)

    assert course(1, 2, 3, most=200) == [1, 2, 3]
    assert course(1, 3, 5, 7) == [2, 6]
    assert course() == []
