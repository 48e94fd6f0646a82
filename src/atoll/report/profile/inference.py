"""What a matrix says of a machine's islands, in words for a terminal. Pure.

The first line is the answer; 'none' is one. Every level keeps its own figure, since one number for
'across chiplets' would be wrong where an I/O die forms quarters.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from atoll.report.words import plural
from atoll.schema.cpulist import brief_cpulist
from atoll.schema.profile import Inference

_MOST_SETS = 64  # more lines say no more; the JSON has all
_INDENT = "  "


def inference_text(found: Inference, *, width: int = 80) -> str:
    """Lines of at most `width` characters, each group of PUs by the kernel's numbers."""
    blocks = [*_sets("chiplet", found.chiplets, found, width), *_packages(found, width)]
    blocks += [_siblings(found.smt), *_levels(found)]
    for reason in found.reasons:
        blocks += textwrap.wrap(f"- {reason}", width, subsequent_indent=_INDENT)
    return "\n".join(blocks) + "\n"


def _sets(word: str, sets: Sequence[Sequence[int]], found: Inference, width: int) -> Iterator[str]:
    sure = f"confidence {found.confidence:.2f}"
    if not sets:
        yield f"no {word}s ({sure})"
        return
    shown_in = "latency and bandwidth" if found.source == "both" else found.source
    yield f"{plural(len(sets), word)} by {shown_in} ({sure})"
    for number, pus in enumerate(sets[:_MOST_SETS]):
        yield _fitted(f"{_INDENT}{number:>3}  CPUs {brief_cpulist(pus)}", width)
    if len(sets) > _MOST_SETS:
        yield f"{_INDENT}and {len(sets) - _MOST_SETS} more; --json has all"


def _packages(found: Inference, width: int) -> Iterator[str]:
    if not found.packages:
        yield "packages: not told apart"
        return
    yield f"{plural(len(found.packages), 'package')}"
    for number, pus in enumerate(found.packages):
        yield _fitted(f"{_INDENT}{number:>3}  CPUs {brief_cpulist(pus)}", width)


def _siblings(smt: Sequence[Sequence[int]]) -> str:
    if not smt:
        return "SMT siblings: none"
    pairs = "; ".join(brief_cpulist(pus) for pus in smt[:3])
    return f"SMT siblings: {plural(len(smt), 'core')}: {pairs}{'; ...' if len(smt) > 3 else ''}"


def _levels(found: Inference) -> Iterator[str]:
    if not found.levels:
        return
    unit = "GB/s" if found.source == "bandwidth" else "ns"
    yield "levels, from the nearest pairs to the farthest"
    for level in found.levels:
        sizes = Counter(len(group) for group in level.groups)
        groups = ", ".join(f"{count} of {size}" for size, count in sorted(sizes.items()))
        yield f"{_INDENT}{level.median:8.1f} {unit}   groups of CPUs: {groups}"


def _fitted(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 3] + "..."
