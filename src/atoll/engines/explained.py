"""Settings with the reason for each, which `atoll render --explain` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Why(NamedTuple):
    text: str
    source: str = ""  # the manual or the measurement that it rests on


class Setting(NamedTuple):
    value: str
    why: str
    source: str = ""


# By the name of the setting in its file ('task.concurrency'), for a flag by its kind ('-Xmx',
# '-XX:UseNUMA'): see `atoll.engines.userconfig.changes.setting_name`. Or by the whole flag.
Reasons = Mapping[str, Why]


def values(settings: Mapping[str, Setting]) -> dict[str, str]:
    return {name: setting.value for name, setting in settings.items()}


def reasons(settings: Mapping[str, Setting]) -> dict[str, Why]:
    return {name: Why(setting.why, setting.source) for name, setting in settings.items()}
