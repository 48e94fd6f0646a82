"""A child that is talked to: it answers, hangs or dies, and never stays."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from atoll.host import conversation
from atoll.host.api import Conversation
from atoll.host.local import LocalHost


def child(text: str) -> Conversation:
    return LocalHost().converse([sys.executable, "-S", "-c", text], env={})


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_a_child_answers_and_ends_with_its_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "_FAREWELL_S", 60.0)  # it must end by itself, not be killed
    echo = child("import sys\nfor line in sys.stdin: print(line.strip() * 2, flush=True)")
    echo.send("ab")
    assert echo.receive(timeout_s=60) == "abab"
    echo.send("x" * 200_000)
    assert len(echo.receive(timeout_s=60)) == 400_000
    assert echo.close() == 0
    assert gone(echo.pid)
    assert echo.close() == 0
    with pytest.raises(BrokenPipeError):
        echo.send("more")
    with pytest.raises(EOFError):
        echo.receive(timeout_s=1)


def test_a_child_that_hangs_is_killed_by_close() -> None:
    deaf = child("import time; time.sleep(600)")
    with pytest.raises(TimeoutError):
        deaf.receive(timeout_s=0.01)
    assert deaf.close() == -9
    assert gone(deaf.pid)


def test_a_child_that_dies_leaves_its_last_words() -> None:
    dying = child("import sys; sys.exit('a word')")
    with pytest.raises(EOFError):
        dying.receive(timeout_s=60)
    assert dying.close() == 1
    assert dying.last_words().strip() == "a word"


def test_a_child_ends_when_its_parent_is_killed() -> None:
    parent = child(
        "import sys, time\nsys.path[:0] = " + repr(sys.path) + "\n"
        "from atoll.host.conversation import LocalConversation\n"
        "child = LocalConversation([sys.executable, '-S', '-c', 'input()'], {})\n"
        "print(child.pid, flush=True)\ntime.sleep(600)"
    )
    grandchild = int(parent.receive(timeout_s=60))
    assert not gone(grandchild)
    parent.close()
    deadline = time.monotonic() + 60
    while not gone(grandchild) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert gone(grandchild)
