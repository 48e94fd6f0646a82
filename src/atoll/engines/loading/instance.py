"""Turns itself into one server on a data directory of its own, which is a copy of a template.

    python -IS template_instance.py TEMPLATE DATA [MAKE...] -- SERVER...

A template that is not there yet is made by the command MAKE, in which {} stands for the folder; one
without MAKE (tables that were loaded) must be there. Then DATA becomes a copy of it and this
process becomes the server (execv): the pid that is watched is the engine's, and because all of it
happens behind atoll-exec, even the files' first pages in the page cache lie where the slot's
memory lies.

Only the standard library, and nothing of Atoll: it is run by its path, without site-packages,
since every instance pays for its start. TEMPLATE appears whole or not at all, also when several
instances want it at once. A fault is one line on stderr and exit status 1.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence


class TemplateFault(Exception):
    """One line: why there is no template."""


def main() -> None:
    template, data, *commands = sys.argv[1:]
    border = commands.index("--")
    make, server = commands[:border], commands[border + 1 :]
    os.umask(0o077)
    try:
        if make:
            ensure_template(template, make)
        shutil.copytree(template, data, copy_function=shutil.copyfile)
        os.execv(server[0], server)
    except TemplateFault as fault:
        sys.exit(str(fault))
    except OSError as fault:
        sys.exit(f"error: {fault.filename}: {fault.strerror}")
    except shutil.Error as fault:
        source, _, why = fault.args[0][0]
        sys.exit(f"error: {source} cannot be copied: {why}")


def ensure_template(
    template: str,
    make: Sequence[str],
    env: Mapping[str, str] | None = None,
    *,
    behind: Sequence[str] = (),
) -> None:
    """Make it once: in a folder beside it that is synced and renamed when it is whole.

    `env`: None is this process's own. `behind`: words in front of the command. Raises
    TemplateFault, and OSError."""
    with open(f"{template}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(template):
            return
        unfinished = f"{template}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)  # of one that was killed
        done = subprocess.run(
            [*behind, *(word.replace("{}", unfinished) for word in make)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
            env=env,
        )
        if done.returncode != 0:
            shutil.rmtree(unfinished, ignore_errors=True)
            said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            # Hints may follow what is wrong.
            telling = (line for line in said if "error" in line.lower())
            program = os.path.basename(make[0])
            raise TemplateFault(next(telling, f"error: {program}: {said[-1]}"))
        sync(unfinished)
        os.rename(unfinished, template)


def sync(root: str | os.PathLike[str]) -> None:
    """Bring it all to the disk: after a power cut a folder that has its name is whole."""
    for folder, _, names in os.walk(root):
        for path in (folder, *(os.path.join(folder, name) for name in names)):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


if __name__ == "__main__":
    main()
