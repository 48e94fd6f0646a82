"""The process that runs the command again and again: `python -m atoll.tune.runner [KNOBS_FOLDER]`.

    atoll tune                subreaper
      └─ guard                own session, subreaper; waits for the end of the runner
           └─ runner          the same; small, since its memory counts in the command's peak
                └─ atoll-exec → command, its children, their orphans

When a process is killed, its orphans go to the next subreaper above that lives. So any two of the
upper three can be killed at once, and the third ends the command with its children and daemons. If
all three are, only the command itself ends (PR_SET_PDEATHSIG, which its children do not inherit): a
process that outlives everyone's kill -9 must be another's, such as a container's or a cgroup's.

The runner answers a line of JSON with a line of JSON:

    {"argv", "env", "stdin", "limit_s"}  -> {"status", "seconds", ...}, or {"fault"}
    {}                                   -> {}, when nothing of the command is left

Whatever comes while the command runs ends the command: another line, or the end of stdin. After the
end of stdin, because `atoll tune` has ended, perhaps by kill -9, runner and guard each restore the
switches of the whole system, if they were given the folder of their journal, and end.
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
    if runner := os.fork():
        os.waitpid(runner, 0)
    else:
        os.setsid()  # so that a signal to a group reaches only one of them
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
    if not os.path.exists(f"{folder}/bench.json"):
        return  # nothing, as `switches` will say; the imports take longer than `close` waits
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
