"""Stop with one line if this Python cannot make Atoll's virtual environment. Needs nothing."""

import importlib.util
import sys

WANTED = (3, 11)


def fault() -> str:
    """What is wrong with this Python; empty if nothing is."""
    if sys.version_info < WANTED:
        return f"is Python {sys.version.split()[0]}, and Atoll wants 3.11 or later"
    for module in ("ensurepip", "venv"):
        if importlib.util.find_spec(module) is None:
            return f"has no module {module}; install python3-venv"
    return ""


if __name__ == "__main__":
    if found := fault():
        sys.exit(f"setup: {sys.executable} {found} (or give another one: make PYTHON=...)")
