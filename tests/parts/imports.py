"""What every reader of foreign descriptions of machines promises."""

from __future__ import annotations

from atoll.errors import TopologyError
from atoll.imports import description_of
from atoll.imports.description import sysfs_of


def read_or_refused(content: bytes) -> bool:
    """Reads a file that may be damaged. Whether the result is one that Atoll may give: one line
    that names the file, or a machine that can be written as files of /sys."""
    try:
        found = description_of(content, "file")
    except TopologyError as fault:
        return str(fault).startswith("file: ") and "\n" not in str(fault) and len(str(fault)) < 500
    return found is None or "sys/devices/system/cpu/online" in sysfs_of(found)
