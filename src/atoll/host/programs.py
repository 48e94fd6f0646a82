"""Where Atoll's own programs are: beside this interpreter, where pip put them, else on the PATH."""

from __future__ import annotations

import os
import shutil
import sys


def find_program(name: str) -> str | None:
    """None where it is not installed."""
    beside = os.path.join(os.path.dirname(sys.executable), name)
    return beside if os.access(beside, os.X_OK) else shutil.which(name)
