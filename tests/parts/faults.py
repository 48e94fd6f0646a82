"""Faults asserted by their class and fields. The sentences stand in one golden file a room.

    with fails(UsageError, where="jvm.config:3", flag="-Xmx"):
        read_flags(text)

passes if the block raises exactly that class, if its message contains every field, and if the
message with the fields' names in place of their values is a line of the room's file
tests/golden/messages/ROOM.txt. So a sentence is worded in one place, and a test says what matters.

`make messages` writes the files again; read their difference aloud before it is committed.
"""

from __future__ import annotations

import os
import re
from types import TracebackType
from typing import Generic, Self, TypeVar

from tests.parts.paths import GOLDEN

FOLDER = GOLDEN / "messages"
WRITE = "ATOLL_WRITE_MESSAGES"  # set: unknown messages are added to the golden file
_ROOM = re.compile(r"tests/(?:unit/)?(\w+)/")
Fault = TypeVar("Fault", bound=BaseException)


class fails(Generic[Fault]):  # noqa: N801 - reads like pytest.raises
    """The block raises exactly `kind`, with a message of the room's that names all `fields`."""

    value: Fault  # once it was raised

    def __init__(self, kind: type[Fault], **fields: object) -> None:
        self._kind, self._fields = kind, fields

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, _: TracebackType | None
    ) -> bool:
        assert fault is not None, f"raised nothing, not {self._kind.__name__}"
        if not isinstance(fault, self._kind):
            return False
        assert kind is self._kind, f"raised {type(fault).__name__}, not {self._kind.__name__}"
        self.value = fault
        check_message(self._kind.__name__, str(fault), self._fields)
        return True


def check_complaint(stderr: str, **fields: object) -> None:
    """A command's stderr is the one line 'atoll: MESSAGE', asserted as `fails` does."""
    assert stderr.startswith("atoll: ") and stderr.count("\n") == 1, stderr
    check_message("atoll", stderr.removeprefix("atoll: ").rstrip("\n"), fields)


def check_message(kind: str, message: str, fields: dict[str, object]) -> None:
    """The message names all fields and is, with their names in their place, a golden line."""
    line = f"{kind}: {template(message, fields)}"
    path = FOLDER / f"{_room()}.txt"
    known = path.read_text().splitlines() if path.exists() else []
    if line in known:
        return
    assert "/pytest-of-" not in line, f"give the path as a field: {line}"
    assert os.environ.get(WRITE), f"not a line of {path}: {line!r}; see tests/parts/faults.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(sorted({*known, line})) + "\n")


def template(message: str, fields: dict[str, object]) -> str:
    """The message with {NAME} for each field's value. Asserts that it contains them all."""
    text = message.replace("\n", "\\n")
    for name, value in sorted(fields.items(), key=lambda item: -len(str(item[1]))):
        whole = rf"(?<!\w){re.escape(str(value))}(?!\w)" if str(value).isalnum() else None
        text, count = re.subn(whole or re.escape(str(value)), f"{{{name}}}", text)
        assert count, f"{name}={value!r} is missing in: {message}"
    return text


def _room() -> str:
    test = os.environ["PYTEST_CURRENT_TEST"]
    match = _ROOM.match(test)
    assert match, test
    return match[1]
