"""Parts by the real clients, small ones: a kill in the middle, resuming, apt's own archive."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.parts import maven_repository
from tests.parts.downloads import fetched


def start(root: Path, *words: str, env: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.parts.install_toy", *words],
        cwd=root,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def installed_toy(root: Path, *words: str, env: Mapping[str, str]) -> str:
    def run() -> subprocess.CompletedProcess[str]:
        process = start(root, *words, env=env)
        out, err = process.communicate(timeout=1200)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    return fetched(run)


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


def engines(env: Mapping[str, str]) -> Path:
    return Path(env["XDG_CACHE_HOME"], "atoll/engines")


def test_a_wheel_by_pip(root: Path, env: dict[str, str]) -> None:
    installed_toy(root, "pip", env=env)
    assert (engines(env) / "iniconfig-2/__init__.py").is_file()
    assert installed_toy(root, "pip", env=env) == "checking iniconfig-2 0 0\n"


def test_packages_by_apt(root: Path, env: dict[str, str]) -> None:
    out = installed_toy(root, "apt", env=env)
    tree = engines(env) / "numactl-2"
    said = subprocess.run([tree / "usr/bin/numactl"], capture_output=True, text=True).stderr
    assert said.startswith("usage: numactl")
    assert "numactl" in json.loads((tree / ".fetch_deb.json").read_text())["versions"]
    assert re.search(r"^fetching numactl 0 [1-9]", out, re.MULTILINE)


def test_packages_into_any_folder(root: Path, env: dict[str, str], tmp_path: Path) -> None:
    into = tmp_path / "numactl"
    argv = [sys.executable, "-m", "tools.fetch_deb", "numactl", "--into", str(into)]
    fetched(
        lambda: subprocess.run(
            argv, cwd=root, env={**os.environ, **env}, capture_output=True, text=True, timeout=1200
        )
    )
    assert list(json.loads((into / ".fetch_deb.json").read_text())["versions"]) == ["numactl"]
    assert {path.name for path in tmp_path.iterdir()} == {"numactl", ".numactl.lock"}


def processes_with(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in text:
            found.append(text)
    return found


@pytest.mark.installed
def test_maven_killed_in_the_middle_goes_on_where_it_was(root: Path, tmp_path: Path) -> None:
    if shutil.which("mvn") is None:
        pytest.skip("no mvn; install it with: apt-get install maven")
    with maven_repository.serving() as repository:
        env = {"XDG_CACHE_HOME": str(tmp_path / "cache")} | maven_repository.use(
            tmp_path, repository
        )
        process = start(root, "maven", *repository.words(), env=env)
        while not repository.half_is_sent.wait(0.2):
            if process.poll() is not None:
                pytest.skip(f"not available: {process.communicate()[1].strip()}")
        half = engines(env) / ".fetched/toy-1/repository/org/atoll/toys/toy/1/toy-1.tar.gz.part"
        deadline = time.monotonic() + 300
        while not half.is_file() or half.stat().st_size < len(repository.tarball) // 2:
            assert time.monotonic() < deadline, "Maven did not write what it was sent"
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        while left := processes_with(str(tmp_path)):
            assert time.monotonic() < deadline, left  # Maven goes with us
            time.sleep(0.05)
        assert not (engines(env) / "toy-1").exists()

        repository.holds = False
        installed_toy(root, "maven", *repository.words(), env=env)
    jar = engines(env) / "toy-1/lib/toy.jar"
    assert jar.stat().st_size == 1 << 20
    assert {path.name for path in engines(env).iterdir()} == {".fetched", ".lock", "toy-1"}
    version = subprocess.run(["mvn", "--version"], capture_output=True, text=True).stdout
    if not re.search(r"Apache Maven 3\.[0-7]\.", version):
        assert repository.ranges == ["", f"bytes={len(repository.tarball) // 2}-"]
