"""What programs get of our environment: enough to find others, not enough to be steered by what
happens to be set in somebody's shell (JAVA_TOOL_OPTIONS, PGDATA, MYSQL_HOME)."""

from __future__ import annotations

import os

_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH")


def clean_environment() -> dict[str, str]:
    """What every process of an engine starts with."""
    environment = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
    # Engines come with shell scripts; an emptied PATH must not keep those from their shell.
    environment["PATH"] = f"{environment.get('PATH', '')}:{os.defpath}".lstrip(":")
    return environment
