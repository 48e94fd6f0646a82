"""What stdout is: whether it shows colours, knows a picture's characters, how wide it is.

Not a command. Kept light: `atoll topo` has 300 ms.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

_PICTURE = "╭■▣╌▀░█"


def has_colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def can_draw() -> bool:
    """Whether stdout's encoding knows the characters of our pictures."""
    try:
        _PICTURE.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def width(least: int = 40) -> int:
    """Columns to fill: beyond 120, lines are hard to read."""
    return max(least, min(shutil.get_terminal_size((80, 50)).columns, 120))


def show(found: RenderableType) -> None:
    from rich.console import Console

    console = Console(highlight=False, width=width(60))
    if has_colour():
        console.print(found)
        return
    with console.capture() as drawn:  # without the blanks that fill its lines
        console.print(found)
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()))
