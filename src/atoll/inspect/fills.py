"""Counts the cache lines of a measured pass in a guest whose caches are simulated.

`atoll-fills` (docs/simulated.md) begins, reads and ends the count. Without the guest's device
nothing is started. A failure goes into the record and is no error: the pass itself holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from atoll.host.api import Host
from atoll.schema.fills import FillCounts
from atoll.schema.results import PassFills

_PROGRAM = "atoll-fills"
_DEVICES = "/sys/bus/pci/devices"
_DEVICE = ("0x1af4", "0x1110")  # vendor and device of the board
_LIMIT_S = 120.0  # QEMU has to stop all CPUs of the guest, which takes seconds while they are busy


class FillCount:
    """At most one count, from `begin` or `measure` to `measured` or `end`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._on = False
        self._absent = not _has_board(host)
        self._before: FillCounts | None = None
        self._found: FillCounts | None = None
        self._fault = ""

    def begin(self) -> None:
        """Count from here on, with empty caches."""
        if not (self._on or self._absent or self._fault):
            self._on = self._told("on") is not None

    def measure(self) -> None:
        """What is counted before belongs to no pass."""
        self.begin()
        self._before = self._read()

    def measured(self) -> None:
        """The pass has ended, and the count with it."""
        if self._before is not None and (after := self._read()) is not None:
            try:
                self._found = after.since(self._before)
            except ValidationError:  # less than before
                self._fault = f"{_PROGRAM}: another program began the count again"
        self.end()

    def end(self) -> None:
        if self._on:
            self._on = False
            self._told("off")

    def of_pass(self, block: int, label: str) -> PassFills | None:
        """None: the caches are not simulated."""
        if self._found is None and not self._fault:
            return None
        return PassFills(block=block, label=label, fills=self._found, fault=self._fault)

    def _read(self) -> FillCounts | None:
        if not self._on or (text := self._told("read")) is None:
            return None
        try:
            return FillCounts.model_validate_json(text)
        except ValidationError as fault:
            wrong = fault.errors()[0]
            where = ".".join(str(part) for part in wrong["loc"]) or "answer"
            self._fault = f"{_PROGRAM} read: {where}: {wrong['msg']}"
            return None

    def _told(self, verb: str) -> str | None:
        """The program's answer; None if it failed, the first time with the reason in `_fault`."""
        try:
            ended = self._host.run([_PROGRAM, verb], timeout_s=_LIMIT_S, tied=True)
        except FileNotFoundError:
            self._absent = True
            return None
        except (OSError, TimeoutError) as fault:
            self._fault = self._fault or f"{_PROGRAM} {verb}: {fault}"
            return None
        if ended.returncode != 0:
            words = ended.stderr.strip().splitlines() or [f"ended with {ended.returncode}"]
            why = words[-1].removeprefix(f"{_PROGRAM}: ")
            self._fault = self._fault or f"{_PROGRAM} {verb}: {why}"
            return None
        return ended.stdout


@contextmanager
def fill_count(host: Host) -> Iterator[FillCount]:
    """A count that ends with the context at the latest."""
    count = FillCount(host)
    try:
        yield count
    finally:
        count.end()


def _has_board(host: Host) -> bool:
    """Whether the caches are simulated."""
    try:
        return any(
            _id(host, device, "vendor") == _DEVICE[0] and _id(host, device, "device") == _DEVICE[1]
            for device in host.list_dir(_DEVICES)
        )
    except OSError:
        return False


def _id(host: Host, device: str, name: str) -> str:
    return host.read_text(f"{_DEVICES}/{device}/{name}").strip()
