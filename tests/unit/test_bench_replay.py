"""The user's SQL and clusters: what is read, what is told of a URL, when an answer has changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.bench.address import parse_address, without
from atoll.bench.analysis import summarise
from atoll.bench.cluster import is_here, look_at_cluster
from atoll.bench.replay import Replayed, nodes_of
from atoll.bench.results import resumable
from atoll.engines.base import Column, QueryResult
from atoll.errors import UsageError
from atoll.host.fake import FakeHost
from atoll.inspect.listeners import holders, tcp_listeners, unix_listeners
from atoll.report.bench_text import bench_text
from atoll.report.render import render
from atoll.schema.results import ClusterLook, Entrant, Line, ProcessSeen, RunHeader
from atoll.suites.folder import Folder, bare, choose, natural, read_folder
from tests.unit.bench_parts import FakeClient, header, lines, results
from tests.unit.bench_parts import time as query_time

# ---- URLs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "told", "place"),
    [
        ("postgresql://ann:pw1@db1:5433/x", "postgresql://ann@db1:5433/x", "db1:5433"),
        ("postgresql://ann@db1/x", "postgresql://ann@db1/x", "db1:5432"),
        ("https://u:pw1@h/hive/s?token=pw1", "https://u@h/hive/s", "h:443"),
        ("http://[::1]:8080", "http://[::1]:8080", "::1:8080"),
        (
            "postgresql:///x?host=/run/pg&port=5433&password=pw1&sslmode=require",
            "postgresql:///x?host=%2Frun%2Fpg&port=5433",
            "/run/pg:5433",
        ),
        ("postgresql://%2Frun%2Fpg/x", "postgresql://%2Frun%2Fpg/x", "/run/pg:5432"),
        ("mariadb://ann:pw1@h/x?unix_socket=/run/m", "mariadb://ann@h/x?unix_socket=%2Frun%2Fm",
         "/run/m:3306"),
    ],
)  # fmt: skip
def test_what_may_be_told_of_a_url(url: str, told: str, place: str) -> None:
    found = parse_address(url)
    assert (found.told, found.place) == (told, place)
    assert parse_address(found.told).secrets == ()


@given(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=6, max_size=20))
def test_a_password_is_never_told(password: str) -> None:
    secret = f"#{password}"
    quoted = f"%23{password}"
    for url in (
        f"postgresql://ann:{quoted}@db:1/x",
        f"postgresql://db/x?password={quoted}",
        f"https://h?SSLPassword={quoted}&access_token={quoted}",
    ):
        found = parse_address(url)
        assert secret not in found.told and quoted not in found.told
        message = f"no {secret} at {quoted} in {url}"
        assert secret not in without(found.secrets, message)
        assert quoted not in without(found.secrets, message)


@pytest.mark.parametrize(
    "url",
    ["", "host=h password=hush", "h:1", "pg://h:port/x", "//h", "pg://a:\nb@h", "pg://\udce9@h"],
)
def test_what_is_no_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(UsageError, match="--url: ") as caught:
        parse_address(url)
    assert "hush" not in str(caught.value)


def test_a_secret_is_hidden_from_ps() -> None:
    script = (
        "import sys; from atoll.host.arguments import hide; hide('s3cret'); hide('');"
        "print(open('/proc/self/cmdline').read().replace(chr(0), ' '), sys.argv[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "--url=pg://a:s3cret@h", "s3cret"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    shown, kept = done.stdout.rsplit(maxsplit=1)
    assert "--url=pg://a:xxxxxx@h xxxxxx" in shown
    assert kept == "--url=pg://a:s3cret@h"


# ---- the folder ----------------------------------------------------------------------------------


def write(folder: Path, **texts: str | bytes) -> str:
    for name, text in texts.items():
        data = text if isinstance(text, bytes) else text.encode()
        (folder / f"{name}.sql").write_bytes(data)
    return str(folder)


def test_a_folder_is_read_in_natural_order(tmp_path: Path) -> None:
    path = write(
        tmp_path, q10="select 10", q2="select 2;", b="select 1 -- ;\n;", a="\ufeffselect 0"
    )
    (tmp_path / "README.md").write_text("no query")
    found = read_folder(path, "postgresql")
    assert list(found.texts.items()) == [
        ("a", "select 0"),
        ("b", "select 1"),
        ("q2", "select 2"),
        ("q10", "select 10"),
    ]
    assert found.name == tmp_path.name
    before = found.checksum
    write(tmp_path, q2="select 3")
    assert read_folder(path, "postgresql").checksum != before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no statement"),
        (" ;\n-- nothing\n/* at all */ ;", "holds no statement"),
        ("select 1; select 2", "holds 2 statements"),
        (b"select 1\n, '\xff'", r"one.sql:2: is not UTF-8"),
    ],
)
def test_files_that_are_no_query_are_named(tmp_path: Path, text: str | bytes, words: str) -> None:
    path = write(tmp_path, one=text)
    with pytest.raises(UsageError, match=words) as caught:
        read_folder(path, "trino")
    assert "one.sql" in str(caught.value)


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no \.sql file"):
        read_folder(str(tmp_path), "trino")
    with pytest.raises(UsageError, match="cannot be read"):
        read_folder(str(tmp_path / "none"), "trino")
    for name in ("pass", "a\nb", "\udce9"):
        folder = tmp_path / str(len(name))
        folder.mkdir(exist_ok=True)
        with pytest.raises(UsageError, match="a query cannot be called"):
            read_folder(write(folder, **{name: "select 1"}), "trino")
        (folder / f"{name}.sql").unlink()


@pytest.mark.parametrize(
    ("sql", "engine"),
    [
        ("select ';', \"a;b\" -- ; x\n from t /* ; */", "trino"),
        ("select $f$ ; $f$, $$;$$", "postgresql"),
        ("select 'C:\\', ';'", "trino"),
        (r"select 'it\'s;', `a;b` # ; x", "mariadb"),
        (r"select E'it\'s;', date'2020-01-01'", "postgresql"),
        ("select 'it''s;'", "trino"),
    ],
)
def test_semicolons_that_end_no_statement(sql: str, engine: str) -> None:
    assert ";" not in bare(sql, engine)
    assert len(bare(sql, engine)) == len(sql)


def test_two_dashes_may_be_a_sum(tmp_path: Path) -> None:
    path = write(tmp_path, one="select 5--1", two="select 5 -- 1")
    assert list(read_folder(path, "mariadb").texts.values()) == ["select 5--1", "select 5"]
    assert list(read_folder(path, "trino").texts.values()) == ["select 5", "select 5"]


def test_names_that_differ_in_zeros_have_one_order(tmp_path: Path) -> None:
    path = write(tmp_path, q1="select 1", q01="select 2")
    assert list(read_folder(path, "trino").texts) == ["q01", "q1"]


def test_a_literal_at_the_end_stays(tmp_path: Path) -> None:
    found = read_folder(write(tmp_path, one="select 'a;b' ; -- the end"), "trino")
    assert found.texts["one"] == "select 'a;b'"


@given(st.lists(st.integers(0, 10**6), unique=True))
def test_numbers_in_names_sort_by_value(numbers: list[int]) -> None:
    names = [f"q{number}" for number in numbers]
    assert sorted(names, key=natural) == [f"q{number}" for number in sorted(numbers)]


def test_choosing_queries() -> None:
    assert choose(None, ("a", "b")) == ("a", "b")
    assert choose("b, a", ("a", "b")) == ("a", "b")
    with pytest.raises(UsageError, match="no 'c'; the folder has a, b"):
        choose("c", ("a", "b"))
    with pytest.raises(UsageError, match="no ','"):
        choose(",", ("a", "b"))


# ---- answers -------------------------------------------------------------------------------------


def answer(*rows: tuple[Any, ...]) -> QueryResult:
    return QueryResult((Column("k", "bigint"), Column("f", "double")), list(rows), 0.1)


def work(sql: str) -> Replayed:
    return Replayed(Folder("mine", {"q": sql}, "c"), "trino")


def test_the_first_answer_is_what_others_are_held_against() -> None:
    mine = work("select k, f from t")
    assert mine.check("q", answer((1, 0.5), (2, 0.25))) is None
    assert mine.check("q", answer((2, 0.25), (1, 0.5 * (1 + 1e-12)))) is None, "in any order"
    assert mine.check("q", answer((1, 0.5))) is not None
    differing = mine.check("q", answer((1, 0.5), (2, 0.26)))
    assert differing is not None and "row 2 is (2, 0.26)" in differing
    other = QueryResult((Column("k", "varchar"), Column("f", "double")), [("1", 0.5)], 0.1)
    assert mine.check("q", other) == "its columns are text, float, and were whole, float"


def test_an_order_by_holds_and_a_limit_may_cut() -> None:
    mine = work("select k, f from t order by k -- ('\n limit 2")
    assert mine.check("q", answer((1, 0.5), (2, 0.25))) is None
    assert mine.check("q", answer((2, 0.25), (1, 0.5))) is not None
    assert mine.check("q", answer((1, 0.5), (2, 0.75))) is None, "another of the last key's rows"
    assert mine.check("q", answer((1, 0.25), (2, 0.75))) is not None


def test_a_resumed_bench_knows_its_answers_again() -> None:
    first = answer((1, 0.5), (2, 0.25))
    digest = work("select 1").digest("q", first)
    line = query_time(0, "spark/wim", "q", 1.0).model_copy(update={"digest": digest})
    same, other = work("select 1"), work("select 1")
    for one in (same, other):
        one.recall(results([line]))
    assert same.check("q", answer((2, 0.3), (1, 0.5))) is None, "floats are not told from it"
    assert other.check("q", answer((1, 0.5), (3, 0.25))) == "it changed while the bench was stopped"


def test_rows_that_a_limit_may_choose_among_are_not_known_again() -> None:
    mine = work("select k, f from t order by f limit 2")
    columns = (Column("k", "bigint"), Column("f", "bigint"))

    def found(*rows: tuple[int, int]) -> str:
        return mine.digest("q", QueryResult(columns, list(rows), 0.1))

    assert found((1, 5), (2, 6)) == found((1, 5), (3, 6)), "another row of the same key"
    assert found((1, 5), (2, 6)) != found((1, 5), (2, 7))
    assert found((1, 5)) != found((2, 5)), "nothing was cut"


# ---- processes -----------------------------------------------------------------------------------

TCP = """  sl  local_address rem_address st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode
   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 111 1 0
   1: 0100007F:1538 0100007F:9999 01 00000000:00000000 00:00000000 00000000 0 0 112 1 0
   2: 0100007F:1539 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 113 1 0
