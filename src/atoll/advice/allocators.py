"""The allocators of numa-query-tuning III-A, and mimalloc: which are here, and which cannot be."""

from __future__ import annotations

from collections.abc import Mapping

from atoll.schema.advice import AllocatorLook
from atoll.schema.plan import Malloc

# Not packaged by Debian, and atoll-exec does not know them.
NOT_AVAILABLE = {
    "supermalloc": "no package; last changed in 2017; slow in numa-query-tuning III-A 8",
    "mcmalloc": "no package; last changed in 2018; most memory in numa-query-tuning III-A 8",
    "Hoard": "no package; builds from github.com/emeryberger/Hoard, then LD_PRELOAD by hand",
}


def allocators(loadable: Mapping[str, str]) -> tuple[AllocatorLook, ...]:
    """`loadable`: name -> library of those that atoll-exec can preload."""
    looks = [AllocatorLook(name="system", state="default", note="the C library's own")]
    for name in (one.value for one in Malloc if one is not Malloc.SYSTEM):
        if name in loadable:
            looks.append(AllocatorLook(name=name, library=loadable[name], state="loadable"))
        else:
            note = f"'atoll-exec --malloc {name} true' names the package"
            looks.append(AllocatorLook(name=name, state="not installed", note=note))
    looks += [
        AllocatorLook(name=name, state="not available", note=note)
        for name, note in NOT_AVAILABLE.items()
    ]
    return tuple(looks)
