"""All rules over one process's looks. Pure; the rules are in drift_threads, _memory, _runtime.

Whether something is found depends on the looks alone; clues only say why. So the rules run once
without clues, and again with them where there is something to explain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from atoll.inspect.drift_memory import memory_findings, page_cache_findings, policy_findings
from atoll.inspect.drift_runtime import jvm_findings, malloc_findings
from atoll.inspect.drift_threads import thread_findings
from atoll.inspect.scene import Scene
from atoll.schema.inspection import (
    Finding,
    JvmLook,
    MallocLook,
    MemoryLook,
    PageCacheLook,
    ThreadLook,
)


@dataclass(frozen=True, slots=True)
class Looks:
    """What was seen of a process; None: not looked at, or it could not be read."""

    threads: Sequence[ThreadLook]
    policy: str = ""
    memory: MemoryLook | None = None
    page_cache: Sequence[PageCacheLook] = ()
    malloc: MallocLook | None = None
    jvm: JvmLook | None = None


def find(looks: Looks, scene: Scene, weights: Mapping[int, int]) -> list[Finding]:
    """Drift first, then notes. `weights`: of weighted interleave, by node."""
    findings = thread_findings(looks.threads, scene)
    findings += policy_findings(looks.policy, looks.threads, scene)
    if looks.memory is not None:
        findings += memory_findings(looks.memory, looks.policy, looks.threads, scene, weights)
    findings += page_cache_findings(looks.page_cache, scene)
    findings += malloc_findings(looks.malloc, scene)
    findings += jvm_findings(looks.jvm, looks.policy, looks.threads, scene)
    return sorted(findings, key=lambda finding: finding.severity)  # 'drift' < 'note'
