"""The islands that a matrix shows, in words for a terminal. Pure.

The first line is the answer. 'No chiplets' means that they would have shown; figures that could
hide them 'cannot tell'. Every level keeps its own figure: one
number for 'across chiplets' would be wrong if an I/O die forms quarters.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from atoll.schema.confidence import LEAST_CONFIDENCE
from atoll.schema.cpulist import brief_cpulist
from atoll.schema.profile import Inference
from atoll.schema.text import plural

_MOST_GROUPS = 64  # the JSON has all
_INDENT = "  "


def inference_text(inference: Inference, *, width: int = 80) -> str:
    """Lines of at most `width` characters; PUs have the kernel's numbers."""
    blocks = [*_chiplets(inference, width), *_packages(inference, width)]
    blocks += [_siblings(inference.smt), *_levels(inference)]
    for reason in inference.reasons:
        blocks += textwrap.wrap(f"- {reason}", width, subsequent_indent=_INDENT)
    return "\n".join(blocks) + "\n"


def verdict(inference: Inference, chiplets: str, none: str = "no chiplets") -> str:
    """The answer in words, from words for the chiplets that were found and for none."""
    if inference.confidence >= LEAST_CONFIDENCE:
        return chiplets if inference.chiplets else none
    if inference.chiplets:
        return f"cannot tell whether there are chiplets, perhaps {chiplets}"
    return "cannot tell whether there are chiplets"


def _chiplets(inference: Inference, width: int) -> Iterator[str]:
    groups = inference.chiplets
    basis = "latency and bandwidth" if inference.source == "both" else inference.source
    answer = verdict(inference, f"{plural(len(groups), 'chiplet')} by {basis}")
    yield f"{answer} (confidence {inference.confidence:.2f})"
    yield from _numbered(groups[:_MOST_GROUPS], width)
    if len(groups) > _MOST_GROUPS:
        yield f"{_INDENT}and {len(groups) - _MOST_GROUPS} more; --json has all"


def _packages(inference: Inference, width: int) -> Iterator[str]:
    if not inference.packages:
        yield "packages: one, or they do not show"
        return
    yield plural(len(inference.packages), "package")
    yield from _numbered(inference.packages, width)


def _numbered(groups: Sequence[Sequence[int]], width: int) -> Iterator[str]:
    for number, pus in enumerate(groups):
        line = f"{_INDENT}{number:>3}  CPUs {brief_cpulist(pus)}"
        yield line if len(line) <= width else line[: width - 3] + "..."


def _siblings(smt: Sequence[Sequence[int]]) -> str:
    if not smt:
        return "SMT siblings: none"
    pairs = "; ".join(brief_cpulist(pus) for pus in smt[:3])
    return f"SMT siblings: {plural(len(smt), 'core')}: {pairs}{'; ...' if len(smt) > 3 else ''}"


def _levels(inference: Inference) -> Iterator[str]:
    if not inference.levels:
        return
    unit = "GB/s" if inference.source == "bandwidth" else "ns"
    yield "levels, from the nearest pairs to the farthest"
    for level in inference.levels:
        sizes = Counter(len(group) for group in level.groups)
        groups = ", ".join(f"{count} of {size}" for size, count in sorted(sizes.items()))
        yield f"{_INDENT}{level.median:8.1f} {unit}   groups of CPUs: {groups}"
