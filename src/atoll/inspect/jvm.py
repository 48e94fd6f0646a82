"""What a HotSpot JVM made of its flags: UseNUMA, processors, collector, huge pages.

A JVM overrides flags silently. It turns UseNUMA off without libnuma, on a machine with one memory
node, and if its memory is bound to one node, whatever its CPUs (numa_init in OpenJDK's
os_linux.cpp; tests/vm/test_jvm.py shows it for 17). This module therefore asks the JVM itself
through jcmd's commands: 'VM.flags -all' gives the effective values, 'VM.command_line' the
requested ones, 'VM.info' the number of processors by which it sized its thread pools.

JDK 8 reports no origin of a flag and has no VM.info; `processors` is then None.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass

from atoll.host.api import Host
from atoll.schema.inspection import JvmLook

_LIBRARY = re.compile(r"/libjvm\.so(?: \(deleted\))?$", re.MULTILINE)
# 'bool UseNUMA = false {product} {command line}'; JDK 8 writes ':=' for non-default values.
_FLAG = re.compile(
    r"^[ \t]*\w+[ \t]+(\w+)[ \t]*:?=[ \t]*((?:[^\s{]\S*)?)[ \t]*((?:\{[^}\n]*\}[ \t]*)*)$",
    re.MULTILINE,
)
_ACTIVE = re.compile(r"^CPU: ?total \d+ \(initial active (\d+)\)", re.MULTILINE)
# '"main" #1 prio=5 os_prio=0 cpu=80.1ms ... nid=0x1f03 waiting on condition'; JDK 21 and later
# write the native id in decimal.
_THREAD = re.compile(r'^"(.*)" .*\bnid=(0x[0-9a-f]+|\d+)\b', re.MULTILINE)
_UNASKED = ("default", "ergonomic")
_COLLECTORS = {
    "UseG1GC": "G1",
    "UseParallelGC": "Parallel",
    "UseSerialGC": "Serial",
    "UseZGC": "Z",
    "UseShenandoahGC": "Shenandoah",
    "UseConcMarkSweepGC": "CMS",
    "UseEpsilonGC": "Epsilon",
}


@dataclass(frozen=True, slots=True)
class Flag:
    value: str
    origin: str  # 'default', 'ergonomic', 'command line', 'environment'; '': unknown

    @property
    def on(self) -> bool:
        return self.value == "true"

    @property
    def asked(self) -> bool:
        return self.origin not in ("", *_UNASKED)


def is_jvm(maps: str) -> bool:
    """Whether a process with this /proc/PID/maps is a JVM."""
    return _LIBRARY.search(maps) is not None


def look_at_jvm(host: Host, pid: int, *, timeout_s: float = 10.0) -> JvmLook | None:
    """Asks the JVM; None if the process is not a JVM.

    Raises OSError if it is a JVM that cannot be asked: refused for its safety, not permitted, no
    answer, or gone. The text says which.
    """
    if not is_jvm(host.read_text(f"/proc/{pid}/maps")):
        return None
    flags = parse_flags(host.ask_jvm(pid, "VM.flags -all", timeout_s=timeout_s))
    try:
        info = host.ask_jvm(pid, "VM.info", timeout_s=timeout_s)
    except OSError as fault:
        if fault.errno != errno.EPROTO:  # JDK 8 does not know the command
            raise
        info = ""
    return summarize(
        version=parse_version(host.ask_jvm(pid, "VM.version", timeout_s=timeout_s)),
        flags=flags,
        arguments=parse_arguments(host.ask_jvm(pid, "VM.command_line", timeout_s=timeout_s)),
        processors=parse_processors(info),
    )


# ---- the JVM's answers: pure -------------------------------------------------------------------


def parse_flags(answer: str) -> dict[str, Flag]:
    """'VM.flags -all' by flag name. The origin is the last word in braces."""
    flags = {}
    for match in _FLAG.finditer(answer):
        words = re.findall(r"\{([^}]*)\}", match[3])
        flags[match[1]] = Flag(match[2], words[-1].strip() if len(words) > 1 else "")
    return flags


def parse_version(answer: str) -> str:
    """'17.0.15+6-Debian-1' from 'VM.version'."""
    match = re.search(r"version (\S+)", answer)
    return match[1] if match else ""


def parse_arguments(answer: str) -> tuple[str, ...]:
    """The JVM's own arguments from 'VM.command_line', including those of the environment. An
    argument with spaces falls apart because the answer does not quote."""
    match = re.search(r"^jvm_args: (.*)$", answer, re.MULTILINE)
    return tuple(match[1].split()) if match else ()


def parse_processors(info: str) -> int | None:
    """The number of processors at start, from 'VM.info'; ActiveProcessorCount overrides it."""
    match = _ACTIVE.search(info)
    return int(match[1]) if match else None


def parse_thread_names(dump: str) -> dict[int, str]:
    """Native id -> full name, from 'Thread.print'."""
    return {int(match[2], 0): match[1] for match in _THREAD.finditer(dump)}


def summarize(
    *, version: str, flags: dict[str, Flag], arguments: tuple[str, ...], processors: int | None
) -> JvmLook:
    use_numa = flags.get("UseNUMA", Flag("false", ""))
    # A JVM that turns UseNUMA off leaves 'command line' as its origin, so the arguments decide.
    numa_flags = [word for word in arguments if re.fullmatch(r"-XX:[+-]UseNUMA", word)]
    asked = numa_flags[-1] == "-XX:+UseNUMA" if numa_flags else use_numa.on and use_numa.asked
    count = flags.get("ActiveProcessorCount", Flag("-1", ""))
    given = int(count.value) if re.fullmatch(r"[1-9]\d*", count.value) else None
    heap = flags.get("MaxHeapSize", Flag("", "")).value
    return JvmLook(
        version=version,
        use_numa=use_numa.on,
        use_numa_asked=asked,
        processors=processors if processors is not None else given,
        processors_asked=given,
        collector=next((name for flag, name in _COLLECTORS.items() if _on(flags, flag)), ""),
        max_heap_bytes=int(heap) if heap.isdecimal() else None,
        large_pages=_on(flags, "UseLargePages"),
        transparent_huge_pages=_on(flags, "UseTransparentHugePages"),
    )


def _on(flags: dict[str, Flag], name: str) -> bool:
    return name in flags and flags[name].on
