"""CPUs whose caches can be simulated: reads catalog.toml, which names the sources.

A figure that was published in nanoseconds becomes cycles of the CPU's highest clock.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).with_name("catalog.toml")


SHARDS = 64  # the number of sets is a multiple of it (native/src/cachesim/machine.hpp)
LINE_BYTES = 64


class Size(NamedTuple):
    kib: int
    ways: int

    @property
    def step_kib(self) -> int:
        """The least that a cache with these ways can have, and by which it grows."""
        return self.ways * SHARDS * LINE_BYTES // 1024


@dataclass(frozen=True, slots=True)
class Cpu:
    """A processor, whole. An L3 is a chiplet's."""

    model: str
    cores: int
    chiplets: int
    clock_mhz: int
    l1: Size
    l2: Size
    l3: Size
    latency: Mapping[str, int]  # cycles, by the names of catalog.toml
    bandwidth_gbs: Mapping[str, float]  # one direction: of a chiplet's link, of a package


@cache
def read() -> dict[str, Any]:
    """The file's tables."""
    return tomllib.loads(FILE.read_text())


@cache
def cpus() -> dict[str, Cpu]:
    return {name: _cpu(table) for name, table in read()["cpu"].items()}


def _cpu(table: dict[str, Any]) -> Cpu:
    clock_mhz = table["clock_mhz"]["value"]
    return Cpu(
        model=table["model"],
        cores=table["cores"],
        chiplets=table["chiplets"],
        clock_mhz=clock_mhz,
        l1=_size(table["l1"]),
        l2=_size(table["l2"]),
        l3=_size(table["l3"]),
        latency={name: _cycles(figure, clock_mhz) for name, figure in table["latency"].items()},
        bandwidth_gbs={name: figure["gbs"] for name, figure in table["bandwidth"].items()},
    )


def _size(figure: dict[str, Any]) -> Size:
    return Size(figure["kib"], figure["ways"])


def _cycles(figure: dict[str, Any], clock_mhz: int) -> int:
    return int(figure["cycles"]) if "cycles" in figure else cycles(figure["ns"], clock_mhz)


def cycles(ns: float, clock_mhz: int) -> int:
    return round(ns * clock_mhz / 1000)
