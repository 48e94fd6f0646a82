"""The texts that users read, each once as a whole, in tests/golden/reports.

Other tests assert numbers and structure. `make messages` writes the files again; read their
difference aloud before you commit it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from atoll.bench.analysis import summarise
from atoll.bench.results import read_results
from atoll.infer.compare import compare_profiles
from atoll.plan import make_plan
from atoll.report.bench.markdown import markdown
from atoll.report.bench.text import bench_text
from atoll.report.machine.text import machine_picture
from atoll.report.profile.compare import compare_text
from atoll.report.profile.text import profile_text
from atoll.report.terminal.plan import plan_text
from atoll.schema.summary import BenchSummary
from tests.parts import profiles
from tests.parts.faults import WRITE
from tests.parts.fills import counted_run
from tests.parts.machines import milan
from tests.parts.paths import DATA, GOLDEN
from tests.parts.plan import DISTRIBUTED
from tests.parts.terminal import printed


def recorded() -> BenchSummary:
    """Without the sentences of other rooms."""
    summary = summarise(read_results(DATA / "bench-duckdb.jsonl"))
    return summary.model_copy(update={"notes": (), "warnings": ()})


def bench_summary() -> str:
    return printed(bench_text(recorded()))


def bench_markdown() -> str:
    return markdown(recorded())


def simulated_summary() -> str:
    summary = summarise(counted_run())
    return printed(bench_text(summary.model_copy(update={"warnings": ()})))


def profile() -> str:
    return printed(profile_text(profiles.epyc(2, 4, 3), colour=False))


def comparison() -> str:
    a, b = profiles.epyc(2, 4, 3), profiles.epyc(1, 8, 4)
    return printed(compare_text(compare_profiles(a, b)))


def machine() -> str:
    lines = machine_picture(milan(1, 2, 4))
    return "\n".join("".join(span.text for span in line) for line in lines)


def plan() -> str:
    planned = make_plan(milan(1, 2, 4), DISTRIBUTED, "win")
    return plan_text(planned.model_copy(update={"reasons": ()}), explain=True, colour=False)


@pytest.mark.parametrize(
    "text",
    [
        bench_summary,
        bench_markdown,
        simulated_summary,
        profile,
        comparison,
        machine,
        plan,
    ],
)
def test_a_text_is_as_somebody_read_it(text: Callable[[], str]) -> None:
    path: Path = GOLDEN / "reports" / f"{text.__name__}.txt"
    shown = "".join(f"{line.rstrip()}\n" for line in text().splitlines())
    if os.environ.get(WRITE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(shown)
    assert shown == path.read_text()
