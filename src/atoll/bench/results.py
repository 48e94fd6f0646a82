"""The results file: appended line by line while the bench runs, read whole afterwards.

Each record is one write(2) of one line followed by fsync, so that a bench that is killed, or a
machine that loses power, leaves whole lines and at most one torn last one. Reading ignores the
torn one and nothing else: a malformed line in the middle is an error.
"""

from __future__ import annotations

import errno
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from pydantic import TypeAdapter, ValidationError

from atoll.bench.entrants import same_deployment
from atoll.errors import DownloadFailed, UsageError
from atoll.schema.base import Record, parse
from atoll.schema.machine import Machine
from atoll.schema.results import BlockFailed, Entrant, Line, PassDone, RunEnd, RunHeader
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
        """How many blocks from 0 on are whole: every entrant came to an end in them."""
        ended: dict[int, set[str]] = {}
        for line in self.lines:
            if isinstance(line, PassDone | BlockFailed):
                ended.setdefault(line.block, set()).add(line.label)
        labels = {entrant.label for entrant in self.header.entrants}
        block = 0
        while ended.get(block, set()) >= labels:
            block += 1
        return block


def read_results(path: str | Path) -> Results:
    """Raises UsageError with one line: not there, not a results file, another version, damaged."""
    where = str(path)
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise UsageError(f"{where}: no such file; 'atoll bench ... -o {where}' makes one") from None
    except OSError as fault:
        raise UsageError(f"{where}: cannot be read ({fault.strerror})") from None
    return parse_results(data, where=where)


def parse_results(data: bytes, *, where: str) -> Results:
    """`data` as a results file; see `read_results`."""
    # Every line was written with its newline in one write: what follows the last one is torn.
    whole, _, _ = data.rpartition(b"\n")
    if not data:
        raise UsageError(
            f"{where}: is empty; its bench was ended before it wrote a line: remove it, begin anew"
        )
    if not whole:
        raise UsageError(f"{where}: is not an atoll/results file (no whole line in it)")
    first, *rest = whole.split(b"\n")
    header = parse(RunHeader, first, where=f"{where}:1")
    labels = {entrant.label for entrant in header.entrants}
    if len(labels) < len(header.entrants):
        raise UsageError(f"{where}:1: two entrants have one label; give each its own")
    lines: list[Line] = []
    for number, text in enumerate(rest, start=2):
        try:
            line = _LINE.validate_json(text)
        except ValidationError as fault:
            error = fault.errors()[0]
            place = ".".join(str(part) for part in error["loc"]) or "line"
            raise UsageError(
                f"{where}:{number}: {place}: {error['msg']}; "
                "remove what follows the last good line, then use --resume"
            ) from None
        label = getattr(line, "label", None)
        if label is not None and label not in labels:
            raise UsageError(f"{where}:{number}: {label!r} is not an entrant of the header")
        lines.append(line)
    return Results(header, tuple(lines))


class ResultsWriter:
    """Appends records to a file; a context manager.

    Raises NotPermitted, or DownloadFailed on a full disk; what was written before stays.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: Path, header: RunHeader) -> ResultsWriter:
        """A new file that begins with `header`. Raises UsageError if the file is there, and as
        the writer does."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except FileExistsError:
            raise _taken(path) from None
        except FileNotFoundError:
            raise _homeless(path) from None
        except OSError as fault:
            raise refusal(fault)(f"{path}: cannot be made ({fault.strerror})") from None
        _lock(descriptor, path)
        writer = cls(path, descriptor)
        try:
            writer.append(header)
        except DownloadFailed as fault:
            os.close(descriptor)
            path.unlink()  # without its header it could be neither begun nor resumed
            why = str(fault).partition("; what was measured")[0]
            raise DownloadFailed(f"{why}; make room, then begin again") from None
        sync_folder(path.absolute().parent)
        return writer

    @classmethod
    def resume(cls, path: Path, wanted: RunHeader) -> tuple[ResultsWriter, RunHeader, int]:
        """The file cut back, atomically, to its whole blocks: with its header, and the block to
        go on with. Raises UsageError as `resumable`, or if a bench is writing the file."""
        # Locked before it is read: else what a bench that still runs appends would be lost.
        held = _open_locked(path)
        try:
            found = read_results(path)
            header, kept = resumable(found, wanted, where=str(path))
            text = "".join(record.model_dump_json() + "\n" for record in (header, *kept))
            write_atomic(path, text)
            return cls(path, _open_locked(path)), header, found.whole_blocks
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
                f"{self.path}: cannot be written ({fault.strerror}); what was measured so far is "
                "kept; make room, then use --resume"
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
    """To be asked before minutes go into making data: raises what `ResultsWriter` would where the
    file cannot be begun, or not be resumed: whatever is to be measured, and with data of
    `scale_factor` (None: that of a cluster that runs, which makes none)."""
    if resume:
        os.close(_open_locked(path))
        there = read_results(path).header.scale_factor
        if scale_factor is not None:
            if there is None:
                raise UsageError(f"{path}: is of a cluster that ran already; name it with --url")
            _require_same(str(path), ("scale factor", there, scale_factor))
        return
    folder = path.absolute().parent
    try:
        if os.path.lexists(path):
            raise _taken(path)
        if not folder.is_dir():
            raise _homeless(path)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as fault:
        raise refusal(fault)(f"{path}: cannot be made ({fault.strerror})") from None


