"""Mappings, lists, texts and numbers as YAML that any reader of YAML 1.1 or 1.2 understands. Pure.

A text is plain only if it is a simple word; otherwise it is in double quotes. So no text can become
a number, a date, an anchor or another key. Keys are at most 1,024 characters as they are written.
Source: yaml.org/spec/1.2.2, 7.3.1 and 7.4.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Value: TypeAlias = "str | int | Sequence[Value] | Mapping[str, Value]"

_PLAIN = re.compile(r"/?[A-Za-z][A-Za-z0-9_./-]*")
_NOT_TEXT = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})  # of YAML 1.1
_SURROGATES = re.compile(r"\\u(d[89ab]..)\\u(d[c-f]..)")


def yaml_text(value: Value) -> str:
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Value) -> list[str]:
    """In block style; the first line can stand behind '- ', and the others below it."""
    if isinstance(value, Mapping) and value:
        return [line for key, own in value.items() for line in _under(_text(key), own)]
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        lines = []
        for own in value:
            first, *others = _lines(own)
            lines += [f"- {first}", *(f"  {line}" for line in others)]
        return lines
    return [_one_line(value)]


def _under(key: str, value: Value) -> list[str]:
    if isinstance(value, str | int) or not value:
        return [f"{key}: {_one_line(value)}"]
    return [f"{key}:", *(f"  {line}" for line in _lines(value))]


def _one_line(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _text(value)
    return "{}" if isinstance(value, Mapping) else "[]"


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT:
        return text
    # JSON's escapes are YAML's, except for characters that JSON writes as two. DEL it leaves as is.
    quoted = json.dumps(text).replace("\x7f", "\\x7f")
    return _SURROGATES.sub(lambda pair: f"\\U{_joined(*pair.groups()):08x}", quoted)


def _joined(high: str, low: str) -> int:
    return 0x10000 + (int(high, 16) - 0xD800 << 10) + int(low, 16) - 0xDC00
