"""Boots that fail: how often they are tried, and which error and exit code each has."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import pytest

from atoll.errors import AtollError, GuestFailed
from atoll.guest import guest as room
from atoll.guest import image, native, qemu, topology
from atoll.guest.guest import BootFailed, Guest
from atoll.guest.output import MARK
from atoll.guest.qemu import GuestDied


class Qemu:
    """Played: the first boots end, with these words of QEMU and of the console."""

    ends: list[tuple[str, str]]

    def __init__(self, *words: object) -> None:
        self.share = self.jobs = Path()
        self._end = self.ends.pop(0) if self.ends else None

    def line(self, deadline: float) -> str:
        if self._end:
            raise GuestDied("guest t: ended: its last word", self._end[1])
        return "ready"

    def complaint(self) -> str:
        return self._end[0] if self._end else ""

    def close(self) -> None:
        pass


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch) -> Guest:
    found = image.Image(Path("/cache/qemu"), Path(), Path())
    monkeypatch.setattr(image, "ensure", lambda: found)
    monkeypatch.setattr(room, "Qemu", Qemu)
    return Guest(topology.parse('packages = 2\ncores = 4\nkernel = "x"', "t"))


RACE = ("iotlb_to_section: Assertion `mr' failed.", "")


def test_a_boot_that_fails_is_tried_again(guest: Guest) -> None:
    Qemu.ends = [RACE, ("", "Kernel panic")]
    told: list[tuple[str, int]] = []
    guest.boot(failed=lambda fault, left: told.append((fault.console, left)))
    assert guest.is_on and told == [("", 2), ("Kernel panic", 1)]


def test_a_boot_is_not_tried_for_ever(guest: Guest) -> None:
    Qemu.ends = [RACE] * 4
    with pytest.raises(BootFailed):
        guest.boot()
    assert len(Qemu.ends) == 1 and not guest.is_on


@pytest.mark.parametrize(
    ("end", "kind", "code", "line"),
    [
        (RACE, BootFailed, 97, "guest t: ended: its last word; try again on a quieter host"),
        (("", ""), BootFailed, 97, "guest t: ended: its last word; try again on a quieter host"),
        (("told", "a panic"), BootFailed, 97, "guest t: ended: its last word; try again on a"),
        (("no such CPU", ""), topology.TopologyRefused, 2, "t: QEMU: no such CPU"),
        (("a plugin of old", ""), image.NoImage, 6, "QEMU: a plugin of old; remove /cache/qemu"),
    ],
)
def test_how_a_boot_ended_is_one_line(
    guest: Guest, end: tuple[str, str], kind: type[AtollError], code: int, line: str
) -> None:
    Qemu.ends = [end] * 3
    with pytest.raises(kind) as fault:
        guest.boot()
    assert fault.value.exit_code == code
    assert str(fault.value).startswith(line) and "\n" not in str(fault.value)
    assert not isinstance(fault.value, GuestFailed) or fault.value.console == end[1]


def test_a_command_killed_for_memory_says_so_as_it_is_followed(
    guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Short(Qemu):
        """Its memory runs out in the first command."""

        def __init__(self, *words: object) -> None:
            super().__init__(*words)
            self.jobs = tmp_path
            self._killed = ["earlier"]

        def send(self, line: str) -> None:
            self._killed.append("Out of memory: Killed process 7 (sort)")
            for kind in ("out", "err"):
                (tmp_path / f"1.{kind}").write_bytes(MARK)

        def line(self, deadline: float) -> str:
            return "done 1 137" if len(self._killed) > 1 else "ready"

        def out_of_memory(self) -> list[str]:
            return list(self._killed)

    Qemu.ends = []
    monkeypatch.setattr(room, "Qemu", Short)
    guest.boot()
    out, err = io.BytesIO(), io.BytesIO()
    assert guest.follow(["sort"], out, err, timeout_s=60) == 137
    assert err.getvalue() == b"Out of memory: Killed process 7 (sort)\n"


def test_no_folder_is_there_while_the_plugin_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def built() -> str:
        assert not list(tmp_path.iterdir())  # kill -9 now would leave it behind
        raise image.NoImage("not built")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(image, "lacking", lambda *_: [])
    monkeypatch.setattr(native, "plugin", built)
    initrd = tmp_path.with_name("initrd")
    initrd.touch()
    with pytest.raises(image.NoImage, match="not built"):
        qemu.Qemu(topology.load("milan2"), image.Image(Path(), Path(), initrd), [], 1000)
