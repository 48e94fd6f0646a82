"""Asks a HotSpot JVM as jcmd does, without jcmd: a JRE has none.

The attach protocol, from OpenJDK's attachListener_linux.cpp and VirtualMachineImpl.java: the JVM
serves a UNIX socket /tmp/.java_pidPID (its own pid, its own /tmp). It makes the socket when it
gets SIGQUIT while a file .attach_pidPID of its user or of root is there. A request is the
version and four strings, each ended by NUL; the answer is a line with a code, then the text.

SIGQUIT is the danger: it kills a JVM that does not catch it (-Xrs), it shuts down a server that
embeds a JVM and means something else by it, OpenJ9 writes a core file, and a JVM that does not
attach (-XX:+DisableAttachMechanism) prints all its stacks. `refusal` says when it is not sent:
always when in doubt. A JVM that has its socket already is asked without any signal; one with
-Xrs has it from the start.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from atoll.host.procfs import parse_stat, status_field

if TYPE_CHECKING:
    from atoll.host.api import Host

_MAX_ANSWER_BYTES = 16 << 20
_MAX_OPTIONS_BYTES = 1 << 20
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.01, 0.1
_OTHERS_S = 1.0  # an attach takes milliseconds
_OPTION_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
# In a file of flags (-XX:Flags=) they stand without -XX:.
_NO_ATTACH = re.compile(r"\+DisableAttachMechanism\b")
_NO_SIGNALS = re.compile(r"-Xrs\b|\+ReduceSignalUsage\b")
_OPTIONS_FILE = re.compile(r"(?:^|(?<=\s))(?:@|-XX:(?:Flags|VMOptionsFile)=)(\S+)")
# The thread that a JVM has exactly if it handles SIGQUIT itself; names end at 15 bytes.
_SIGNAL_THREAD = "Signal Dispatch"


@dataclass(frozen=True, slots=True)
class Target:
    """What decides whether a process may get SIGQUIT, as /proc has it."""

    executable: str
    status: str
    state: str
    threads: tuple[str, ...]
    maps: str
    options: tuple[str, ...]  # its arguments, its environment's, and the files that they name
    unread: str = ""  # an options file that cannot be read


def refusal(target: Target, own_uid: int) -> str:
    """Why SIGQUIT must not be sent, in a few words; empty if it may. Pure."""
    text = "\n".join(target.options)
    caught = int(status_field(target.status, "SigCgt") or "0", 16)
    their_uid = int(status_field(target.status, "Uid").split()[1])
    rules = (
        ("libjvm.so" not in target.maps, "it is no HotSpot JVM"),
        ("libj9" in target.maps, "it is an OpenJ9 JVM, which would write a dump"),
        (own_uid not in (0, their_uid), f"it belongs to user {their_uid}; run as that user"),
        (target.state in "Tt", "it is stopped"),
        (
            os.path.basename(target.executable.removesuffix(" (deleted)")) != "java",
            "it was not started by 'java', so that SIGQUIT may mean something else to it",
        ),
        (_NO_SIGNALS.search(text) is not None, "it runs with -Xrs and would die of SIGQUIT"),
        (
            not caught >> (signal.SIGQUIT - 1) & 1 or _SIGNAL_THREAD not in target.threads,
            "it does not handle SIGQUIT (-Xrs, or not yet) and would die of it",
        ),
        (_NO_ATTACH.search(text) is not None, "it runs with -XX:+DisableAttachMechanism"),
        (target.unread != "", f"its options in {target.unread} cannot be read"),
    )
    return next((why for holds, why in rules if holds), "")


def look(host: Host, pid: int) -> Target:
    """Raises OSError if the process is gone or not ours to read."""
    folder = f"/proc/{pid}"
    environ = host.read_text(f"{folder}/environ").split("\0")
    options = [
        *host.read_text(f"{folder}/cmdline").split("\0"),
        *(entry for entry in environ if entry.partition("=")[0] in _OPTION_VARIABLES),
    ]
    unread = ""
    for name in _OPTIONS_FILE.findall("\n".join(re.sub(r"^\w+=", "", each) for each in options)):
        path = f"{folder}/root{name}" if name.startswith("/") else f"{folder}/cwd/{name}"
        try:
            options.append(host.read_bytes(path, size=_MAX_OPTIONS_BYTES).decode(errors="replace"))
        except OSError:
            unread = name
    threads = []
    for tid in host.list_dir(f"{folder}/task"):
        with suppress(FileNotFoundError, ProcessLookupError):
            threads.append(host.read_text(f"{folder}/task/{tid}/comm").rstrip("\n"))
    return Target(
        executable=host.read_link(f"{folder}/exe"),
        status=host.read_text(f"{folder}/status"),
        state=parse_stat(host.read_text(f"{folder}/stat")).state,
        threads=tuple(threads),
        maps=host.read_text(f"{folder}/maps"),
        options=tuple(options),
        unread=unread,
    )


def ask(host: Host, pid: int, command: str, *, timeout_s: float) -> str:
    """The answer to a jcmd command. Raises OSError: PermissionError where asking is refused
    (the text says why), ProcessLookupError, TimeoutError, or what the JVM answered."""
    deadline = host.monotonic() + timeout_s
    own_pid = status_field(host.read_text(f"/proc/{pid}/status"), "NSpid").split()[-1]
    path = f"/proc/{pid}/root/tmp/.java_pid{own_pid}"
    if not os.path.lexists(path):
        _wake(host, pid, own_pid, path, deadline)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_remaining(host, deadline))
        connection.connect(path)
        peer, _, _ = struct.unpack(
            "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        )
        if peer != pid:
            raise PermissionError(errno.EPERM, f"{path} is served by another process ({peer})")
        connection.sendall(request(command))
        answer = bytearray()
        while len(answer) < _MAX_ANSWER_BYTES:
            connection.settimeout(_remaining(host, deadline))
            part = connection.recv(1 << 16)
            if not part:
                break
            answer += part
    return parse_answer(answer.decode(errors="replace"), command)


def request(command: str) -> bytes:
    return b"".join(text.encode() + b"\0" for text in ("1", "jcmd", command, "", ""))


def parse_answer(answer: str, command: str) -> str:
    """Raises OSError with the JVM's words if its code is not 0."""
    code, _, text = answer.partition("\n")
    if code.strip() != "0":
        words = " ".join(text.split())[:200] or "no answer"
        raise OSError(errno.EPROTO, f"the JVM refused {command!r}: {words}")
    return text


