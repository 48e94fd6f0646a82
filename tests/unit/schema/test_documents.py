"""What people write by hand: one meaning, or refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from atoll.errors import UsageError
from atoll.schema import base
from atoll.schema.base import Record, parse
from atoll.schema.inventory import Inventory
from atoll.schema.yaml_text import parse_yaml


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: {c: 1}\na: 2\n", "line 3: 'a' occurs twice"),
        ("- {c: 1, d: 2, 'c': 3}", "line 1: 'c' occurs twice"),
        ("price: 1:30\n", "line 1: 1:30 is a number to the base 60"),
        ("price: 1:30.5\n", "line 1: 1:30.5 is a number to the base 60"),
        ("!!map a", "expected a mapping node"),
        ("!!int [1]", "expected a scalar node"),
    ],
)
def test_yaml_that_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"^not YAML in line ") as caught:
        parse_yaml(text.encode())
    assert says in str(caught.value)


def test_yaml_that_is_read() -> None:
    text = b"a: {c: 1}\nb: {c: '1:30'}\n"
    assert parse_yaml(text) == {"a": {"c": 1}, "b": {"c": "1:30"}}


def test_json_with_a_key_twice() -> None:
    text = '{"hosts": [{"name": "a", "port": 22, "name": "b"}]}'
    with pytest.raises(UsageError, match=r"^file: not JSON \('name' occurs twice\)"):
        parse(Inventory, text, where="file")


def test_a_kind_is_built_once_however_many_files_of_it_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[type] = []

    def build(kind: type) -> TypeAdapter[Any]:
        built.append(kind)
        return TypeAdapter(kind)

    class Fresh(Record):
        format: str = "fresh"
        version: int = 1

    monkeypatch.setattr(base, "TypeAdapter", build)
    for _ in range(3):
        assert parse(Fresh, '{"format": "fresh", "version": 1}', where="file") == Fresh()
    assert built == [Fresh]
