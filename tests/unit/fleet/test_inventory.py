"""Inventories: what is filled in, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from atoll.cli import run
from atoll.errors import NotPermitted, UsageError
from atoll.fleet.inventory import read_inventory
from tests.parts.faults import fails


def written(folder: Path, *hosts: dict[str, Any], **common: Any) -> str:
    path = folder / "hosts.json"
    document = {"format": "atoll/inventory", "version": 1, "user": "ann", **common}
    path.write_text(json.dumps({**document, "hosts": hosts}))
    return str(path)


def test_what_all_have_in_common_is_filled_in(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("")
    (tmp_path / "key").chmod(0o600)
    path = written(
        tmp_path,
        {"name": "a", "address": "10.0.0.1"},
        {"name": "b", "address": "::1", "user": "bob", "port": 2222, "known_hosts": "/etc/k"},
        key_file="key",
    )
    first, second = read_inventory(path)
    assert (first.user, first.port, first.atoll) == ("ann", 22, "atoll")
    assert first.key_file == str(tmp_path / "key")
    assert first.known_hosts == str(Path.home() / ".ssh/known_hosts")
    assert (second.user, second.port, second.known_hosts) == ("bob", 2222, "/etc/k")


@pytest.mark.parametrize(
    "address", ["-oProxyCommand=reboot", "a;rm", "a b", "", "$(x)", "a\n", "ä"]
)
def test_hostile_addresses(tmp_path: Path, address: str) -> None:
    with fails(UsageError, where=str(tmp_path), address=repr(address)):
        read_inventory(written(tmp_path, {"name": "a", "address": address}))


@pytest.mark.parametrize("name", ["..", ".", "a/b", "-x", "", "a\0", "a" * 64, "\x1b[2J"])
def test_names_that_would_be_bad_folders(tmp_path: Path, name: str) -> None:
    with fails(UsageError, where=str(tmp_path), name=repr(name)):
        read_inventory(written(tmp_path, {"name": name, "address": "b"}))


@pytest.mark.parametrize(
    "wrong",
    [
        {"user": "-l root"}, {"user": "a;b"}, {"port": 0}, {"port": 65536}, {"port": True},
        {"port": 2.0}, {"atoll": "-x"}, {"atoll": "a\nb"}, {"key_file": "-i"},
        {"known_hosts": ""}, {"password": "secret"},
    ],
)  # fmt: skip
def test_other_fields_that_are_wrong(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=str(tmp_path)):
        read_inventory(written(tmp_path, {"name": "a", "address": "b", **wrong}))


def test_hosts_that_are_not_two(tmp_path: Path) -> None:
    twice = {"name": "a", "address": "b"}
    with fails(UsageError, where=str(tmp_path), name="'a'"):
        read_inventory(written(tmp_path, twice, {**twice, "address": "c"}))
    with fails(UsageError, where=str(tmp_path), first="'a'", second="'d'"):
        read_inventory(written(tmp_path, twice, {**twice, "name": "d"}))
    with fails(UsageError, where=str(tmp_path)):
        read_inventory(written(tmp_path))
    with fails(UsageError, where=str(tmp_path), name="'a'"):
        read_inventory(written(tmp_path, twice, user=None))


@pytest.mark.parametrize(
    ("address", "again"),
    [("LocalHost", "localhost"), ("a.example.", "a.example"), ("::1", "0:0:0:0:0:0:0:1")],
)
def test_one_address_in_two_spellings(tmp_path: Path, address: str, again: str) -> None:
    first, second = {"name": "a", "address": address}, {"name": "b", "address": again}
    with fails(UsageError, where=str(tmp_path), first="'a'", second="'b'"):
        read_inventory(written(tmp_path, first, second))
    assert len(read_inventory(written(tmp_path, first, {**second, "port": 2222}))) == 2


def test_what_is_no_inventory_says_that_people_write_them(tmp_path: Path) -> None:
    path = tmp_path / "hosts.json"
    path.write_text("\ufeff{}")
    with fails(UsageError, where=path):
        read_inventory(str(path))
    written(tmp_path, {"name": "a", "address": "b"}, version=2)
    with fails(UsageError, where=path):
        read_inventory(str(path))


def test_a_key_that_others_may_read(tmp_path: Path) -> None:
    key = tmp_path / "key"
    path = written(tmp_path, {"name": "a", "address": "b"}, key_file="key")
    with fails(UsageError, inventory=path, key=key):
        read_inventory(path)
    key.write_text("")
    key.chmod(0o640)
    with fails(NotPermitted, key=key):
        read_inventory(path)


@pytest.mark.parametrize("user", ["ann@example.org", "DOM\\ann", "host$"])
def test_users_of_directories(tmp_path: Path, user: str) -> None:
    path = written(tmp_path, {"name": "a", "address": "b"}, user=user)
    assert read_inventory(path)[0].user == user


def test_a_program_in_the_home_there(tmp_path: Path) -> None:
    path = written(tmp_path, {"name": "a", "address": "b"}, atoll="~/venv/bin/atoll")
    assert read_inventory(path)[0].atoll == "./venv/bin/atoll"


@pytest.mark.parametrize("which", ["key_file", "known_hosts"])
def test_pipes_are_not_read(tmp_path: Path, which: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    path = written(tmp_path, {"name": "a", "address": "b"}, **{which: "pipe"})
    with fails(UsageError, inventory=path, file=tmp_path / "pipe"):
        read_inventory(path)


def test_the_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_text("")
    (tmp_path / "key").chmod(0o644)
    open_key = written(tmp_path, {"name": "a", "address": "b"}, key_file="key")
    assert run(["fleet", "discover", open_key]) == 4
    assert run(["fleet", "discover", str(tmp_path / "none.json")]) == 2
    assert run(["fleet", "discover", open_key, "-o", open_key]) == 2
    assert "is a file" in capsys.readouterr().err
    assert run(["fleet", "plan", "--policy", "wic", open_key]) == 2
    assert run(["fleet", "up", open_key, "x", "--dry-run"]) == 2
    for command in ("up", "plan", "bench"):
        assert run(["fleet", command, open_key, "--policy", "wic", "toy"]) == 2
        assert "options for the hosts come last" in capsys.readouterr().err
    assert run(["fleet", "status", "nobody"]) == 2
