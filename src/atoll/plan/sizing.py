"""Sizes heaps: the engine's share of each slot's memory, with the same total under every policy.

The engine's own ratio splits a slot's memory: the heap, and the rest for an instance's fixed
overhead, for memory that grows with the heap, and for the page cache. The total over all slots
depends on the machine alone, not on the policy, as long as that rest suffices for every instance.
A JVM loses compressed object pointers just below 32 GiB of heap, and a heap somewhat above holds
less than one below (the HotSpot documentation of -XX:+UseCompressedOops); such heaps are
therefore cut to 31 GiB.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from atoll.errors import UsageError
from atoll.schema.plan import EngineTraits
from atoll.schema.size import GIB, MIB, gib, parse_size, percent

# The first heap without them: HotSpot keeps a region of G1 free below (32 MiB; JDK 17 and 25 have
# them with -Xmx32736m but not with -Xmx32737m).
COMPRESSED_POINTERS_END_BYTES = 32 * GIB - 31 * MIB
LARGEST_COMPRESSED_BYTES = 31 * GIB
# 8-byte instead of 4-byte pointers swell a heap by up to a half; only above this size is a larger
# heap a gain.
WORTH_PLAIN_POINTERS_BYTES = 48 * GIB

_PARTS = 1_000_000  # ratios in millionths, so that sums are exact


class PageCache(NamedTuple):
    """Memory that the user wants kept free for the page cache: a size in total, or a share."""

    size_bytes: int = 0
    share: float = 0.0


def parse_page_cache(text: str) -> PageCache:
    """Parses '20%', '64GiB' or '0'. Raises UsageError."""
    if match := re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?) ?%", text.strip(), re.ASCII):
        return PageCache(share=float(match[1]) / 100)
    try:
        return PageCache(size_bytes=parse_size(text))
    except ValueError as fault:
        raise UsageError(f"--page-cache: {fault}, or a share such as 20%") from None


@dataclass(frozen=True, slots=True)
class Heaps:
    sizes_bytes: tuple[int, ...]  # whole MiB
    cut_for_pointers: int  # slots whose heap was cut to 31 GiB
    plain_pointers: int  # slots whose heap is too large for compressed pointers
    cut_for_overhead: int  # slots that would get more than is free by the ratio


def size_heaps(shares_bytes: Sequence[int], traits: EngineTraits, limit_bytes: int | None) -> Heaps:
    """A heap for each share, at most `limit_bytes` in total. Does not check `min_heap_bytes`."""
    ratio = _parts(traits.heap_ratio)
    by_ratio = [share * ratio for share in shares_bytes]
    by_room = [_room(share, traits) for share in shares_bytes]
    wanted = [max(0, min(pair)) for pair in zip(by_ratio, by_room, strict=True)]
    total_mib = sum(wanted) // (_PARTS * MIB)
    if limit_bytes is not None:
        total_mib = min(total_mib, limit_bytes // MIB)
    sizes = [mib * MIB for mib in _apportion(wanted, total_mib)]
    cut = plain = 0
    if traits.jvm:
        for slot, size in enumerate(sizes):
            if size > WORTH_PLAIN_POINTERS_BYTES:
                plain += 1
            elif size >= COMPRESSED_POINTERS_END_BYTES:
                sizes[slot] = LARGEST_COMPRESSED_BYTES
                cut += 1
    return Heaps(
        sizes_bytes=tuple(sizes),
        cut_for_pointers=cut,
        plain_pointers=plain,
        cut_for_overhead=sum(room < share for room, share in zip(by_room, by_ratio, strict=True)),
    )


def asked_heaps(heap_bytes: int, shares_bytes: Sequence[int], traits: EngineTraits) -> Heaps:
    """The heap that the user requests for each instance. Raises UsageError if one has no room.

    None is cut: the user may want a heap without compressed pointers.
    """
    share = min(shares_bytes)
    most = max(0, _room(share, traits) // (_PARTS * MIB)) * MIB
    if heap_bytes > most:
        unit = GIB if most >= GIB else MIB  # round down, so that the figure itself fits
        fewer = " or use fewer instances (-n)" if len(shares_bytes) > 1 else ""
        raise UsageError(
            f"--heap {gib(heap_bytes)}: slot {shares_bytes.index(share)} has {gib(share)}, of "
            f"which at most {gib(most // unit * unit)} can be heap; request less{fewer}"
        )
    size = heap_bytes // MIB * MIB
    plain = len(shares_bytes) if traits.jvm and size >= COMPRESSED_POINTERS_END_BYTES else 0
    return Heaps((size,) * len(shares_bytes), 0, plain, 0)


def with_page_cache(
    traits: EngineTraits, asked: PageCache | None, budget_bytes: int, *, heap_asked: bool
) -> EngineTraits:
    """The traits with the page cache that the user requests: heaps get what it gives up, or give
    up what it gets. Raises UsageError if nothing is left to heaps.

    `heap_asked`: the user requests the heaps too, so the page cache gets the rest unless it is
    requested.
    """
    if asked is None:
        return traits.model_copy(update={"page_cache_ratio": 0.0}) if heap_asked else traits
    kept = asked.share + asked.size_bytes / budget_bytes
    heap_ratio = traits.heap_ratio + traits.page_cache_ratio - kept
    if heap_ratio <= 0:
        most = traits.heap_ratio + traits.page_cache_ratio
        raise UsageError(
            f"--page-cache: takes {percent(kept)} of the {gib(budget_bytes)} to divide, and from "
            f"{percent(most)} nothing is left for heaps; request less"
        )
    return traits.model_copy(
        update={
            "heap_ratio": heap_ratio,
            "page_cache_ratio": kept,
            "ratio_source": f"{traits.ratio_source}; the page cache: the user",
        }
    )


def beside_heap_bytes(heap_bytes: int, traits: EngineTraits) -> int:
    """The memory that an instance with that heap takes outside it, without the page cache."""
    growing = -(-heap_bytes * _parts(traits.off_heap_ratio) // _PARTS)
    return fixed_bytes(traits) + growing


def fixed_bytes(traits: EngineTraits) -> int:
    """The memory that an instance takes outside its heap, whatever the heap's size."""
    return traits.overhead_bytes + traits.asked_bytes


