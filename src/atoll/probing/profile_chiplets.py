"""Reads only a profile's chiplets, without building its matrices."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Part(BaseModel):
    """The needed part of a profile; the rest of the file is skipped without being built."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class _Where(_Part):
    hostname_hash: str
    cpu_model: str


class _Pairs(_Part):
    pus: tuple[int, ...]


class _Found(_Part):
    chiplets: tuple[tuple[int, ...], ...]
    confidence: float
    source: Literal["latency", "bandwidth", "both", "none"]


class ProfileChiplets(_Part):
    """A profile's chiplets, and the machine they were measured on. Fields as in schema.profile."""

    format: Literal["atoll/profile"]
    version: Literal[1]
    created: str
    machine_id: str
    machine_title: str
    environment: _Where
    emulated: bool
    core_latency_cas_ns: _Pairs | None = None
    core_latency_store_ns: _Pairs | None = None
    core_bandwidth_gbs: _Pairs | None = None
    inference: _Found | None = None

    @property
    def pus(self) -> frozenset[int]:
        """The PUs that were paired, and so could be told apart."""
        matrices = (self.core_latency_cas_ns, self.core_latency_store_ns, self.core_bandwidth_gbs)
        return frozenset(pu for matrix in matrices if matrix is not None for pu in matrix.pus)
