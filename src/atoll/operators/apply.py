"""Places the operators of a program that runs, all or none, so that it can be undone.

The mask of each thread is on disk before the thread is bound. Memory that was moved stays: it was
nowhere in particular before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from atoll.engines.binding import bind, lacking
from atoll.engines.placeable import OperatorThread, Running
from atoll.errors import NotPermitted, UsageError
from atoll.host.api import Host
from atoll.host.procfs import parse_stat
from atoll.inspect.processes import GONE
from atoll.operators.verify import Verified, verify
from atoll.schema.base import parse
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.masks import SavedMask, SavedMasks
from atoll.schema.placement import Placement
from atoll.store.document import write_document
from atoll.store.locks import locked
from atoll.store.paths import state_dir

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def apply(
    host: Host,
    running: Running,
    placement: Placement,
    leave: Callable[[Sequence[str]], None] | None = None,
) -> Verified:
    """`leave` gets the operators that the placement lacks, whose threads stay as they are.

    Raises UsageError if the program has no operator of the placement or, without `leave`, if the
    placement lacks one, and what `bind` raises; then every thread has its mask from before.
    """
    strangers = set[str]()

    def threads() -> list[OperatorThread]:
        found = running.threads()
        if leave:
            strangers.update(lacking(found, placement))
        return [one for one in found if strangers.isdisjoint(one.operators)]

    if not threads():
        raise UsageError("the program runs no operator of the placement now; start its work first")
    with _saved() as path:
        before = _read(host, path)
        kept = {(one.tid, one.start_ticks): one for one in before.threads}
        now: dict[tuple[int, int], SavedMask] = {}

        def save(threads: Sequence[OperatorThread]) -> None:
            born_with = _inherited(host, (now | kept).values())
            for one in filter(None, (_mask(host, thread) for thread in threads)):
                key = (one.tid, one.start_ticks)
                cpus = born_with.get((one.pid, one.cpus), one.cpus)
                now.setdefault(key, one if key in kept else one.model_copy(update={"cpus": cpus}))
            _write(path, before, (now | kept).values())

        try:
            bind(host, threads, placement, save)
        except BaseException:
            _restore(host, now.values())
            _write(path, before, kept.values())
            raise
    found = verify(host, threads(), placement)
    if leave and strangers:
        leave(sorted(strangers))
    return found


def undo(host: Host) -> tuple[int, int]:
    """Restore every mask that was saved. Returns how many threads have theirs again, and how many
    have ended. Raises NotPermitted; then the masks are still on disk."""
    with _saved() as path:
        saved = _read(host, path).threads
        restored = _restore(host, saved)
        path.unlink(missing_ok=True)
    return restored, len(saved) - restored


@contextmanager
def _saved() -> Iterator[Path]:
    folder = state_dir("operators")
    with locked(folder / ".lock"):
        yield folder / "masks.json"


def _read(host: Host, path: Path) -> SavedMasks:
    """Without what an earlier boot left. Raises UsageError."""
    boot_id = host.read_text(_BOOT_ID).strip()
    try:
        found = parse(SavedMasks, path.read_text("utf-8"), where=str(path), error=UsageError)
    except FileNotFoundError:
        return SavedMasks(boot_id=boot_id)
    return found if found.boot_id == boot_id else SavedMasks(boot_id=boot_id)


def _write(path: Path, before: SavedMasks, threads: Iterable[SavedMask]) -> None:
    saved = before.model_copy(update={"threads": tuple(threads)})
    write_document(path, saved)


def _mask(host: Host, thread: OperatorThread) -> SavedMask | None:
    """None if it has ended."""
    try:
        stat = parse_stat(host.read_text(f"/proc/{thread.pid}/task/{thread.tid}/stat"))
        cpus = host.affinity(thread.tid)
    except GONE:
        return None
    return SavedMask(
        pid=thread.pid,
        tid=thread.tid,
        start_ticks=stat.start_ticks,
        cpus=format_cpulist(cpus),
    )


def _inherited(host: Host, bound: Iterable[SavedMask]) -> dict[tuple[int, str], str]:
    """By process, and mask that its threads have from Atoll: the mask that they had before. A
    thread that one of them starts is born with the former; undone, it has the latter."""
    found = {}
    for one in bound:
        with suppress(*GONE):
            found[one.pid, format_cpulist(host.affinity(one.tid))] = one.cpus
    return found


def _restore(host: Host, masks: Iterable[SavedMask]) -> int:
    """How many of these threads still run, and have their mask again. Raises NotPermitted when all
    were tried. A thread that could not be bound has its mask still, and is not touched."""
    restored, refused = 0, ""
    for one in masks:
        cpus = frozenset(parse_cpulist(one.cpus))
        try:
            stat = parse_stat(host.read_text(f"/proc/{one.pid}/task/{one.tid}/stat"))
            if stat.start_ticks != one.start_ticks:
                continue
            if host.affinity(one.tid) != cpus:
                host.set_affinity(one.tid, cpus)
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError as fault:
            refused = f"thread {one.tid} cannot get its CPUs {one.cpus} again ({fault.strerror})"
            continue
        restored += 1
    if refused:
        raise NotPermitted(refused)
    return restored
