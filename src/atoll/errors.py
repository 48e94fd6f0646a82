"""The errors that a user can meet, each with the exit code that the command line documents.

Every message is one line: what is wrong, where, and what to do. The command line prints
``atoll: MESSAGE`` on stderr and exits with `exit_code`; it never shows a user a traceback.

The classes directly below `AtollError` are the exit codes. Their subclasses are the causes that a
program may want to handle; each keeps the exit code of its parent.
"""

from __future__ import annotations

EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130


class AtollError(Exception):
    """A fault that the user can act on; `exit_code` is the exit status of the process."""

    exit_code = EXIT_INTERNAL


class CheckFailed(AtollError):
    """A check failed: verify found drift, or an engine gave a wrong answer."""

    exit_code = 1


class UsageError(AtollError):
    """The request cannot be carried out: an unknown policy, a name that is in use."""

    exit_code = 2


class ProcessGone(UsageError):
    """No process has this pid, or the process ended while Atoll inspected it."""


class TopologyError(AtollError):
    """A topology that cannot be read, or that contradicts itself."""

    exit_code = 3


class NotPermitted(AtollError):
    """The system refused: CPUs outside the mask, a missing capability."""

    exit_code = 4


class EngineFailed(AtollError):
    """The engine is missing, did not start, died, or refused a query."""

    exit_code = 5


class ClientMissing(EngineFailed):
    """The engine is installed, but the Python package that talks to it is not."""


class PortTaken(EngineFailed):
    """Another program bound a port after Atoll chose it and before the engine bound it."""


class ServerGone(EngineFailed):
    """A client lost its server. In a deployment, a process has died or will within seconds."""


class ClusterGone(ServerGone):
    """A cluster that Atoll did not start no longer answers, so nothing can be measured there."""


class ProbeMissing(EngineFailed):
    """atoll-probe is not installed, cannot be started, or speaks another version."""


class DownloadFailed(AtollError):
    """Data could not be fetched, generated or stored (a wrong checksum, no network)."""

    exit_code = 6


class DiskFull(DownloadFailed):
    """The disk is full, or this user's quota on it is used up."""


class GuestFailed(AtollError):
    """An emulated guest did not boot, or died. `console`: what it said last, in many lines."""

    exit_code = 97

    def __init__(self, line: str, console: str = "") -> None:
        super().__init__(line)
        self.console = console
        if console:
            self.add_note(console)
