"""Finds the Java that an engine needs, wherever it may lie, and says what to do if it is not there.

Order: JAVA_HOME, PATH, /usr/lib/jvm, and what `atoll engine install` unpacked. A Java of another
version does not end the search.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator

from atoll.errors import EngineFailed
from atoll.host.api import Host

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

    `engine` is whom `atoll engine install` fetches a Java for, '' of another package's engine.
    `part` is the folder of an installed JDK, '' if there is none: a Java home, or the root of an
    unpacked package. Raises EngineFailed naming what was found and what to install.
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
        f"{have or 'no Java was found'}; {fetch}, or set JAVA_HOME to one"
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
    """By the numbers in the folders' names ('java-17-openjdk-amd64'), the newest first."""
    ranked = []
    try:
        names = host.list_dir(root)
    except OSError:
        return
    for name in names:
        numbers = [int(word) for word in re.findall(r"\b\d+\b", name)]
        fitting = [number for number in numbers if _fits(number, major, or_later)]
        if fitting:
            # Debian's name first: a link beside it (java-1.17.0-...) leads to the same place.
            ranked.append((-fitting[0], not name.startswith(f"java-{fitting[0]}-"), name))
    yield from (f"{root}/{name}/bin/java" for *_, name in sorted(ranked))


def _version(host: Host, java: str) -> tuple[str, int] | None:
    try:
        done = host.run([java, "-XX:-UsePerfData", "-version"], timeout_s=20)
    except OSError:
        return None
    match = _VERSION.search(done.stderr + done.stdout)
    return (match[1], int(match[2])) if match else None
