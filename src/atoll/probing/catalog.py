"""Known CPU models and their expected figures: reads and checks catalog.toml.

The catalog is data rather than code because it grows; each row names its source. A model that is
not in it has no expectation, which is not an error.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Self

from pydantic import Field, field_validator, model_validator

from atoll.schema.base import Record

_CHANNEL_BYTES = 8  # a DDR channel; DDR5's two subchannels of 32 bits count as one


class _Row(Record):
    pattern: str = Field(min_length=1)
    source: str = Field(min_length=1)

    @field_validator("pattern")
    @classmethod
    def _is_an_expression(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as fault:
            raise ValueError(f"not a regular expression: {fault}") from None
        return pattern

    def matches(self, cpu_model: str) -> bool:
        return re.search(self.pattern, cpu_model) is not None


class Cpu(_Row):
    """A family of processors. Counts are per package, and maxima unless `exact`."""

    model: str = Field(min_length=1)
    tiles: int = Field(ge=1)
    l3_groups: int = Field(ge=1)
    cores_per_l3: int = Field(ge=1)
    exact: bool
    channels: int = Field(ge=1)
    speed_mts: int = Field(ge=100)

    @property
    def most_cores(self) -> int:
        return self.l3_groups * self.cores_per_l3

    @property
    def peak_gbs(self) -> float:
        """The theoretical memory bandwidth of a package, in 1e9 bytes/s."""
        return self.channels * _CHANNEL_BYTES * self.speed_mts / 1e3

    @property
    def islands(self) -> int:
        """The number of chiplets of a full package: L3 groups, or the tiles that share one L3."""
        return max(self.tiles, self.l3_groups)


class WholeMachine(_Row):
    """A machine with a published triad."""

    name: str = Field(min_length=1)
    packages: int = Field(ge=1)
    cores: int = Field(ge=1)
    triad_gbs: float = Field(gt=0)


class Triad(Record):
    """The fraction of the peak that STREAM's triad reaches if nothing better is known."""

    share: float = Field(gt=0, le=1)
    source: str = Field(min_length=1)


class Catalog(Record):
    triad: Triad
    unspecified: _Row  # models whose maker publishes nothing on their memory
    cpu: tuple[Cpu, ...]
    machine: tuple[WholeMachine, ...]

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [row.model for row in self.cpu] + [row.name for row in self.machine]
        if len(set(names)) < len(names):
            raise ValueError("two rows have the same name")
        return self

    def cpu_of(self, names: Iterable[str]) -> Cpu | None:
        """The first row that matches one of the names."""
        given = list(names)
        return next((row for row in self.cpu if any(map(row.matches, given))), None)

    def machine_of(self, cpu_model: str, *, packages: int, cores: int) -> WholeMachine | None:
        return next(
            (
                row
                for row in self.machine
                if row.matches(cpu_model) and (row.packages, row.cores) == (packages, cores)
            ),
            None,
        )


@cache
def catalog() -> Catalog:
    text = resources.files("atoll.probing").joinpath("catalog.toml").read_text(encoding="utf-8")
    return parse_catalog(text)


def parse_catalog(text: str) -> Catalog:
    """Raises ValueError for malformed TOML or a row with impossible values."""
    return Catalog.model_validate(tomllib.loads(text))
