"""How far a resumed run goes, and which queries it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.bench.job import Length
from atoll.bench.results import ResultsWriter, require_machine, resumable
from atoll.errors import UsageError
from atoll.schema.results import PassDone
from tests.parts.bench import WIC, WIM, header, lines, query_failed, results
from tests.parts.bench_grid import MEASURED, grid, measured
from tests.parts.faults import fails


@pytest.mark.parametrize(
    ("there", "done", "now", "then"),
    [
        (5, 1, Length(7), 7),
        (8, 1, Length(3), 3),  # not 8, as it was
        (8, 4, Length(3), 4),  # what is measured stays
        (8, 1, Length(), 8),
        (8, 1, Length(time_s=60.0), None),
        (None, 3, Length(5), 5),
    ],
)
def test_resuming_measures_as_many_blocks_as_are_asked_for(
    there: int | None, done: int, now: Length, then: int | None
) -> None:
    found = results(lines(blocks=done)[:-1], header(blocks_asked=there))
    wanted = header(blocks_asked=now.blocks_asked)
    kept = resumable(found, wanted, where="r", extend=not now.is_default)
    assert kept.header.blocks_asked == then
    assert kept.whole_blocks == done


def test_a_run_of_some_time_is_not_resumed_without_one() -> None:
    found = results(lines(blocks=1)[:-1], header(blocks_asked=None))
    with fails(UsageError, where="r", option="--within", other="--blocks"):
        resumable(found, header(), where="r")


def test_heaps_that_the_user_chooses_must_be_those_of_the_file() -> None:
    found = results(lines(blocks=1)[:-1], header(WIM, WIC))
    assert WIC.plan is not None
    plan = WIC.plan.model_copy(update={"total_heap_bytes": WIC.plan.total_heap_bytes // 2})
    wanted = header(WIM, WIC.model_copy(update={"plan": plan}))
    # Today's free memory may give other heaps; the file's are used.
    assert resumable(found, wanted, where="r").header.entrants == found.header.entrants
    with pytest.raises(UsageError, match="differs in its heap of spark/wic"):
        resumable(found, wanted, where="r", sized=True)
    assert resumable(found, header(WIM, WIC), where="r", sized=True).whole_blocks == 1


def test_what_failed_stays_left_out_after_resuming(tmp_path: Path) -> None:
    gone = query_failed(0, "spark/wim", "q6")
    path = tmp_path / "r.jsonl"
    with ResultsWriter.create(path, header()) as writer:
        writer.append(gone)
        for label in ("spark/wim", "spark/wic"):
            writer.append(PassDone(block=0, label=label, seconds=1.0))
        writer.append(query_failed(1, "spark/wic", "q1"))
    writer, kept, _ = ResultsWriter.resume(path, header())
    with writer:
        assert kept.left_out == [gone], "a block that is repeated tries its queries again"
        assert kept.queries == ("q1",)


def test_a_grid_goes_on_only_with_the_same_cells_and_knobs() -> None:
    given = MEASURED.header
    found = results(list(MEASURED.lines[:-1]), given)
    assert resumable(found, given, where="r").whole_blocks == 6
    other = measured(grid("cores=1,2,4"), {}).header
    with pytest.raises(UsageError, match=r"differs in its entrants .*memory=bind"):
        resumable(found, other, where="r")
    turned = tuple(one.model_copy(update={"knobs": {"swappiness": "10"}}) for one in given.entrants)
    with pytest.raises(UsageError, match=r"knobs before spark/wim .swappiness 60 then"):
        resumable(found, given.model_copy(update={"entrants": turned}), where="r")


def test_a_machine_that_has_changed_is_named_before_its_cells(tmp_path: Path) -> None:
    """With fewer CPUs, other cells coincide: that says less than the mask."""
    other = measured(grid("cores=1,2"), {}).header
    masked = other.fingerprint.model_copy(update={"affinity": "0-1"})
    found = results(list(MEASURED.lines[:-1]), MEASURED.header)
    changed = other.model_copy(update={"fingerprint": masked})
    said = r"differs in its affinity \(0-3 then, 0-1 now\)"
    with pytest.raises(UsageError, match=said):
        resumable(found, changed, where="r")
    path = tmp_path / "r.jsonl"
    ResultsWriter.create(path, MEASURED.header).__exit__(None, None, None)
    with pytest.raises(UsageError, match=said):
        require_machine(path, "m1", masked)
    with pytest.raises(UsageError, match=r"differs in its machine \(m1 then, m2 now\)"):
        require_machine(path, "m2", masked)
    moved = MEASURED.header.fingerprint.model_copy(update={"cgroup": "/x", "memory_bytes": 1})
    require_machine(path, "m1", moved)
