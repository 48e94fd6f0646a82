"""Sends commands to a HotSpot JVM as jcmd does. jcmd itself is not part of a JRE.

The attach protocol is that of OpenJDK's attachListener_linux.cpp and VirtualMachineImpl.java. The
JVM listens on a UNIX socket /tmp/.java_pidPID (its own pid, its own /tmp). It makes the socket when
it gets SIGQUIT while there is a file .attach_pidPID of its user or of root. A request is the
version and four strings, each ended by NUL. The answer is a line with a code, then the text.

SIGQUIT is dangerous. It kills a JVM that does not catch it (-Xrs). It shuts down a server that
embeds a JVM and gives the signal another meaning. OpenJ9 writes a core file. A JVM that does not
attach (-XX:+DisableAttachMechanism) prints all its stacks. `refusal` says when Atoll must not send
it: always when in doubt. A JVM that has its socket already needs no signal; one with -Xrs has it
from the start.
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
_OTHERS_S = 1.0  # the time for another tool to attach, which takes milliseconds
_OPTION_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
# In a file of flags (-XX:Flags=) the flags have no -XX:.
_NO_ATTACH = re.compile(r"\+DisableAttachMechanism\b")
_NO_SIGNALS = re.compile(r"-Xrs\b|\+ReduceSignalUsage\b")
_OPTIONS_FILE = re.compile(r"(?:^|(?<=\s))(?:@|-XX:(?:Flags|VMOptionsFile)=)(\S+)")
# A JVM has this thread exactly if it handles SIGQUIT itself. Names end at 15 bytes.
_SIGNAL_THREAD = "Signal Dispatch"


@dataclass(frozen=True, slots=True)
class Target:
    """What /proc shows of a process, to decide whether it may get SIGQUIT."""

    executable: str
    status: str
    state: str
    threads: tuple[str, ...]
    maps: str
    options: tuple[str, ...]  # of its arguments, its environment, and the files that these name
    unread: str = ""  # an options file that cannot be read


def refusal(target: Target, own_uid: int) -> str:
    """Why SIGQUIT must not be sent, in a few words; empty if it may. Pure."""
    text = "\n".join(target.options)
    caught = int(status_field(target.status, "SigCgt") or "0", 16)
    their_uid = int(status_field(target.status, "Uid").split()[1])
    rules = (
        ("libjvm.so" not in target.maps, "it is not a HotSpot JVM"),
        ("libj9" in target.maps, "it is an OpenJ9 JVM, which would write a dump"),
        (own_uid not in (0, their_uid), f"it belongs to user {their_uid}; run as that user"),
        (target.state in "Tt", "it is stopped"),
        (
            os.path.basename(target.executable.removesuffix(" (deleted)")) != "java",
            "it was not started by 'java', so SIGQUIT may have another meaning for it",
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
    """Raises OSError if the process is gone or this user may not read it."""
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
    """The answer to a jcmd command. Raises OSError: PermissionError if Atoll refuses to ask (the
    text says why), ProcessLookupError, TimeoutError, or the JVM's refusal."""
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
    """The text of the answer. Raises OSError, which quotes the JVM, if its code is not 0."""
    code, _, text = answer.partition("\n")
    if code.strip() != "0":
        words = " ".join(text.split())[:200] or "no answer"
        raise OSError(errno.EPROTO, f"the JVM refused {command!r}: {words}")
    return text


def _wake(host: Host, pid: int, own_pid: str, path: str, deadline: float) -> None:
    """Make the JVM open its socket."""
    process = host.identify(pid)
    if process is None:
        raise ProcessLookupError(errno.ESRCH, f"process {pid} has ended")
    target = look(host, pid)
    why = refusal(target, os.geteuid())
    if why:
        raise PermissionError(errno.EPERM, f"not asked: {why}")
    with _attach_file(pid, own_pid, target.status) as ours:
        # A second SIGQUIT would make the JVM dump its stacks. So if another tool is attaching, wait
        # for its signal first; send one only if none comes (the file was left behind).
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
    """Make the file by which the JVM knows that SIGQUIT means attach and not dump; remove it
    afterwards. Yields False if another tool's file is there, which stays."""
    uid, gid = (int(status_field(status, name).split()[1]) for name in ("Uid", "Gid"))
    made = ""
    # The JVM looks into both folders; /tmp contains no data. It is tried twice, because another
    # tool's file may disappear before it is examined.
    for folder in ("root/tmp", "root/tmp", "cwd"):
        path = f"/proc/{pid}/{folder}/.attach_pid{own_pid}"
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            with suppress(FileNotFoundError):  # the other tool has attached
                found = os.lstat(path)
                if stat.S_ISREG(found.st_mode) and found.st_uid in (0, uid):
                    break  # left behind, or of a tool that is attaching now
            continue
        except OSError:
            continue
        made = path
        try:
            with suppress(PermissionError):  # old JVMs refuse a file of root
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
