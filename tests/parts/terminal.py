"""What a terminal shows of a renderable."""

from __future__ import annotations

import io

from rich.console import Console, RenderableType


def printed(part: RenderableType, width: int = 80, *, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        highlight=False,
        color_system="256" if colour else None,
        force_terminal=colour,
    )
    console.print(part)
    return out.getvalue()
