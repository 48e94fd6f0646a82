"""TPC-H's data in the cache: made once, whole or not at all, watched. A stand-in for tpchgen-cli
writes a few bytes per table; the real one is run by tests/engines."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from atoll.engines import registry as engines
from atoll.errors import DiskFull, DownloadFailed, EngineFailed, UsageError
from atoll.host.local import LocalHost
from atoll.store.paths import cache_dir
from atoll.suites import cached, reference, registry, tpch_data
from atoll.suites.base import DataSet
from atoll.suites.dialects import Dialect
from atoll.suites.ordering import ordering_of
from atoll.suites.selection import select_queries
from atoll.suites.tpch import QUERY_NAMES
from tests.parts.faults import fails

SCRIPT = """#!/bin/sh
for arg in "$@"; do case "$arg" in --output-dir=*) dir="${arg#*=}";; esac; done
echo run >> "$(dirname "$0")/runs"
for table in lineitem orders partsupp part customer supplier nation region; do
  echo "$table" > "$dir/$table.parquet"
done
"""


@pytest.fixture
def generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in, with an empty cache; a test may rewrite it."""
    program = tmp_path / "bin" / "tpchgen-cli"
    program.parent.mkdir()
    program.write_text(SCRIPT)
    program.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tpch_data, "_generator", lambda: str(program))
    return program


def ensure(said: list[str] | None = None) -> DataSet:
    notes = [] if said is None else said
    return tpch_data.ensure_data(
        0.01, host=LocalHost(), progress=lambda what, done: notes.append(what)
    )


def runs(generator: Path) -> int:
    return len((generator.parent / "runs").read_text().splitlines())


def left_over() -> set[str]:
    return {path.name for path in cache_dir("tpch").iterdir()} - {".sf0.01.lock"}


def test_data_is_made_once_and_found_again(generator: Path) -> None:
    first, again = ensure(), ensure()
    assert runs(generator) == 1
    assert first == again
    assert set(first.files) == set(tpch_data.TABLES)
    assert all(path.exists() for path in first.files.values())
    assert left_over() == {"sf0.01"}


def test_a_damaged_file_is_told_and_made_anew(generator: Path) -> None:
    data = ensure()
    data.files["orders"].write_text("orderx\n")
    said: list[str] = []
    assert ensure(said).checksum == data.checksum
    assert runs(generator) == 2
    assert any("orders.parquet: damaged" in line for line in said)
    assert data.files["orders"].read_text() == "orders\n"


def test_a_missing_file_and_a_broken_manifest_are_made_anew(generator: Path) -> None:
    data = ensure()
    data.files["part"].unlink()
    ensure()
    (data.root / "manifest.json").write_text("{")
    ensure()
    (data.root / "manifest.json").unlink()
    assert ensure().checksum == data.checksum
    assert runs(generator) == 4


def test_a_touched_file_of_the_same_content_is_kept(generator: Path) -> None:
    data = ensure()
    data.files["orders"].touch()
    said: list[str] = []
    ensure(said)
    ensure(said)
    assert runs(generator) == 1
    assert len(said) == 1, "the new time must be remembered"


