"""The seats: as many cores on few chiplets and on many, of the same nodes; the driver elsewhere."""

from __future__ import annotations

import pytest

from atoll.errors import UsageError
from atoll.oltp.seats import default_cores, make_seats
from tests.parts.faults import fails
from tests.parts.machines import milan, plain
from tests.parts.plan import SINGLE

ONE_SOCKET = milan(1, 8, 8)  # 8 chiplets of 8 cores


@pytest.mark.parametrize("cores", [2, 8, 12])
def test_both_seats_have_as_many_cores_and_memory(cores: int) -> None:
    seats, notes = make_seats(ONE_SOCKET, SINGLE, [cores])
    (packed, _), (spread, _) = seats
    assert [packed.placement, spread.placement] == ["packed", "spread"]
    assert len(packed.cpus) == len(spread.cpus) == cores
    assert len(packed.chiplets) == -(-cores // 8)
    assert len(spread.chiplets) == min(8, cores)
    assert packed.heap_bytes == spread.heap_bytes
    assert notes == []


def test_the_driver_has_the_cores_that_neither_seat_has() -> None:
    seats, _ = make_seats(ONE_SOCKET, SINGLE, [8])
    (packed, _), (spread, _) = seats
    assert packed.driver_cpus == spread.driver_cpus
    assert set(packed.driver_cpus).isdisjoint({*packed.cpus, *spread.cpus})
    assert len(packed.driver_cpus) == 64 - 15


def test_equal_seats_are_one_and_the_note_says_why() -> None:
    for machine, cores, why in (
        (plain(2), 2, "chiplets are not known"),
        (ONE_SOCKET, 1, "1 core is on 1 chiplet"),
        (ONE_SOCKET, 64, "all that there are"),
    ):
        seats, notes = make_seats(machine, SINGLE, [cores])
        ((seat, _),) = seats
        assert seat.also == ("spread",)
        assert why in notes[0]
    assert "no core is left for the driver" in notes[1]


def test_more_cores_than_there_are() -> None:
    with fails(UsageError, cores="cores=65"):
        make_seats(ONE_SOCKET, SINGLE, [65])


def test_half_of_the_cores_by_default() -> None:
    assert default_cores(ONE_SOCKET) == (32,)
    assert default_cores(plain(1)) == (1,)
