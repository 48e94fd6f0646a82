"""YAML: a reader gets back what was written, whatever the texts are."""

from __future__ import annotations

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.render.yaml import Value, yaml_text

WORDS = st.sampled_from(
    [
        "no",
        "Off",
        "~",
        "null",
        "1e3",
        "0o7",
        "- a",
        "a: b",
        "# x",
        "${HOME}",
        "*a",
        "&a",
        "2026-01-01",
    ]
)
TEXTS = st.text() | WORDS
KEYS = st.text(max_size=100) | WORDS  # an escape is up to 10 characters, a key 1,024
VALUES: st.SearchStrategy[Value] = st.recursive(
    TEXTS | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=60)
@given(st.dictionaries(KEYS, VALUES, max_size=3))
def test_what_is_written_is_read_again(value: dict[str, Value]) -> None:
    assert yaml.safe_load(yaml_text(value)) == value


def test_simple_words_stay_readable() -> None:
    text = yaml_text({"a": ["worker-0", {"b": 1, "c": ["x"]}], "on": "/srv/t"})
    assert (
        text
        == """a:
  - worker-0
  - b: 1
    c:
      - x
"on": /srv/t
"""
    )
