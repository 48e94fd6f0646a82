"""Where Trino and Presto are found and asked: URLs, homes, tables."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from atoll.engines import registry
from atoll.engines.api import Column, RemoteEngine, Table
from atoll.engines.trino.client import TrinoClient, parse_url
from atoll.engines.trino.engine import find_home
from atoll.engines.trino.family import TRINO
from atoll.errors import EngineFailed, UsageError
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails
from tests.parts.trino_plans import BOTH


@pytest.mark.parametrize(
    ("url", "place", "user", "catalog"),
    [
        ("http://h/hive", "http://h:8080", None, "hive"),
        ("https://ann:s%40c@h:8443/hive/tpch", "https://h:8443", "ann", "hive"),
        ("https://h", "https://h:443", None, None),
        ("http://[::1]:99", "http://[::1]:99", None, None),
    ],
)
def test_urls(url: str, place: str, user: str | None, catalog: str | None) -> None:
    address = parse_url(url)
    assert (address.place, address.catalog) == (place, catalog)
    assert user is None or (address.user, address.password) == (user, "s@c")


def test_a_user_without_a_name_asks_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    for read in ("os.getuid", "os.geteuid"):
        monkeypatch.setattr(read, lambda: 987654)
    assert parse_url("http://h").user == "987654"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://u:hidden@h",
        "http://u:hidden@h",
        "https://u:hidden@h/a/b/c",
        "https://u:hidden@h:x",
        "https://u:hidden#2@h",
        "https://h/hive?password=hidden",
    ],
)
@BOTH
def test_what_is_no_url_is_refused_without_its_password(name: str, url: str) -> None:
    engine = registry.get(name)
    assert isinstance(engine, RemoteEngine)
    with pytest.raises(UsageError) as caught:
        engine.reach(url, timeout_s=1)
    assert "hidden" not in str(caught.value)


def test_nobody_at_the_url_is_one_line_without_the_password() -> None:
    with fails(EngineFailed, place="https://127.0.0.1:1", why="Connection refused") as caught:
        TrinoClient(parse_url("https://u:hidden@127.0.0.1:1")).execute("select 1", timeout_s=5)
    assert "hidden" not in str(caught.value)


@BOTH
def test_a_table_is_the_folder_of_its_file(name: str) -> None:
    columns = (Column("a", "bigint"), Column("b", "decimal(15,2)"))
    statements = registry.get(name).attach(Table("t", "/it's/t/t.parquet", columns))
    (create,) = [each for each in statements if each.startswith("create table")]
    assert "(a bigint, b decimal(15,2))" in create
    assert "///it''s/t'" in create


def home_of(names: Sequence[str]) -> tuple[str, str]:
    files = {f"/opt/mine/lib/{name}": "" for name in names}
    host = FakeHost(files, variables={"TRINO_HOME": "/opt/mine"})
    return find_home(host, TRINO)


def test_a_home_of_that_version_or_later_is_taken() -> None:
    jars = ["a.jar", "io.trino_trino-main-480.jar"]
    assert home_of(jars) == ("480", "/opt/mine")


@pytest.mark.parametrize(
    ("jar", "found"),
    [("io.trino_trino-main-400.jar", {"version": "400"}), ("x.jar", {})],
)
def test_another_home_is_named_with_what_to_install(
    jar: str, found: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atoll.engines.trino.engine.installed", lambda name: "")
    with fails(EngineFailed, home="/opt/mine", command="atoll engine install trino", **found):
        home_of([jar])
