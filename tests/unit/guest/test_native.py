"""Where the plugin and `atoll-fills` come from: the installed Atoll, else the checkout's build."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from atoll.guest import native
from atoll.guest.image import NoImage
from atoll.host.processes import Finished


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The commands that a checkout in `tmp_path` would run; no Atoll is installed."""
    made: list[list[str]] = []

    def run(argv: Sequence[str], cwd: str) -> Finished:
        made.append(list(argv))
        return Finished(int("atoll-fills" in argv), "", "")

    (tmp_path / "CMakePresets.json").touch()
    monkeypatch.setattr("atoll.guest.native.processes.run", run)
    monkeypatch.setattr(native, "CHECKOUT", tmp_path)
    monkeypatch.setattr(native, "BUILD", tmp_path / "build/release")
    monkeypatch.setattr(native, "find_program", lambda name: None)
    monkeypatch.setattr(native, "find_spec", lambda name: None)
    native.built.cache_clear()
    return made


def test_what_is_installed_is_taken(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plugin = tmp_path / "cachesim" / native.PLUGIN
    plugin.parent.mkdir()
    plugin.touch()
    spec = ModuleSpec("atoll._native", None, origin=str(tmp_path / "_native.so"))
    monkeypatch.setattr(native, "find_spec", lambda name: spec)
    monkeypatch.setattr(native, "find_program", lambda name: f"/bin/{name}")
    assert (native.plugin(), native.fills()) == (str(plugin), "/bin/atoll-fills")
    assert calls == []


def test_a_checkout_builds_it_once(calls: list[list[str]], tmp_path: Path) -> None:
    built = str(tmp_path / "build/release/native/src/cachesim" / native.PLUGIN)
    assert [native.plugin(), native.plugin()] == [built, built]
    assert [argv[-1] for argv in calls] == ["release", "atoll-cachesim-plugin"]


def test_what_cannot_be_built_or_found_is_one_line(calls: list[list[str]], tmp_path: Path) -> None:
    with pytest.raises(NoImage, match=r"^atoll-fills: not built; see .*cmake --build .*fills$"):
        native.fills()
    (tmp_path / "CMakePresets.json").unlink()
    with pytest.raises(NoImage, match=r"^atoll-fills: .* without it; run Atoll from a checkout$"):
        native.fills()