def _room(share_bytes: int, traits: EngineTraits) -> int:
    """The largest heap, in millionths of a byte, that leaves room for everything else."""
    page_cache = share_bytes * _parts(traits.page_cache_ratio)
    free = (share_bytes - fixed_bytes(traits) - 1) * _PARTS - page_cache
    # Minus a MiB (and more than a byte), which rounding may add.
    return free * _PARTS // (_PARTS + _parts(traits.off_heap_ratio)) - MIB * _PARTS


def _parts(share: float) -> int:
    return round(share * _PARTS)


def shortfall(heaps: Heaps, traits: EngineTraits) -> str:
    """Why the smallest heap is too small for the engine; '' if it suffices."""
    smallest = min(heaps.sizes_bytes)
    if smallest >= max(traits.min_heap_bytes, MIB):
        return ""
    slot = heaps.sizes_bytes.index(smallest)
    asked = (
        f" in addition to the {gib(traits.asked_bytes)} for {traits.asked_source}"
        if traits.asked_bytes
        else ""
    )
    return (
        f"slot {slot} would have {gib(max(0, smallest))} of heap{asked}, "
        f"but {traits.name} needs {gib(max(traits.min_heap_bytes, MIB))}"
    )


def _apportion(weights: Sequence[int], total: int) -> list[int]:
    """`total` in whole parts by weight, largest remainders first: the sum is exact."""
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    parts = [weight * total // whole for weight in weights]
    by_remainder = sorted(
        range(len(weights)), key=lambda slot: (-(weights[slot] * total % whole), slot)
    )
    for slot in by_remainder[: total - sum(parts)]:
        parts[slot] += 1
    return parts
