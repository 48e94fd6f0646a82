"""Fixtures that several files of unit tests share: a kernel in memory, with knobs to turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from atoll.cli import run, turning
from atoll.knobs.control import Control
from atoll.knobs.journal import JournalFolder
from tests.parts.knobs import Kernel


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


@pytest.fixture
def journal(tmp_path: Path) -> JournalFolder:
    return JournalFolder(tmp_path / "var" / "knobs")


@pytest.fixture
def atoll(
    monkeypatch: pytest.MonkeyPatch, kernel: Kernel, journal: JournalFolder
) -> Callable[..., int]:
    """`atoll ARGUMENTS` on that kernel, with that journal; gives the exit code."""
    monkeypatch.setattr(turning, "control", lambda: Control(kernel, journal))
    return lambda *arguments: run(list(arguments))
