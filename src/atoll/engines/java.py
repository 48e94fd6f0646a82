"""Finds the Java that an engine needs, and has the reasons for the JVM flags of a placed engine.

The search goes through JAVA_HOME, PATH, /usr/lib/jvm, and what `atoll engine install` unpacked. A
Java of another version does not end it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator

from atoll.engines.explained import Reasons, Why
from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.install.catalog import MB, Java, Packages, Part

# Several engines need it. The headless package has the compiler and `jcmd`'s commands too.
JAVA_17 = Part(
    "openjdk-17",
    "17",
    Packages(("openjdk-17-jre-headless",), with_depends=False),
    44 * MB,
    194 * MB,
    "GPL-2.0 with the classpath exception",
    Java(17),
)

# Why engines set these kinds of flags, most of them by `atoll.plan.jvm.placement_flags`.
JVM_FLAGS: Reasons = {
    "-XX:ActiveProcessorCount": Why(
        "the slot's threads. A JVM sees its CPU mask, but not that its slot has fewer threads than "
        "CPUs; the threads of its garbage collector and pools follow this number",
        "HotSpot, -XX:ActiveProcessorCount",
    ),
    "-XX:ParallelGCThreads": Why("the plan sets it", "HotSpot, -XX:ParallelGCThreads"),
    "-XX:ConcGCThreads": Why("the plan sets it", "HotSpot, -XX:ConcGCThreads"),
    "-XX:AlwaysPreTouch": Why(
        "every page of the heap is on its node before the first query; the start takes as long as "
        "writing the heap once",
        "HotSpot, -XX:+AlwaysPreTouch",
    ),
    "-XX:UseNUMA": Why(
        "the instance's CPUs and memory are on the same nodes, and these are several: the only "
        "case in which a JVM keeps the flag on",
        "HotSpot, os_linux.cpp",
    ),
    "-XX:UsePerfData": Why("a killed JVM leaves no file in /tmp", "HotSpot, -XX:UsePerfData"),
    "-Xms": Why("as large as -Xmx, so that all of the heap is touched at the start", "HotSpot"),
}

_VERSION = re.compile(r'version "((?:1\.)?(\d+)[^"]*)"')


def find_java(
    host: Host,
    *,
    major: int,
    or_later: bool = False,
    wanted_by: str,
    engine: str = "",
    part: str = "",
) -> tuple[str, str]:
    """(path of the java executable, its full version).

    `engine` is the engine that `atoll engine install` fetches a Java for, '' for an engine of
    another package. `part` is the folder of an installed JDK (a Java home, or the root of an
    unpacked package), '' if there is none. Raises EngineFailed naming what was found and what to
    install.
    """
    found: dict[str, str] = {}
    for path in _candidates(host, major, or_later, part):
        if path in found or not host.exists(path):
            continue
        version = _version(host, path)
        if version and _fits(version[1], major, or_later):
            return path, version[0]
        found[path] = version[0] if version else "does not run"
    have = ", ".join(f"{path} is {version}" for path, version in found.items())
    fetch = f"install it with: atoll engine install {engine}" if engine else "install one"
    raise EngineFailed(
        f"{wanted_by} needs Java {major}{' or later' if or_later else ''}; "
        f"{have or 'no Java was found'}; {fetch}, or set JAVA_HOME"
    )


def _fits(found: int, major: int, or_later: bool) -> bool:
    return found == major or (or_later and found > major)


def _candidates(host: Host, major: int, or_later: bool, part: str) -> Iterator[str]:
    home = host.variable("JAVA_HOME")
    if home:
        yield f"{home}/bin/java"
    on_path = shutil.which("java")
    if on_path:
        yield os.path.realpath(on_path)
    yield from _below("/usr/lib/jvm", host, major, or_later)
    if part:
        yield f"{part}/bin/java"
        yield from _below(f"{part}/usr/lib/jvm", host, major, or_later)


def _below(root: str, host: Host, major: int, or_later: bool) -> Iterator[str]:
    """JDKs whose folder names have a fitting number ('java-17-openjdk-amd64'), newest first."""
    ranked = []
    try:
        names = host.list_dir(root)
    except OSError:
        return
    for name in names:
        numbers = [int(word) for word in re.findall(r"\b\d+\b", name)]
        fitting = [number for number in numbers if _fits(number, major, or_later)]
        if fitting:
            # Debian's name first: its link (java-1.17.0-...) leads to the same place.
            ranked.append((-fitting[0], not name.startswith(f"java-{fitting[0]}-"), name))
    yield from (f"{root}/{name}/bin/java" for *_, name in sorted(ranked))


def _version(host: Host, java: str) -> tuple[str, int] | None:
    try:
        done = host.run([java, "-XX:-UsePerfData", "-version"], timeout_s=20)
    except OSError:
        return None
    match = _VERSION.search(done.stderr + done.stdout)
    return (match[1], int(match[2])) if match else None
