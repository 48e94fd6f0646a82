"""What tests need of the kernel to have a disk or a network of their own."""

from __future__ import annotations

import shutil
import subprocess

import pytest


def need(*command: str) -> None:
    if (
        shutil.which(command[0]) is None
        or subprocess.run([*command, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip(f"no namespaces are available here: {' '.join(command)} true")
