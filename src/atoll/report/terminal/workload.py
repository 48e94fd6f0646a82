"""One run of a workload for a terminal. Pure."""

from __future__ import annotations

from statistics import median

from atoll.schema.cpulist import format_cpulist
from atoll.schema.size import gib
from atoll.schema.text import plural
from atoll.schema.workload import WorkloadResult


def workload_text(found: WorkloadResult) -> str:
    """What ran, how long each run took, memory, moves, and whether the answer is right."""
    rows = {
        "data": f"{found.dataset}, {found.records:,} records, {found.groups:,} groups",
        "made": f"in {found.generate_s:.2f} s",
        "threads": f"{found.threads}, scheduled by {found.scheduler}"
        + (f", bound to CPUs {format_cpulist(found.pin)} in turn" if found.pin else ""),
        "launch": " ".join(found.launch),
        "index": "" if found.build_s is None else f"{found.index}, built in {found.build_s:.3f} s",
        "runs": ", ".join(f"{each:.3f}" for each in found.runs_s)
        + f" s; median {median(found.runs_s):.3f} s",
        "rate": f"{found.records_per_s / 1e6:.1f} million records a second",
        "memory": f"{gib(found.peak_bytes)} at its peak, {gib(found.input_bytes)} of it input"
        + ("" if found.overhead is None else f"; overhead {found.overhead:.2f}"),
        "local": ""
        if found.local_share_estimated is None
        else f"{found.local_share_estimated:.0%} of the pages, estimated",
        "moves": ""
        if found.migrations is None
        else f"{plural(found.migrations, 'move')} of threads between CPUs",
        "answer": f"{found.answer.rows:,} {'row' if found.answer.rows == 1 else 'rows'}, "
        + ("right" if found.checked else "not checked"),
    }
    kept = ", rows kept" if found.keep else ""
    lines = [f"{found.workload}, {found.variant}{kept}"]
    lines += [f"  {name:<8}{text}" for name, text in rows.items() if text]
    return "\n".join(lines) + "\n"
