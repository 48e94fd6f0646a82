"""The runtime with 64 workers on 64 CPUs, two nodes and eight chiplets: random programs whose
values are known, while workers and groups move, the mask shrinks to one CPU and grows again, and
signals arrive. A wake-up that is lost is a program without progress, which the program itself
reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from atoll.guest.guest import Guest
from tests.vm.native import program

WIDE = str(Path(__file__).parent / "wide.toml")
SECONDS = 20
SEED = 1


@pytest.mark.long
@pytest.mark.parametrize("guest", [WIDE], indirect=True)
@pytest.mark.parametrize("places", ["here", "made-up"])
def test_random_programs_are_right(
    guest: Guest, places: str, record_property: Callable[[str, object], None]
) -> None:
    argv = [program("runtime-random-programs", "scheduler"), str(SECONDS), str(SEED), "64", places]
    done = guest.run(argv, timeout_s=SECONDS + 300)
    assert done.returncode == 0, (done.returncode, done.stdout[-2000:], done.stderr)
    found = re.search(r"^(\d+) programs, all right$", done.stdout, re.MULTILINE)
    assert found and int(found[1]) > 0, done.stdout
    record_property("figures", " ".join(done.stdout.split()))
