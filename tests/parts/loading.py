"""For the tests of engines that keep tables: their answers, and loading that is disturbed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from atoll.store.paths import cache_dir
from tests.parts import loaded_values
from tests.parts.deployment import until
from tests.parts.postgresql import ORDINARY_USER

LIMIT_S = 540


def command(engine: str, *wishes: str) -> list[str]:
    module = "tests.parts.loaded_answers"
    return [*ORDINARY_USER, sys.executable, "-m", module, engine, "0.01", *wishes]


def check_answers(engine: str) -> None:
    """All of TPC-H by two instances, and Q1, Q6 and Q18 by one server on the node."""
    argv = command(engine, "wic=", "win=1,6,18")
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [found[policy]["asked"] for policy in ("wic", "win")] == [22, 3]
    assert found["wic"]["instances"] == min(2, len(os.sched_getaffinity(0)))
    for policy, seen in found.items():
        assert (seen["wrong"], seen["drift"], seen["left"]) == ([], [], []), policy


def check_values(engine: str, folder: Path) -> None:
    """Every value is what it was: NULL and the word NULL, quotes, line ends, backslashes."""
    argv = [*ORDINARY_USER, sys.executable, "-m", loaded_values.__name__, engine, str(folder)]
    environment = with_cache(folder / "cache")
    done = subprocess.run(
        argv, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    for found, wanted in zip(json.loads(done.stdout), loaded_values.rows(), strict=True):
        assert found == wanted


def with_cache(cache: Path) -> dict[str, str]:
    """The environment with a cache of its own, but for the engines that are installed."""
    (cache / "atoll").mkdir(parents=True)
    (cache / "atoll/engines").symlink_to(cache_dir("engines"))
    return {**os.environ, "XDG_CACHE_HOME": str(cache)}


def check_loading_survives(engine: str, cache: Path) -> None:
    """Killed in the middle nothing stays that is taken for whole. Of two at once one loads."""
    environment = with_cache(cache)

    def load(*wishes: str) -> subprocess.Popen[str]:
        argv = command(engine, *wishes)
        return subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True)

    def unfinished() -> list[Path]:
        return list((cache / "atoll" / engine).glob("*-tpch-*.unfinished"))

    def whole() -> list[Path]:
        folders = (cache / "atoll" / engine).glob("*-tpch-sf0.01-*")
        return [path for path in folders if path.is_dir() and path.suffix != ".unfinished"]

    def servers() -> list[str]:
        """Those work in their data directory."""
        return [pid for pid in filter(str.isdigit, os.listdir("/proc")) if works_in(pid, cache)]

    killed = load("hold")
    assert killed.stderr is not None
    for line in killed.stderr:
        if "loading" in line:
            break
    assert unfinished()
    assert servers()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    until(lambda: not servers(), servers)
    assert whole() == []
    both = [load(), load()]
    said = [process.communicate(timeout=LIMIT_S)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sorted("loading" in words.replace("that loads", "") for words in said) == [False, True]
    assert len(whole()) == 1
    assert unfinished() == []


def works_in(pid: str, folder: Path) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/cwd").startswith(f"{folder}/")
    except OSError:
        return False
