"""Typed requests to atoll-probe and their answers (native/src/probe/PROTOCOL.md).

A request says what to measure and for how long. The run chooses how narrow the interval must be
and how many samples to take (`Sampling`). Besides its samples, an answer reports disturbances.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, ClassVar, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field

from atoll.schema.profile import Measured

# An answer that a profile would refuse is malformed.
Samples = Annotated[tuple[Measured, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Sampling:
    """When sampling stops."""

    settle: float
    samples: int


class ThreadSeen(BaseModel):
    model_config = ConfigDict(frozen=True)

    tid: int
    cpu: int
    seen: tuple[int, ...]  # at the beginning and at the end
    involuntary: int

    @property
    def misplaced(self) -> bool:
        return any(cpu != self.cpu for cpu in self.seen)


class Answer(BaseModel):
    """The fields of every answer. A newer probe may send more."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    threads: tuple[ThreadSeen, ...] = ()
    pages: dict[int, int] = {}  # node -> pages; negative: an errno
    huge: bool = False
    wall_ns: int = 0

    @property
    def involuntary(self) -> int:
        return sum(thread.involuntary for thread in self.threads)

    @property
    def misplaced_threads(self) -> int:
        return sum(thread.misplaced for thread in self.threads)

    def misplaced_pages(self, node: int | None) -> int:
        """Pages on another node than `node`; 0 if no node was requested."""
        if node is None:
            return 0
        return sum(count for where, count in self.pages.items() if 0 <= where != node)


class HelloAnswer(Answer):
    version: int
    clock: str
    tick_ns: float
    isa: str
    page_bytes: int
    huge_page_bytes: int
    hypervisor: str = ""  # the signature of CPUID leaf 0x40000000


class SpinAnswer(Answer):
    op_ns: tuple[tuple[Measured, ...], ...]  # samples of each CPU, in the request's order


class PingAnswer(Answer):
    one_way_ns: Samples


class PipeAnswer(Answer):
    gbs: Samples


class ChaseAnswer(Answer):
    load_ns: Samples


class MoveAnswer(Answer):
    gbs: Samples
    begin_ns: int
    end_ns: int
    moved_bytes: int = Field(ge=0)
    verified: bool


class LoadAnswer(Answer):
    load_ns: Samples
    gbs: Measured


class VectorAnswer(Answer):
    gbs: Samples
    verified: bool


class ChurnAnswer(Answer):
    wall_ns_samples: Samples
    requested_bytes: int = Field(ge=0)
    resident_bytes: int = Field(ge=0)
    allocator_reached: str


A_co = TypeVar("A_co", bound=Answer, covariant=True)
PairOp = Literal["cas", "store"]
MoveOp = Literal["read", "write", "copy", "scale", "add", "triad"]


@dataclass(frozen=True, kw_only=True)
class Request(Generic[A_co]):
    """`budget_s` is the time for sampling; at least 3 samples are taken in any case."""

    do: ClassVar[str]

    null: bool = False
    budget_s: float = 0.1

    def answer_type(self) -> type[A_co]:
        """The answer that the class of the request names as its parameter."""
        answer: type[A_co] = get_args(vars(type(self))["__orig_bases__"][0])[0]
        return answer

    @property
    def expected_node(self) -> int | None:
        """The node where the data should lie."""
        return None

    @property
    def data_bytes(self) -> int:
        """The bytes to touch (for a chase, to link) before sampling begins."""
        return int(getattr(self, "bytes", 0))

    def fields(self, sampling: Sampling, *, most_s: float) -> dict[str, object]:
        """The request as a JSON object. `most_s`: the time that is left for sampling."""
        own = asdict(self)
        budget_s = min(float(own.pop("budget_s")), most_s)
        if not own["null"]:
            del own["null"]
        return {
            "do": self.do,
            **own,
            "budget_ns": max(0, int(budget_s * 1e9)),
            "settle": sampling.settle,
            "samples": sampling.samples,
        }


@dataclass(frozen=True, kw_only=True)
class Hello(Request[HelloAnswer]):
    do: ClassVar[str] = "hello"


@dataclass(frozen=True, kw_only=True)
class Spin(Request[SpinAnswer]):
    do: ClassVar[str] = "spin"
    cpus: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Ping(Request[PingAnswer]):
    do: ClassVar[str] = "ping"
    cpus: tuple[int, int]
    home: Literal[0, 1]
    op: PairOp


@dataclass(frozen=True, kw_only=True)
class Pipe(Request[PipeAnswer]):
    do: ClassVar[str] = "pipe"
    cpus: tuple[int, int]  # producer, consumer
    home: Literal[0, 1]
    bytes: int


@dataclass(frozen=True, kw_only=True)
class _OnNode(Request[A_co]):
    node: int | None  # None: first touch by the thread that uses it

    @property
    def expected_node(self) -> int | None:
        return self.node


@dataclass(frozen=True, kw_only=True)
class Chase(_OnNode[ChaseAnswer]):
    do: ClassVar[str] = "chase"
    cpu: int
    bytes: int
    huge: bool


@dataclass(frozen=True, kw_only=True)
class Move(_OnNode[MoveAnswer]):
    do: ClassVar[str] = "move"
    cpus: tuple[int, ...]
    bytes: int  # of all arrays together
    op: MoveOp
    store: Literal["temporal", "streaming"] = "temporal"
    isa: str | None = None  # None: the widest
    huge: bool = False
    start_ns: int | None = None  # CLOCK_MONOTONIC
    run_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class Load(_OnNode[LoadAnswer]):
    do: ClassVar[str] = "load"
    cpu: int
    bytes: int
    loaders: tuple[int, ...]
    gap: int | None  # None: idle

    @property
    def data_bytes(self) -> int:
        """The loaders together use as much again as the chaser."""
        return self.bytes if self.gap is None else 2 * self.bytes


@dataclass(frozen=True, kw_only=True)
class Vector(Request[VectorAnswer]):
    do: ClassVar[str] = "vector"
    cpus: tuple[int, ...]
    bytes: int
    op: Literal["write", "read"]
    iterations: int


@dataclass(frozen=True, kw_only=True)
class Churn(Request[ChurnAnswer]):
    do: ClassVar[str] = "churn"
    cpus: tuple[int, ...]
    operations: int  # per thread
    seed: int = 1
