"""Unpacking: whatever an archive holds, nothing of it lands anywhere else."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.errors import DownloadFailed
from atoll.host.unpack import unpack
from atoll.install.parts import tree_bytes
from tests.parts.faults import fails

KINDS = (
    tarfile.REGTYPE,
    tarfile.DIRTYPE,
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.FIFOTYPE,
    tarfile.CHRTYPE,
)


@dataclass(frozen=True)
class Item:
    name: str
    kind: bytes = tarfile.REGTYPE
    target: str = ""
    mode: int = 0o644
    content: bytes = b"x"


def tarball(path: Path, items: list[Item]) -> Path:
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for item in items:
            info = tarfile.TarInfo(item.name)
            info.type, info.linkname, info.mode = item.kind, item.target, item.mode
            if item.kind == tarfile.REGTYPE:
                info.size = len(item.content)
                archive.addfile(info, io.BytesIO(item.content))
            else:
                archive.addfile(info)
    return path


def unpacked(tmp_path: Path, items: list[Item], most_bytes: int = 1000) -> Path:
    into = tmp_path / "into"
    into.mkdir()
    unpack(tarball(tmp_path / "a.tar.gz", items), into, error=DownloadFailed, most_bytes=most_bytes)
    return into


# Few words, so that names meet each other and the folders around.
WORDS = st.sampled_from(["a", "b", "..", ".", "", "outside", "canary", "/", "tree", "a\0b"])
PATHS = st.lists(WORDS, min_size=1, max_size=5).map("/".join)
ITEMS = st.builds(
    Item,
    PATHS,
    st.sampled_from(KINDS),
    PATHS,
    st.integers(0, 0o7777),
    st.binary(max_size=20),
)


@given(st.lists(ITEMS, max_size=8))
def test_nothing_lands_outside_and_no_link_leads_there(items: list[Item]) -> None:
    with TemporaryDirectory() as name:
        root = Path(name)
        (root / "outside").mkdir()
        (root / "outside/canary").write_text("sings")
        (root / "tree").mkdir()
        archive = tarball(root / "a.tar.gz", items)
        before = archive.read_bytes()
        with suppress(DownloadFailed):
            unpack(archive, root / "tree", error=DownloadFailed, most_bytes=50)
        assert sorted(os.listdir(root)) == ["a.tar.gz", "outside", "tree"]
        assert os.listdir(root / "outside") == ["canary"]
        assert (root / "outside/canary").read_text() == "sings"
        assert archive.read_bytes() == before
        inside = (root / "tree").resolve()
        for place, folders, files in os.walk(root / "tree"):
            for path in (Path(place, each) for each in (*folders, *files)):
                assert Path(os.path.realpath(path)).is_relative_to(inside)
                mode = path.lstat().st_mode
                assert stat.S_ISLNK(mode) or stat.S_ISREG(mode) or stat.S_ISDIR(mode)
                assert path.is_symlink() or not mode & 0o7022
        assert tree_bytes(root / "tree") <= 50


def test_a_tree_as_engines_ship_it(tmp_path: Path) -> None:
    items = [
        Item("engine/", tarfile.DIRTYPE),
        Item("engine/bin/run", mode=0o4755, content=b"#!"),
        Item("engine/lib/a.jar", content=b"jar", mode=0o666),
        Item("engine/plugin/p/a.jar", tarfile.LNKTYPE, "engine/lib/a.jar"),
        Item("engine/bin/launcher", tarfile.SYMTYPE, "../bin/run"),
    ]
    engine = unpacked(tmp_path, items) / "engine"
    assert stat.S_IMODE((engine / "bin/run").stat().st_mode) == 0o755
    assert stat.S_IMODE((engine / "lib/a.jar").stat().st_mode) == 0o644
    assert (engine / "plugin/p/a.jar").samefile(engine / "lib/a.jar")
    assert (engine / "bin/launcher").read_bytes() == b"#!"


@pytest.mark.parametrize(
    ("items", "named"),
    [
        ([Item("/etc/x")], {"item": "'/etc/x'"}),
        ([Item("a/../../x")], {"item": "'a/../../x'"}),
        ([Item("l", tarfile.SYMTYPE, "/etc"), Item("l/x")], {"link": "'l'", "target": "'/etc'"}),
        ([Item("l", tarfile.SYMTYPE, "..")], {"link": "'l'", "target": "'..'"}),
        ([Item("a/l", tarfile.SYMTYPE, "b/../../..")], {"link": "'a/l'", "target": "'b/../../..'"}),
        ([Item("h", tarfile.LNKTYPE, "../a.tar.gz")], {"item": "'../a.tar.gz'"}),
        ([Item("h", tarfile.LNKTYPE, "nothing")], {"item": "'h'"}),
        ([Item("p", tarfile.FIFOTYPE)], {"item": "(p)"}),
        ([Item("d", tarfile.CHRTYPE)], {"item": "(d)"}),
        ([Item("a"), Item("a")], {"item": "'a'"}),
        ([Item("a"), Item("a/b")], {"item": "'a'"}),
        ([Item("a", content=b"x" * 600), Item("b", content=b"x" * 600)], {"most": 1000}),
    ],
)
def test_what_is_refused(tmp_path: Path, items: list[Item], named: dict[str, object]) -> None:
    with fails(DownloadFailed, archive=tmp_path / "a.tar.gz", **named):
        unpacked(tmp_path, items)


def test_a_link_is_never_written_through(tmp_path: Path) -> None:
    """It is made after all files, so the folder of that name is a real one, and stays."""
    items = [Item("l", tarfile.SYMTYPE, "real"), Item("real/", tarfile.DIRTYPE), Item("l/x")]
    with fails(DownloadFailed, archive=tmp_path / "a.tar.gz", link="'l'", target="'real'"):
        unpacked(tmp_path, items)
    assert os.listdir(tmp_path / "into/real") == []


@pytest.mark.parametrize("cut", [1, 20, 300])
def test_half_a_tarball_is_damaged(tmp_path: Path, cut: int) -> None:
    whole = tarball(tmp_path / "a.tar.gz", [Item("a", content=os.urandom(500))]).read_bytes()
    (tmp_path / "b.tar.gz").write_bytes(whole[:cut])
    (tmp_path / "into").mkdir()
    with fails(DownloadFailed, archive=tmp_path / "b.tar.gz"):
        unpack(tmp_path / "b.tar.gz", tmp_path / "into", error=DownloadFailed, most_bytes=1000)


def wheel(path: Path, *, name: str = "pkg/bin/java", mode: int = 0o100755) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        archive.writestr(info, "x")
    return path


def test_a_wheel_keeps_what_may_be_run(tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    unpack(wheel(tmp_path / "a.whl"), tmp_path / "into", error=DownloadFailed, most_bytes=10)
    assert os.access(tmp_path / "into/pkg/bin/java", os.X_OK)


@pytest.mark.parametrize(
    ("name", "mode", "named"), [("../x", 0o100644, "'../x'"), ("l", 0o120777, "(l)")]
)
def test_a_wheel_that_is_refused(tmp_path: Path, name: str, mode: int, named: str) -> None:
    (tmp_path / "into").mkdir()
    with fails(DownloadFailed, archive=tmp_path / "a.whl", item=named):
        unpack(
            wheel(tmp_path / "a.whl", name=name, mode=mode),
            tmp_path / "into",
            error=DownloadFailed,
            most_bytes=10,
        )
    assert os.listdir(tmp_path / "into") == []


def test_half_a_wheel_is_damaged(tmp_path: Path) -> None:
    whole = wheel(tmp_path / "a.whl").read_bytes()
    (tmp_path / "b.whl").write_bytes(whole[:-5])
    (tmp_path / "into").mkdir()
    with fails(DownloadFailed, archive=tmp_path / "b.whl"):
        unpack(tmp_path / "b.whl", tmp_path / "into", error=DownloadFailed, most_bytes=10)
