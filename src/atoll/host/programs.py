"""Finds Atoll's own programs: next to this interpreter, where pip puts them, else on the PATH."""

from __future__ import annotations

import os
import shutil
import sys


def find_program(name: str) -> str | None:
    """The path of the program; None if it is not installed."""
    beside = os.path.join(os.path.dirname(sys.executable), name)
    return beside if os.access(beside, os.X_OK) else shutil.which(name)
