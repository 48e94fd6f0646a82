"""What a measured stretch of `atoll-sharedplan` gave. Format `atoll/shared-plan`, version 1.

The program is a small engine with a plan of 44 operators that all queries share, as
query-plan-deployment-poster deploys one. It verifies a sample of its answers before it prints this.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from atoll.schema.base import Record
from atoll.schema.placement import Deployment


class SharedPlanResult(Record):
    format: Literal["atoll/shared-plan"] = "atoll/shared-plan"
    version: Literal[1] = 1
    deployment: Deployment
    scale: float = Field(gt=0)  # 1: TPC-W's rows for 4,000 browsers and 100,000 items
    seed: int = Field(ge=0)
    tables_bytes: int = Field(ge=1)
    browsers: int = Field(ge=1)
    think_ms: int = Field(ge=0)  # on average
    seconds: float = Field(gt=0)  # measured
    interactions: int = Field(ge=0)  # that were answered
    cycles: int = Field(ge=0)  # that began
    verified: int = Field(ge=0)  # answers that a second way of computing them confirmed
    per_window: tuple[float, ...]  # interactions a second, over windows of 1 s
    p50_ms: float = Field(ge=0)  # from question to answer
    p90_ms: float = Field(ge=0)
    p99_ms: float = Field(ge=0)
    operators_cpu_s: float = Field(ge=0)  # in operators; without waiting, and without browsers
    cores: tuple[int, ...]  # with over 1 % of that, by the first CPU of each
