"""Parts that are not as they were put in place, and what an older Atoll has left."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from atoll.errors import DownloadFailed, NotPermitted
from atoll.host.processes import Finished
from atoll.install import installed, installing
from atoll.install.listing import LIST, damage
from tests.parts.faults import fails
from tests.parts.install import ENGINE, JAR, JAVA, Clients


def told(doing: str, done_bytes: int = 0, total_bytes: int = 0) -> None:
    pass


def install(clients: Clients) -> None:
    installing.install([ENGINE, JAVA], tell=told, run=clients)


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the parts, with two in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    install(Clients())
    return tmp_path / "cache/atoll/engines"


def rewritten(engines: Path) -> None:
    (engines / "toy-1/lib/toy.jar").write_bytes(JAR[:-1] + b"x")


DAMAGES: dict[str, tuple[Callable[[Path], object], str, bool]] = {
    "gone": (lambda engines: (engines / "java-9/bin/java").unlink(), "bin/java is missing", False),
    "a folder gone": (
        lambda engines: shutil.rmtree(engines / "toy-1/lib"),
        "is missing",
        False,
    ),
    "cut": (
        lambda engines: (engines / "toy-1/lib/toy.jar").write_bytes(JAR[:7]),
        f"toy.jar has 7 bytes, not {len(JAR)}",
        False,
    ),
    "not to be run": (
        lambda engines: (engines / "java-9/bin/java").chmod(0o644),
        "bin/java is no longer executable",
        False,
    ),
    "other bytes": (rewritten, "toy.jar has changed", True),
    "no list": (lambda engines: (engines / f"toy-1/{LIST}").write_text("{"), "be read", False),
    "a strange list": (
        lambda engines: (engines / f"toy-1/{LIST}").write_text('{"lib/toy.jar": 3}'),
        "be read",
        False,
    ),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_part_is_seen_and_fetched_anew(kind: str, engines: Path) -> None:
    does, said, only_by_reading = DAMAGES[kind]
    does(engines)
    parts = [engines / "toy-1", engines / "java-9"]
    quickly = [fault for part in parts if (fault := damage(part))]
    assert bool(quickly) != only_by_reading
    (found,) = (fault for part in parts if (fault := damage(part, contents=True)))
    assert said in found
    clients = Clients()
    install(clients)
    assert clients.fetches() == 1
    assert not any(damage(part, contents=True) for part in parts)
    assert (engines / "toy-1/lib/toy.jar").read_bytes() == JAR


def test_a_damaged_part_stays_until_there_is_a_whole_one(engines: Path) -> None:
    rewritten(engines)
    clients = Clients()
    clients.fails = Finished(1, "", "[ERROR] no network\n")
    with pytest.raises(DownloadFailed):
        install(clients)
    assert installed("toy-1")


@pytest.mark.parametrize("step", ["sync", "rename"])
def test_and_also_where_the_whole_one_cannot_be_put_there(
    step: str, engines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten(engines)

    def refused(path: Path, target: Path) -> Path:
        if step == "rename" and path.name == "toy-1" and target == engines / "toy-1":
            raise OSError(errno.EIO, "the disk is ill")
        os.rename(path, target)
        return target

    def ill(name: None, use_errno: bool) -> SimpleNamespace:
        return SimpleNamespace(syncfs=lambda descriptor: -1)

    monkeypatch.setattr(Path, "rename", refused)
    if step == "sync":
        monkeypatch.setattr("ctypes.CDLL", ill)
    with pytest.raises(NotPermitted):
        install(Clients())
    assert "has changed" in damage(engines / "toy-1", contents=True)
    assert not list(engines.glob(".*.unfinished"))


def test_what_engines_write_beside_is_no_damage(engines: Path) -> None:
    (engines / "java-9/classes.jsa").write_text("a cache")
    assert damage(engines / "java-9", contents=True) == ""


def test_what_a_link_leads_to(tmp_path: Path) -> None:
    from atoll.install.listing import write_list

    (tmp_path / "a").symlink_to("b")
    (tmp_path / "folder").mkdir()
    (tmp_path / "c").symlink_to("folder")
    write_list(tmp_path)
    assert damage(tmp_path) == ""
    (tmp_path / "c").unlink()
    (tmp_path / "c").symlink_to("elsewhere")
    assert damage(tmp_path) == f"{tmp_path}/c has another target"


# ---- what is removed -----------------------------------------------------------------------------


def test_what_an_older_atoll_left_goes_with_the_engine(engines: Path) -> None:
    catalog = {"toy": (ENGINE,), "other": (JAVA,)}
    for name in ("toy-0.9", ".fetched/toy-0.8", "java-8"):
        (engines / name).mkdir()
    tables = engines.with_name("toy") / "0.9-tables"
    tables.mkdir(parents=True)
    gone = installing.remove(["toy"], catalog, in_use={}, tell=told)
    assert gone == ["toy-1", "toy-0.9", "what was loaded into toy"]
    assert not tables.parent.exists()
    assert sorted(path.name for path in engines.iterdir()) == [
        ".fetched",
        ".lock",
        "java-8",  # of the other
        "java-9",
    ]
    assert list((engines / ".fetched").iterdir()) == []
    assert installing.remove(["toy"], catalog, in_use={}, tell=told) == []


def test_tables_behind_a_link_are_left_to_who_made_it(engines: Path, tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    kept = engines.with_name("toy")
    kept.symlink_to(tmp_path / "large")
    with fails(NotPermitted, path=kept, target=tmp_path / "large"):
        installing.remove(["toy"], {"toy": ()}, in_use={}, tell=told)
    assert kept.is_dir()
