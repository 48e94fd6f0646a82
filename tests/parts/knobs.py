"""A kernel in memory for the knobs' tests: it shows choices in brackets and refuses values."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping

from atoll.knobs.control import BOOT_ID
from atoll.knobs.values import choices, value_of
from tests.parts.fake_host import FakeHost

THP = "/sys/kernel/mm/transparent_hugepage"
WEIGHTS = "/sys/kernel/mm/mempolicy/weighted_interleave"
CPUFREQ = "/sys/devices/system/cpu/cpufreq"
BALANCING = "/proc/sys/kernel/numa_balancing"
SWAPPINESS = "/proc/sys/vm/swappiness"


def irq(number: int) -> str:
    return f"/proc/irq/{number}/smp_affinity_list"


def governor(policy: int) -> str:
    return f"{CPUFREQ}/policy{policy}/scaling_governor"


FILES = {
    BOOT_ID: "boot-1\n",
    BALANCING: "1\n",
    f"{THP}/enabled": "always [madvise] never\n",
    f"{THP}/defrag": "always defer defer+madvise [madvise] never\n",
    "/proc/sys/vm/zone_reclaim_mode": "0\n",
    SWAPPINESS: "60\n",
    "/sys/devices/system/cpu/online": "0-7\n",
    f"{WEIGHTS}/auto": "true\n",
    f"{WEIGHTS}/node0": "5\n",
    f"{WEIGHTS}/node1": "2\n",
    "/proc/irq/default_smp_affinity": "ff\n",
    irq(9): "0-7\n",
    irq(24): "0-3\n",
    irq(25): "4-7\n",
    "/proc/irq/24/effective_affinity_list": "2\n",
    governor(0): "powersave\n",
    governor(1): "powersave\n",
    governor(10): "schedutil\n",
    **{
        f"{CPUFREQ}/policy{policy}/scaling_available_governors": "performance powersave schedutil\n"
        for policy in (0, 1, 10)
    },
}


class Kernel(FakeHost):
    """`refused` holds errnos for a path, or for one value of it; those of `unreadable` are met by
    reading. `before` hears every write."""

    def __init__(self, files: Mapping[str, str] = FILES) -> None:
        super().__init__(files)
        self.refused: dict[str | tuple[str, str], int] = {}
        self.unreadable: dict[str, int] = {}
        self.before: Callable[[str, str], None] = lambda path, value: None

    def offline(self, policy: int) -> None:
        """As the kernel shows a CPU frequency policy when its last CPU has gone."""
        for name in ("scaling_governor", "scaling_available_governors"):
            self.unreadable[f"{CPUFREQ}/policy{policy}/{name}"] = errno.EBUSY

    def read_text(self, path: str) -> str:
        if number := self.unreadable.get(path):
            raise OSError(number, os.strerror(number), path)
        return super().read_text(path)

    def write_text(self, path: str, text: str) -> None:
        value = text.strip()
        self.before(path, value)
        number = self.refused.get(path) or self.refused.get((path, value))
        if number:
            raise OSError(number, os.strerror(number), path)
        old = self.read_text(path)
        if "[" in old:
            if value not in choices(old):
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
            words = (f"[{word}]" if word == value else word for word in choices(old))
            self.files[path] = " ".join(words) + "\n"
            return
        self.files[path] = value + "\n"
        if path.startswith(WEIGHTS):
            self._weigh(path, value)

    def _weigh(self, path: str, value: str) -> None:
        """A weight that is written ends auto; auto writes the weights."""
        if not path.endswith("auto"):
            self.files[f"{WEIGHTS}/auto"] = "false\n"
        elif value == "true":
            self.files |= {f"{WEIGHTS}/node{node}": FILES[f"{WEIGHTS}/node{node}"] for node in "01"}

    def value(self, path: str) -> str:
        return value_of(self.files[path])
