"""What a guest boots from: faults of the cache and of QEMU in one line each; what TCG lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.errors import AtollError, DiskFull, DownloadFailed
from atoll.guest import image
from atoll.guest.image import Image, NoImage
from atoll.guest.topology import TopologyRefused

QEMU = "usr/bin/qemu-system-x86_64"
LACKS = "warning: TCG doesn't support requested feature: CPUID.01H:ECX.pcid [bit 17]"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The guest's folder in an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "atoll/guest"


@pytest.mark.parametrize(
    ("fault", "code", "line"),
    [
        (
            DownloadFailed("no network"),
            6,
            "qemu-system-x86 of bookworm-backports: no network; the ",
        ),
        (DiskFull("/x: no room; make room"), 6, "/x: no room; make room"),
    ],
)
def test_what_cannot_be_fetched_is_one_line(
    cache: Path, monkeypatch: pytest.MonkeyPatch, fault: AtollError, code: int, line: str
) -> None:
    def fetch(*given: object, **more: object) -> None:
        raise fault

    monkeypatch.setattr(image, "fetch", fetch)
    with pytest.raises(DownloadFailed) as raised:
        image.ensure()
    assert str(raised.value).startswith(line) and "\n" not in str(raised.value)
    assert raised.value.exit_code == code


def test_packages_unpacked_by_hand_will_do_but_want_a_kernel(cache: Path) -> None:
    for name in ("qemu", "kernel"):
        (cache / name).mkdir(parents=True)
        (cache / name / ".fetch_deb.json").write_text("{}")
    with pytest.raises(NoImage, match=r"kernel: holds no kernel; remove it and try again$"):
        image.ensure()


def test_a_cache_that_lost_a_file_is_to_be_removed(cache: Path) -> None:
    for name in ("qemu", "kernel"):
        (cache / name).mkdir(parents=True)
        (cache / name / ".fetch_deb.json").write_text("{}")
    (cache / "kernel/boot").mkdir()
    (cache / "kernel/boot/vmlinuz-6").touch()
    with pytest.raises(NoImage, match=r"kernel: holds no busybox; remove it and try again$"):
        image.ensure()


def played(folder: Path, script: str) -> Image:
    """An image whose QEMU is this script."""
    program = folder / QEMU
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Image(folder, Path(), Path())


def test_what_tcg_lacks_is_what_qemu_says_before_it_is_told_to_quit(tmp_path: Path) -> None:
    qemu = played(tmp_path, f'echo "{LACKS}" >&2; read word; [ "$word" = quit ]')
    assert image.lacking(qemu, "EPYC-Milan") == ["pcid"]


def test_a_cpu_that_qemu_lacks_is_refused(tmp_path: Path) -> None:
    qemu = played(tmp_path, "echo 'qemu-system-x86_64: no such CPU' >&2; exit 1")
    with pytest.raises(TopologyRefused, match=r"^cpu: QEMU: no such CPU$"):
        image.lacking(qemu, "Zen9")


@pytest.mark.parametrize("gone", ["all of it", "a library"])
def test_a_qemu_that_cannot_be_run_is_to_be_removed(tmp_path: Path, gone: str) -> None:
    qemu = Image(tmp_path, Path(), Path())
    if gone == "a library":
        qemu = played(tmp_path, "echo 'error while loading shared libraries: x' >&2; exit 127")
    with pytest.raises(NoImage, match=rf"^QEMU: .*; remove {tmp_path} and try again$") as fault:
        image.lacking(qemu, "EPYC-Milan")
    assert fault.value.exit_code == 6
