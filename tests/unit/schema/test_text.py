"""Counts and foreign text as people read them."""

from __future__ import annotations

import pytest

from atoll.schema.text import first_of, one_line, plural, printable


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (1, "core", "1 core"),
        (0, "core", "0 cores"),
        (2, "query", "2 queries"),
        (3, "process", "3 processes"),
        (1, "query", "1 query"),
    ],
)
def test_a_count_agrees_with_its_noun(count: int, noun: str, text: str) -> None:
    assert plural(count, noun) == text


def test_the_first_of_many() -> None:
    assert first_of(["a", "b"], 2) == "a, b"
    assert first_of(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert first_of(["It is.", "So."], 1, "; ") == "It is.; and 1 more"


def test_foreign_text_cannot_end_a_line_or_control_a_terminal() -> None:
    assert printable("a\x1b[31m\n") == "a\ufffd[31m\ufffd"
    assert one_line(" a\n b\x1b") == "a b\ufffd"
