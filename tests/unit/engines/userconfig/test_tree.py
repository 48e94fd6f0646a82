"""A user's configuration tree as it is read: texts and keystores, links, and what is refused."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

import pytest

from atoll.engines import registry
from atoll.engines.userconfig.apply import with_user_tree
from atoll.engines.userconfig.tree import MOST_DEPTH, MOST_FILES, MOST_TEXT_BYTES, read_tree
from atoll.errors import NotPermitted, UsageError
from atoll.host.local import LocalHost
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails

HOST = LocalHost()


def write(root: Path, files: dict[str, str | bytes]) -> None:
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)


def test_texts_are_read_and_all_else_is_named(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "config.properties": "a=1\n",
            "catalog/hive.properties": "connector.name=hivé\n",
            "keystore.jks": b"\xfe\xed\xfe\xed\0\0",
            "signature": b"\xff\xff",
            "core": b"a" * (MOST_TEXT_BYTES + 1),
            ".git/config": "x",
            ".jvm.config.swp": "x",
        },
    )
    tree = read_tree(str(tmp_path), HOST)
    assert tree.root == str(tmp_path)
    assert tree.texts == {
        "config.properties": "a=1\n",
        "catalog/hive.properties": "connector.name=hivé\n",
    }
    assert sorted(tree.others) == ["core", "keystore.jks", "signature"]


def test_a_mounted_config_map_is_read_through_its_links(tmp_path: Path) -> None:
    tree = tmp_path / "etc"
    write(tree, {"..2026_01/config.properties": "a=1\n", "..2026_01/catalog/x.properties": "b=2\n"})
    (tree / "..data").symlink_to("..2026_01")
    (tree / "config.properties").symlink_to("..data/config.properties")
    (tree / "catalog").symlink_to("..data/catalog")
    write(tmp_path, {"key.pem": "KEY"})
    (tree / "key.pem").symlink_to("../key.pem")
    texts = read_tree(str(tree), HOST).texts
    assert sorted(texts) == ["catalog/x.properties", "config.properties", "key.pem"]


def test_what_is_no_configuration_folder_is_refused(tmp_path: Path) -> None:
    with fails(UsageError, path=str(tmp_path / "none")):
        read_tree(str(tmp_path / "none"), HOST)
    write(tmp_path, {"file": "a"})
    with fails(UsageError, path=str(tmp_path / "file")):
        read_tree(str(tmp_path / "file"), HOST)
    (tmp_path / "empty").mkdir()
    with fails(UsageError, path=str(tmp_path / "empty")):
        read_tree(str(tmp_path / "empty"), HOST)
    many = _ManyFiles({f"/etc/x/{number}": "a" for number in range(MOST_FILES + 1)})
    with fails(UsageError, path="/etc/x", most=MOST_FILES):
        read_tree("/etc/x", many)


class _ManyFiles(FakeHost):
    def list_dir(self, path: str) -> list[str]:
        if path in self.files:
            raise NotADirectoryError(20, "Not a directory", path)
        return super().list_dir(path)

    def file_size(self, path: str) -> int:
        return len(self.files[path])


def test_a_circle_a_pipe_and_a_broken_link_end_at_once(tmp_path: Path) -> None:
    for name, make in (
        ("circle", lambda path: path.symlink_to(".")),
        ("pipe", os.mkfifo),
        ("broken", lambda path: path.symlink_to("nowhere")),
    ):
        tree = tmp_path / f"tree-{name}"
        write(tree, {"config.properties": "a=1\n"})
        make(tree / name)
        # A circle is reported where it was followed for the last time.
        place = f"{tree}/{name}" if name != "circle" else f"{tree}{'/circle' * (MOST_DEPTH + 1)}"
        with fails(UsageError, path=place):
            read_tree(str(tree), HOST)


def test_a_text_file_that_is_no_utf8_is_told_by_its_line(tmp_path: Path) -> None:
    write(tmp_path, {"config.properties": b"a=1\nb=\xe9\n"})
    with fails(UsageError, where=f"{tmp_path}/config.properties:2"):
        read_tree(str(tmp_path), HOST)


def test_a_byte_order_mark_is_told_where_it_would_be_a_part_of_a_name(tmp_path: Path) -> None:
    write(tmp_path, {"config.properties": codecs.BOM_UTF8 + b"a=1\n"})
    with fails(UsageError, where=f"{tmp_path}/config.properties:1"):
        read_tree(str(tmp_path), HOST)


class _Closed(FakeHost):
    def list_dir(self, path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", path)


def test_a_closed_folder_is_not_permitted() -> None:
    with fails(NotPermitted, path="/etc/trino"):
        read_tree("/etc/trino", _Closed())


class _OneClosed(_ManyFiles):
    def read_bytes(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return super().read_bytes(path, offset=offset, size=size)


@pytest.mark.parametrize(
    ("engine", "name", "closed", "refused"),
    [
        ("trino", "config.properties", "password-closed", True),  # a copy of all of it is taken
        ("spark", "spark-defaults.conf", "ssl-closed", True),
        ("postgresql", "postgresql.conf", "pg_hba-closed", False),  # only what is included
        ("mariadb", "my.cnf", "debian-closed", False),
    ],
)
def test_a_file_of_another_account_matters_where_it_is_taken(
    engine: str, name: str, closed: str, refused: bool
) -> None:
    host = _OneClosed({f"/etc/x/{name}": "", f"/etc/x/{closed}": "x"})
    if refused:
        with fails(NotPermitted, path=f"/etc/x/{closed}"):
            with_user_tree(registry.get(engine), "/etc/x", host)
    else:
        _, tree = with_user_tree(registry.get(engine), "/etc/x", host)
        assert tree is not None
        assert tree.closed == (closed,)


def test_reading_leaves_the_tree_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, {"config.properties": "a=1\n", "catalog/tpch.properties": "x=1\n"})
    os.chmod(tmp_path / "config.properties", 0o400)
    os.chmod(tmp_path / "catalog", 0o500)
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    read_tree(str(tmp_path), HOST)
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before