def _wake(host: Host, pid: int, own_pid: str, path: str, deadline: float) -> None:
    """Have the JVM make its socket."""
    process = host.identify(pid)
    if process is None:
        raise ProcessLookupError(errno.ESRCH, f"process {pid} has ended")
    target = look(host, pid)
    why = refusal(target, os.geteuid())
    if why:
        raise PermissionError(errno.EPERM, f"not asked: {why}")
    with _attach_file(pid, own_pid, target.status) as ours:
        # A second SIGQUIT means a dump of its stacks. So where another tool attaches right now,
        # its signal does; only if it has none (the file was left behind) ours follows.
        began, signalled, wait_s = host.monotonic(), False, _FIRST_WAIT_S
        while not os.path.lexists(path):
            if not signalled and (ours or host.monotonic() - began > _OTHERS_S):
                if not host.signal(process, signal.SIGQUIT):
                    raise ProcessLookupError(errno.ESRCH, f"process {pid} has ended")
                signalled = True
            host.sleep(min(wait_s, _remaining(host, deadline)))
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)


@contextmanager
def _attach_file(pid: int, own_pid: str, status: str) -> Iterator[bool]:
    """The file that tells SIGQUIT for attaching from SIGQUIT for a dump; removed afterwards.
    Yields whether it is ours: another tool's stays."""
    uid, gid = (int(status_field(status, name).split()[1]) for name in ("Uid", "Gid"))
    made = ""
    # The JVM looks into both; its /tmp is no data folder. Twice: another's file there may go before
    # it is looked at.
    for folder in ("root/tmp", "root/tmp", "cwd"):
        path = f"/proc/{pid}/{folder}/.attach_pid{own_pid}"
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            with suppress(FileNotFoundError):  # the other tool has attached
                found = os.lstat(path)
                if stat.S_ISREG(found.st_mode) and found.st_uid in (0, uid):
                    break  # left behind, or of another tool that attaches now
            continue
        except OSError:
            continue
        made = path
        try:
            with suppress(PermissionError):  # old JVMs do not take root's
                os.fchown(descriptor, uid, gid)
        finally:
            os.close(descriptor)
        break
    else:
        raise PermissionError(errno.EPERM, "not asked: neither its /tmp nor its folder is writable")
    try:
        yield made != ""
    finally:
        if made:
            with suppress(OSError):
                os.unlink(made)


def _remaining(host: Host, deadline: float) -> float:
    left = deadline - host.monotonic()
    if left <= 0:
        raise TimeoutError(errno.ETIMEDOUT, "the JVM did not answer in time")
    return left
