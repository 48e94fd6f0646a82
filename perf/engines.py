"""What Atoll adds around the engines: to their start, to a query, to the making of data.

    python -m perf.engines [start|client|data]... [ENGINE]...

PostgreSQL and MariaDB refuse to run as root. So as root all of it runs in a user namespace
(user_namespaces(7)), in which the same user has another number.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence

from atoll.engines import registry
from atoll.errors import AtollError, EngineFailed
from perf import engines_client, engines_data, engines_start
from perf.harness import WrongAnswer, note, wait_until_idle

PARTS: dict[str, Callable[[str], None]] = {
    "start": engines_start.compare,
    "client": engines_client.compare,
}
DATA = "data"


def compare(words: Sequence[str] = ()) -> None:
    if os.geteuid() != 0:
        measure(words)
        return
    unshare = shutil.which("unshare")
    if unshare is None:
        raise WrongAnswer("unshare is not installed; run this as an ordinary user")
    ordinary = [unshare, "--user", "--map-user=65534", "--map-group=65534"]
    again = [*ordinary, sys.executable, "-m", "perf.engines", *words]
    if subprocess.run(again, check=False).returncode != 0:
        raise WrongAnswer("see above")


def measure(words: Sequence[str]) -> None:
    """The named parts (all) for the named engines (all that are installed)."""
    parts = [word for word in words if word in (*PARTS, DATA)] or [DATA, *PARTS]
    engines = [word for word in words if word not in parts] or registry.names()
    wrong = []
    for part in parts:
        for engine in [""] if part == DATA else engines:
            wait_until_idle()
            try:
                if part == DATA:
                    engines_data.compare()
                else:
                    PARTS[part](engine)
            except EngineFailed as fault:
                note(f"{engine}: left out: {fault}")
            except WrongAnswer as fault:  # the others go on
                wrong.append(f"{part} {engine}: {fault}")
    if wrong:
        raise WrongAnswer("; ".join(wrong))


if __name__ == "__main__":
    try:
        compare(sys.argv[1:])
    except (WrongAnswer, AtollError) as fault:
        sys.exit(f"perf: engines: {fault}")
