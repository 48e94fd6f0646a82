"""Turns itself into one PostgreSQL server on a data directory of its own.

    python -IS postgresql_instance.py BIN TEMPLATE DATA CONFIG

A template made by `initdb` once per version is copied, then this process becomes `postgres`
(execv): the pid that is watched is the engine's, and because all of it happens behind
atoll-exec, even the files' first pages in the page cache lie where the slot's memory lies.

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

SUPERUSER = "atoll"

_INITDB = (
    f"--username={SUPERUSER}",  # not the account's name, which a container may not know
    # Bytewise order and plain ASCII case, as the other engines compare; no locale need be there.
    "--encoding=UTF8",
    "--no-locale",
    "--auth-local=trust",  # who may connect is said by CONFIG's own hba_file
    "--auth-host=reject",
)


def main() -> None:
    binaries, template, data, config = sys.argv[1:]
    os.umask(0o077)
    try:
        ensure_template(binaries, template)
        shutil.copytree(template, data, copy_function=shutil.copyfile)
        postgres = os.path.join(binaries, "postgres")
        os.execv(postgres, (postgres, "-c", f"config_file={config}"))
    except OSError as fault:
        sys.exit(f"error: {fault.filename}: {fault.strerror}")
    except shutil.Error as fault:
        source, _, why = fault.args[0][0]
        sys.exit(f"error: {source} cannot be copied: {why}")


def ensure_template(binaries: str, template: str) -> None:
    """initdb, once: in a folder beside it that is renamed when it is whole (and synced)."""
    with open(f"{template}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(template):
            return
        unfinished = f"{template}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)  # of one that was killed
        done = subprocess.run(
            [os.path.join(binaries, "initdb"), *_INITDB, f"--pgdata={unfinished}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            # Hints may follow what is wrong.
            sys.exit(next((line for line in said if "error" in line), f"error: initdb: {said[-1]}"))
        os.rename(unfinished, template)


if __name__ == "__main__":
    main()
