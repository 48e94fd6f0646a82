"""The results file: the bench appends line by line and reads the whole file afterwards.

Each record is one write(2) of one line followed by fsync. If the bench is killed or the machine
loses power, whole lines remain and at most one torn last line. Reading ignores a torn last line;
any other malformed line is an error.
"""

from __future__ import annotations

import errno
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from pydantic import TypeAdapter, ValidationError

from atoll.bench.sameness import same_place
from atoll.errors import DownloadFailed, UsageError
from atoll.schema.base import Record, parse, what_is_wrong
from atoll.schema.environment import Environment
from atoll.schema.machine import Machine
from atoll.schema.results import (
    BlockFailed,
    Entrant,
    Line,
    PassDone,
    QueryFailed,
    QueryProfiled,
    RunEnd,
    RunHeader,
)
from atoll.schema.size import gib
from atoll.store.files import refusal, sync_folder, write_atomic
from atoll.store.locks import try_lock

_LINE: TypeAdapter[Line] = TypeAdapter(Line)


@dataclass(frozen=True, slots=True)
class Results:
    """A results file as read."""

    header: RunHeader
    lines: tuple[Line, ...]

    @property
    def end(self) -> RunEnd | None:
        last = self.lines[-1] if self.lines else None
        return last if isinstance(last, RunEnd) else None

    @property
    def whole_blocks(self) -> int:
        """The number of whole blocks from 0 on: every entrant finished or failed in them."""
        ended = self.ended_in(PassDone, BlockFailed)
        labels = {entrant.label for entrant in self.header.entrants}
        block = 0
        while ended.get(block, set()) >= labels:
            block += 1
        return block

    def ended_in(self, *kinds: type[PassDone | BlockFailed]) -> dict[int, set[str]]:
        """Block -> the labels of the entrants that ended it in one of these ways."""
        ended: dict[int, set[str]] = {}
        for line in self.lines:
            if isinstance(line, kinds):
                ended.setdefault(line.block, set()).add(line.label)
        return ended

    @property
    def left_out(self) -> list[QueryFailed]:
        """The queries that failed, each once."""
        return [line for line in self.lines if isinstance(line, QueryFailed)]

    @property
    def profiled(self) -> set[tuple[str, str]]:
        """(label, query) of those whose execution is recorded."""
        return {(line.label, line.query) for line in self.lines if isinstance(line, QueryProfiled)}

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries that did not fail: the figures are over these."""
        failed = {line.query for line in self.left_out}
        return tuple(query for query in self.header.queries if query not in failed)


def read_results(path: str | Path) -> Results:
    """Raises UsageError if the file is missing, damaged, of another version, or no results."""
    where = str(path)
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"{where}: no such file; create it with 'atoll bench ... -o {where}'"
        ) from None
    except OSError as fault:
        raise UsageError(f"{where}: cannot be read ({fault.strerror})") from None
    return parse_results(data, where=where)


def parse_results(data: bytes, *, where: str) -> Results:
    """`data` as a results file; see `read_results`."""
    # Every line was written together with its newline: text after the last newline is torn.
    whole, _, _ = data.rpartition(b"\n")
    if not whole:
        raise UsageError(
            f"{where}: has no whole line; if it is of a bench that ended before the first one, "
            "remove it and start again"
        )
    first, *rest = whole.split(b"\n")
    header = parse(RunHeader, first, where=f"{where}:1")
    labels = {entrant.label for entrant in header.entrants}
    if len(labels) < len(header.entrants):
        raise UsageError(f"{where}:1: two entrants have the same label; give each its own")
    lines: list[Line] = []
    for number, text in enumerate(rest, start=2):
        try:
            line = _LINE.validate_json(text)
        except ValidationError as fault:
            is_new = fault.errors()[0]["type"] in ("union_tag_invalid", "extra_forbidden")
            raise UsageError(
                f"{where}:{number}: {what_is_wrong(fault)}; "
                + (
                    "if a newer atoll wrote the file, use that one"
                    if is_new
                    else "remove everything after the last good line, then use --resume"
                )
            ) from None
        label = getattr(line, "label", None)
        if label is not None and label not in labels:
            raise UsageError(f"{where}:{number}: {label!r} is not an entrant of the header")
        lines.append(line)
    return Results(header, tuple(lines))


class ResultsWriter:
    """Appends records to a file; a context manager.

    Raises NotPermitted, or DownloadFailed on a full disk; earlier records stay.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: Path, header: RunHeader) -> ResultsWriter:
        """Start a new file with `header`. Raises as the writer, and UsageError if it exists."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except FileExistsError:
            raise _taken(path) from None
        except FileNotFoundError:
            raise _no_folder(path) from None
        except OSError as fault:
            raise refusal(fault)(f"{path}: cannot be created ({fault.strerror})") from None
        _lock(descriptor, path)
        writer = cls(path, descriptor)
        try:
            writer.append(header)
        except DownloadFailed as fault:
            os.close(descriptor)
            path.unlink()  # without a header it can be neither started nor resumed
            why = str(fault).partition("; the results so far")[0]
            raise DownloadFailed(f"{why}; free some space and start again") from None
        sync_folder(path.absolute().parent)
        return writer

    @classmethod
    def resume(
        cls, path: Path, wanted: RunHeader, *, extend: bool = False, sized: bool = False
    ) -> tuple[ResultsWriter, Results, int]:
        """The file cut back, atomically, to its whole blocks, and the block to go on with.

        Raises UsageError as `resumable`, or if a bench is writing the file."""
        # Locked before it is read: else what a bench that still runs appends would be lost.
        held = _open_locked(path)
        try:
            found = read_results(path)
            kept = resumable(found, wanted, extend=extend, sized=sized, where=str(path))
            text = "".join(record.model_dump_json() + "\n" for record in (kept.header, *kept.lines))
            write_atomic(path, text)
            return cls(path, _open_locked(path)), kept, found.whole_blocks
        finally:
            os.close(held)

    def append(self, record: Record) -> None:
        line = record.model_dump_json().encode() + b"\n"
        before = os.fstat(self._descriptor).st_size
        try:
            if os.write(self._descriptor, line) != len(line):
                os.ftruncate(self._descriptor, before)  # no torn line before the next one
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._descriptor)
        except OSError as fault:
            raise DownloadFailed(
                f"{self.path}: cannot be written ({fault.strerror}); the results so far are kept; "
                "free some space, then use --resume"
            ) from None

    def __enter__(self) -> ResultsWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)


def require_output(path: Path, *, resume: bool, scale_factor: float | None) -> None:
    """Raise now what `ResultsWriter` would raise after minutes of preparing data.

    `scale_factor` is that of the data; None: the data of a running cluster.
    """
    if resume:
        os.close(_open_locked(path))
        there = read_results(path).header.scale_factor
        if scale_factor is not None:
            if there is None:
                raise UsageError(
                    f"{path}: has results of 'atoll replay'; resume it with that command"
                )
            require_same(str(path), ("scale factor", there, scale_factor))
        return
    require_new(path)


def require_new(path: Path, *, resumes: bool = True) -> None:
    """Raises UsageError, NotPermitted or DiskFull if the file is there or cannot be made.
    `resumes`: the command has --resume."""
    folder = path.absolute().parent
    try:
        if os.path.lexists(path):
            raise _taken(path, resumes=resumes)
        if not folder.is_dir():
            raise _no_folder(path)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as fault:
        raise refusal(fault)(f"{path}: cannot be created ({fault.strerror})") from None


def _taken(path: Path, *, resumes: bool = True) -> UsageError:
    go_on = "continue it with --resume, or " if resumes else ""
    return UsageError(f"{path}: exists; {go_on}choose another file with -o")


def _no_folder(path: Path) -> UsageError:
    return UsageError(f"{path}: its folder does not exist; create it first")


def _open_locked(path: Path) -> int:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file; leave out --resume to start a new one") from None
    except OSError as fault:
        raise refusal(fault)(f"{path}: cannot be written ({fault.strerror})") from None
    _lock(descriptor, path)
    return descriptor


def _lock(descriptor: int, path: Path) -> None:
    """Hold the file's lock as long as it is open."""
    if not try_lock(descriptor):
        os.close(descriptor)
        raise UsageError(f"{path}: another bench is writing this file; wait until it ends")


