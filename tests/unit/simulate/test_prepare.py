"""What must be on this machine before a guest boots."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.simulate.prepare import prepare


def test_a_scale_factor_of_zero_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="scale factor 0 "):
        prepare([], "tpch", 0.0, host=LocalHost(), progress=lambda *_: None)
