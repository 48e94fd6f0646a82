"""The errors a user can meet, each with the exit code that the command line documents.

Every message is one line that says what is wrong, where, and what to do. The command
line prints ``atoll: MESSAGE`` on stderr and exits with `exit_code`; nothing here ever
reaches a user as a traceback.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130


class AtollError(Exception):
    """A fault that the user can act on; `exit_code` is the process's exit status."""

    exit_code = EXIT_INTERNAL


class CheckFailed(AtollError):
    """A check did not hold: drift found by verify, a wrong answer in a bench."""

    exit_code = 1


class UsageError(AtollError):
    """What was asked for cannot be: unknown policy, more slots than cores, a name in use."""

    exit_code = 2


class TopologyError(AtollError):
    """A topology that cannot be read, or that contradicts itself."""

    exit_code = 3


class NotPermitted(AtollError):
    """The system refused: CPUs outside the mask, a missing capability."""

    exit_code = 4


class EngineFailed(AtollError):
    """The engine is not there, did not start, died, or refused a query."""

    exit_code = 5


class EngineGone(EngineFailed):
    """A client lost its server. Of a deployment a process has died then, or will within seconds."""


class DownloadFailed(AtollError):
    """Data could not be fetched, generated or stored (checksum, full disk, no network)."""

    exit_code = 6
