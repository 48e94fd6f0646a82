"""The user's own suite: its manifest, its texts by engine, its tables, and what can be wrong."""

from __future__ import annotations

import errno
import os
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from atoll.engines.api import Column, QueryResult
from atoll.errors import DiskFull, UsageError
from atoll.host.local import LocalHost
from atoll.suites import registry
from atoll.suites.base import DataSet
from atoll.suites.compare import compare
from atoll.suites.own import Own, read_own
from tests.parts.faults import fails

MANIFEST = '[tables]\norders = "data/orders.parquet"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "sales"
    (root / "data").mkdir(parents=True)
    (root / "q1.sql").write_text("select k, n from orders order by k limit 2")
    (root / "suite.toml").write_text(MANIFEST)
    write(root / "data/orders.parquet", "select range::bigint k, 1.5::float n from range(5)")
    return root


def write(path: Path, sql: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"copy ({sql}) to '{path}' (format parquet)")


def own(folder: Path) -> Own:
    return read_own(str(folder))


def data(folder: Path) -> DataSet:
    return own(folder).ensure_data(None, host=LocalHost(), progress=lambda what, part: None)


def test_tables_are_the_users_files_each_in_a_folder_of_its_own(folder: Path) -> None:
    found = data(folder)
    (table,) = found.tables
    assert [(column.name, column.type) for column in table.columns] == [
        ("k", "bigint"),
        ("n", "real"),
    ]
    assert Path(table.path).samefile(folder / "data/orders.parquet")
    assert [path.name for path in Path(table.path).parent.iterdir()] == ["orders.parquet"]
    assert data(folder) == found
    write(folder / "data/orders.parquet", "select 7::bigint k, 1.5::float n")
    assert data(folder).checksum != found.checksum


