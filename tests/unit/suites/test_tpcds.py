"""TPC-DS: its data in the cache, its dialects as data, and the order of its answers."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from atoll.engines import registry as engines
from atoll.engines.facts import facts_of
from atoll.errors import DiskFull, DownloadFailed, EngineFailed, UsageError
from atoll.host.local import LocalHost
from atoll.store.paths import cache_dir
from atoll.suites import dialects, reference, registry, tpcds_data
from atoll.suites.base import DataSet
from atoll.suites.dialects import dialect_of, without_impossible
from atoll.suites.generating import run_generator
from atoll.suites.ordering import hidden_keys, outline_of, with_keys
from atoll.suites.tpcds import QUERY_NAMES
from tests.parts.faults import fails


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def ensure(scale_factor: float = 0.01) -> DataSet:
    return tpcds_data.ensure_data(scale_factor, host=LocalHost(), progress=lambda what, part: None)


def generator(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """`script` in place of the process that generates; $1 is the folder."""
    monkeypatch.setattr(
        tpcds_data, "generator_argv", lambda sf, folder: ["/bin/sh", "-c", script, "", str(folder)]
    )


def left_over() -> set[str]:
    return {path.name for path in cache_dir("tpcds").iterdir() if path.suffix != ".lock"}


def test_the_same_data_is_made_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ensure()
    assert set(first.files) == set(tpcds_data.TABLES) == set(registry.get("tpcds").tables)
    assert {path.name for path in first.root.iterdir()} == {*tpcds_data.TABLES, "manifest.json"}
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache / "another"))
    assert ensure().checksum == first.checksum


def test_the_tables_are_as_their_schemas_say() -> None:
    data = ensure()
    for table in data.tables:
        _, described = reference.run(f"describe {table.name}", data.files)
        assert [(name, kind.lower()) for name, kind, *_ in described] == [
            (column.name, column.type) for column in table.columns
        ]
        assert table.primary_key
        assert {key for index in table.indexes for key in index} <= {
            column.name for column in table.columns
        }


def test_a_disk_that_fills_up_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator(monkeypatch, "echo half > $1/item.parquet; echo 'x: No space left on device'; exit 1")
    with pytest.raises(DiskFull) as caught:
        ensure()
    assert str(cache_dir("tpcds")) in str(caught.value)
    assert left_over() == set()


def test_a_generator_that_fails_is_quoted(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator(monkeypatch, "echo first; echo 'no such thing'; exit 1")
    with fails(DownloadFailed, scale_factor="0.01", reason="no such thing"):
        ensure()
    assert left_over() == set()


def test_the_generator_says_what_is_wrong_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["", "0.01", str(tmp_path / "missing")])
    assert run_generator(tpcds_data.write_tables) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_every_change_of_a_dialect_finds_its_text() -> None:
    suite = registry.get("tpcds")
    for engine in engines.names():
        cannot = dialect_of(engine, "tpcds").cannot
        assert (*suite.queries(engine), *cannot) == tuple(
            sorted(QUERY_NAMES, key=lambda query: (query in cannot, int(query[1:])))
        )
    assert suite.queries("duckdb") == reference.query_texts("tpcds")


def test_dialects_keep_the_order_of_nulls() -> None:
    suite = registry.get("tpcds")
    assert "ORDER BY ss1.ca_county NULLS LAST" in suite.queries("spark")["q31"]
    assert "ORDER BY ss1.ca_county IS NULL, ss1.ca_county" in suite.queries("mariadb")["q31"]
    assert all("NULLS" not in text for text in suite.queries("mariadb").values())


def test_quotients_in_sparks_answers_are_doubles_as_in_the_references() -> None:
    texts = registry.get("tpcds").queries("spark")
    for query in (12, 20, 31, 36, 49, 58, 59, 61, 66, 83, 90, 98):
        text = texts[f"q{query}"].lower()
        assert "e0" in text or "as double" in text, query
        assert not re.search(r"\d\.0000?\b|decimal\(15,4\)\s*\)\s*/", text), query


def test_every_file_of_a_dialect_is_of_a_suite() -> None:
    for engine in engines.names():
        folder = facts_of(engines.get(engine)).dialects
        for path in () if folder is None else folder.iterdir():
            assert path.stem.partition("-")[0] in registry.names()  # tpch-joins is of tpch
            assert tomllib.loads(path.read_text()), path


def test_a_long_change_stands_in_one_place() -> None:
    folder = facts_of(engines.get("postgresql")).dialects
    assert folder is not None
    changed = [
        new
        for path in folder.iterdir()
        for one in dialects._read(path).changes
        for pairs in one.texts.values()
        if not isinstance(pairs, str)
        for _, new in pairs
        if len(new) > 100
    ]
    assert changed and len(set(changed)) == len(changed)
    joins = dialect_of("postgresql", "tpch-joins").steps[1]["q17"]
    assert dialect_of("postgresql", "jcch").steps[1] == {"q17": joins, "q17p": joins}


def test_a_change_that_another_query_does_not_have_is_told(tmp_path: Path) -> None:
    path = tmp_path / "jcch.toml"
    (tmp_path / "tpch.toml").touch()
    with fails(EngineFailed, path=path, other=tmp_path / "tpch.toml", query="q2"):
        dialects._pairs(path, "tpch:q2")


def test_a_wrong_file_of_a_dialect_is_told(tmp_path: Path) -> None:
    path = tmp_path / "tpcds.toml"
    path.write_text("[cannot")
    with fails(EngineFailed, path=path):
        dialects._read(path)
    path.write_text('[[changes]]\nreason = ""\n[changes.texts]\nq1 = [["a", "b"]]\n')
    with fails(EngineFailed, path=path, field="changes.0.reason"):
        dialects._read(path)


def test_a_missing_folder_of_a_dialect_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = replace(facts_of(engines.get("spark")), dialects=Path("/missing/dialects"))
    monkeypatch.setattr(dialects, "facts_of", lambda engine: facts)
    with fails(EngineFailed, engine="'spark'", folder="/missing/dialects"):
        dialect_of("spark", "tpcds")


def test_queries_that_an_engine_cannot_run_are_left_out_for_all() -> None:
    left, (note,) = without_impossible(("q1", "q51", "q97"), "tpcds", ("duckdb", "mariadb"))
    assert left == ("q1",)
    assert note.startswith("left out, because mariadb cannot run them: q51: it has no FULL JOIN")
    assert without_impossible(("q51",), "tpcds", ("duckdb",)) == (("q51",), [])
    with fails(UsageError, suite="tpcds", query="q51"):
        without_impossible(("q51",), "tpcds", ("mariadb",))


def test_a_scale_factor_at_which_the_extension_hangs_is_refused(cache: Path) -> None:
    with fails(UsageError, asked="factor 0.001 is", least="0.01"):
        ensure(0.001)


def test_data_of_another_generator_is_made_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def ensured() -> None:
        tpcds_data.ensure_data(
            0.01, host=LocalHost(), progress=lambda what, part: said.append(what)
        )

    ensured()
    said.clear()
    monkeypatch.setattr(tpcds_data, "package_version", lambda name: "")
    ensured()
    assert said == [], "what is not installed has no version to compare"
    monkeypatch.setattr(tpcds_data, "package_version", lambda name: f"{name} 0.0.0")
    ensured()
    assert "was made by duckdb-extension-tpcds" in said[0] and "0.0.0; making" in said[0]
    said.clear()
    ensured()
    assert said == []


@pytest.mark.long
def test_every_order_by_is_read_whole() -> None:
    texts = reference.query_texts("tpcds")
    data = tpcds_data.ensure_data(0.01, host=LocalHost(), progress=lambda what, part: None)
    for text in texts.values():
        outline = outline_of(text)
        columns = [name for name, *_ in reference.run(f"describe {text}", data.files)[1]]
        hidden = hidden_keys(outline, columns)
        assert outline.columns is not None or not any(key.column(columns) is None for key in hidden)
        asked = with_keys(text, outline, hidden, None)
        reference.run(f"describe {asked}", data.files)


def test_an_unknown_query_is_refused() -> None:
    with fails(UsageError, query="q100"):
        registry.get("tpcds").expected("q100", DataSet("tpcds", 0.01, Path("/"), (), ""))


def test_an_order_by_more_than_columns_ties_rows_by_number() -> None:
    data = registry.get("tpcds").ensure_data(
        0.01, host=LocalHost(), progress=lambda what, part: None
    )
    answer = registry.get("tpcds").expected("q47", data)
    assert len(answer.rows) == len(answer.ties) == 100
    assert list(answer.ties) == sorted(answer.ties)
