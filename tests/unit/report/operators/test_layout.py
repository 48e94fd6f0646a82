"""Where the operators of a graph stand in its picture."""

from __future__ import annotations

from itertools import pairwise

from atoll.report.operators.layout import columns, heights


def test_columns_follow_the_data_and_edges_do_not_cross() -> None:
    edges = [("a", "d"), ("b", "c"), ("d", "e"), ("c", "e")]
    found = columns("abcde", edges)
    assert found == [["a", "b"], ["d", "c"], ["e"]]
    assert heights(found) == {"a": 0, "b": 1, "d": 0, "c": 1, "e": 0.5}


class _Counted(str):
    """An id that counts how often it is looked up."""

    looked_up = 0

    def __hash__(self) -> int:
        _Counted.looked_up += 1
        return super().__hash__()


def test_a_line_twice_as_long_takes_twice_the_steps() -> None:
    steps = []
    for count in (50, 100):
        names = [_Counted(one) for one in range(count)]
        _Counted.looked_up = 0
        assert columns(names, list(pairwise(names))) == [[one] for one in names]
        steps.append(_Counted.looked_up)
    assert steps[1] < 2.1 * steps[0]