# The environment may differ in these between two parts of a run: a cgroup's path often contains
# the number of a login, and the kernel leaves a different amount of memory at every boot.
_MAY_CHANGE = {"cgroup", "memory_bytes"}


def require_machine(path: Path, machine_id: str, now: Environment) -> None:
    """Raises UsageError if the machine or its settings are not those of the file to be resumed.

    Before anything is planned: on another machine other cells are possible, or coincide.
    """
    header = read_results(path).header
    there = header.fingerprint.model_dump(include={*Environment.model_fields} - _MAY_CHANGE)
    require_same(
        str(path),
        ("machine", header.machine_id, machine_id),
        *((name.replace("_", " "), value, getattr(now, name)) for name, value in there.items()),
    )


def resumable(
    results: Results,
    wanted: RunHeader,
    *,
    where: str,
    extend: bool = False,
    sized: bool = False,
) -> Results:
    """The header and the lines of the whole blocks, from which a run continues.

    The header and its plans are the file's own: a machine whose free memory varies would plan
    other heaps today. With `extend` it asks for as many blocks as `wanted`, but no fewer than there
    are. With `sized` the user has chosen the heaps, which must then be the file's. Raises
    UsageError if machine, data, engine, placement or environment differ.
    """
    old = results.header
    there, now = (one.fingerprint.model_dump(exclude=_MAY_CHANGE) for one in (old, wanted))
    same = (
        ("machine", old.machine_id, wanted.machine_id),
        ("suite", old.suite, wanted.suite),
        ("SQL", old.suite_checksum[:12], wanted.suite_checksum[:12]),
        ("scale factor", old.scale_factor, wanted.scale_factor),
        ("queries", ",".join(old.queries), ",".join(wanted.queries)),
        ("query limit", old.query_limit_s, wanted.query_limit_s),
        ("warm-up passes", old.warmups, wanted.warmups),
        *((name.replace("_", " "), value, now[name]) for name, value in there.items()),
        ("entrants", _names(old), _names(wanted)),
        ("url", _urls(old), _urls(wanted)),
    )
    require_same(where, *same)
    for one, other in zip(old.entrants, wanted.entrants, strict=True):
        if one.streams != other.streams or not _same_place(one, other, old.machine):
            raise UsageError(
                f"{where}: cannot be resumed, {one.label} has another placement now; "
                "start a new file with -o"
            )
        require_same(where, (f"knobs before {one.label}", one.knobs, other.knobs))
        if sized and one.plan and other.plan:
            before, after = gib(one.plan.total_heap_bytes), gib(other.plan.total_heap_bytes)
            require_same(where, (f"heap of {one.label}", before, after))
    keep = results.whole_blocks
    blocks = old.blocks_asked
    if extend:
        blocks = wanted.blocks_asked and max(wanted.blocks_asked, keep)
    elif blocks is None:
        raise UsageError(
            f"{where}: ran for a time and not for a number of blocks; say how much more to measure "
            "with --within or --blocks"
        )
    return Results(
        old.model_copy(update={"blocks_asked": blocks}),
        tuple(line for line in results.lines if not isinstance(line, RunEnd) and line.block < keep),
    )


def require_same(where: str, *pairs: tuple[str, object, object]) -> None:
    """Each pair: a name, its value when the run to be resumed was made, and now. Raises
    UsageError if they differ."""
    for name, before, after in pairs:
        if before != after:
            raise UsageError(
                f"{where}: cannot be resumed, it differs in its {name} "
                f"({_differing(before, after)} then, {_differing(after, before)} now); "
                "start a new file with -o"
            )


def _differing(value: object, other: object) -> str:
    """The entries that differ, of a mapping: 'NAME VERSION'."""
    if not isinstance(value, dict) or not isinstance(other, dict):
        return str(value)
    entries = (f"{key} {each}" for key, each in value.items() if other.get(key) != each)
    return ", ".join(entries) or "none"


def _same_place(one: Entrant, other: Entrant, machine: Machine) -> bool:
    if one.plan is None or other.plan is None:
        return one.url == other.url
    return same_place(one.plan, other.plan, machine)


def _urls(header: RunHeader) -> str:
    return ", ".join(entrant.url for entrant in header.entrants if entrant.url)


def _names(header: RunHeader) -> str:
    return ", ".join(entrant.label for entrant in header.entrants)
