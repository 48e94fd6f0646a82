"""Finds the Java that an engine needs, wherever it may lie, and says what to do if it is not there.

Order: JAVA_HOME, PATH, /usr/lib/jvm, and the cache folder that `tools/fetch_deb` unpacks
Debian's package into. A Java of another version does not end the search.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator

from atoll.errors import EngineFailed
from atoll.host.api import Host

_VERSION = re.compile(r'version "((?:1\.)?(\d+)[^"]*)"')


def find_java(host: Host, *, major: int, wanted_by: str, cache: str) -> tuple[str, str]:
    """(path of the java executable, its full version). `cache` is the unpacked package's root.

    Raises EngineFailed naming what was found and what to install.
    """
    found: dict[str, str] = {}
    for path in _candidates(host, major, cache):
        if path in found or not host.exists(path):
            continue
        version = _version(host, path)
        if version and version[1] == major:
            return path, version[0]
        found[path] = version[0] if version else "does not run"
    have = ", ".join(f"{path} is {version}" for path, version in found.items())
    raise EngineFailed(
        f"{wanted_by} needs Java {major}; {have or 'no Java was found'}; install it with: "
        f"apt-get install openjdk-{major}-jre-headless, or set JAVA_HOME to one"
    )


def _candidates(host: Host, major: int, cache: str) -> Iterator[str]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield f"{home}/bin/java"
    on_path = shutil.which("java")
    if on_path:
        yield os.path.realpath(on_path)
    for root in ("/usr/lib/jvm", f"{cache}/usr/lib/jvm"):
        try:
            names = host.list_dir(root)
        except OSError:
            continue
        # Debian's name first: a link beside it (java-1.17.0-...) leads to the same place.
        matching = [name for name in names if re.search(rf"\b{major}\b", name)]
        for name in sorted(matching, key=lambda name: not name.startswith(f"java-{major}-")):
            yield f"{root}/{name}/bin/java"


def _version(host: Host, java: str) -> tuple[str, int] | None:
    try:
        done = host.run([java, "-XX:-UsePerfData", "-version"], timeout_s=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(done.stderr + done.stdout)
    return (match[1], int(match[2])) if match else None
