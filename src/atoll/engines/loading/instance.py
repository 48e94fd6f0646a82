"""Turns its process into one server on a data directory of its own, a copy of a template.

    python -IS instance.py TEMPLATE DATA [MAKE...] -- SERVER...

If MAKE is given, it is the command that makes a missing template; {} in it stands for the folder.
Without MAKE (tables that were loaded) the template must exist. Then DATA becomes a copy of it,
unless an earlier server has left it there, and this process becomes the server (execv), so that the
pid that is watched is the engine's. All of this happens behind atoll-exec: even the first pages of
the files in the page cache lie where the memory of the slot lies.

It is run by its path and without site-packages, because every instance pays for its start. So it
finds Atoll by its own path, and what it imports of Atoll needs only the standard library. A fault
is one line on stderr and exit status 1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[3]))

from atoll.errors import AtollError, DiskFull, EngineFailed
from atoll.host import processes
from atoll.store.files import DISK_FULL
from atoll.store.once import copy_tree, make_once


def main() -> None:
    template, data, *commands = sys.argv[1:]
    border = commands.index("--")
    make, server = commands[:border], commands[border + 1 :]
    os.umask(0o077)
    try:
        if make:
            ensure_template(Path(template), make, processes.run)
        if not os.path.isdir(data):
            copy_tree(template, data)
        os.execv(server[0], server)
    except AtollError as fault:
        sys.exit(f"error: {fault}")
    except OSError as fault:
        sys.exit(f"error: {fault.filename}: {fault.strerror}")


def ensure_template(
    template: Path, make: Sequence[str], run: Callable[[Sequence[str]], processes.Finished]
) -> None:
    """Make the template with the command `make`, unless it exists; `run` runs the command.

    Raises EngineFailed, DiskFull, and as `atoll.store.once.make_once`."""

    def fill(folder: Path) -> None:
        try:
            done = run([word.replace("{}", str(folder)) for word in make])
        except OSError as fault:
            raise EngineFailed(f"{make[0]}: {fault.strerror}") from None
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            # Hints may follow the error.
            errors = (line for line in lines if "error" in line.lower())
            kind = DiskFull if any(word in done.stderr for word in DISK_FULL) else EngineFailed
            raise kind(next(errors, f"{os.path.basename(make[0])}: {lines[-1]}"))

    make_once(template, fill, what="an empty database")


if __name__ == "__main__":
    main()
