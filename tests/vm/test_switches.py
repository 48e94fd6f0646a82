"""The switches that decide where pages go are read as they are: AutoNUMA and transparent huge
pages. What Atoll records with every result is compared with what was written to the kernel, for
every value that there is, and so is what `atoll knobs` says; and the kernel is seen to act
on it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from atoll.guest.guest import Guest
from tests.vm.proof import ROOM, ask

AUTONUMA = "/proc/sys/kernel/numa_balancing"
THP = "/sys/kernel/mm/transparent_hugepage"
SETTINGS = (
    # (AutoNUMA, THP enabled, THP defrag); every value of each is there
    ("0", "always", "always"),
    ("1", "madvise", "defer"),
    ("2", "never", "never"),  # 2: tiers of memory only (Linux 5.18)
    ("3", "always", "madvise"),
    ("0", "madvise", "defer+madvise"),
)


@pytest.mark.parametrize("guest", ["milan2"], indirect=True)
def test_autonuma_and_thp_are_read_right(guest: Guest) -> None:
    files = [AUTONUMA, f"{THP}/enabled", f"{THP}/defrag"]
    steps: list[tuple[str, Any]] = [("run", ["sh", "-c", ROOM]), ("read", files)]
    for values in SETTINGS:
        steps.append(("write", dict(zip(files, values, strict=True))))
        steps.append(("switches", None))
        steps.append(("atoll", ["knobs", "--json"]))
        steps.append(("run", [sys.executable, "-S", "-c", _TOUCH]))
    answers = ask(guest, steps)
    room, before = answers[:2]
    assert room[0] == 0, room
    for place, (autonuma, enabled, defrag) in enumerate(SETTINGS):
        _, recorded, knobs, touched = answers[2 + 4 * place : 6 + 4 * place]
        assert recorded["numa_balancing"] == autonuma
        assert recorded["thp_enabled"] == enabled
        assert recorded["thp_defrag"] == defrag
        shown = {knob["name"]: knob["now"] for knob in json.loads(knobs[1])}
        assert shown["numa-balancing"] == autonuma
        assert (shown["thp-enabled"], shown["thp-defrag"]) == (enabled, defrag)
        assert touched[0] == 0, touched
        assert (int(touched[1]) > 0) == (enabled == "always")
    ask(guest, [("write", {path: _chosen(text) for path, text in before.items()})])


# 8 MiB of a fresh process that asks for nothing.
_TOUCH = """
import mmap, re
block = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for page in range(0, len(block), 4096):
    block[page] = 1
print(re.search(r"AnonHugePages: +(\\d+)", open("/proc/self/smaps_rollup").read())[1])
"""


def _chosen(text: str) -> str:
    return text.partition("[")[2].partition("]")[0] or text
