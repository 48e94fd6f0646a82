"""The processes of a rendered deployment. Format `atoll/rendered` 1.

`atoll render` writes it next to plan.json. `atoll verify --rendered` reads both.
"""

from __future__ import annotations

from typing import Literal

from atoll.schema.base import Record
from atoll.schema.deployment import ProcessSpec

FILE = "processes.json"


class Rendered(Record):
    format: Literal["atoll/rendered"] = "atoll/rendered"
    version: Literal[1] = 1
    name: str
    mark: str  # every process was started with ATOLL_DEPLOYMENT=MARK in its environment
    processes: tuple[ProcessSpec, ...]  # without variables that hold secrets
