"""The commit-msg hook: a subject is at most 72 characters and does not end with a full stop.

python -m tools.commit_subject FILE
"""

from __future__ import annotations

import sys
from pathlib import Path

MAX_CHARACTERS = 72


def fault(message: str) -> str:
    """What is wrong with the subject of a commit message; empty if nothing is."""
    subject = message.partition("\n")[0]
    if len(subject) > MAX_CHARACTERS:
        return f"the subject has {len(subject)} characters; {MAX_CHARACTERS} is the limit"
    if not subject or subject.endswith("."):
        return "the subject is empty or ends with a full stop"
    return ""


if __name__ == "__main__":
    sys.exit(fault(Path(sys.argv[1]).read_text()) or 0)
