"""The end on a host, with a controller that behaves, lies, hangs up or falls silent."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll import __version__
from atoll.errors import UsageError
from atoll.fleet import remote
from atoll.fleet.protocol import FILE, SECRET, Reply, Request
from atoll.fleet.remote import Controller, ControllerGone, Run, serve
from atoll.host.processes import Finished
from atoll.store.tokens import read_token
from tests.parts.faults import fails


class Recorder:
    """Runs nothing but `play`, which gets the words after `atoll` and the tick."""

    def __init__(self, play: Callable[[Sequence[str], Callable[[], None]], Finished]) -> None:
        self.ran: list[Sequence[str]] = []
        self.env: Mapping[str, str] = {}
        self._play = play

    def __call__(self, argv: Sequence[str], **more: Any) -> Finished:
        words = argv[argv.index("atoll") + 1 :]
        self.ran.append(words)
        self.env = more["env"]
        return self._play(words, more.get("tick") or (lambda: None))


def succeeds(words: Sequence[str], tick: Callable[[], None]) -> Finished:
    tick()
    return Finished(0, "out", "err")


class Talk:
    """A controller's side of a conversation with `serve`."""

    def __init__(self, run: Run) -> None:
        inward, self._to = os.pipe()
        self._from, outward = os.pipe()
        self.fault: BaseException | None = None
        self._lines = os.fdopen(self._from)
        self._thread = threading.Thread(target=self._serve, args=(inward, outward, run))
        self._thread.start()

    def _serve(self, inward: int, outward: int, run: Run) -> None:
        try:
            serve(Controller(inward, outward), run)
        except BaseException as fault:
            self.fault = fault
        os.close(inward)
        os.close(outward)

    def hears(self) -> dict[str, Any]:
        for line in self._lines:
            if line.strip():
                found: dict[str, Any] = json.loads(line)
                return found
        raise EOFError

    def says(self, text: str) -> None:
        os.write(self._to, text.encode() + b"\n")

    def asks(self, **request: Any) -> None:
        assert self.hears() == {"atoll": __version__}
        self.says(json.dumps(request))
        assert self.hears()["unix_s"] > 0

    def hangs_up(self) -> None:
        if self._to >= 0:
            os.close(self._to)
            self._to = -1

    def ends(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()

    def close(self) -> None:
        self.hangs_up()
        self.ends()
        self._lines.close()


Begin = Callable[[Run], Talk]


@pytest.fixture
def talk() -> Iterator[Begin]:
    made: list[Talk] = []

    def begin(run: Run) -> Talk:
        made.append(Talk(run))
        return made[-1]

    yield begin
    for each in made:
        each.close()


def test_a_command_is_run_and_answered(talk: Begin) -> None:
    host = Recorder(succeeds)
    one = talk(host)
    one.asks(argv=["topo", "--json"])
    reply = one.hears()
    assert (reply["exit_code"], reply["stdout"], reply["stderr"]) == (0, "out", "err")
    one.ends()
    assert host.ran == [["topo", "--json"]]


def test_a_document_is_a_file_that_leaves_nothing(talk: Begin) -> None:
    seen = []

    def play(words: Sequence[str], tick: Callable[[], None]) -> Finished:
        seen.append((words[1], open(words[1]).read()))  # noqa: SIM115 - a memory file
        return Finished(2, "", f"atoll: {words[1]}: is no plan")

    one = talk(Recorder(play))
    one.asks(argv=["up", FILE], document="{plan}")
    assert one.hears()["stderr"] == "atoll: its plan: is no plan"
    one.ends()
    ((path, text),) = seen
    assert text == "{plan}"
    assert os.sep in path
    assert not os.path.exists(path)


def test_a_secret_is_a_file_for_nobody_else(talk: Begin) -> None:
    def play(words: Sequence[str], tick: Callable[[], None]) -> Finished:
        return Finished(0, read_token(Path(words[3])), "")

    host = Recorder(play)
    one = talk(host)
    one.asks(argv=["up", FILE, "--secret", SECRET], document="{plan}", secret="0123456789abcdef")
    assert one.hears()["stdout"] == "0123456789abcdef"
    one.ends()
    ((_, plan, _, secret),) = host.ran
    assert plan != secret and "0123456789abcdef" not in secret


def test_a_start_that_is_confirmed_stays(talk: Begin) -> None:
    host = Recorder(succeeds)
    one = talk(host)
    one.asks(argv=["up", "x"], confirm="x-1")
    assert one.hears()["exit_code"] == 0
    one.says('{"keep": true}')
    assert one.hears() == {"kept": True}
    one.ends()
    assert host.ran == [["up", "x"]]


@pytest.mark.parametrize("moment", ["meanwhile", "after"])
def test_a_start_that_nobody_confirms_is_undone(talk: Begin, moment: str) -> None:
    def play(words: Sequence[str], tick: Callable[[], None]) -> Finished:
        if words[0] == "up" and moment == "meanwhile":
            one.hangs_up()
            while True:
                tick()  # raises, and the host ends the command
        return Finished(0, "", "")

    host = Recorder(play)
    one = talk(host)
    one.asks(argv=["up", "x"], confirm="x-1")
    if moment == "after":
        one.hears()
        one.hangs_up()
    one.ends()
    assert one.fault is None
    assert [list(words) for words in host.ran] == [["up", "x"], ["down", "x-1"]]


def test_a_start_that_failed_is_undone_before_the_answer(talk: Begin) -> None:
    def play(words: Sequence[str], tick: Callable[[], None]) -> Finished:
        return Finished(5 if words[0] == "up" else 0, "", "")

    host = Recorder(play)
    one = talk(host)
    one.asks(argv=["up", "x"], confirm="x-1")
    assert one.hears()["exit_code"] == 5
    assert [words[0] for words in host.ran] == ["up", "down"]
    one.ends()


def test_a_start_is_undone_once_and_its_fault_told(
    talk: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if that takes longer than it may; the controller hears beats meanwhile."""
    monkeypatch.setattr(remote, "BEAT_S", 0.0)

    def play(words: Sequence[str], tick: Callable[[], None]) -> Finished:
        if words[0] == "down":
            tick()
            raise TimeoutError
        return Finished(5, "", "no room")

    host = Recorder(play)
    one = talk(host)
    one.asks(argv=["up", "x"], confirm="x-1")
    assert one._lines.readline() == "\n"
    assert one.hears()["stderr"] == "no room"
    one.ends()
    assert one.fault is None
    assert [words[0] for words in host.ran] == ["up", "down"]


def test_a_start_is_undone_though_the_controller_goes(talk: Begin) -> None:
    def play(words: Sequence[str], tick: Callable[[], None]) -> Finished:
        if words[0] == "down":
            one.hangs_up()
            tick()
        return Finished(5, "", "no room")

    host = Recorder(play)
    one = talk(host)
    one.asks(argv=["up", "x"], confirm="x-1")
    one.ends()
    assert [words[0] for words in host.ran] == ["up", "down", "down"]


def test_silence_ends_the_command(talk: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "SILENCE_S", 0.2)

    def play(words: Sequence[str], tick: Callable[[], None]) -> Finished:
        while True:
            tick()

    one = talk(Recorder(play))
    one.asks(argv=["measure"])
    one.ends()
    assert one.fault is None


def test_both_ends_keep_talking_while_a_command_runs(
    talk: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "SILENCE_S", 5.0)
    monkeypatch.setattr(remote, "BEAT_S", 0.01)
    heard = threading.Event()

    def play(words: Sequence[str], tick: Callable[[], None]) -> Finished:
        while not heard.is_set():
            tick()
        return Finished(0, "", "")

    one = talk(Recorder(play))
    one.asks(argv=["measure"])
    assert one._lines.readline() == "\n"
    one.says("")
    heard.set()
    assert one.hears()["exit_code"] == 0


def test_a_command_that_takes_too_long_is_an_answer(talk: Begin) -> None:
    def play(words: Sequence[str], tick: Callable[[], None]) -> Finished:
        raise TimeoutError

    one = talk(Recorder(play))
    one.asks(argv=["ps"], limit_s=3.0)
    reply = one.hears()
    assert reply["exit_code"] == 5
    assert "3.0 s" in reply["stderr"]


def test_results_come_back_also_of_a_run_that_failed(talk: Begin) -> None:
    def play(words: Sequence[str], tick: Callable[[], None]) -> Finished:
        assert words[-2] == "-o"
        assert words[-1].endswith("/results/fleet-1.jsonl")
        with open(words[-1], "w") as file:
            file.write("line\n")
        return Finished(5, "", "atoll: q1 failed")

    one = talk(Recorder(play))
    one.asks(argv=["bench", "x"], results="fleet-1")
    reply = one.hears()
    assert (reply["exit_code"], reply["results"]) == (5, "line\n")


@pytest.mark.parametrize(
    ("folder", "lingers", "kept"),
    [("/run/user/7", False, False), ("/run/user/7", True, True), ("/srv/run", False, True)],
)
def test_sockets_do_not_lie_where_systemd_removes_them(
    talk: Begin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str, lingers: bool,
    kept: bool,
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
    monkeypatch.setenv("USER", "ann")
    monkeypatch.setattr(remote, "_LINGERING", str(tmp_path))
    if lingers:
        (tmp_path / "ann").touch()
    host = Recorder(succeeds)
    one = talk(host)
    one.asks(argv=["ps"])
    one.hears()
    assert ("XDG_RUNTIME_DIR" in host.env) == kept


def test_somebody_else_at_the_other_end(talk: Begin) -> None:
    one = talk(Recorder(succeeds))
    one.hears()
    one.says("GET / HTTP/1.0")
    one.ends()
    with fails(UsageError, text=repr("GET / HTTP/1.0"), version=__version__):
        assert one.fault is not None
        raise one.fault


@given(
    st.text() | (st.lists(st.integers()) | st.dictionaries(st.text(), st.text())).map(json.dumps)
)
def test_whatever_is_no_request_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        remote._parsed(Request, text)


def test_a_controller_that_reads_nothing_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "SILENCE_S", 0.1)
    source, to = os.pipe()  # with room for 64 KiB
    with pytest.raises(ControllerGone):
        Controller(source, to).say(Reply(0, "x" * (1 << 20), ""))
    os.close(source)
    os.close(to)


def test_a_line_without_an_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "LARGEST_LINE", 10)
    source, to = os.pipe()
    os.write(to, b"x" * 11)
    with pytest.raises(ControllerGone):
        Controller(source, 1).hear()
    os.close(source)
    os.close(to)
