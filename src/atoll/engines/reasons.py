"""Why an engine's settings are as they are, for `atoll render --explain`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from atoll.engines.api import Engine


@dataclass(frozen=True, slots=True)
class Why:
    text: str
    source: str


Reasons = Mapping[str, Why]


@runtime_checkable
class ExplainedEngine(Engine, Protocol):
    """An engine whose settings can be explained, line by line."""

    @property
    def reasons(self) -> Reasons:
        """By the setting's name in its file ('task.concurrency'), a flag's by what tells it from
        others ('-Xmx', '-XX:UseNUMA'); see `atoll.engines.userconfig.changes.setting_name`."""
        ...
