"""The kernel's list format for CPUs and nodes ('0-3,8', see cpuset(7)). Pure."""

from __future__ import annotations

from collections.abc import Iterable

# Far above any kernel's NR_CPUS, far below what would fill the memory after a typing mistake.
_LIMIT = 1 << 20


def parse_cpulist(text: str) -> tuple[int, ...]:
    """Parses '0-3,8' as (0, 1, 2, 3, 8), sorted and without repeats; '' as (). Raises
    ValueError."""
    found: set[int] = set()
    for part in text.strip().split(","):
        if not part.strip():
            continue
        first, dash, last = part.strip().partition("-")
        numbers = [first, last] if dash else [first]
        # int() alone would accept 1_0, +1 and the digits of other scripts.
        if not all(number.isascii() and number.isdecimal() for number in numbers):
            raise ValueError(f"not a CPU list: {text!r}")
        low, high = int(numbers[0]), int(numbers[-1])
        if not 0 <= low <= high < _LIMIT:
            raise ValueError(f"not a CPU list: {text!r}")
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def format_cpulist(numbers: Iterable[int]) -> str:
    """Formats (0, 1, 2, 3, 8) as '0-3,8'."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def brief_cpulist(numbers: Iterable[int]) -> str:
    """For people: like `format_cpulist`, but (0, 2, 4, 6, 8) becomes '0-8:2', as taskset(1) writes
    it, for SMT siblings that are neighbours and of which only the first is meant."""
    ordered = sorted(set(numbers))
    if len(ordered) > 4:
        steps = range(ordered[0], ordered[-1] + 1, max(1, ordered[1] - ordered[0]))
        if steps.step > 1 and ordered == list(steps):
            return f"{steps[0]}-{steps[-1]}:{steps.step}"
    return format_cpulist(ordered)
