"""The helper that asserts faults fails where it should."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.errors import EngineFailed, UsageError
from tests.parts import faults
from tests.parts.faults import fails, template


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(faults, "FOLDER", tmp_path)
    monkeypatch.delenv(faults.WRITE, raising=False)
    return tmp_path


def test_values_give_way_to_names_whole_words_first() -> None:
    fields: dict[str, object] = {"where": "a.conf:3", "number": 3, "name": "c"}
    assert template("a.conf:3: c has 3 of 33", fields) == "{where}: {name} has {number} of 33"
    with pytest.raises(AssertionError, match="missing"):
        template("a.conf:3: c has three", fields)


def test_a_known_message_passes(folder: Path) -> None:
    (folder / "tools.txt").write_text("UsageError: {where}: not a size\n")
    with fails(UsageError, where="a.conf:3") as caught:
        raise UsageError("a.conf:3: not a size")
    assert caught.value.exit_code == 2


def test_an_unknown_message_fails_and_can_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError, match="not a line"), fails(UsageError):
        raise UsageError("no such thing")
    monkeypatch.setenv(faults.WRITE, "1")
    for what in ("b", "a", "b"):
        with fails(UsageError, what=what):
            raise UsageError(f"no such {what}")
    with fails(UsageError):
        raise UsageError("all wrong")
    assert (folder / "tools.txt").read_text() == (
        "UsageError: all wrong\nUsageError: no such {what}\n"
    )


def test_another_class_or_none_fails() -> None:
    with pytest.raises(AssertionError, match="raised nothing"), fails(UsageError):
        pass
    with pytest.raises(EngineFailed), fails(UsageError):
        raise EngineFailed("x")
    own = type("Own", (UsageError,), {})
    with pytest.raises(AssertionError, match="raised Own"), fails(UsageError):
        raise own("x")