def test_two_at_once_make_it_once(generator: Path) -> None:
    generator.write_text(SCRIPT.replace("#!/bin/sh\n", "#!/bin/sh\nsleep 0.5\n"))
    threads = [threading.Thread(target=ensure) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert runs(generator) == 1


def test_a_disk_that_fills_up_leaves_nothing(generator: Path) -> None:
    full = "echo half > \"$dir/orders.parquet\"; echo 'No space left on device' >&2; exit 1\n"
    generator.write_text("\n".join(SCRIPT.splitlines()[:3]) + "\n" + full)
    with pytest.raises(DiskFull) as caught:
        ensure()
    assert str(cache_dir("tpch")) in str(caught.value)
    assert left_over() == set()


def test_a_disk_that_is_too_small_is_told_before(
    generator: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with fails(DiskFull, folder=cache_dir("tpch"), scale_factor=0.01, free="1000 B"):
        ensure()
    assert not (generator.parent / "runs").exists()
    assert left_over() == set()


def test_an_interruption_ends_the_generator_and_leaves_nothing(generator: Path) -> None:
    done = generator.parent / "done"
    generator.write_text(f"#!/bin/sh\nexec sleep 60; touch {done}\n")

    def interrupt(what: str, part: float | None) -> None:
        raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        tpch_data.ensure_data(0.01, host=LocalHost(), progress=interrupt)
    assert time.monotonic() - started < 50, "the generator was waited for"
    assert left_over() == set()


def test_the_generator_dies_with_a_process_that_is_killed(generator: Path) -> None:
    pid_file = generator.parent / "pid"
    generator.write_text(f"#!/bin/sh\necho $$ > {pid_file}\nexec sleep 60\n")
    program = (
        "from atoll.host.local import LocalHost; from atoll.suites import tpch_data; "
        f"tpch_data._generator = lambda: {str(generator)!r}; "
        "tpch_data.ensure_data(0.01, host=LocalHost(), progress=lambda what, done: None)"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as maker:
        try:
            until(lambda: pid_file.exists() and bool(pid_file.read_text().strip()))
        finally:
            maker.kill()
    pid = int(pid_file.read_text())
    until(lambda: LocalHost().identify(pid) is None)
    assert ensure_again(generator).root.exists(), "the lock must be free, the rest swept away"
    assert left_over() == {"sf0.01"}


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ensure_again(generator: Path) -> DataSet:
    generator.write_text(SCRIPT)
    return ensure()


def test_a_cache_that_cannot_be_written_is_told_in_one_line(
    generator: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/cache/x")

    monkeypatch.setattr(cached, "_put_away", full)
    with pytest.raises(DiskFull) as caught:
        ensure()
    assert str(cache_dir("tpch")) in str(caught.value)
    assert left_over() == set()


def test_scale_factors_that_are_close_have_folders_of_their_own(generator: Path) -> None:
    roots = {
        tpch_data.ensure_data(
            scale_factor, host=LocalHost(), progress=lambda what, done: None
        ).root.name
        for scale_factor in (0.0123456, 0.01234561, 0.1)
    }
    assert roots == {"sf0.0123456", "sf0.01234561", "sf0.1"}


def test_a_generator_that_fails_is_quoted(generator: Path) -> None:
    generator.write_text("#!/bin/sh\necho one >&2; echo 'error: two' >&2; exit 3\n")
    with fails(DownloadFailed, scale_factor="0.01", reason="error: two"):
        ensure()
    assert left_over() == set()


def test_what_a_killed_process_left_is_swept_away(generator: Path) -> None:
    (cache_dir("tpch") / ".sf0.01.unfinished").mkdir()
    ensure()
    assert left_over() == {"sf0.01"}


@pytest.mark.parametrize("scale_factor", [0, -1, float("nan"), float("inf"), 1e9])
def test_an_impossible_scale_factor_is_refused(scale_factor: float) -> None:
    with fails(UsageError, asked=f"factor {scale_factor:g} is"):
        tpch_data.ensure_data(scale_factor, host=LocalHost(), progress=lambda what, done: None)


def test_no_generator_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with fails(DownloadFailed, program="tpchgen-cli"):
        ensure()


def test_all_queries_are_there_and_their_order_is_understood() -> None:
    texts = reference.query_texts("tpch")
    assert tuple(texts) == QUERY_NAMES
    assert not any(text.endswith(";") for text in texts.values())
    for scale_factor in (0.01, 0.1, 1.0):
        answers = reference.published_answers(scale_factor)
        assert set(answers) == set(QUERY_NAMES)
        for query, (columns, rows) in answers.items():
            assert {len(row) for row in rows} == {len(columns)}
            order = ordering_of(texts[query], columns)[0]
            assert bool(order) == ("order by" in texts[query].lower()), query
    assert reference.published_answers(0.02) == {}


def test_every_rewrite_of_a_dialect_still_finds_its_text() -> None:
    suite = registry.get("tpch")
    for engine in engines.names():
        assert tuple(suite.queries(engine)) == QUERY_NAMES
    rewrites = {"q1": (("from t", "from u"),)}
    assert Dialect("x", [rewrites], {}).texts({"q1": "select 1 from\n  t"}) == {
        "q1": "select 1 from u"
    }
    with fails(EngineFailed, engine="'x'", query="q1", text="'from t'"):
        Dialect("x", [rewrites], {}).texts({"q1": "select 1"})


def test_an_unknown_suite_or_query_is_refused() -> None:
    with fails(UsageError, name="tpcx", known=", ".join(registry.names())):
        registry.get("tpcx")
    data = DataSet("tpch", 0.01, Path("/"), (), "")
    with fails(UsageError, query="q23", first="q1", last="q22"):
        registry.get("tpch").expected("q23", data)


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        (None, QUERY_NAMES),
        (" ", QUERY_NAMES),
        ("18, 1", ("q1", "q18")),
        ("q3-q5,4", ("q3", "q4", "q5")),
    ],
)
def test_queries_are_selected(asked: str | None, chosen: tuple[str, ...]) -> None:
    assert select_queries(asked, QUERY_NAMES) == chosen


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        *(("0", "q0"), ("23", "q23"), ("1-23", "q23"), ("1,", "''")),
        *((text, f"'{text}'") for text in ("5-3", "x", "-1", "1-2-3", "99999999")),
    ],
)
def test_a_wrong_selection_is_refused(asked: str, named: str) -> None:
    with fails(UsageError, option="--queries", text=named):
        select_queries(asked, QUERY_NAMES)


def test_the_variant_with_joins_is_another_text_of_two_queries_in_postgresql() -> None:
    suite, plain = registry.get("tpch:joins"), registry.get("tpch")
    assert suite.name == "tpch:joins" and suite.query_names == plain.query_names
    assert suite.queries("duckdb") == plain.queries("duckdb")
    ours, theirs = suite.queries("postgresql"), plain.queries("postgresql")
    assert {query for query in ours if ours[query] != theirs[query]} == {"q17", "q22"}
    assert "WHERE\n            l_partkey" not in ours["q17"] and "EXISTS" not in ours["q22"]
    with pytest.raises(UsageError, match="only tpch has the variant tpch:joins"):
        registry.get("tpcds:joins")
