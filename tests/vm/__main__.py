"""Run a command in a guest that is the machine of a topology file (docs/guest.md)."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from atoll.errors import AtollError, GuestFailed
from atoll.guest import simulated, topology
from atoll.guest.guest import CommandTimedOut, Guest

EXIT_TIMED_OUT = 124  # as timeout(1)
EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141  # as of a command that dies of SIGPIPE
POLL_S = 0.1

EPILOG = """\
example:
  python -m tests.vm --topology milan2 -- numactl --hardware

The command runs as root, in the caller's folder and with the caller's
environment. It sees the host's files; what it writes goes to memory and is gone
afterwards, except in a --share. docs/guest.md describes topology files.

exit status: the command's own; 2 usage; 4 no cache folder; 6 no QEMU or kernel; 97 the
guest did not boot, or died, or the host has no room for its files; 124 the
command took longer than --timeout; 130 interrupted; 141 nobody reads the output
"""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.vm",
        description="Boot an emulated machine, run a command in it, give back its output\n"
        "and exit status, and leave nothing behind.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--topology", metavar="NAME|FILE", help="the machine (see --list)")
    parser.add_argument("--list", action="store_true", help="list the topologies and end")
    parser.add_argument(
        "--timeout", type=_seconds, default=600.0, metavar="S", help="for the command (600)"
    )
    parser.add_argument(
        "--share",
        action="append",
        default=[],
        type=_folder,
        metavar="DIR",
        help="a folder that the command may write to, at the same path",
    )
    parser.add_argument(
        "--simulate",
        nargs="?",
        type=_cycles,
        const=simulated.QUANTUM_CYCLES,
        default=0,
        metavar="QUANTUM",
        help="simulate the caches; the CPUs stay within QUANTUM cycles of each other "
        f"({simulated.QUANTUM_CYCLES}); docs/simulated.md",
    )
    parser.add_argument("command", nargs="*", metavar="COMMAND")
    given = parser.parse_args(argv)
    if given.list:
        for name in topology.names():
            print(f"{name:10} {topology.load(name).about}")
        return 0
    if not given.topology or not given.command:
        parser.error("wants --topology and, after --, a command")
    # A polite kill cleans up as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run(given)
    except AtollError as fault:
        print("\n".join([f"guest: {fault}", *getattr(fault, "__notes__", [])]), file=sys.stderr)
        return fault.exit_code
    except BrokenPipeError:  # the reader (head, less) went away, as it may
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_READER_GONE
    except OSError as fault:
        where = fault.filename or f"output, or {tempfile.gettempdir()}"
        print(f"guest: {where}: {fault.strerror}; make room, or set TMPDIR", file=sys.stderr)
        return GuestFailed.exit_code
    except KeyboardInterrupt:
        print("guest: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED


def run(given: argparse.Namespace) -> int:
    """The command's exit status, its output passed on as it comes."""
    machine, timeout_s = topology.load(given.topology), given.timeout
    if sys.stderr.isatty():
        print(f"guest: booting {machine.name}", file=sys.stderr)
    with Guest(machine, shares=given.share, quantum=given.simulate) as guest:
        try:
            return guest.follow(
                given.command, sys.stdout.buffer, sys.stderr.buffer, timeout_s=timeout_s
            )
        except CommandTimedOut:
            print(f"guest: took longer than {timeout_s:g} s, killed", file=sys.stderr)
            return EXIT_TIMED_OUT


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text}: no number of seconds")
    return value


def _cycles(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 0 < value <= 1_000_000_000:
        raise argparse.ArgumentTypeError(f"{text}: wants 1 to 1000000000 cycles")
    return value


def _folder(text: str) -> Path:
    path = Path(text).absolute()
    if not path.is_dir() or "\n" in text:
        raise argparse.ArgumentTypeError(f"{text}: no such folder")
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
