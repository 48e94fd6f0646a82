"""Totals of numa_maps: those of its parser, and what may be drift is never missed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atoll.inspect.numa_maps import parse_numa_maps
from atoll.inspect.page_totals import page_totals

KINDS = ("", " heap", " stack", " file=/bin/x", " file=/dev/shm/x", " file=/SYSV01", " huge")
LINES = st.builds(
    lambda address, kind, nodes, size: (
        f"{address:08x} default{kind} anon=1"
        + "".join(f" N{node}={count}" for node, count in nodes.items())
        + f" kernelpagesize_kB={size}"
    ),
    st.integers(0, 2**47),
    st.sampled_from(KINDS),
    st.dictionaries(st.integers(0, 63), st.integers(1, 2**30), max_size=4),
    st.sampled_from([4, 2048]),
)


@given(st.lists(LINES, max_size=8), st.frozensets(st.integers(0, 63)))
def test_totals_are_those_of_the_parser(lines: list[str], wanted: frozenset[int]) -> None:
    text = "\n".join(lines) + "\n"
    found = page_totals(text, wanted)
    sizes: dict[int, int] = {}
    outside = 0
    for line in parse_numa_maps(text):
        for node, size in line.bytes_by_node.items():
            sizes[node] = sizes.get(node, 0) + size
            if line.file != "/bin/x" and wanted and node not in wanted:
                outside += size
    assert found.bytes_by_node == sizes
    assert found.own_outside == outside


@given(st.text())
def test_any_text_gives_totals(text: str) -> None:
    assert page_totals(text, frozenset({0})).own_outside >= 0
