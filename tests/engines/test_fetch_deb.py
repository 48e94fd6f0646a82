"""tools/fetch_deb against the machine's real archive, with one of the packages we need anyway."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def test_fetches_a_verified_package(root: Path, tmp_path: Path) -> None:
    into = tmp_path / "numactl"
    done = subprocess.run(
        [sys.executable, root / "tools/fetch_deb", "numactl", "--into", into],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode == 6:
        pytest.skip(f"the package archive cannot be reached: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    help_text = subprocess.run([into / "usr/bin/numactl"], capture_output=True, text=True).stderr
    assert help_text.startswith("usage: numactl")
    assert list(json.loads((into / ".fetch_deb.json").read_text())["versions"]) == ["numactl"]
    # The private apt wrote only into its own folders.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["atoll", "numactl"]
