"""What `atoll inspect` and `atoll verify` print: 80 columns, totals first, like findings once."""

from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from atoll.inspect.drift import Looks, find
from atoll.inspect.verify import Verification
from atoll.report.terminal.inspection import inspection_text, verification_text
from atoll.schema.inspection import (
    Finding,
    Inspection,
    JvmLook,
    L3Look,
    MallocLook,
    MappingKind,
    NicLook,
    Severity,
    SpreadLook,
    ThreadLook,
)
from atoll.schema.plan import Placement
from tests.parts.inspect import (
    GIVEN,
    MIB,
    PID,
    PLANNED,
    cached,
    context,
    mapping,
    memory,
    team,
    thread,
)
from tests.parts.terminal import printed

GIB = 1 << 30


def inspection(threads: list[ThreadLook], *findings: Finding, **changes: object) -> Inspection:
    look = memory(
        mapping({0: 3 * GIB, 1: GIB}),
        mapping({0: 20 * MIB}, kind=MappingKind.HEAP, name="[heap]"),
        mapping(dict.fromkeys(range(8), 3 * MIB), kind=MappingKind.FILE, name="/lib/x.so"),
    )
    whole = Inspection(
        pid=PID,
        process="worker-0",
        slot=0,
        command="/opt/server --with " + "many-words " * 20,
        expected=PLANNED.record(),
        memory_policy="bind:0",
        threads=tuple(threads),
        memory=look.model_copy(update={"local_share": 0.523, "own_nodes_share": 0.9996}),
        page_cache=(cached({0: 100 * MIB, 1: GIB}),),
        malloc=MallocLook(
            preload=("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",),
            loaded=(),
            reached="libc.so.6",
            exceptions={"libduckdb.so": "its own jemalloc"},
        ),
        jvm=JvmLook(
            version="17.0.15+6-Debian-1deb12u1",
            use_numa=False,
            use_numa_asked=True,
            processors=16,
            processors_asked=None,
            collector="G1",
            max_heap_bytes=4 * GIB,
            large_pages=True,
            transparent_huge_pages=True,
        ),
        l3=(
            L3Look(l3=0, occupancy_bytes=12 * MIB, total_bytes_per_s=12e9, local_bytes_per_s=None),
        ),
        unknown=("page cache of /a/b: not ours to look at: run as its user or as root",),
        findings=tuple(findings),
    )
    return whole.model_copy(update=changes)


def test_everything_fits_80_columns_and_is_there() -> None:
    text = printed(inspection_text(inspection(team("0-3", "0-3", "7"))))
    assert max(map(len, text.splitlines())) <= 80
    for words in (
        "worker-0 pid 100 slot 0 no drift",
        "Planned: CPUs 0-3, memory bind:0, expected on node 0",
        ">99.9% on its CPUs' nodes (file pages do not count as drift), 52% local",
        "1.1 GiB of 1.1 GiB cached: 100 MiB on node 0, 1 GiB on node 1",
        "libc.so.6; requested /usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
        "16 processors, UseNUMA off",
        "domain 0: 12 MiB in use, 12.00 GB/s of memory traffic",
    ):
        assert words in " ".join(text.split()), words
    rows = [line.split() for line in text.splitlines() if re.match(r" +\d+ +[<>.\d]+%", line)]
    assert [row[0] for row in rows] == [str(node) for node in range(8)]


def test_a_process_that_nobody_planned_says_so() -> None:
    text = printed(inspection_text(inspection(team("0-3"), expected=GIVEN.record(), slot=None)))
    assert "Started with: CPUs 0-3" in text
    assert "slot" not in text


def test_a_command_with_line_breaks_is_one_line() -> None:
    whole = inspection(team("0-3"), command="python -c import x\nx.run()\t1")
    assert printed(inspection_text(whole)).splitlines()[1] == "python -c import x x.run() 1"


def test_200_threads_with_one_fault_are_one_entry() -> None:
    threads = team("0-3", *["4-7"] * 200)
    findings = find(Looks(threads, "bind:0"), context(), {})
    assert len(findings) == 200
    text = printed(inspection_text(inspection(threads, *findings)))
    assert text.count("drift: thread-outside × 200") == 1
    assert "and 196 more: found CPUs 4-7" in " ".join(text.split())
    assert len(text.splitlines()) < 50


