"""The base of all file formats: frozen, strict records, and the version check.

A record rejects unknown fields, so a misspelt key in a hand-edited file is an error
rather than a silent default. Files are read through `parse`, which turns every
validation fault into one line that names the file, the field and the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from atoll.errors import AtollError, UsageError


class Record(BaseModel):
    """An immutable value of a file format. Field names include units."""

    # Deferred: a command uses few of the records that it imports, and building all takes 25 ms.
    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_inf_nan="constants", defer_build=True
    )


R = TypeVar("R")


def parse(
    kind: type[R], text: str | bytes, *, where: str, error: type[AtollError] = UsageError
) -> R:
    """Parses `text` (JSON) as a `kind`. `where` names the file in the error.

    Raises `error` with a message of one line.
    """
    import json

    try:
        raw: Any = json.loads(text, object_pairs_hook=_once_each)
    except (ValueError, RecursionError) as fault:
        why = what_is_no_json(fault)
        raise error(f"{where}: not JSON ({why}); correct it, or create it again") from None
    return validated(kind, raw, where=where, error=error)


def validated(kind: type[R], raw: Any, *, where: str, error: type[AtollError] = UsageError) -> R:
    """`raw`, a parsed document, as a `kind`.

    `kind` has the fields `format` and `version`, with defaults. A file of another format or version
    is rejected before its fields are examined. Raises `error` with a message of one line.
    """
    want_format, want_version = _default(kind, "format"), _default(kind, "version")
    if not isinstance(raw, dict) or raw.get("format") != want_format:
        why = (
            f"format: {raw['format']!r}"
            if isinstance(raw, dict) and "format" in raw
            else "no format"
        )
        raise error(f"{where}: not an {want_format} file ({why})")
    if raw.get("version") != want_version:
        raise error(
            f"{where}: this atoll cannot read {want_format} version {raw.get('version')!r} "
            f"(it reads version {want_version}); write or create the file again for that version"
        )
    try:
        checked: R = _adapter(cast(Hashable, kind)).validate_python(raw)
        return checked
    except ValidationError as fault:
        raise error(f"{where}: {what_is_wrong(fault)}") from None


@cache  # building one takes up to 20 ms, and a watcher parses many files of a kind
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def what_is_no_json(fault: ValueError | RecursionError) -> str:
    """Python's words, but for two faults that it explains to its own users."""
    if isinstance(fault, RecursionError):
        return "it is nested too deeply"
    return "a number has too many digits" if "int_max_str_digits" in str(fault) else str(fault)


def what_is_wrong(fault: ValidationError) -> str:
    """'field slots.0.cpus is missing': the first fault that a validation found."""
    first = fault.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"field {place} is missing"
    if first["type"] == "extra_forbidden":
        return f"field {place} is unknown"
    if first["type"] == "union_tag_invalid":
        kind = str(first["ctx"]["discriminator"]).strip("'")
        return f"{kind} {first['ctx']['tag']!r} is unknown"
    # The first is pydantic's prefix to the message of a validator.
    words = first["msg"].removeprefix("Value error, ").replace("Invalid JSON", "not JSON")
    words = re.sub(r"^\w+ should ", "must ", words)  # 'Input should be greater than 0'
    words = words.replace("a valid tuple", "a list")
    return f"field {place}: {words}" if place else words


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for at, (key, _) in enumerate(pairs) if key in dict(pairs[:at]))
        raise ValueError(f"{twice[:40]!r} occurs twice")
    return found


def _default(kind: type[R], name: str) -> Any:
    """The default of a field of a Record, or of the dataclass of the machine file."""
    if issubclass(kind, Record):
        return kind.model_fields[name].default
    return getattr(kind, name)
