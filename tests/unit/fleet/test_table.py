"""What a user sees of a fleet's answers."""

from __future__ import annotations

from atoll.report.terminal.fleet import fault_lines, fleet_table
from atoll.report.terminal.grid import printed
from atoll.schema.fleet_answers import Clock, HostAnswer

ANSWERS = (
    HostAnswer(
        host="east",
        address="10.0.0.1",
        exit_code=0,
        warnings=("old",),
        clock=Clock(offset_s=-2.5, error_s=0.001),
        facts={"cores": 8, "memory_bytes": 2 << 30, "up_s": 65.0, "cpu": "[/bold] [red]X"},
    ),
    HostAnswer(host="west", address="10.0.0.2", exit_code=1, error="no\nanswer", facts={}),
    HostAnswer(host="north", address="n", exit_code=0, warnings=("old",), facts={}),
)


def test_a_row_for_each_host_and_no_markup_of_theirs() -> None:
    text = printed(fleet_table(ANSWERS), width=80, colour=False)
    heading, east, west, _ = text.splitlines()
    assert heading.split() == ["HOST", "CORES", "MEMORY", "UP", "CPU", "CLOCK"]
    assert "2 GiB" in east and "1 min 5 s" in east and "[/bold] [red]X" in east
    assert "-2.500 s" in east and east.rstrip().endswith("ok")
    assert west.split()[0] == "west" and west.rstrip().endswith("failed")


def test_a_line_for_each_fault_and_each_warning() -> None:
    assert fault_lines(ANSWERS) == [
        "east, north: warning: old",
        "west (10.0.0.2): no answer",
    ]
