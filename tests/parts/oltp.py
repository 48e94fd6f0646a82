"""Runs of transactional workloads, made up."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.host.environment import environment
from atoll.oltp.seats import make_seats
from atoll.schema.machine import Machine
from atoll.schema.oltp import ConditionFound, Latency, OltpRun, OltpRuns
from tests.parts.fake_host import FakeHost
from tests.parts.plan import SINGLE

Rates = Sequence[float]  # commits a second, by block


def oltp_run(block: int, workload: str, seat: str, rate: float) -> OltpRun:
    return OltpRun(
        block=block,
        workload=workload,
        seat=seat,
        commits_per_s=rate,
        latencies=(Latency(type="payment", count=200, p50_ms=1, p90_ms=2, p99_ms=3),),
        failed=0,
        acknowledged=10,
        counted=10,
        conditions=(ConditionFound(name="1", means="sums agree", violations=0),),
        threads=9,
        drifted=0,
        idle_before=1,
        idle_during=0.1,
    )


def oltp_runs(
    machine: Machine, cores: int, rates: dict[str, tuple[Rates, Rates]], *, emulated: bool = False
) -> OltpRuns:
    """`rates`: of the seats packed and spread, by workload."""
    seats, notes = make_seats(machine, SINGLE, [cores])
    return OltpRuns(
        engine="toy",
        engine_version="1",
        machine=machine,
        environment=environment(FakeHost(), machine),
        emulated=emulated,
        sizes=dict.fromkeys(rates, 1),
        warmup_s=1,
        measured_s=10,
        durability={"fsync": "on"},
        seats=tuple(seat for seat, _ in seats),
        runs=tuple(
            oltp_run(block, workload, seat.label, rate)
            for workload, both in rates.items()
            for (seat, _), each in zip(seats, both, strict=False)
            for block, rate in enumerate(each)
        ),
        warnings=tuple(notes),
    )
