"""A table fits its width: headers break, words are cut, numbers stay whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atoll.report.table import Row, Table
from atoll.report.terminal.grid import Fitted, printed

LABEL = "engine/policy/malloc=tbbmalloc/thp="


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10**9)), min_size=1),
    st.integers(30, 120),
)
def test_numbers_are_whole_at_any_width(rows: list[tuple[int, int]], width: int) -> None:
    cells: list[Row] = [(LABEL + "x" * length, f"{number} MiB") for length, number in rows]
    table = Table("", ("deployment", "read from storage"), cells)
    text = printed(Fitted(table, ("deployment",), ("deployment",), {}), width=width, colour=False)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    drawn = lines[-len(cells) :]
    for (label, number), line in zip(cells, drawn, strict=True):
        shown, _, rest = line.partition(" ")
        assert rest.strip() == number
        assert shown == label or (shown[0] == "…" and label.endswith(shown[1:]) and shown[1:])