"""
UNIX = """Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 211 /run/pg/.s.PGSQL.5432
0000000000000000: 00000002 00000000 00000000 0001 01 212 /run/pg/.s.PGSQL.5432
0000000000000000: 00000002 00000000 00010000 0001 01 213
0000000000000000: 00000002 00000000 00010000 0001 01 214 /run/pg/.s.PGSQL.5433
0000000000000000: 00000002 00000000 00010000 0001 01 215 /run/my db/m.sock
"""


def stat(pid: int, parent: int) -> str:
    return f"{pid} (postgres) S {parent} " + " ".join(["0"] * 48)


def listening() -> FakeHost:
    """10 listens at 5432, its child 11 has the socket too; 20 listens at 5433."""
    return FakeHost(
        {
            "/proc/net/tcp": TCP,
            "/proc/net/unix": UNIX,
            "/proc/10/stat": stat(10, 1),
            "/proc/10/fd/3": "socket:[111]",
            "/proc/10/fd/4": "socket:[211]",
            "/proc/11/stat": stat(11, 10),
            "/proc/11/fd/3": "socket:[111]",
            "/proc/20/stat": stat(20, 1),
            "/proc/20/fd/0": "/dev/null",
            "/proc/20/fd/9": "socket:[113]",
        }
    )


def test_who_listens() -> None:
    host = listening()
    assert tcp_listeners(host, 5432) == {"111"}
    assert holders(host, tcp_listeners(host, 5432)) == [10]
    assert holders(host, tcp_listeners(host, 5433)) == [20]
    assert holders(host, tcp_listeners(host, 5434)) == []
    assert unix_listeners(host, "/run/pg/.s.PGSQL.5432", None) == {"211"}
    assert holders(host, unix_listeners(host, "/run/pg/", 5432)) == [10]
    assert unix_listeners(host, "/run/pg", 5433) == {"214"}, "another server in the same folder"
    assert unix_listeners(host, "/run", 5432) == frozenset()
    assert unix_listeners(host, "/run/my db/m.sock", 3306) == {"215"}


def test_what_is_here() -> None:
    assert is_here("") and is_here("127.0.0.1") and is_here("localhost")
    assert not is_here("192.0.2.1")  # RFC 5737: nobody's
    assert not is_here("no-such-host.invalid")


def test_nodes_that_a_cluster_names_are_looked_for_too() -> None:
    class Knowing(FakeClient):
        def nodes(self, *, timeout_s: float) -> list[str]:
            return ["http://10.0.0.1:8080", "http://10.0.0.2:8081"]

    reached = parse_address("http://u@10.0.0.1:8080/hive")
    found = nodes_of(Knowing(FakeHost()), reached)
    assert [(one.host, one.port) for one in found] == [("10.0.0.2", 8081)]
    assert nodes_of(FakeClient(FakeHost()), reached) == []


def test_what_cannot_be_seen_is_said() -> None:
    host = listening()

    def look(url: str) -> str:
        seen, unknown = look_at_cluster(host, [parse_address(url)], deep=False)
        assert seen == ()
        return unknown

    assert "not on this machine" in look("postgresql://192.0.2.1/x")
    assert "nobody on this machine listens" in look("postgresql://127.0.0.1:5434/x")
    del host.files["/proc/20/fd/9"]
    assert "another user's" in look("postgresql://127.0.0.1:5433/x")


# ---- results and reports -------------------------------------------------------------------------

CLUSTER = Entrant(label="trino/h:8080", engine="trino", url="http://h:8080/hive")
SEEN = ProcessSeen(pid=1, process="java", masks={"0-3": 40, "0": 2}, memory_policy="default")


def replayed(**more: Any) -> RunHeader:
    values = {"scale_factor": None, "suite": "mine", "suite_checksum": "ab" * 32}
    return header(CLUSTER, **{**values, "queries": ("daily <x>", "q6"), **more})


def test_a_report_of_a_cluster() -> None:
    drifted = SEEN.model_copy(update={"drift": ("java tid 7: thread-mask: 0 instead of 0-3",)})
    given: list[Line] = [
        ClusterLook(block=0, label=CLUSTER.label, when="before", processes=(drifted, SEEN)),
        query_time(0, CLUSTER.label, "daily <x>", 0.5).model_copy(
            update={"answer": "changed", "detail": "1 rows, expected 2"}
        ),
        *lines((CLUSTER,), 2),
        ClusterLook(block=1, label=CLUSTER.label, when="after", processes=(SEEN, SEEN)),
    ]
    given = [
        one.model_copy(update={"query": "daily <x>"}) if getattr(one, "query", "") == "q1" else one
        for one in given
    ]
    found = results(given, replayed())
    summary = summarise(found)
    codes = {one.code: one.message for one in summary.warnings}
    assert "1 time, first in block 1" in codes["answer-changed"]
    assert "0 instead of 0-3" in codes["cluster-drift"]
    assert not {"drift", "page-cache", "wrong-answer"} & set(codes)
    (one,) = summary.entrants
    assert (one.policy, one.instances, one.heap_bytes) == (None, None, None)
    assert one.processes == (SEEN, SEEN)
    for kind in ("html", "md", "csv", "json"):
        told = render(found, kind)
        assert CLUSTER.label in told
        assert "<x>" not in told or kind in ("csv", "json")
    page = render(found, "html")
    assert "2 × java: CPUs 0, 0-3, memory policy default" in page
    assert "A cluster that ran already" in page and "Held equal" not in page
    assert bench_text(summary) is not None


def test_only_the_same_sql_at_the_same_url_is_resumed() -> None:
    found = results(lines((CLUSTER,), 1)[:-1], replayed())
    assert resumable(found, replayed(), where="r")[0].suite == "mine"
    elsewhere = CLUSTER.model_copy(update={"url": "http://h:8080/other"})
    for wanted, words in (
        (replayed(suite_checksum="cd" * 32), "its SQL differs"),
        (replayed(entrants=(elsewhere,)), "its url differs"),
    ):
        with pytest.raises(UsageError, match=words):
            resumable(found, wanted, where="r")


def test_an_entrant_has_a_plan_or_a_url() -> None:
    for more in ({}, {"url": "http://h", "plan": header().entrants[0].plan}):
        with pytest.raises(ValueError, match="either a plan or a URL"):
            Entrant.model_validate({"label": "x", "engine": "trino", **more})
