"""What `atoll tune` found for a command, or a suite on an engine. Format `atoll/tuning` 1.

A setting names the factors that differ from the command as it was started before, with their
values; `{}` is the baseline. Gains are ratios of the metric in one block, so that more than 1 is
better, whatever the metric is. `effects` were judged on blocks of their own; `dropped` were left
behind by halving, and have no verdict. All verdicts together are wrong with a chance of at most
`error`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import Field

from atoll.schema.base import Record
from atoll.schema.machine import Summary


class Verdict(StrEnum):
    """A gain's interval against 1 and against the margin."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"  # the whole interval is within the margin
    CANNOT_TELL = "cannot tell"


def setting_words(setting: Mapping[str, str]) -> str:
    """For people."""
    return " ".join(f"{name}={value}" for name, value in setting.items()) or "baseline"


class Effect(Record):
    setting: dict[str, str]
    gain: float = Field(gt=0)
    low: float | None = None  # None: too few blocks
    high: float | None = None
    blocks: int
    verdict: Verdict | None = None  # None: not judged


class LeftOut(Record):
    """A factor, or one setting, that was not measured to the end."""

    what: str
    why: str


class Run(Record):
    block: int
    setting: dict[str, str]
    seconds: float
    cpu_s: float | None  # None, as the next: of an engine
    rss_bytes: int | None
    cost: float  # the metric; a larger-is-better one is inverted


class Tuning(Record):
    format: Literal["atoll/tuning"] = "atoll/tuning"
    version: Literal[1] = 1
    command: tuple[str, ...] = Field(min_length=1)  # of an engine: what starts it
    suite: str = ""  # what ran on an engine; empty: the command itself ran
    metric: str
    machine: Summary
    machine_id: str
    kernel: str
    time_s: float  # that it took
    error: float  # the chance that any verdict is wrong
    margin: float  # changes below it count as none
    comparisons: int  # that share the error
    effects: tuple[Effect, ...]  # one for each factor, then their combination
    dropped: tuple[Effect, ...]
    best: dict[str, str]  # {}: leave it
    prefix: str  # what to write before the command, or behind an engine's; empty: nothing
    knobs: dict[str, str]  # system-wide switches of the best setting
    left_out: tuple[LeftOut, ...]
    cautions: tuple[str, ...]
    runs: tuple[Run, ...]

    @property
    def needs_plan(self) -> bool:
        """Whether only a plan file keeps the best setting, as a number of cores of an engine."""
        return bool(self.suite) and not self.prefix and len(self.best) > len(self.knobs)
