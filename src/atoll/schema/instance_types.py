"""Machines for hire with the user's prices, and what an engine would get on each. Formats
`atoll/instance-types` 1 and `atoll/instance-type-plans` 1.

A person writes the first as YAML (or JSON) for `atoll plan ENGINE --compare`, which prints the
second with `--json`. Prices are the user's, per hour of one machine. No field predicts speed.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from atoll.schema.base import Record
from atoll.schema.policy import Policy


class InstanceType(Record):
    """One type: its machine is a file that `--machine` takes, or a text for `--synthetic`."""

    name: str = Field(pattern=r"^[\w.:/ -]{1,60}$")
    price_per_hour: float = Field(ge=1e-9, le=1e9, allow_inf_nan=False)  # a table must hold it
    machine: str | None = None  # relative to the folder of this file
    synthetic: str | None = None

    @field_validator("price_per_hour", mode="before")
    @classmethod
    def _is_a_number(cls, value: Any) -> Any:
        if isinstance(value, bool):  # YAML's yes, which would count as 1
            raise ValueError("must be a number")
        return value

    @model_validator(mode="after")
    def _has_one_machine(self) -> Self:
        if (self.machine is None) == (self.synthetic is None):
            raise ValueError("give either machine, a file, or synthetic, a description")
        return self


class InstanceTypes(Record):
    format: Literal["atoll/instance-types"] = "atoll/instance-types"
    version: Literal[1] = 1
    currency: str = Field(pattern=r"^[\w.$¢-¥₠-⃀]{1,10}$")  # a code or a sign: EUR, €
    types: tuple[InstanceType, ...] = Field(min_length=1, max_length=500)  # each takes a few ms

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        name, count = Counter(one.name for one in self.types).most_common(1)[0]
        if count > 1:
            raise ValueError(f"type {name} occurs {count} times")
        return self


class SlotSize(Record):
    """What one worker instance would have."""

    cores: int
    heap_bytes: int
    l3_bytes: int  # its part of the L3s that it uses, divided by the CPUs in use on each


class TypePlan(Record):
    name: str
    price_per_hour: float
    policy: Policy | None  # None: refused
    slots: tuple[SlotSize, ...]
    price_per_slot: float | None  # per hour
    warnings: tuple[str, ...] = ()
    refused: str = ""  # why the engine cannot be planned there


class InstanceTypePlans(Record):
    format: Literal["atoll/instance-type-plans"] = "atoll/instance-type-plans"
    version: Literal[1] = 1
    engine: str
    currency: str
    types: tuple[TypePlan, ...]  # in the order of the file
