"""`atoll demo`: an engine that cannot be prepared is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.cli import demo
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from tests.parts.toy import this_machine


def test_a_fault_before_the_first_measurement_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise EngineFailed("duckdb: its tables cannot be loaded")

    monkeypatch.setattr(demo, "make_job", fail)
    with pytest.raises(EngineFailed, match="its tables cannot be loaded"):
        demo._measure("duckdb", this_machine(), LocalHost(), tmp_path, 0.0)
