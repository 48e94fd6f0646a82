"""`--turns` of tests/conftest.py: every test runs in one of the processes, and in one only."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

CONFTEST = "from tests.conftest import pytest_addoption, pytest_runtestloop\n"
PLAIN = "def test_plain(): pass\ndef test_another(): pass\n"
# Its test is a function of Hypothesis's, in a file of Hypothesis's, between two of the module's.
MACHINE = """
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, rule

class Machine(RuleBasedStateMachine):
    @rule()
    def step(self): pass

def test_before(): pass
TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=1, stateful_step_count=1)
def test_after(): pass
"""
ALL = {
    *(("test_one", name) for name in ("test_before", "test_after")),
    *(("test_two", name) for name in ("test_before", "test_after")),
    *(("test_three", name) for name in ("test_plain", "test_another")),
    *((f"test_{module}.TestMachine", "runTest") for module in ("one", "two")),
}


def lay_out(folder: Path, modules: dict[str, str]) -> None:
    (folder / "turns").mkdir()
    (folder / "tests").mkdir()
    for name, text in {"conftest": CONFTEST, **modules}.items():
        (folder / "tests" / f"{name}.py").write_text(text)


def start(folder: Path, root: Path, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *(f"--rootdir={folder / 'tests'}", f"--turns={folder / 'turns'}"),
            f"--junit-xml={folder / name}.xml",
        ],
        cwd=folder / "tests",
        env={**os.environ, "PYTHONPATH": str(root)},
    )


def ran(path: Path) -> list[tuple[str, str]]:
    cases = ElementTree.parse(path).iter("testcase")
    return [(case.get("classname", ""), case.get("name", "")) for case in cases]


def test_processes_share_all_tests(tmp_path: Path, root: Path) -> None:
    lay_out(tmp_path, {"test_one": MACHINE, "test_two": MACHINE, "test_three": PLAIN})
    processes = [start(tmp_path, root, name) for name in ("first", "second")]
    assert [process.wait(120) for process in processes] == [0, 0]
    together = [*ran(tmp_path / "first.xml"), *ran(tmp_path / "second.xml")]
    assert sorted(together) == sorted(ALL)


def test_a_file_that_is_taken_is_left_to_who_took_it(tmp_path: Path, root: Path) -> None:
    lay_out(tmp_path, {"test_one": PLAIN, "test_two": PLAIN})
    (tmp_path / "turns" / "test_two.py").touch()
    assert start(tmp_path, root, "first").wait(120) == 0
    assert ran(tmp_path / "first.xml") == [
        ("test_one", "test_plain"),
        ("test_one", "test_another"),
    ]
