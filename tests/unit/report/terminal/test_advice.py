"""Advice as text: what to type in order to follow it."""

from __future__ import annotations

import pytest

from atoll.advice.advise import advise
from atoll.report.terminal.advice import advice_text
from atoll.schema.advice import SubjectKind
from tests.parts import advice as parts

_TO = "To follow it for this program:"
_PREFIX = "OMP_PLACES=cores OMP_PROC_BIND=spread atoll-exec -i 0-1 --"


@pytest.mark.parametrize(
    ("kind", "name", "line"),
    [
        (SubjectKind.COMMAND, "", f"{_TO} {_PREFIX} CMD"),
        (
            SubjectKind.COMMAND,
            "./prog 'a b'",
            f"{_TO} {_PREFIX} ./prog 'a b'",
        ),
        (
            SubjectKind.COMMAND,
            "atoll-exec -m 0 -- ./prog",  # its own policy would win over one before it
            f"{_TO} put env {_PREFIX} behind the options of its own atoll-exec",
        ),
        (
            SubjectKind.PROCESS,
            "pid 7 (prog)",
            f"{_TO} start it again with {_PREFIX} before its command",
        ),
        (
            SubjectKind.ENGINE,
            "reef",
            f"{_TO} atoll up reef --placement sparse --memory interleave",
        ),
    ],
)
def test_what_to_type_in_one_line(kind: SubjectKind, name: str, line: str) -> None:
    subject = parts.subject(parts.TWO, kind=kind, name=name)
    made = advise(parts.situation(parts.TWO, subject), kernel="6.12", mallocs={})
    assert line in advice_text(made, width=60, colour=False).splitlines()
