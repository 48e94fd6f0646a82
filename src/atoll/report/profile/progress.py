"""The progress of `atoll measure` on stderr: a changing line on a terminal, else one per kind.

It uses a CPU a few times a second at most, which may be one that is being measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from atoll.schema.profile import Kind

Tell = Callable[[Kind, float, str], None]  # as atoll.probing.run.Progress

_KINDS = {
    Kind.LATENCY: "core-to-core latency",
    Kind.BANDWIDTH: "core-to-core bandwidth",
    Kind.NODES: "memory nodes, idle and loaded",
    Kind.CACHE: "caches over the working set",
    Kind.STREAM: "STREAM",
    Kind.SHARING: "local against distributed cache",
    Kind.CHURN: "allocators",
}


@contextmanager
def measure_progress(kinds: tuple[Kind, ...]) -> Iterator[Tell]:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        begun: set[Kind] = set()

        def once(kind: Kind, _share: float, _doing: str) -> None:
            if kind not in begun:
                begun.add(kind)
                console.print(f"{_number(kinds, kind)} {_KINDS[kind]}", markup=False)

        yield once
        return
    with console.status("starting", refresh_per_second=4) as status:

        def tell(kind: Kind, share: float, doing: str) -> None:
            line = f"{_number(kinds, kind)} {_KINDS[kind]} {share:4.0%} {doing}"
            status.update(line[: max(20, console.width - 4)])

        yield tell


def _number(kinds: tuple[Kind, ...], kind: Kind) -> str:
    return f"[{kinds.index(kind) + 1}/{len(kinds)}]" if kind in kinds else ""
