"""The life of a deployment as a state machine without I/O: events in, actions out.

    starting --(all stages accept, the owner's query is answered)--> ready
    starting, ready --(a process dies, the keeper is gone, time is up)--> failed
    starting, ready --(stop asked, owner gone)--> stopped

The supervisor turns what it observes into events and carries out the actions. Nothing here knows
of pids, sockets or files. The shape follows dask.distributed's worker state machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from atoll.schema.deployment import ProcessSpec, State


@dataclass(frozen=True, slots=True)
class Begin:
    """Start the first stage."""


@dataclass(frozen=True, slots=True)
class Accepts:
    """A process accepts connections, or runs and has no port or socket."""

    name: str


@dataclass(frozen=True, slots=True)
class Died:
    name: str
    how: str  # 'exit status 1', 'killed by SIGKILL'
    last_words: str  # the line of its log that says most, and the path of the log; '' for a signal


@dataclass(frozen=True, slots=True)
class OwnerSaysReady:
    """The engine answered the owner's query with all instances in."""


@dataclass(frozen=True, slots=True)
class OwnerDetaches:
    """The deployment outlives its owner from now on."""


@dataclass(frozen=True, slots=True)
class OwnerGone:
    """The owner's end of the control socket is closed."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The owner or `atoll down` asks for the end."""


@dataclass(frozen=True, slots=True)
class KeeperGone:
    """The keeper is gone, so nothing would clean up after the supervisor."""


@dataclass(frozen=True, slots=True)
class TimeUp:
    """The time to start is over."""

    seconds: float


Event = (
    Begin
    | Accepts
    | Died
    | OwnerSaysReady
    | OwnerDetaches
    | OwnerGone
    | StopAsked
    | KeeperGone
    | TimeUp
)


@dataclass(frozen=True, slots=True)
class Start:
    """Start these processes, in parallel."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tell:
    """Send the owner a `Message` (`atoll.supervise.request`)."""

    event: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """Write the state to disk."""


@dataclass(frozen=True, slots=True)
class Finish:
    """End every process; no further events are taken."""


Action = Start | Tell | Record | Finish


@dataclass(frozen=True, slots=True)
class Lifecycle:
    stages: tuple[tuple[str, ...], ...]
    state: State = State.STARTING
    stage: int = -1
    waiting: frozenset[str] = frozenset()  # those of the current stage that do not accept yet
    detached: bool = False
    error: str = ""

    @property
    def over(self) -> bool:
        return self.state in (State.STOPPED, State.FAILED)


def lifecycle(processes: Iterable[ProcessSpec]) -> Lifecycle:
    by_stage: dict[int, list[str]] = {}
    for process in processes:
        by_stage.setdefault(process.stage, []).append(process.name)
    return Lifecycle(stages=tuple(tuple(by_stage[stage]) for stage in sorted(by_stage)))


def step(life: Lifecycle, event: Event) -> tuple[Lifecycle, tuple[Action, ...]]:
    """The next state and the actions of `event`. After the end there are none."""
    if life.over:
        return life, ()
    match event:
        case Begin():
            return _next_stage(life)
        case Accepts(name) if name in life.waiting:
            life = replace(life, waiting=life.waiting - {name})
            accepts = Tell("accepts", name)
            if life.waiting:
                return life, (accepts,)
            life, actions = _next_stage(life)
            return life, (accepts, *actions)
        case Died(name, how, last_words):
            when = "while it started" if life.state is State.STARTING else "while it was up"
            words = f": {last_words}" if last_words else ""
            return _fail(life, f"{name} died ({how}) {when}{words}")
        case KeeperGone():
            return _fail(life, "its keeper was killed, so everything was ended")
        case OwnerSaysReady() if life.state is State.STARTING:
            return replace(life, state=State.READY), (Record(), Tell("ready"))
        case OwnerDetaches():
            return replace(life, detached=True), ()
        case OwnerGone() if not life.detached:
            return replace(life, state=State.STOPPED), (Finish(),)
        case StopAsked():
            return replace(life, state=State.STOPPED), (Finish(),)
        case TimeUp(seconds) if life.state is State.STARTING:
            late = ", ".join(sorted(life.waiting)) or "the engine"
            return _fail(life, f"not ready after {seconds:.0f} s: still waiting for {late}")
    return life, ()


def _next_stage(life: Lifecycle) -> tuple[Lifecycle, tuple[Action, ...]]:
    stage = life.stage + 1
    if stage == len(life.stages):
        return life, (Tell("accepting"),)
    names = life.stages[stage]
    return replace(life, stage=stage, waiting=frozenset(names)), (Start(names), Record())


def _fail(life: Lifecycle, error: str) -> tuple[Lifecycle, tuple[Action, ...]]:
    return replace(life, state=State.FAILED, error=error), (Finish(),)
