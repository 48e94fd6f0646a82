"""Hosts that are not what they should be, over real connections on loopback."""

from __future__ import annotations

import asyncio
import json
import shlex
import socket
from math import inf
from pathlib import Path

import asyncssh
import pytest

from atoll import __version__
from atoll.cli.terminal import show
from atoll.errors import NotPermitted, UsageError
from atoll.fleet import connection, looking, protocol
from atoll.fleet.asking import CLOCK_BOUND_S, ask_all
from atoll.fleet.connection import HostLost, connected
from atoll.fleet.protocol import Reply, Request
from atoll.report.terminal.fleet import fleet_table
from atoll.schema.fleet import Reach
from tests.parts.faults import fails
from tests.parts.ssh_server import Process, Program, Said, answering, ends, heard, say, served

REQUEST = Request(argv=("topo", "--json"))


def ask(reach: Reach, request: Request = REQUEST) -> Reply:
    async def asked() -> Reply:
        async with connected(reach) as link:
            return await link.ask(request)

    return asyncio.run(asked())


def test_a_request_is_data_and_the_program_is_quoted(tmp_path: Path) -> None:
    said = Said()
    hostile = ("plan", "a;rm -rf ~", "$(reboot)", "\n")
    with served(tmp_path, answering(said, ends(3, "out", "err"))) as reach:
        assert ask(reach, Request(argv=hostile)) == ends(3, "out", "err")
    assert said.requests[0].argv == hostile
    assert said.commands == [shlex.join(["/opt/my atoll/bin/atoll", "fleet", "remote"])]


def test_a_start_is_confirmed_only_if_it_succeeded(tmp_path: Path) -> None:
    said = Said()
    with served(tmp_path, answering(said, ends(0), ends(5))) as reach:
        request = Request(argv=("up", "x"), confirm="x")
        assert ask(reach, request).exit_code == 0
        assert ask(reach, request).exit_code == 5
    assert said.kept == 1


def test_a_host_key_is_never_accepted_by_itself(tmp_path: Path) -> None:
    with served(tmp_path, answering(Said(), ends())) as reach:
        known = Path(reach.known_hosts)
        right = known.read_text()
        for text in ("", right.replace("127.0.0.1", "127.0.0.2")):
            known.write_text(text)
            with pytest.raises(UsageError, match=r"SHA256:.*ssh-keyscan -p") as caught:
                ask(reach)
            assert f"{reach.known_hosts} does not have" in str(caught.value)
        other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
        known.write_text(f"{right.split()[0]} {other}\n")
        with pytest.raises(
            UsageError, match=r"another one .* ssh-keygen -f .* -R .* && ssh-keyscan"
        ):
            ask(reach)
        known.write_text(f"{right}@revoked {right}")
        with pytest.raises(UsageError, match=r"refused .*revoked"):
            ask(reach)
        known.write_bytes(b"\xff\xfe\n" + right.encode())
        with pytest.raises(UsageError, match=r"cannot be read .* correct or replace"):
            ask(reach)
        known.unlink()
        with fails(UsageError, known_hosts=reach.known_hosts, port=reach.port):
            ask(reach)
        known.write_text(right)
        assert ask(reach).exit_code == 0


def test_a_user_whom_the_host_does_not_know(tmp_path: Path) -> None:
    with served(tmp_path, answering(Said(), ends())) as reach:
        other = tmp_path / "other"
        other.mkdir()
        with served(other, answering(Said(), ends())) as stranger:
            key = {"key_file": stranger.key_file}
            with fails(NotPermitted, user=reach.user):
                ask(reach.model_copy(update=key))


def test_a_key_that_is_none(tmp_path: Path) -> None:
    with served(tmp_path, answering(Said(), ends())) as reach:
        (tmp_path / "key").write_text("not a key\n")
        with fails(UsageError, key_file=reach.key_file):
            ask(reach)


def test_a_default_key_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id_rsa").write_text("not a key\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    with (
        served(tmp_path, answering(Said(), ends())) as reach,
        pytest.raises(UsageError, match="key_file"),
    ):
        ask(reach.model_copy(update={"key_file": None}))


def test_nobody_listens(tmp_path: Path) -> None:
    with served(tmp_path, answering(Said(), ends())) as reach, socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and no listen
        closed = reach.model_copy(update={"port": bound.getsockname()[1]})
        with pytest.raises(HostLost, match="Connection refused"):
            ask(closed)


def test_a_port_that_accepts_and_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_S", 0.3)
    with served(tmp_path, answering(Said(), ends())) as reach, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with fails(HostLost, seconds=0.3):
            ask(reach.model_copy(update={"port": silent.getsockname()[1]}))


def shell(stdout: bytes = b"", stderr: bytes = b"", code: int = 0) -> Program:
    async def program(process: Process) -> None:
        process.stdout.write(stdout)
        process.stderr.write(stderr)
        process.exit(code)

    return program