def test_threads_that_have_a_cpu_each_are_one_row() -> None:
    text = printed(inspection_text(inspection(team(*[str(cpu) for cpu in range(256)]))))
    assert "one CPU each of 0-255" in text
    spread = team(*[f"{cpu}-{cpu + 1}" for cpu in range(40)])
    assert "33 other masks" in printed(inspection_text(inspection(spread)))


def test_the_spread_is_shown_by_chiplets_and_names() -> None:
    spread = SpreadLook(
        over="chiplet",
        usable=8,
        threads_on={0: 4, 2: 3, 4: 4},
        threads_named={"atoll-duck": 10, "atoll-seat": 1},
    )
    text = printed(inspection_text(inspection(team("0-3"), spread=spread)))
    assert (
        "Spread 3 of 8 chiplets: 4 threads on each of 0,4, 3 threads on 2 "
        "(10 atoll-duck, 1 atoll-seat)"
    ) in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    assert "Spread" not in printed(inspection_text(inspection(team("0-3"))))


def test_a_spread_over_many_stays_short() -> None:
    many = SpreadLook(
        over="node",
        usable=64,
        threads_on=dict.fromkeys(range(64), 1),
        threads_named={f"name{letter}": 8 for letter in "abcdefgh"},
    )
    text = " ".join(printed(inspection_text(inspection(team("0-3"), spread=many))).split())
    assert "64 of 64 nodes: 1 thread on each of 0-63 (8 namea, " in text
    assert "8 named and 4 more names)" in text


def test_a_foreign_name_cannot_steer_the_terminal() -> None:
    evil = thread(PID + 1, "7", comm="\x1b[31m[red]x\n")
    findings = find(Looks([thread(), evil], "bind:0"), context(), {})
    text = printed(
        inspection_text(inspection([thread(), evil], *findings, command="\x1b]0;t\x07[b]x"))
    )
    assert "\x1b" not in text and "\x07" not in text
    assert "(�[31m[red]x�)" in text


def test_a_deployment_is_a_line_for_each_process_and_the_drift_before_the_notes() -> None:
    def finding(code: str, severity: Severity, process: str) -> Finding:
        return Finding(
            code=code,
            severity=severity,
            process=process,
            pid=PID,
            expected="a",
            found="b",
            cause="c",
            remedy="d",
        )

    note = finding("page-cache-elsewhere", Severity.NOTE, "worker-0")
    drift = finding("thread-outside", Severity.DRIFT, "worker-1")
    verification = Verification(
        deployment="spark",
        placement=Placement.DENSE,
        processes=(
            inspection(team("0-3", "7"), note),
            inspection(team("0-3"), drift, process="worker-1", memory=None),
        ),
        missing=(finding("process-missing", Severity.DRIFT, "worker-2"),),
    )
    text = printed(verification_text(verification))
    assert text.startswith("spark: 3 threads, 0 bound to one CPU each (dense), 2 drifted\n")
    assert max(map(len, text.splitlines())) <= 80
    order = [text.index(code) for code in ("process-missing", "thread-outside", "page-cache")]
    assert order == sorted(order)
    assert "worker-1 pid 100: found b" in text


@settings(max_examples=50)
@example(masks=[{0}], name="\u0c3c")
@given(
    st.lists(st.sets(st.integers(0, 300), min_size=1, max_size=9), min_size=1, max_size=40),
    st.text(max_size=15),
)
def test_whatever_is_inspected_fits(masks: list[set[int]], name: str) -> None:
    threads = [
        thread(PID + number, ",".join(map(str, sorted(mask))), comm=name)
        for number, mask in enumerate(masks)
    ]
    findings = find(Looks(threads, "bind:0"), context(), {})
    text = printed(inspection_text(inspection(threads, *findings, process=name)))
    assert max(map(cell_len, text.splitlines())) <= 80  # a combining mark takes no column


def test_nics_with_what_they_moved_and_what_never_passes_them() -> None:
    eth0 = NicLook(
        name="eth0",
        address="10.0.0.5",
        slots=(0, 1),
        rx_bytes=3 * GIB,
        tx_bytes=MIB,
        since="deployment",
    )
    lo = NicLook(name="lo", address=None, slots=(), rx_bytes=5, tx_bytes=5, since="interface")
    nics = (eth0, lo)
    text = printed(
        verification_text(Verification(deployment="d", processes=(), missing=(), nics=nics))
    )
    assert re.search(r"eth0 10\.0\.0\.5\s+0-1\s+3(\.0)? GiB\s+1(\.0)? MiB", text)
    assert re.search(r"lo\s+-\s+-\s+5 B\s+5 B", text)
    assert "passes lo and no NIC" in text
