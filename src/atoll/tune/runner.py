"""The process that runs the command again and again: `python -m atoll.tune.runner [KNOBS_FOLDER]`.

    atoll tune
      └─ runner    own session, subreaper; small, since its memory counts in the command's peak
           └─ atoll-exec → command, its children, their orphans

It answers a line of JSON with a line of JSON:

    {"argv", "env", "stdin", "limit_s"}  -> {"status", "seconds", ...}, or {"fault"}
    {}                                   -> {}, when nothing of the command is left

Whatever comes while the command runs ends the command: another line, or the end of stdin. After the
end of stdin, because `atoll tune` has ended, perhaps by kill -9, it restores the switches of the
whole system, if it was given the folder of their journal, and ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from atoll.host.measured import Stopped, TooMuchOutput, end_descendants, run_measured
from atoll.host.reaper import become_subreaper

_TAIL_BYTES = 1 << 16
MOST_OUTPUT_BYTES = 1 << 28  # it is kept in memory, so that no disk slows the command


def main() -> None:
    become_subreaper()
    for line in _lines():
        with contextlib.suppress(BrokenPipeError):  # the end of stdin follows
            os.write(1, json.dumps(answer(json.loads(line))).encode() + b"\n")
    end_descendants()
    if len(sys.argv) > 1:
        restore(sys.argv[1])


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if "argv" not in request:
        end_descendants()
        return {}
    out, err = os.memfd_create("stdout"), os.memfd_create("stderr")
    given = os.open(request["stdin"], os.O_RDONLY)
    try:
        done = run_measured(
            request["argv"],
            env=request["env"],
            descriptors=(given, out, err),
            limit_s=request["limit_s"],
            most_bytes=MOST_OUTPUT_BYTES,
            stop_fd=0,
        )
    except Stopped:
        return {"fault": "stopped"}
    except TooMuchOutput:
        return {"fault": "too much output"}
    except TimeoutError:
        return {"fault": "no end", "stderr": _tail(err)}
    else:
        return {
            "status": done.status,
            "seconds": done.seconds,
            "cpu_s": done.cpu_s,
            "rss_bytes": done.rss_bytes,
            "left": done.left,
            "digest": _digest(out),
            "stdout": _tail(out),
            "stderr": _tail(err),
        }
    finally:
        for descriptor in (given, out, err):
            os.close(descriptor)


def restore(folder: str) -> None:
    """Restores what a killed `atoll tune` left turned."""
    from pathlib import Path

    from atoll.bench import switches
    from atoll.host.local import LocalHost
    from atoll.knobs.journal import JournalFolder

    switches.restore(LocalHost(), JournalFolder(Path(folder)))


def _lines() -> Iterator[bytes]:
    """Lines of stdin. Without a buffer, so that poll sees what was not read."""
    rest = b""
    while piece := os.read(0, 1 << 16):
        rest += piece
        while b"\n" in rest:
            line, _, rest = rest.partition(b"\n")
            yield line


def _digest(descriptor: int) -> str:
    with open(os.dup(descriptor), "rb") as file:
        file.seek(0)
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tail(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    start = max(0, size - _TAIL_BYTES)
    return os.pread(descriptor, _TAIL_BYTES, start).decode(errors="replace")


if __name__ == "__main__":
    main()
