"""The whole terminal as a screen, with keys; it is restored however the block ends. Not a command.

Ctrl-C, Ctrl-Z and Ctrl-\\ are keys here and no signals. SIGTERM and SIGHUP must raise
(`terminate_is_interrupt`). SIGKILL and SIGQUIT leave the terminal as it is; `reset` then restores
it.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from atoll.host.caller import variable

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_RESIZE_S = 0.5  # how often the size is compared
_KEYS = {
    "\x03": "quit", "q": "quit", "Q": "quit",
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down",
}  # fmt: skip

# Waits that many seconds for a key; '' if none came, or if the size changed.
ReadKey = Callable[[float], str]


def is_possible() -> bool:
    terminals = sys.stdin.isatty() and sys.stdout.isatty()
    return terminals and variable("TERM") not in ("", "dumb")


@contextmanager
def fullscreen() -> Iterator[ReadKey]:
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    keys = termios.tcgetattr(descriptor)
    keys[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
    try:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, keys)
        sys.stdout.write(_ENTER)
        yield _read_key
    finally:
        with suppress(OSError, termios.error):  # the terminal may be gone
            sys.stdout.write(_LEAVE)
            sys.stdout.flush()
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)


def draw(lines: Sequence[str]) -> None:
    """Raises nothing if the terminal is gone; then the next key is 'quit'."""
    with suppress(OSError):
        sys.stdout.write("\x1b[H" + "\r\n".join(f"{line}\x1b[K" for line in lines) + "\x1b[J")
        sys.stdout.flush()


def _read_key(timeout_s: float) -> str:
    size = shutil.get_terminal_size()
    while timeout_s > 0:
        wait_s = min(timeout_s, _RESIZE_S)
        ready, _, _ = select.select([sys.stdin], [], [], wait_s)
        if ready:
            try:
                data = os.read(sys.stdin.fileno(), 64).decode(errors="replace")
            except OSError:
                return "quit"
            # An arrow that is held comes several times at once; one step is enough.
            known = (key for code, key in _KEYS.items() if data.startswith(code))
            return next(known, data[:1]) if data else "quit"
        if shutil.get_terminal_size() != size:
            return ""
        timeout_s -= wait_s
    return ""
