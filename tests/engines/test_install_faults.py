"""Installing by the real clients where it cannot be: no network, no room, another file.

A network without anything in it and a small disk are namespaces of their own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parts import maven_repository
from tests.parts.namespaces import need

TOY = (sys.executable, "-m", "tests.parts.install_toy")
NO_NETWORK = ("unshare", "--map-root-user", "--net")
# A small disk at XDG_CACHE_HOME; its size in KiB.
SMALL_DISK = 'mount -t tmpfs -o size=%dk small "$XDG_CACHE_HOME"; shift; "$@"; x=$?; '
WHAT_IS_LEFT = 'ls -A "$XDG_CACHE_HOME"/atoll/engines; exit $x'


def failed(root: Path, home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """What must end with exit code 6 and one line."""
    cache = home / "cache"
    cache.mkdir(exist_ok=True)
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 6, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done


def left(home: Path) -> set[str]:
    return {path.name for path in (home / "cache/atoll/engines").iterdir()}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        pytest.param("pip", "iniconfig==2.0.0: pip could not fetch it: no connection", id="pip"),
        pytest.param("apt", "apt-get update: E: ", id="apt"),
        pytest.param("maven", "mvn could not fetch it: ", id="maven", marks=pytest.mark.installed),
    ],
)
def test_without_a_network(kind: str, said: str, root: Path, tmp_path: Path) -> None:
    need(*NO_NETWORK)
    if kind == "maven" and shutil.which("mvn") is None:
        pytest.skip("no mvn; install it with: apt-get install maven")
    words = ("0" * 64, "1000") if kind == "maven" else ()
    # Where the environment says so pip tries for minutes; that it tries again is how one knows.
    done = failed(root, tmp_path, *NO_NETWORK, "env", "PIP_RETRIES=1", *TOY, kind, *words)
    assert said in done.stderr
    assert left(tmp_path) == {".lock", ".fetched"}


def test_another_wheel_than_the_pinned_one(root: Path, tmp_path: Path) -> None:
    done = failed(root, tmp_path, *TOY, "pip", "0" * 64)
    if "no connection" in done.stderr:
        pytest.skip(f"not available: {done.stderr.strip()}")
    assert "another checksum than the pinned one" in done.stderr
    assert left(tmp_path) == {".lock", ".fetched"}


@pytest.mark.installed
def test_another_tarball_than_the_pinned_one(root: Path, tmp_path: Path) -> None:
    if shutil.which("mvn") is None:
        pytest.skip("no mvn; install it with: apt-get install maven")
    with maven_repository.serving() as repository:
        repository.holds = False
        settings = maven_repository.use(tmp_path, repository)
        with_settings = ("env", *(f"{name}={value}" for name, value in settings.items()))
        _, size = repository.words()
        done = failed(root, tmp_path, *with_settings, *TOY, "maven", "0" * 64, size)
    if "mvn could not fetch it" in done.stderr:
        pytest.skip(f"not available: {done.stderr.strip()}")
    assert f"{size} bytes with the SHA-256" in done.stderr
    assert "instead of the pinned 0000000000000000" in done.stderr
    assert left(tmp_path) == {".lock", ".fetched"}


@pytest.mark.parametrize(
    ("kind", "size_kib", "said"),
    [
        ("pip", 64, "not enough room for iniconfig-2: it needs about "),
        ("apt", 2048, "not enough room for numactl-2: it needs about 100 MiB; 2"),  # with its index
    ],
)
def test_a_disk_too_small(kind: str, size_kib: int, said: str, root: Path, tmp_path: Path) -> None:
    need("unshare", "--map-root-user", "--mount")
    shell = SMALL_DISK % size_kib + WHAT_IS_LEFT
    namespace = ("unshare", "--map-root-user", "--mount", "sh", "-c", shell, "sh", "x")
    done = failed(root, tmp_path, *namespace, *TOY, kind)
    assert said in done.stderr
    assert set(done.stdout.split()) & {"iniconfig-2", "numactl-2"} == set()
