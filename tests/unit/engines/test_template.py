"""The process that copies a template and becomes a server: PostgreSQL's and MariaDB's instances."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from atoll.engines.loading import instance as template_instance
from atoll.host import processes


def run_instance(
    folder: Path, *, make: str | None, server: str = 'echo "$0 $@"'
) -> subprocess.CompletedProcess[str]:
    """With a shell's lines for the two programs; `make` None: the template must be there."""
    for name, text in (("make", make or ""), ("server", server)):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    made = [str(folder / "make"), "--data={}"] if make is not None else []
    argv = [sys.executable, "-IS", template_instance.__file__]
    argv += [str(folder / "template"), str(folder / "data"), *made]
    argv += ["--", str(folder / "server"), "-c", "x"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


MAKES_DATA = 'd=${1#--data=}; mkdir "$d"; echo 15 > "$d/PG_VERSION"'


def test_an_instance_copies_the_template_and_becomes_the_server(tmp_path: Path) -> None:
    done = run_instance(tmp_path, make=MAKES_DATA)
    assert done.stdout == f"{tmp_path}/server -c x\n"
    assert (tmp_path / "data/PG_VERSION").read_text() == "15\n"
    assert (tmp_path / "data/PG_VERSION").stat().st_mode & 0o077 == 0


def test_a_template_is_made_once(tmp_path: Path) -> None:
    (tmp_path / "template").mkdir()
    assert run_instance(tmp_path, make="exit 1").returncode == 0


def test_an_unfinished_template_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / ".template.unfinished").mkdir()
    assert run_instance(tmp_path, make=MAKES_DATA).returncode == 0
    assert not (tmp_path / ".template.unfinished").exists()


def test_a_template_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut nobody takes half of one for whole."""
    template = tmp_path / "template"
    synced: list[list[str]] = []

    def syncfs(descriptor: int) -> int:
        folder = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        synced.append([path.name for path in folder.rglob("*")])
        assert not template.exists()
        return 0

    monkeypatch.setattr("ctypes.CDLL", lambda name, use_errno: SimpleNamespace(syncfs=syncfs))
    make = ("sh", "-c", "mkdir -p $0/base; echo 15 > $0/base/VERSION", "{}")
    template_instance.ensure_template(template, make, processes.run)
    assert synced == [["base", "VERSION"]]
    assert template.is_dir()


def test_tables_that_are_not_loaded_are_not_made_up(tmp_path: Path) -> None:
    done = run_instance(tmp_path, make=None)
    assert done.returncode == 1
    assert done.stderr == f"error: {tmp_path}/template: No such file or directory\n"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        ("echo 'initdb: error: no room' >&2; echo 'initdb: hint: buy some' >&2; exit 1", "no room"),
        ("echo '[ERROR] no room' >&2; echo 'see above' >&2; exit 1", "[ERROR] no room"),
        ("mkdir ${1#--data=}; exit 3", "error: make: exit status 3"),
    ],
)
def test_a_template_that_cannot_be_made_is_one_line(tmp_path: Path, make: str, said: str) -> None:
    done = run_instance(tmp_path, make=make)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr
    assert not list(tmp_path.glob(".template*.unfinished"))
    assert not (tmp_path / "template").exists()


def test_a_program_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    argv = [sys.executable, "-IS", template_instance.__file__, tmp_path / "template"]
    argv += [tmp_path / "data", tmp_path / "nix", "--", tmp_path / "server"]
    done = subprocess.run(
        list(map(str, argv)), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path}/nix: No such file")
