"""Libraries that pin their threads themselves, in whatever program maps them."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PinningLibrary:
    """A library that binds each of its workers to one CPU, even outside the process's mask, and
    leaves the main thread alone."""

    mapped: re.Pattern[str]  # searched in /proc/PID/maps
    cause: str
    remedy: str


LIBRARIES = (
    PinningLibrary(
        # The Python package's library, the C library, the command-line program.
        re.compile(r"/(?:_duckdb\b[^/\n]*|libduckdb[^/\n]*|duckdb)$", re.MULTILINE),
        "DuckDB 1.4 to 1.5 pins worker i to CPU i and ignores the mask (pin_threads; on by "
        "default above 64 CPUs)",
        "open the database with pin_threads='off' and threads=N",
    ),
)


def pinning_library(maps: str) -> PinningLibrary | None:
    """The first of the libraries in a process's maps; None if there is none."""
    return next((library for library in LIBRARIES if library.mapped.search(maps)), None)