def test_a_file_that_cannot_be_linked_is_copied_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trino calls a symbolic link to it a malformed file."""

    def on_another_file_system(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr("os.link", on_another_file_system)
    said: list[str] = []

    def placed() -> Path:
        found = own(folder).ensure_data(
            None, host=LocalHost(), progress=lambda what, part: said.append(what)
        )
        return Path(found.tables[0].path)

    path = placed()
    assert path.is_file() and not path.is_symlink()
    assert path.read_bytes() == (folder / "data/orders.parquet").read_bytes()
    assert [one for one in said if "a copy of" in one] == [said[-1]]
    inode = path.stat().st_ino
    assert (placed().stat().st_ino, len([one for one in said if "a copy of" in one])) == (inode, 1)
    path.unlink()
    path.symlink_to(folder / "data/orders.parquet")
    assert not placed().is_symlink(), "left by an earlier version"
    write(folder / "data/orders.parquet", "select 7::bigint k, 1.5::float n")
    assert placed() != path


def test_a_copy_without_room_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def on_another_file_system(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr("os.link", on_another_file_system)
    monkeypatch.setattr("atoll.store.once._free_bytes", lambda folder: 0)
    with pytest.raises(DiskFull) as caught:
        data(folder)
    assert str(folder / "data/orders.parquet") in str(caught.value)
    assert not list((folder.parent / "cache").rglob("*.parquet"))


def test_answers_are_the_references(folder: Path) -> None:
    answer = own(folder).expected("q1", data(folder))
    assert (answer.rows, answer.order, answer.open_end) == ([(0, 1.5), (1, 1.5)], (0,), False)


@pytest.mark.parametrize(
    "order",
    [
        "order by n desc limit 2",
        "order by sum(m) desc limit 2",
        "order by sum(m) desc fetch first 2 rows only",
        "order by s.k desc, sum(m) limit 2 -- ties",
        "order by -sum(m), s.k desc limit 2 offset 0",
    ],
)
def test_a_limit_leaves_a_choice_only_among_equal_keys(folder: Path, order: str) -> None:
    """5 groups with the sums 0 to 4, also where the key is no column of the result."""
    (folder / "q1.sql").write_text(f"select k, sum(m) n from orders s group by s.k {order}")
    path = folder / "data/orders.parquet"
    write(path, "select range::bigint k, range::decimal(9,2) m from range(5)")
    answer = own(folder).expected("q1", data(folder))
    assert (answer.rows, answer.open_end) == ([(4, Decimal(4)), (3, Decimal(3))], False)
    columns = (Column("k", "bigint"), Column("n", "decimal(38,2)"))

    def said(*rows: tuple[int, int]) -> str | None:
        values = [(key, Decimal(total)) for key, total in rows]
        return compare(QueryResult(columns, values, 0.1), answer)

    assert said((4, 4), (3, 3)) is None
    assert said((4, 4), (9, 3)) is not None
    assert said((3, 3), (4, 4)) is not None
    assert said((0, 0), (1, 1)) is not None
    write(path, "select range::bigint k, 7::decimal(9,2) m from range(5)")
    answer = own(folder).expected("q1", data(folder))
    assert answer.open_end is ("s.k" not in order)
    assert answer.only_counted is ("s.k" not in order and "n desc" not in order)


def test_an_alias_is_not_taken_for_the_column_of_a_table(folder: Path) -> None:
    (folder / "q1.sql").write_text("select k % 2 as k, n from orders s order by s.k limit 4")
    answer = own(folder).expected("q1", data(folder))
    assert [row[0] for row in answer.rows] == [0, 1, 0, 1]
    assert (answer.order, answer.ties, answer.open_end) == ((), (0, 1, 2, 3), False)


def test_what_sorts_but_is_no_column_is_left_to_the_reference(folder: Path) -> None:
    (folder / "q1.sql").write_text("select k from orders order by all limit 2")
    answer = own(folder).expected("q1", data(folder))
    assert (answer.rows, answer.order, answer.only_counted) == ([(0,), (1,)], (), True)


def test_a_query_may_have_a_text_for_an_engine(folder: Path) -> None:
    (folder / "q1.spark.sql").write_text("select 2")
    (folder / "q10.duckdb.sql").write_text("select 10")
    (folder / "q2.v2.sql").write_text("select 22")
    suite = own(folder)
    assert suite.query_names == ("q1", "q2.v2", "q10")
    assert suite.queries("duckdb")["q10"] == "select 10"
    assert tuple(suite.queries("spark")) == ("q1", "q2.v2")
    with fails(UsageError, folder=folder, query="q10", engine="spark"):
        suite.text("q10", "spark")
    (folder / "q10.sql").write_text("select 0")
    assert own(folder).queries("spark") == {
        "q1": "select 2",
        "q2.v2": "select 22",
        "q10": "select 0",
    }


def test_the_checksum_is_over_texts_and_manifest(folder: Path) -> None:
    before = own(folder).checksum
    (folder / "suite.toml").write_text(MANIFEST.replace("[tables]", 'name = "s"\n[tables]'))
    named = own(folder)
    assert (named.name, own(folder).checksum == before) == ("s", False)
    (folder / "q1.spark.sql").write_text("select 2")
    assert own(folder).checksum != named.checksum


def test_without_tables_the_first_answer_counts(folder: Path) -> None:
    assert own(folder).knows_answers
    (folder / "suite.toml").write_text(f'answers = "first"\n{MANIFEST}')
    assert not own(folder).knows_answers
    (folder / "suite.toml").unlink()
    suite = own(folder)
    assert (suite.name, suite.tables, suite.knows_answers) == ("sales", (), False)
    assert data(folder).tables == ()


def test_the_registry_reads_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.get(str(folder)).name == "sales"
    monkeypatch.chdir(folder.parent)
    assert registry.get("sales").name == "sales"
    with fails(UsageError, folder=f"--suite {folder}/none"):
        registry.get(f"{folder}/none")


@pytest.mark.parametrize("name", ["jcch:x", "jcch:1234567890", "tpch:7"])
def test_what_is_no_seed_is_told(name: str) -> None:
    with fails(UsageError, name=name):
        registry.get(name)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[tables", "not TOML"),
        ("\ufeff[tables]\n'a b' = 'x'", "'a b'"),
        ('names = "x"', "field names is unknown"),
        ('name = "a/b"', "field name"),
        ('answers = "second"', "field answers"),
        ('answers = "duckdb"', "[tables]"),
        ("[tables]\nT = 'x'\nu = 'y'\nt = 'z'", "'T' and 't' are one table"),
    ],
)
def test_a_wrong_manifest_is_told_in_one_line(folder: Path, text: str, reason: str) -> None:
    (folder / "suite.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        own(folder)
    said = str(caught.value)
    assert said.startswith(f"{folder}/suite.toml: ") and reason in said and "\n" not in said


def test_a_manifest_or_a_query_in_another_encoding_is_told(folder: Path) -> None:
    (folder / "suite.toml").write_bytes(b"name = '\xff'")
    with fails(UsageError, path=folder / "suite.toml", line=":1:"):
        own(folder)
    (folder / "q1.sql").write_bytes(b"select '\xff'")
    with fails(UsageError, path=folder / "q1.sql", line=":1:"):
        own(folder)


def test_an_empty_or_a_huge_query_is_told(folder: Path) -> None:
    (folder / "q1.sql").write_text("-- nothing\n")
    with fails(UsageError, path=folder / "q1.sql"):
        own(folder)
    (folder / "q1.sql").write_text("select 1 " + " " * (1 << 20))
    with fails(UsageError, path=folder / "q1.sql", size=(1 << 20) + 9):
        own(folder)


def test_a_huge_manifest_is_told(folder: Path) -> None:
    os.truncate(folder / "suite.toml", 1 << 40)
    with fails(UsageError, path=folder / "suite.toml", size=1 << 40):
        own(folder)


@pytest.mark.parametrize("name", ["suite.toml", "data/orders.parquet"])
def test_a_pipe_is_told_and_not_opened(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with fails(UsageError, path=folder / name):
        data(folder)


def test_a_file_that_is_no_table_is_told(folder: Path) -> None:
    path = folder / "data/orders.parquet"
    for content in (b"", b"k,n\n1,2\n"):
        path.write_bytes(content)
        with fails(UsageError, path=path):
            data(folder)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(UsageError) as caught:
        data(folder)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    path.unlink()
    with fails(UsageError, path=path):
        data(folder)


def test_a_column_of_a_type_that_not_every_engine_has_is_told(folder: Path) -> None:
    path = folder / "data/orders.parquet"
    write(path, "select [1, 2] as many")
    with fails(UsageError, path=path, column="many", type_name="INTEGER[]"):
        data(folder)


def test_a_query_that_the_reference_refuses_is_told(folder: Path) -> None:
    (folder / "q1.sql").write_text("select k from elsewhere")
    with pytest.raises(UsageError) as caught:
        own(folder).expected("q1", data(folder))
    said = str(caught.value)
    assert (
        "correct it" in said
        and "q1.duckdb.sql" in said
        and 'answers = "first"' in said
        and "\n" not in said
    )
