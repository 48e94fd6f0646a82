"""`atoll inspect`: where do the threads and the memory of a process really sit?"""

from __future__ import annotations

import click


@click.command(epilog="Example: atoll inspect 1234 --json")
@click.argument("target")
def command(target: str) -> None:
    """Say where the threads and the memory of TARGET, a pid or a name, really are."""
    raise NotImplementedError(target)
