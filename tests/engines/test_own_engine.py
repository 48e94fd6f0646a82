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
from tests.parts.deployment import ROOT, left_over

PAGE = ROOT / "docs/adding-an-engine.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on Python's path with the page's package in it, as pip would leave it."""
    folder = tmp_path_factory.mktemp("site")
    blocks = dict(re.findall(r"```(toml|python)\n(.*?)```", PAGE.read_text(), re.DOTALL))
    (folder / "duckling.py").write_text(blocks["python"])
    group, entry = blocks["toml"].strip().splitlines()
    info = folder / "duckling-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: duckling\nVersion: 1.0\n")
    name = re.fullmatch(r'\[project\.entry-points\."(.*)"\]', group)
    assert name is not None
    (info / "entry_points.txt").write_text(f"[{name[1]}]\n{entry.replace(chr(34), '')}\n")
    return folder


def atoll(site: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "atoll", *arguments],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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
    found = re.search(r'```python title="client"\n(.*?)```', PAGE.read_text(), re.DOTALL)
    assert found is not None
    module = ModuleType("page_client")
    exec(compile(found[1], str(PAGE), "exec"), module.__dict__)
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
    with pytest.raises(EngineFailed, match=r"no answer within 0\.2 s"):
        client.execute("wait", timeout_s=0.2)


def test_the_pages_client_says_that_its_server_is_gone(
    page_client: ModuleType, endpoint: str
) -> None:
    (client,) = page_client.connect([endpoint], timeout_s=60)
    with pytest.raises(ServerGone, match=r"^the server at 127\.0\.0\.1:\d+ is gone "):
        client.execute("hang up", timeout_s=60)


def test_the_pages_client_says_that_nobody_is_there(
    page_client: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("secret")
    with pytest.raises(EngineFailed, match=r"no server answers at 127\.0\.0\.1:1 "):
        page_client.connect([f"http://127.0.0.1:1?{tmp_path}/token"], timeout_s=60)
