"""Which files of a user's configuration a server reads: those that are included."""

from __future__ import annotations

import pytest

from atoll.engines.mariadb.option_file import INCLUDING as MARIADB
from atoll.engines.mariadb.settings import config_of
from atoll.engines.postgresql.config_file import INCLUDING as POSTGRESQL
from atoll.engines.postgresql.settings import taken as check_postgresql
from atoll.engines.userconfig.included import Included, included
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import NotPermitted, UsageError
from tests.parts.faults import fails


def postgresql(text: str, *others: str) -> Included:
    texts = {"a.conf": text, **dict.fromkeys(others, "")}
    return included(UserTree("/etc/x", texts), "a.conf", POSTGRESQL)


@pytest.mark.parametrize(
    "line",
    [
        "include 'more/own.settings'",
        "include='more/own.settings'",
        "  INCLUDE = 'more/own.settings'  # theirs",
        "include more/own.settings",
        "include_if_exists 'more/own.settings'",
        "include 'more/../more/own.settings'",
    ],
)
def test_a_file_is_read_whatever_its_name_ends_with(line: str) -> None:
    found = postgresql(f"#include 'nix'\n{line}\n", "more/own.settings", "other.conf")
    assert set(found.texts) == {"a.conf", "more/own.settings"}


def test_of_a_folder_the_files_of_its_ending_are_read() -> None:
    found = postgresql("include_dir 'd'\n", "d/a.conf", "d/README", "d/deep/b.conf", "c.conf")
    assert set(found.texts) == {"a.conf", "d/a.conf"}


def test_an_empty_folder_that_is_included_is_there() -> None:
    found = postgresql("include_dir 'conf.d'\ninclude_dir './more/'\n")
    assert set(found.texts) == {"a.conf", "conf.d/empty.conf", "more/empty.conf"}


def test_what_is_included_may_include_and_a_circle_ends() -> None:
    texts = {"a.conf": "include 'd/b.conf'\n", "d/b.conf": "include '../a.conf'\ninclude 'c'\n"}
    found = included(UserTree("/etc/x", texts | {"d/c": ""}), "a.conf", POSTGRESQL)
    assert set(found.texts) == {"a.conf", "d/b.conf", "d/c"}


def test_mariadb_looks_beside_the_first_file() -> None:
    texts = {
        "my.cnf": "[mysqld]\n  !includedir sub dir/ \n!include own.ini\n",
        "sub dir/a.cnf": "!include sub dir/b.txt\n",
        "sub dir/b.txt": "",
        "own.ini": "",
        "sub dir/c.ini": "",
    }
    found = included(UserTree("/etc/x", texts), "my.cnf", MARIADB)
    assert set(found.texts) == {"my.cnf", "sub dir/a.cnf", "sub dir/b.txt", "own.ini"}


def test_an_absolute_path_is_read_where_it_is() -> None:
    texts = {
        "a.conf": "include_dir '/etc/x/d'\ninclude 'd/a.conf'\n",
        "d/a.conf": "",
        "d/b.conf": "",
    }
    found = included(UserTree("/etc/x", texts), "a.conf", POSTGRESQL)
    assert set(found.texts) == {"a.conf", "d/a.conf"}
    assert set(found.in_place) == {"d/a.conf", "d/b.conf"}
    assert not found.elsewhere
    assert postgresql("include '/etc/y'\n").elsewhere


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("include 'nix.conf'", "nix.conf"),
        ("include '/etc/x/nix'", "/etc/x/nix"),
        ("include '../b.conf'", "../b.conf"),
        ("include_dir '..'", ".."),
    ],
)
def test_a_missing_include_is_reported_with_its_line(line: str, path: str) -> None:
    with fails(UsageError, where="/etc/x/a.conf:2", path=path):
        postgresql(f"port = 1\n{line}\n")


@pytest.mark.parametrize(
    "line", ["include 'd/b.conf'", "include_dir 'd'", "include_if_exists '/etc/x/d/b.conf'"]
)
def test_what_is_included_and_closed_is_told(line: str) -> None:
    tree = UserTree("/etc/x", {"a.conf": f"{line}\n"}, closed=("d/b.conf", "pg_hba.conf"))
    with fails(NotPermitted, path="/etc/x/d/b.conf"):
        included(tree, "a.conf", POSTGRESQL)


def test_a_first_file_that_is_closed_is_told() -> None:
    for closed, check in (("postgresql.conf", check_postgresql), ("my.cnf", config_of)):
        tree = UserTree("/etc/x", {"other.conf": ""}, closed=(closed,))
        with fails(NotPermitted, path=f"/etc/x/{closed}"):
            check(tree)


def test_what_may_be_missing_is_passed_over() -> None:
    assert set(postgresql("include_if_exists 'nix.conf'\n").texts) == {"a.conf"}
