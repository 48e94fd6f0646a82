"""For the tests of engines with a server per slot: the command of an instance, by its parts."""

from __future__ import annotations

from typing import NamedTuple

from atoll.schema.deployment import ProcessSpec


class Command(NamedTuple):
    template: str
    data: str
    make: tuple[str, ...]  # makes the empty template
    server: tuple[str, ...]


def command_of(spec: ProcessSpec) -> Command:
    """As `atoll.engines.loading.instance` reads its arguments."""
    _, _, _, template, data, *commands = spec.argv
    border = commands.index("--")
    return Command(template, data, tuple(commands[:border]), tuple(commands[border + 1 :]))
