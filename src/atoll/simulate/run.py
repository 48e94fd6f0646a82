"""Boots the guest, runs a command there, and brings back what it left."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from atoll.errors import GuestFailed
from atoll.guest import native
from atoll.guest.guest import CommandTimedOut, Guest
from atoll.guest.topology import Topology
from atoll.host import caller
from atoll.schema.base import parse
from atoll.schema.fills import FillCounts
from atoll.schema.results import RunHeader
from atoll.schema.span import span
from atoll.simulate import inside
from atoll.store.files import write_atomic

_OPENING_S = 120.0


@dataclass(frozen=True, slots=True)
class Booted:
    """A guest that is up and whose caches are simulated, for commands of the user `user`."""

    guest: Guest
    env: Mapping[str, str]
    user: int
    group: int

    def bench(
        self,
        targets: Sequence[str],
        options: Sequence[str],
        output: Path,
        *,
        about: str,
        command: str,
        timeout_s: float,
    ) -> int:
        """Run `atoll bench` and give back its exit status. `output` gets its results, also those of
        a run that was cut off, with `about`, a line about the machine, and the host's command.
        Without results there is no file. Raises as `Guest.run`.
        """
        results = self.guest.share / "results.jsonl"
        argv = inside.bench(targets, options, str(results))
        try:
            argv = inside.as_user(argv, self.user, self.group, caller.group_ids())
            return self._follow(argv, io.BytesIO(), timeout_s)
        finally:
            if results.exists() and (written := results.read_bytes()):
                write_atomic(output, told(written, about, command))

    def count(
        self, command: Sequence[str], out: BinaryIO, *, timeout_s: float
    ) -> tuple[int, FillCounts | None]:
        """Run a command as root; its exit status, and what was counted meanwhile. None if it could
        not be counted: then atoll-fills has said why on stderr. Raises as `Guest.run`."""
        fills = self.guest.share / "fills.json"
        argv = inside.counted(command, str(fills))
        status = self._follow(argv, out, timeout_s)
        if not fills.exists():
            return status, None
        return status, parse(FillCounts, fills.read_bytes(), where="atoll-fills")

    def _follow(self, argv: Sequence[str], out: BinaryIO, timeout_s: float) -> int:
        try:
            return self.guest.follow(
                argv, out, sys.stderr.buffer, timeout_s=timeout_s, env=self.env
            )
        except CommandTimedOut:
            raise GuestFailed(
                f"not over after {span(timeout_s)}; give it more with --timeout, or less to do"
            ) from None


@contextmanager
def booted(topology: Topology, quantum: int) -> Iterator[Booted]:
    """`quantum`: in cycles. Raises as `Guest.boot`."""
    tools = str(Path(native.fills()).parent)
    user, group = caller.user_id(), caller.group_id()
    with Guest(topology, quantum=quantum) as guest:
        opened = guest.run(inside.opening(user, group), timeout_s=_OPENING_S, env={}, cwd="/")
        if opened.returncode != 0:
            raise GuestFailed(f"guest: its folders cannot be made: {opened.stderr.strip()}")
        yield Booted(guest, inside.environment(caller.environment(), tools), user, group)


def told(results: bytes, note: str, command: str) -> bytes:
    """The results file with one more note in its header, and the command of the host."""
    first, newline, rest = results.partition(b"\n")
    if not newline:  # killed while it wrote the header
        return results
    header = parse(RunHeader, first, where="results of the guest")
    notes = (*header.notes, f"simulated machine: {note}")
    header = header.model_copy(update={"notes": notes, "command": command})
    return header.model_dump_json().encode() + newline + rest
