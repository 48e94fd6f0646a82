"""What `make perf-probe` makes of its peers' words: a report that shows other work is refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf.harness import WrongAnswer
from perf.probe import Case, cases
from perf.probe_peers import Moved, latency_of, moved_of

REPORT = """\
LIKWID MICRO BENCHMARK
Test: copy_avx512
Group: 0 Thread 0 Global Thread 0 running on hwthread 0 - Vector length 736 Offset 0
Group: 0 Thread 1 Global Thread 1 running on hwthread 4 - Vector length 736 Offset 736
Time:\t\t\t2.500000e-01 sec
Iterations:\t\t2000
Iterations per thread:\t1000
Size (Byte):\t\t23552
Data volume (Byte):\t23552000
MByte/s:\t\t94.21
"""


def test_a_report_is_read() -> None:
    done = moved_of(REPORT)
    assert done == Moved("copy_avx512", frozenset({0, 4}), 23552, 1000, 0.25, done.gbs)
    assert done.gbs == pytest.approx(0.09421)


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        ("Size (Byte)", "Size"),  # a field that is not there
        ("94.21", "9421"),  # a rate that its own bytes and time do not give
        ("23552000", "23552001"),
        ("2.5", "none"),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(what: str, instead: str) -> None:
    with pytest.raises(WrongAnswer, match="likwid-bench"):
        moved_of(REPORT.replace(what, instead))


@given(st.text())
def test_no_text_is_more_than_refused(text: str) -> None:
    for read in (latency_of, moved_of):
        with contextlib.suppress(WrongAnswer):
            read(text)


def test_a_pairs_matrix_has_one_figure() -> None:
    assert latency_of(",\n52.5,\n") == 52.5
    for wrong in ("", ",\n,\n", "1,2\n3,4\n", ",\n-1,\n", ",\nnan,\n", ",\ninf,\n"):
        with pytest.raises(WrongAnswer):
            latency_of(wrong)


def test_cases_cover_levels_and_the_peers_kernels_are_of_the_same_store() -> None:
    made = cases({"L1": 48 << 10, "L2": 2 << 20, "L3": 32 << 20}, 2)
    assert {case.level for case in made} == {"L1", "L2", "L3", "memory"}
    assert {case.threads for case in made} == {1, 2}
    known = frozenset({"copy_avx", "copy_avx512", "copy_mem_avx", "stream_sse", "copy"})
    assert Case("copy", "temporal", "L1", 1, 1).kernels(known, "avx512") == [
        "copy_avx",
        "copy_avx512",
    ]
    assert Case("copy", "streaming", "L1", 1, 1).kernels(known, "avx2") == ["copy_mem_avx"]
    assert Case("triad", "temporal", "L1", 1, 1).kernels(known, "avx2") == ["stream_sse"]