def test_a_host_without_atoll(tmp_path: Path) -> None:
    with (
        served(tmp_path, shell(stderr=b"sh: 1: atoll: not found\n", code=127)) as reach,
        fails(
            UsageError, program=reach.atoll, words="sh: 1: atoll: not found", version=__version__
        ),
    ):
        ask(reach)


def test_a_host_with_another_version(tmp_path: Path) -> None:
    with (
        served(tmp_path, answering(Said(), ends(), version="9.8.7")) as reach,
        fails(UsageError, there="9.8.7", here=__version__),
    ):
        ask(reach)


@pytest.mark.parametrize(
    "line", [b"Welcome to \x1b]0;evil\x07!", b"{}", b"[" * 100_000, b"\xff\xfe", b'{"atoll": 1}']
)
def test_a_host_that_says_something_else(tmp_path: Path, line: bytes) -> None:
    with (
        served(tmp_path, shell(line + b"\n")) as reach,
        pytest.raises(HostLost, match="not an answer of Atoll") as caught,
    ):
        ask(reach)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_an_answer_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LARGEST_ANSWER", 1 << 20)

    async def program(process: Process) -> None:
        while True:
            process.stdout.write(b"x" * 65536)
            await process.stdout.drain()

    with served(tmp_path, program) as reach, fails(HostLost, limit=1):
        ask(reach)


def test_much_on_stderr_delays_nobody(tmp_path: Path) -> None:
    good = answering(Said(), ends())

    async def program(process: Process) -> None:
        process.stderr.write(b"x" * (8 << 20))  # more than a window of ssh's
        await process.stderr.drain()
        await good(process)

    with served(tmp_path, program) as reach:
        assert ask(reach).exit_code == 0


@pytest.mark.parametrize("moment", ["greeting", "request"])
def test_a_host_that_falls_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    monkeypatch.setattr(connection, "SILENCE_S", 0.3)

    async def program(process: Process) -> None:
        if moment == "request":
            say(process, protocol.Hello(atoll=__version__))
            await heard(process)
        await asyncio.sleep(3600)

    with served(tmp_path, program) as reach, fails(HostLost, seconds=0.3):
        ask(reach, Request(argv=("ps",), limit_s=60.0))


def test_a_host_that_only_beats_ends_with_the_commands_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SILENCE_S", 0.2)

    async def program(process: Process) -> None:
        while True:
            process.stdout.write(b"\n")
            await asyncio.sleep(0.05)

    with served(tmp_path, program) as reach, fails(HostLost, seconds=0.5):
        ask(reach, Request(argv=("ps",), limit_s=0.1))


def test_a_program_that_is_killed_before_it_greets(tmp_path: Path) -> None:
    async def program(process: Process) -> None:
        process.exit_with_signal("KILL")

    with served(tmp_path, program) as reach, pytest.raises(HostLost, match="without an answer"):
        ask(reach)


def test_a_host_that_dies_after_the_request(tmp_path: Path) -> None:
    async def program(process: Process) -> None:
        say(process, protocol.Hello(atoll=__version__))
        await heard(process)
        process.stderr.write(b"Killed\n")
        process.exit(137)

    with served(tmp_path, program) as reach, fails(HostLost, words="Killed"):
        ask(reach)


@pytest.mark.parametrize("ahead_s", [0.0, 3600.0, -3600.0])
def test_a_clock_that_differs_is_reported(tmp_path: Path, ahead_s: float) -> None:
    async def work(task: object) -> None:
        await task.run("ps")  # type: ignore[attr-defined] # a Task

    with served(tmp_path, answering(Said(), ends(), ahead_s=ahead_s)) as reach:
        (answer,) = ask_all([reach], "looking", work, lambda line: None)
    assert answer.exit_code == 0
    assert answer.clock is not None
    assert abs(answer.clock.offset_s - ahead_s) <= answer.clock.error_s < 60
    expected = abs(ahead_s) > CLOCK_BOUND_S
    assert any("NTP" in text for text in answer.warnings) == expected


def test_a_clock_that_is_none(tmp_path: Path) -> None:
    with (
        served(tmp_path, answering(Said(), ends(), ahead_s=1e300)) as reach,
        fails(HostLost, clock="1e+300"),
    ):
        ask(reach)


def test_facts_can_be_shown(tmp_path: Path) -> None:
    status = {"state": "ready", "error": "", "uptime_s": inf, "addresses": ["\x1bc" * 1000]}
    said = json.dumps(status | {"endpoints": []})
    with served(tmp_path, answering(Said(), ends(stdout=said))) as reach:
        (answer,) = ask_all([reach], "looking", looking.status("one"), lambda line: None)
    assert answer.exit_code == 0
    assert answer.facts["up_s"] is None
    assert "\x1b" not in str(answer.facts["endpoint"])
    assert len(str(answer.facts["endpoint"])) == 100
    show(fleet_table([answer]))
