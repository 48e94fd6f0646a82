"""`atoll top` on a terminal and off it, and `atoll serve` as a process."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import pty
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import termios
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from fcntl import ioctl
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, cast

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from atoll.cli import run, serve
from atoll.host.listening import listen
from atoll.live.server import LiveServer
from atoll.schema.live import LiveView
from tests.parts.faults import check_complaint
from tests.parts.live import live_view

ATOLL = [sys.executable, "-m", "atoll"]
PATIENCE_S = 120.0
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


def test_off_a_terminal_one_look_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["top"]) == 0
    said = capsys.readouterr().out
    assert "nothing is up" in said and "\x1b" not in said
    assert run(["top", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["deployments"] == []


class Terminal:
    """`atoll top` on a terminal of 80x24 of its own."""

    def __init__(self) -> None:
        self.ours, self._theirs = pty.openpty()
        ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self._theirs)
        env = {**os.environ, "TERM": "xterm", "LINES": "24", "COLUMNS": "80"}
        self.process = subprocess.Popen(
            [*ATOLL, "top"],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env=env,
            start_new_session=True,
        )
        self.said = ""

    def until(self, words: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while words not in self.said:
            assert time.monotonic() < deadline, self.said
            if select.select([self.ours], [], [], 0.1)[0]:
                self.said += os.read(self.ours, 65536).decode(errors="replace")

    def press(self, keys: str) -> None:
        self.said = ""
        os.write(self.ours, keys.encode())

    def is_restored(self) -> bool:
        self.until(LEAVE)
        return termios.tcgetattr(self._theirs) == self.before


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.process.kill()
    made.process.wait()


def test_keys_work_and_q_restores_the_terminal(terminal: Terminal) -> None:
    terminal.until("q quit")
    assert ENTER in terminal.said
    terminal.press("p")
    terminal.until("paused")
    terminal.press("\x1a")  # Ctrl-Z is no signal here
    terminal.press("p")
    terminal.until("atoll top")
    terminal.press("q")
    assert terminal.process.wait(PATIENCE_S) == 0
    assert terminal.is_restored()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 130), (None, 0)])
def test_signals_and_ctrl_c_restore_it(
    terminal: Terminal, number: signal.Signals | None, status: int
) -> None:
    terminal.until("q quit")
    if number is None:
        terminal.press("\x03")
    else:
        terminal.process.send_signal(number)
    assert terminal.process.wait(PATIENCE_S) == status
    assert terminal.is_restored()


# ---- serve


@contextmanager
def serving(
    folder: Path, *, before: tuple[str, ...] = ()
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server with its token in a file there, and its address."""
    process = subprocess.Popen(
        [*before, *ATOLL, "serve", "--port", "0", "--token-file", str(folder / "token")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "its token is in" in line, process.communicate()
        yield line.split()[0], process
    finally:
        process.kill()
        process.wait()


def get(url: str, token: str) -> HTTPResponse:
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    answer = urllib.request.urlopen(asked, timeout=PATIENCE_S)
    assert isinstance(answer, HTTPResponse)
    return answer


def test_the_terminal_gets_the_whole_url(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [*ATOLL, "serve", "--port", "0", "--token-file", str(tmp_path / "token")]
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL)
    try:
        said = ""
        while "\n" not in said:
            said += os.read(ours, 4096).decode()
        assert said.strip().endswith(f"/#token={(tmp_path / 'token').read_text().strip()}")
    finally:
        process.kill()
        process.wait()


def test_it_serves_metrics_and_ends_at_sigterm(tmp_path: Path) -> None:
    with serving(tmp_path) as (url, process):
        token = (tmp_path / "token").read_text().strip()
        assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
        command = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert token.encode() not in command
        stream = get(f"{url}events", token)
        assert stream.readline().startswith(b"data: ")  # the first look is over
        families = text_string_to_metric_families(get(f"{url}metrics", token).read().decode())
        assert "atoll_drift_findings" in {family.name for family in families}
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        assert token not in out, "only a terminal gets the token"
        assert err == "", "a stream that was open is no fault"
        stream.close()


def test_clients_without_the_token_neither_end_it_nor_keep_others_out(tmp_path: Path) -> None:
    few_files = ("bash", "-c", 'ulimit -n 300; exec "$@"', "bash")
    with serving(tmp_path, before=few_files) as (url, process), ExitStack() as links:
        port = int(url.rstrip("/").rpartition(":")[2])
        for _ in range(400):
            links.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
        token = (tmp_path / "token").read_text().strip()
        stream = get(f"{url}events", token)
        for _ in range(3):  # looks go on
            assert stream.readline().startswith(b"data: ") and stream.readline() == b"\n"
        assert get(f"{url}metrics", token).status == 200
        process.terminate()
        assert process.communicate(timeout=PATIENCE_S) == ("", "")
        assert process.returncode == 0


def test_a_look_that_fails_is_reported_once_and_the_next_one_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown: list[LiveView] = []

    class Watcher:
        pause_s = 0.0
        looks = 0

        def look(self) -> LiveView:
            self.looks += 1
            if self.looks < 3:
                raise OSError(errno.EMFILE, "too many open files")
            os.kill(os.getpid(), signal.SIGTERM)
            return live_view(1)

    server = LiveServer("token", frozenset(), {}, bytes)
    watcher = cast("Any", Watcher())
    asyncio.run(serve._serve(server, watcher, listen("127.0.0.1", 0), shown.append))
    assert len(shown) >= 1
    assert capsys.readouterr().err.count("a look failed: [Errno 24] too many open files") == 1


def test_it_refuses_a_token_that_others_can_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "token"
    token.write_text("x" * 40)
    token.chmod(0o644)
    assert run(["serve", "--port", "0", "--token-file", str(token)]) == 4
    check_complaint(capsys.readouterr().err, path=token)
    token.chmod(0o600)
    token.write_text("short")
    assert run(["serve", "--port", "0", "--token-file", str(token)]) == 2
    check_complaint(capsys.readouterr().err, path=token)
    assert run(["serve", "--port", "0", "--token-file", str(tmp_path)]) == 4
    check_complaint(capsys.readouterr().err, path=tmp_path)


def test_ports_and_addresses_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = ["--token-file", str(tmp_path / "token")]
    with serving(tmp_path) as (url, _):
        port = url.rstrip("/").rpartition(":")[2]
        assert run(["serve", "--port", port, *token]) == 2
        check_complaint(capsys.readouterr().err, address="127.0.0.1", port=port)
    assert run(["serve", "--listen", "192.0.2.1", "--port", "0", *token]) == 2
    check_complaint(capsys.readouterr().err, address="192.0.2.1", port=0)


@pytest.mark.parametrize(
    "address", ["0", "00.0.0.0", "0.0.0.0", "::", "0:0::0", "::ffff:0.0.0.0", "eth0"]
)
def test_it_listens_at_no_address_of_all_interfaces(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = ["--token-file", str(tmp_path / "token")]
    assert run(["serve", "--listen", address, "--port", "0", *token]) == 2
    check_complaint(capsys.readouterr().err, address=address)
