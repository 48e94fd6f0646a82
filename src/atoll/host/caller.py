"""What the process that runs Atoll was given, its environment and its user."""

from __future__ import annotations

import os

# Enough to find other programs, but nothing by which a user's shell happens to configure an engine
# (JAVA_TOOL_OPTIONS, PGDATA).
_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH")


def clean_environment() -> dict[str, str]:
    """The environment that every process of an engine starts with."""
    environment = {key: os.environ[key] for key in _PASSED_ON if key in os.environ}
    # Engines come with shell scripts, which must find a shell also if PATH is empty.
    environment["PATH"] = f"{environment.get('PATH', '')}:{os.defpath}".lstrip(":")
    return environment


def environment() -> dict[str, str]:
    """The whole environment, copied."""
    return dict(os.environ)


def variable(name: str) -> str:
    """The value of an environment variable; empty if it is not set."""
    return os.environ.get(name, "")


def set_default(name: str, value: str) -> None:
    """Set an environment variable of this process unless the user has set it."""
    os.environ.setdefault(name, value)


def user_id() -> int:
    """The user in whose name the system judges what this process may do."""
    return os.geteuid()


def group_id() -> int:
    """The group that the kernel checks rights against."""
    return os.getegid()


def group_ids() -> list[int]:
    """The further groups that the kernel checks rights against."""
    return os.getgroups()
