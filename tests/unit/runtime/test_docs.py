"""The runtime's guide shows code of the examples, which ctest builds and runs; word for word."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

EXAMPLES = "native/examples"
BLOCK = re.compile(r'^```(?:cpp|c) title="([^"]+)"\n(.*?)^```$', re.M | re.S)


def shown(root: Path, page: str) -> list[tuple[str, str]]:
    """The titled blocks of a page: the example's name and the code."""
    return BLOCK.findall((root / page).read_text())


def has(source: str, code: str) -> bool:
    """Whether these lines stand there, one after the other; indented as a whole or not."""
    lines, count = source.splitlines(), len(code.splitlines())
    parts = (lines[at : at + count] for at in range(len(lines) - count + 1))
    return any(dedent("\n".join(part)) == dedent(code).rstrip("\n") for part in parts)


def test_every_block_is_part_of_its_example(root: Path) -> None:
    pages = sorted(path.relative_to(root).as_posix() for path in root.glob("docs/runtime*.md"))
    for page in pages:
        for name, code in shown(root, page):
            source = (root / EXAMPLES / name).read_text()
            assert has(source, code), f"{page}: this is not in {name}:\n{code}"


def test_every_example_is_in_the_guide(root: Path) -> None:
    named = {name for name, _ in shown(root, "docs/runtime.md")}
    there = {path.name for suffix in ("*.c", "*.cpp") for path in (root / EXAMPLES).glob(suffix)}
    assert there == named


def test_the_guide_shows_no_other_cpp(root: Path) -> None:
    text = (root / "docs/runtime.md").read_text()
    assert len(re.findall(r"^```c(?:pp)?\b", text, re.M)) == len(shown(root, "docs/runtime.md"))


def test_the_umbrella_has_every_header(root: Path) -> None:
    """But those that others bring, or that are the runtime's own."""
    include = root / "native/include/atoll"
    named = re.findall(r'#include "atoll/([^"]+)"', (include / "runtime.hpp").read_text())
    seen: set[str] = set()
    while named:
        header = named.pop()
        if header in seen:
            continue
        seen.add(header)
        named += re.findall(r'#include "atoll/([^"]+)"', (include / header).read_text())
    there = {path.relative_to(include).as_posix() for path in include.glob("runtime/*.hpp")}
    assert there <= seen