def _taken(path: Path) -> UsageError:
    return UsageError(f"{path}: exists; continue it with --resume, or name another file with -o")


def _homeless(path: Path) -> UsageError:
    return UsageError(f"{path}: its folder does not exist; make it first")


def _open_locked(path: Path) -> int:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file; leave --resume out to begin it") from None
    except OSError as fault:
        raise refusal(fault)(f"{path}: cannot be written ({fault.strerror})") from None
    _lock(descriptor, path)
    return descriptor


def _lock(descriptor: int, path: Path) -> None:
    """For as long as the file is open."""
    if not try_lock(descriptor):
        os.close(descriptor)
        raise UsageError(f"{path}: a bench is writing it; wait for its end")


# Of the environment, what may change between two parts of a run: a cgroup's path often has the
# number of a login in it, and a kernel does not leave the same memory at every boot.
_MAY_CHANGE = {"cgroup", "memory_bytes"}


def resumable(results: Results, wanted: RunHeader, *, where: str) -> tuple[RunHeader, list[Line]]:
    """The header and lines to go on from: those of the whole blocks.

    The header is the file's own, with more blocks if more are asked for now; so are the plans,
    since a machine whose free memory moves would plan other heaps today. Raises UsageError if the
    two runs cannot be one: another machine, data, engine, placement or environment.
    """
    old = results.header
    there, now = (one.fingerprint.model_dump(exclude=_MAY_CHANGE) for one in (old, wanted))
    same = (
        ("machine", old.machine_id, wanted.machine_id),
        ("suite", old.suite, wanted.suite),
        ("SQL", old.suite_checksum[:12], wanted.suite_checksum[:12]),
        ("scale factor", old.scale_factor, wanted.scale_factor),
        ("queries", ",".join(old.queries), ",".join(wanted.queries)),
        ("entrants", _names(old), _names(wanted)),
        ("url", _urls(old), _urls(wanted)),
        ("query limit", old.query_limit_s, wanted.query_limit_s),
        *((name.replace("_", " "), value, now[name]) for name, value in there.items()),
    )
    _require_same(where, *same)
    for one, other in zip(old.entrants, wanted.entrants, strict=True):
        if one.streams != other.streams or not _same_place(one, other, old.machine):
            raise UsageError(
                f"{where}: cannot be resumed, {one.label} would sit elsewhere than there; "
                "start a new file with -o"
            )
    keep = results.whole_blocks
    asked = [header.blocks_asked for header in (old, wanted) if header.blocks_asked is not None]
    header = old.model_copy(update={"blocks_asked": max(asked, default=None)})
    return header, [
        line for line in results.lines if not isinstance(line, RunEnd) and line.block < keep
    ]


def _require_same(where: str, *pairs: tuple[str, object, object]) -> None:
    for name, before, after in pairs:
        if before != after:
            raise UsageError(
                f"{where}: cannot be resumed, its {name} differs (there {before}, now {after}); "
                "start a new file with -o"
            )


def _same_place(one: Entrant, other: Entrant, machine: Machine) -> bool:
    if one.plan is None or other.plan is None:
        return one.url == other.url
    return same_deployment(one.plan, other.plan, machine)


def _urls(header: RunHeader) -> str:
    return ", ".join(entrant.url for entrant in header.entrants if entrant.url)


def _names(header: RunHeader) -> str:
    return ", ".join(entrant.label for entrant in header.entrants)
