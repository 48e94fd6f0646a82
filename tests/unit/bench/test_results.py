"""The results file: whole lines, torn ends, other versions, resuming; the system's part."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.bench import pagecache
from atoll.bench.files import Files
from atoll.bench.fingerprint import fingerprint
from atoll.bench.results import (
    ResultsWriter,
    parse_results,
    read_results,
    require_output,
    resumable,
)
from atoll.bench.suite_work import SuiteWork
from atoll.cli import run
from atoll.engines.api import Installation
from atoll.errors import DownloadFailed, EngineFailed, NotPermitted, UsageError
from atoll.schema.base import Record
from atoll.schema.plan import Policy
from atoll.schema.results import BlockFailed, PassDone, QueryTime, RunEnd
from tests.parts.bench import FINGERPRINT, WIC, WIM, header
from tests.parts.bench_plans import machine, plan
from tests.parts.fake_host import FakeHost
from tests.parts.faults import check_complaint, fails

END = RunEnd(ended_unix_s=1.0, status="complete")


def done(block: int, label: str) -> PassDone:
    return PassDone(block=block, label=label, seconds=1.0)


def failed(block: int, label: str) -> BlockFailed:
    return BlockFailed(block=block, label=label, error="died")


def write(path: Path, *records: Record) -> Path:
    with ResultsWriter.create(path, header()) as writer:
        for record in records:
            writer.append(record)
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    time = QueryTime(
        block=0,
        label="spark/wim",
        phase="measured",
        query="q1",
        seconds=1.0,
        engine_seconds=0.9,
        rows=4,
        answer="ok",
    )
    path = write(tmp_path / "r.jsonl", time, done(0, "spark/wim"), END)
    found = read_results(path)
    assert found.header == header()
    assert found.lines == (time, done(0, "spark/wim"), END)
    assert found.end == END


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl")
    with fails(UsageError, path=path, option="--resume", other="-o"):
        ResultsWriter.create(path, header())
    with fails(UsageError, path=tmp_path / "no" / "r.jsonl"):
        ResultsWriter.create(tmp_path / "no" / "r.jsonl", header())


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    there, new = write(tmp_path / "r.jsonl"), tmp_path / "new.jsonl"
    require_output(new, resume=False, scale_factor=0.01)
    require_output(there, resume=True, scale_factor=0.01)
    assert not new.exists()
    with fails(UsageError, path=there, option="--resume", other="-o"):
        require_output(there, resume=False, scale_factor=0.01)
    with fails(UsageError, path=tmp_path / "no" / "r.jsonl"):
        require_output(tmp_path / "no" / "r.jsonl", resume=False, scale_factor=0.01)
    long = tmp_path / ("x" * 300) / "r.jsonl"
    with fails(NotPermitted, path=long, why="File name too long"):
        require_output(long, resume=False, scale_factor=0.01)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with fails(UsageError, path=tmp_path / "link", option="--resume", other="-o"):
        require_output(tmp_path / "link", resume=False, scale_factor=0.01)
    with fails(UsageError, path=new, option="--resume"):
        require_output(new, resume=True, scale_factor=0.01)
    with ResultsWriter.create(new, header()), fails(UsageError, path=new):
        require_output(new, resume=True, scale_factor=0.01)
    there.write_text("no results\n")
    with fails(UsageError, where=f"{there}:1"):
        require_output(there, resume=True, scale_factor=0.01)


def test_bench_asks_for_its_file_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = write(tmp_path / "r.jsonl")
    monkeypatch.setattr("atoll.cli.measuring.make_job", None)  # not called
    assert run(["bench", "duckdb", "-o", str(there)]) == 2
    check_complaint(capsys.readouterr().err, path=there, option="--resume", other="-o")
    assert run(["bench", "duckdb", "-o", str(there), "--resume", "--sf", "0.1"]) == 2
    named = {"what": "scale factor", "before": 0.01, "now": 0.1}
    check_complaint(capsys.readouterr().err, where=there, **named)


def test_bench_does_not_resume_a_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = tmp_path / "r.jsonl"
    with ResultsWriter.create(there, header(scale_factor=None)):
        pass
    arguments = ["bench", "postgresql", "-o", str(there), "--resume"]
    assert run(arguments) == 2
    check_complaint(capsys.readouterr().err, path=there, command="atoll replay")


@given(st.data())
def test_a_torn_last_line_is_ignored(data: st.DataObject) -> None:
    """Cut anywhere after the header: never an error, and only the last line is lost."""
    lines = [header(), done(0, "spark/wim"), done(0, "spark/wic"), END]
    text = "".join(line.model_dump_json() + "\n" for line in lines).encode()
    first = text.index(b"\n") + 1
    cut = data.draw(st.integers(first, len(text)))
    found = parse_results(text[:cut], where="r")
    assert len(found.lines) == text[first:cut].count(b"\n")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda text: b"", {"where": "r"}),
        (lambda text: b"{", {"where": "r"}),
        (lambda text: b"<html>\n", {"where": "r:1"}),
        (lambda text: b"[1]\n", {"where": "r:1"}),
        (lambda text: text.replace(b'"version":1', b'"version":9', 1), {"version": "version 9"}),
        (
            lambda text: text + b'{"record":"pass","block":0}\n',
            {"where": "r:4", "field": "pass.label"},
        ),
        (lambda text: text + b"\xff\xfe\n", {"where": "r:4"}),
        (lambda text: text + b'{"record":"nonsense"}\n', {"where": "r:4"}),
        (
            lambda text: text.replace(b'"record":"pass"', b'"record":"pass","new":1', 1),
            {"where": "r:2", "field": "pass.new"},
        ),
        (
            lambda text: text + done(0, "mysql/wim").model_dump_json().encode() + b"\n",
            {"where": "r:4", "label": "mysql/wim"},
        ),
        (
            lambda text: text.replace(b'"scale_factor":0.01', b'"scale_factor":"x"'),
            {"where": "r:1", "field": "scale_factor"},
        ),
        (lambda text: text.replace(b"spark/wic", b"spark/wim"), {"where": "r:1"}),
        (
            lambda text: text + b'{"record":"pass","block":0,"label":"spark/wim","seconds":0}\n',
            {"where": "r:4"},
        ),
    ],
)
def test_malformed_files_give_one_line(change, named) -> None:  # type: ignore[no-untyped-def]
    lines = [header(), done(0, "spark/wim"), done(0, "spark/wic")]
    text = "".join(line.model_dump_json() + "\n" for line in lines).encode()
    with fails(UsageError, **named) as caught:
        parse_results(change(text), where="r")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["missing", "."])
def test_files_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        read_results(tmp_path / name)


def test_a_block_is_whole_when_everybody_came_to_an_end(tmp_path: Path) -> None:
    path = write(
        tmp_path / "r.jsonl",
        done(0, "spark/wim"),
        failed(0, "spark/wic"),
        done(1, "spark/wic"),
        done(1, "spark/wim"),
        done(2, "spark/wim"),
    )
    assert read_results(path).whole_blocks == 2


def test_resuming_keeps_whole_blocks_and_drops_the_rest(tmp_path: Path) -> None:
    path = write(
        tmp_path / "r.jsonl",
        done(0, "spark/wim"),
        done(0, "spark/wic"),
        done(1, "spark/wic"),
        RunEnd(ended_unix_s=1.0, status="stopped", reason="interrupted"),
    )
    with open(path, "ab") as out:
        out.write(b'{"record":"pa')
    wanted = header(blocks_asked=7, run_id="r2")
    writer, kept, first = ResultsWriter.resume(path, wanted, extend=True)
    assert kept.header == header(blocks_asked=7)  # the run is still the old one
    assert first == 1
    with writer:
        writer.append(done(1, "spark/wim"))
    found = read_results(path)
    assert found.header.blocks_asked == 7
    assert found.lines == (done(0, "spark/wim"), done(0, "spark/wic"), done(1, "spark/wim"))


def test_a_file_that_a_bench_is_writing_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with ResultsWriter.create(path, header()) as writer:
        with fails(UsageError, path=path):
            ResultsWriter.resume(path, header())
        writer.append(END)
    again, _, _ = ResultsWriter.resume(path, header())
    with again, fails(UsageError, path=path):
        ResultsWriter.resume(path, header())
    assert read_results(path).lines == ()  # the end is written again
    with fails(UsageError, path=tmp_path / "missing", option="--resume"):
        ResultsWriter.resume(tmp_path / "missing", header())


def test_another_session_of_the_same_machine_can_resume() -> None:
    text = header().model_dump_json().encode() + b"\n"
    elsewhere = FINGERPRINT.model_copy(update={"cgroup": "/user.slice/session-2.scope"})
    kept = resumable(parse_results(text, where="r"), header(fingerprint=elsewhere), where="r")
    assert kept.header == header()


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        (header(machine_id="m2"), {"what": "machine", "before": "m1", "now": "m2"}),
        (header(scale_factor=0.1), {"what": "scale factor", "before": 0.01, "now": 0.1}),
        (header(queries=("q1",)), {"what": "queries", "before": "q1,q6", "now": "q1"}),
        (header(suite="tpcds"), {"what": "suite", "before": "tpch", "now": "tpcds"}),
        (header(WIM), {"what": "entrants", "before": "spark/wim, spark/wic", "now": "spark/wim"}),
        (
            header(WIC, WIM),
            {"what": "entrants", "before": "spark/wim, spark/wic", "now": "spark/wic, spark/wim"},
        ),
        (
            header(WIM, WIC.model_copy(update={"plan": plan("spark", Policy.WIC, 2)})),
            {"label": "spark/wic"},
        ),
        (
            header(fingerprint=FINGERPRINT.model_copy(update={"data_checksum": "x"})),
            {"what": "data checksum", "before": FINGERPRINT.data_checksum, "now": "x"},
        ),
        (
            header(fingerprint=FINGERPRINT.model_copy(update={"thp_enabled": "always"})),
            {"what": "thp enabled", "before": "madvise", "now": "always"},
        ),
        (
            header(fingerprint=FINGERPRINT.model_copy(update={"clock": "client"})),
            {"what": "clock", "before": "bench", "now": "client"},
        ),
        (header(query_limit_s=1.0), {"what": "query limit", "before": 60.0, "now": 1.0}),
        (header(warmups=3), {"what": "warm-up passes", "before": 1, "now": 3}),
    ],
)
def test_another_run_cannot_be_resumed(wanted, named) -> None:  # type: ignore[no-untyped-def]
    text = header().model_dump_json().encode() + b"\n"
    with fails(UsageError, where="r", **named):
        resumable(parse_results(text, where="r"), wanted, where="r")


def test_a_full_disk_keeps_what_was_measured() -> None:
    descriptor = os.open("/dev/full", os.O_WRONLY)
    with (
        ResultsWriter(Path("/dev/full"), descriptor) as writer,
        fails(DownloadFailed, path="/dev/full", why="No space left on device", option="--resume"),
    ):
        writer.append(END)


def test_a_disk_full_at_the_beginning_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: 7)
        with fails(DownloadFailed, path=path, why="No space left on device"):
            ResultsWriter.create(path, header())
    assert not path.exists()
    ResultsWriter.create(path, header()).__exit__(None, None, None)


LOOKS = 100  # at most: the kernel moves pages (compaction), and evicts some, as it likes


def test_dropped_files_are_gone_from_the_page_cache(tmp_path: Path) -> None:
    """On a real file; a mapping keeps its pages, and the error says so."""
    path = tmp_path / "data"
    path.write_bytes(os.urandom(1 << 20))
    (tmp_path / "empty").touch()
    path.read_bytes()
    first = share = pagecache.drop([str(path), str(tmp_path / "empty")])
    for _ in range(LOOKS):
        if share in (0.0, 1.0):
            break
        share = pagecache.drop([str(path), str(tmp_path / "empty")])
    if share == 1.0:  # tmpfs has nowhere else to keep its pages
        assert " tmpfs " in Path("/proc/mounts").read_text()
    else:
        assert first is not None and first < 0.2 and share == 0.0
        descriptor = os.open(path, os.O_RDONLY)
        try:
            for _ in range(LOOKS):
                path.read_bytes()
                resident = pagecache._resident(descriptor)
                if resident == (256, 256):
                    break
        finally:
            os.close(descriptor)
        assert resident == (256, 256)


def test_data_that_went_away_fails_the_block_and_is_named(tmp_path: Path) -> None:
    gone = str(tmp_path / "lineitem.parquet")
    work = SuiteWork(texts={}, answers={}, files=Files((gone,)))
    with fails(EngineFailed, path=gone, why="No such file or directory"):
        work.drop_from_cache()


def test_fingerprint_of_a_recorded_host() -> None:
    host = FakeHost(
        {
            "/proc/sys/kernel/osrelease": "6.1.0-26-amd64\n",
            "/proc/cmdline": "quiet splash\n",
            "/proc/cpuinfo": "processor\t: 0\nmicrocode\t: 0xa10\nflags\t\t: fpu hypervisor\n\n",
            "/sys/class/dmi/id/sys_vendor": "QEMU\n",
            "/sys/class/dmi/id/product_name": "Standard PC\n",
            "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            "/sys/kernel/mm/transparent_hugepage/defrag": "always defer [never]\n",
            "/proc/sys/kernel/numa_balancing": "1\n",
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
            "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
            "/proc/self/cgroup": "0::/user.slice\n",
            "/proc/sys/kernel/hostname": "secret-name\n",
        },
        affinity=frozenset({0, 1}),
    )
    installed = {
        "spark": Installation("4.3.0", "/spark", "/java", "17.0.1"),
        "duckdb": Installation("1.5.5", "/duckdb"),
    }
    found = fingerprint(host, machine(), installed, data_checksum="abc")
    assert found.kernel == "6.1.0-26-amd64"
    assert found.microcode == "0xa10"
    assert found.virtualization == "QEMU Standard PC"
    assert (found.thp_enabled, found.thp_defrag) == ("madvise", "never")
    assert found.governor == "performance, powersave"
    assert found.affinity == "0-1"
    assert found.cgroup == "/user.slice"
    assert found.engine_versions == {"duckdb": "1.5.5", "spark": "4.3.0"}
    assert found.java_version == "17.0.1"
    assert "secret" not in json.dumps(found.model_dump())
    assert len(found.hostname_hash) == 12
    assert found.clock == "client"


def test_fingerprint_of_a_host_that_tells_nothing() -> None:
    found = fingerprint(FakeHost({}), machine(), {}, data_checksum="")
    assert found.kernel == found.microcode == found.governor == found.virtualization == ""
    assert found.hostname_hash == ""


def test_fingerprint_knows_both_cgroup_versions_and_bare_metal() -> None:
    host = FakeHost(
        {
            "/proc/self/cgroup": "12:cpuset:/docker/1\n3:cpu,cpuacct:/x\n0::/\n",
            "/proc/cpuinfo": "flags\t\t: fpu vme\n",
        }
    )
    found = fingerprint(host, machine(), {}, data_checksum="")
    assert found.cgroup == "/docker/1"
    assert found.virtualization == "none"
