"""What a JobManager's REST interface answers, as far as Atoll reads it. Pure.

Documents of Flink 1.15 to 2.2. Fields that Atoll does not need are ignored.
"""

from __future__ import annotations

import json
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from atoll.errors import EngineFailed
from atoll.schema.base import what_is_wrong
from atoll.schema.text import printable


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


_Count = Annotated[int, Field(ge=0, lt=1 << 53)]  # as far as JSON is exact


class Counts(_Document):
    """Of all subtasks of a vertex since they began. Times are those of Flink's own clock."""

    bytes_in: _Count = Field(default=0, alias="read-bytes")
    bytes_out: _Count = Field(default=0, alias="write-bytes")
    records_out: _Count = Field(default=0, alias="write-records")
    waited_ms: _Count = Field(default=0, alias="accumulated-backpressured-time")  # for its takers
    busy_ms: float = Field(default=0.0, alias="accumulated-busy-time")  # NaN: the vertex cannot say


class Vertex(_Document):
    """A task of the job: one operator, or several that are chained."""

    id: str
    name: str = Field(min_length=1)
    parallelism: int = Field(ge=1, le=1 << 15)
    counts: Counts = Field(alias="metrics")


class Input(_Document):
    giver: str = Field(alias="id")
    strategy: str = Field(default="", alias="ship_strategy")


class Node(_Document):
    id: str
    description: str = ""
    inputs: tuple[Input, ...] = ()


class Plan(_Document):
    nodes: tuple[Node, ...] = ()


class Job(_Document):
    """/jobs/ID"""

    id: str = Field(alias="jid")
    name: str
    state: str
    vertices: tuple[Vertex, ...] = Field(min_length=1)
    plan: Plan


class Tasks(_Document):
    running: _Count
    total: _Count


class JobLine(_Document):
    id: str = Field(alias="jid")
    name: str
    state: str
    tasks: Tasks


class Overview(_Document):
    """/jobs/overview"""

    jobs: tuple[JobLine, ...]


class TaskManager(_Document):
    id: str
    path: str  # 'pekko.tcp://flink@HOST:PORT/user/rpc/taskmanager_0'


class TaskManagers(_Document):
    """/taskmanagers"""

    found: tuple[TaskManager, ...] = Field(alias="taskmanagers")


class Cause(_Document):
    exception: str = Field(default="", alias="exceptionName")
    stack: str = Field(default="", alias="stacktrace")


class History(_Document):
    entries: tuple[Cause, ...] = ()


class Exceptions(_Document):
    """/jobs/ID/exceptions"""

    history: History = Field(alias="exceptionHistory")


class Metric(_Document):
    id: str
    value: str = ""


D = TypeVar("D", bound=_Document)


def read(kind: type[D], text: str | bytes, where: str) -> D:
    """Raises EngineFailed. `where`: what gave the text."""
    try:
        return kind.model_validate(json.loads(text))
    except ValidationError as fault:
        wrong = what_is_wrong(fault)
    except (ValueError, RecursionError) as fault:
        wrong = f"not JSON ({fault})"
    raise EngineFailed(f"{where}: not an answer of a Flink JobManager: {printable(wrong)}")


def read_metrics(text: str | bytes, where: str) -> tuple[Metric, ...]:
    """As `read`, of a list of metrics."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise EngineFailed(f"{where}: not an answer of a Flink JobManager: not a list")
    return tuple(read(Metric, json.dumps(each), where) for each in found)


def refusal(text: bytes) -> str:
    """What an answer with another status says: the beginning of the first of its errors."""
    try:
        return str(json.loads(text)["errors"][0])
    except (ValueError, RecursionError, LookupError, TypeError):
        return text.decode(errors="replace")
