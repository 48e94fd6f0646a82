"""What docs/adding-an-engine.md prints: an engine from outside the package, and a client."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from atoll.bench.results import read_results
from atoll.engines.api import Column
from atoll.errors import EngineFailed, ServerGone
from atoll.schema.results import QueryTime, VerifyResult
from tests.parts.deployment import left_over
from tests.parts.paths import ROOT

PAGE = ROOT / "docs/adding-an-engine.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on Python's path with the page's package in it, as pip would leave it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "duckling.py").write_text(block("python"))
    group, entry = block("toml").strip().splitlines()
    name = re.fullmatch(r'\[project\.entry-points\."(.*)"\]', group)
    assert name is not None
    install(folder, "duckling", f"[{name[1]}]\n{entry.replace(chr(34), '')}\n")
    return folder


def block(kind: str) -> str:
    """The page's block of code that begins with ```KIND."""
    found = re.search(rf"```{re.escape(kind)}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def install(folder: Path, package: str, entry_points: str) -> None:
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


def python(site: Path, *arguments: str, code: int = 0, **env: str) -> str:
    """What Python prints with the site's packages. It must exit with `code`."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(site), **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + (done.stderr if code else "")


def atoll(site: Path, *arguments: str, code: int = 0, **env: str) -> str:
    return python(site, "-m", "atoll", *arguments, code=code, **env)


def test_it_is_planned_for_and_measured_under_two_policies(site: Path, tmp_path: Path) -> None:
    assert json.loads(atoll(site, "plan", "duckling", "--json"))["engine"] == "duckling"
    path = tmp_path / "r.jsonl"
    atoll(
        site,
        *("bench", "duckling", "--policies", "wim,wic", "--queries", "1,6,18"),
        *("--sf", "0.01", "--blocks", "1", "-o", str(path)),
    )
    lines = read_results(path).lines
    answers = {
        (line.label, line.query): line.answer for line in lines if isinstance(line, QueryTime)
    }
    assert answers == {
        (f"duckling/{policy}", query): "ok"
        for policy in ("wim", "wic")
        for query in ("q1", "q6", "q18")
    }
    assert [line.drifted for line in lines if isinstance(line, VerifyResult)] == [0, 0]


def test_it_comes_up_where_planned_and_goes_down(site: Path) -> None:
    assert "ready" in atoll(site, "up", "duckling", "--policy", "wic", "-d")
    atoll(site, "verify", "duckling")
    assert atoll(site, "down", "duckling") == "duckling: down\n"
    assert left_over("duckling") == []


# ---- the facts -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reef(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on Python's path with an engine that declares the page's facts."""
    folder = tmp_path_factory.mktemp("reef")
    (folder / "reef_facts.py").write_text(block('python title="facts"'))
    (folder / "reef.py").write_text((ROOT / "tests/parts/reef.py").read_text())
    install(folder, "reef", "[atoll.engines]\nreef = reef:ReefEngine\n")
    return folder


def test_its_account_home_and_stop_signal_are_rendered(reef: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    machine = ("--synthetic", "Package:1 NUMANode:1(memory=8GB) Core:4 PU:1")
    atoll(reef, "render", "reef", *machine, "--policy", "wim", "--to", "systemd", "-o", str(out))
    unit = (out / "systemd/reef-server-0.service").read_text()
    assert "\nUser=reefd\n" in unit
    assert "\nKillSignal=SIGQUIT\n" in unit


def test_a_failed_start_shows_its_log_and_leaves_nothing(reef: Path, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    said = atoll(reef, "up", "reef", "--policy", "wim", code=5, REEF_LOCK=str(lock))
    assert "error: the coral is bleached (log: " in said
    assert not lock.exists()
    assert left_over("reef") == []


def test_its_cluster_has_its_port_and_its_comments(reef: Path, tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql/one.sql").write_text("select 1 %% not; three; statements\n")
    path = tmp_path / "r.jsonl"
    where = ("reef://127.0.0.1", "--suite", str(tmp_path / "sql"))
    atoll(reef, "replay", "reef", *where, "--blocks", "1", "-o", str(path))
    (entrant,) = read_results(path).header.entrants
    assert entrant.label == "reef/127.0.0.1:7777"


def test_its_rewrites_and_parts_are_known(reef: Path) -> None:
    code = "from atoll.suites import registry; print(registry.get('tpch').queries('reef')['q15'])"
    assert "supplier_no" not in python(reef, "-c", code)
    assert "nothing to remove" in atoll(reef, "engine", "remove", "reef")


# ---- the client ----------------------------------------------------------------------------------


class Asked(BaseHTTPRequestHandler):
    """Answers every statement but three: one is refused, one never answered, at one it hangs up."""

    protocol_version = "HTTP/1.1"
    over = threading.Event()

    def do_POST(self) -> None:
        sql = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if sql == "hang up":
            self.close_connection = True
            return
        if sql == "wait":
            self.over.wait()
        known = sql != "nonsense" and self.headers["Authorization"] == "Bearer secret"
        told = {"columns": [["n", "bigint"], ["word", "varchar"]], "rows": [[1, "a"], [2, None]]}
        body = json.dumps(told).encode() if known else b"line 1: nonsense\nmore of it"
        with contextlib.suppress(BrokenPipeError):  # who waited has hung up
            self.send_response(200 if known else 400)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "token").write_text("secret")
    Asked.over.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Asked) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}?{tmp_path}/token"
        Asked.over.set()
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def page_client() -> ModuleType:
    module = ModuleType("page_client")
    exec(compile(block('python title="client"'), str(PAGE), "exec"), module.__dict__)
    return module


def test_the_pages_client_asks_and_is_refused(page_client: ModuleType, endpoint: str) -> None:
    (client,) = page_client.connect([endpoint], timeout_s=60)
    result = client.execute("select", timeout_s=60)
    assert result.columns == (Column("n", "bigint"), Column("word", "varchar"))
    assert result.rows == [(1, "a"), (2, None)]
    with pytest.raises(EngineFailed, match=r"^line 1: nonsense$"):
        client.execute("nonsense", timeout_s=60)
    assert client.instances(timeout_s=60) == 1
    client.close()


def test_the_pages_client_keeps_its_limit(page_client: ModuleType, endpoint: str) -> None:
    (client,) = page_client.connect([endpoint], timeout_s=60)
    with pytest.raises(EngineFailed, match=r"0\.2 s"):
        client.execute("wait", timeout_s=0.2)


def test_the_pages_client_says_that_its_server_is_gone(
    page_client: ModuleType, endpoint: str
) -> None:
    (client,) = page_client.connect([endpoint], timeout_s=60)
    with pytest.raises(ServerGone, match=r"127\.0\.0\.1:\d+"):
        client.execute("hang up", timeout_s=60)


def test_the_pages_client_says_that_nobody_is_there(
    page_client: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("secret")
    with pytest.raises(EngineFailed, match=r"127\.0\.0\.1:1 "):
        page_client.connect([f"http://127.0.0.1:1?{tmp_path}/token"], timeout_s=60)
