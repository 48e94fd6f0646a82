"""What `oltp run` and `operators compare` share: the options of a comparison in blocks, and the
file in which its whole blocks are kept. Not a command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from atoll.bench.results import require_new
from atoll.cli.measure import refuse_unwritable
from atoll.cli.options import chiplets_option, gathered, machine_for, profile_option
from atoll.schema.base import Record
from atoll.schema.machine import Machine
from atoll.schema.span import span
from atoll.schema.text import plural
from atoll.store.document import write_document
from atoll.store.paths import new_results

_COUNT = click.IntRange(min=1)
Keep = Callable[[Record], None]


@dataclass(frozen=True, slots=True)
class Blocks:
    """How much is measured, and where it is kept."""

    seconds: int  # of each run
    warmup: int  # before each
    blocks: int
    output: Path | None  # None: a new file in Atoll's state folder


@dataclass(frozen=True, slots=True)
class BlockOptions(Blocks):
    chiplets: str | None
    profile: str | None
    as_json: bool

    def machine(self) -> Machine:
        return machine_for(chiplets=self.chiplets, profile=self.profile)


def block_options(
    *, seconds: int, warmup: int
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these options, which it receives as `options`. The numbers are defaults."""

    def count(name: str, default: int, words: str) -> Callable[..., Any]:
        return click.option(
            name, type=_COUNT, metavar="N", default=default, show_default=True, help=words
        )

    return gathered(
        "options",
        BlockOptions,
        (
            count("--seconds", seconds, "The measured time of a run."),
            count("--warmup", warmup, "Seconds before it."),
            count("--blocks", 5, "How often everything runs. Intervals need at least 5."),
            chiplets_option,
            profile_option,
            click.option(
                "-o",
                "--output",
                type=click.Path(path_type=Path, dir_okay=False),
                help="Results file (default: a new one in Atoll's state folder).",
            ),
            click.option("--json", "as_json", is_flag=True, help="Print the results as JSON."),
        ),
    )


def new_file(options: Blocks, name: str) -> Path:
    """Where the results go. Raises UsageError or NotPermitted now, not when they are there."""
    path = options.output or new_results(name)
    require_new(path, resumes=False)
    refuse_unwritable(str(path))
    return path


@contextmanager
def kept(path: Path, options: Blocks, *, a_block: int, before: int = 0) -> Iterator[Keep]:
    """What writes the whole blocks there. Says first how long it takes at least, and at the end
    what there is. `a_block`: runs of a block; `before`: those before the first."""
    runs = options.blocks * a_block
    least_s = (runs + before) * (options.warmup + options.seconds)
    print(f"atoll: {plural(runs, 'run')}, at least {span(least_s)}", file=sys.stderr)
    try:
        yield partial(write_document, path)
    finally:
        end = f"results: {path}" if path.exists() else "no block was whole, so none is kept"
        print(f"atoll: {end}", file=sys.stderr)
