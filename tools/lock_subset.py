"""Print the part of requirements.lock that the named projects need, hashes included.

    python tools/lock_subset.py setuptools wheel

pip-compile writes for each project who wanted it (`# via`); followed from the named
projects downwards, that gives a closed set which pip accepts under --require-hashes.
Runs on a bare Python, before anything is installed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LOCK = Path(__file__).resolve().parent.parent / "requirements.lock"


def blocks(lock: str) -> dict[str, str]:
    """Project name -> its lines in the lock: the pin, the hashes, who wanted it."""
    found: dict[str, str] = {}
    name = ""
    for line in lock.splitlines():
        pin = re.match(r"([a-z0-9][a-z0-9._-]*)==", line)
        if pin:
            name = pin[1]
            found[name] = ""
        if name and line.startswith((name + "==", " ")):
            found[name] += line + "\n"
    return found


def wanted_by(block: str) -> set[str]:
    """The projects that the `# via` comment of a block names."""
    comment = block.partition("# via")[2]
    return set(re.findall(r"[a-z0-9][a-z0-9._-]*", comment))


def subset(lock: str, names: list[str]) -> str:
    """The blocks of `names` and of all that they need. Raises KeyError for an unknown name."""
    known = blocks(lock)
    chosen = {name: known[name] for name in names}
    while more := {
        name: block
        for name, block in known.items()
        if name not in chosen and not wanted_by(block).isdisjoint(chosen)
    }:
        chosen |= more
    return "".join(chosen[name] for name in sorted(chosen))


if __name__ == "__main__":
    try:
        print(subset(LOCK.read_text(), sys.argv[1:]), end="")
    except KeyError as fault:
        sys.exit(f"lock_subset: {fault.args[0]} is not in {LOCK.name}; run 'make lock'")
