"""Runs all drift rules on what was observed of one process. Pure.

The rules are in drift_threads, drift_memory and drift_runtime. Whether there is a finding depends
on the observations alone; clues only explain it. The rules therefore run once without clues, and a
second time with clues if there is something to explain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from atoll.inspect.drift_memory import memory_findings, page_cache_findings, policy_findings
from atoll.inspect.drift_runtime import jvm_findings, malloc_findings, thp_findings
from atoll.inspect.drift_threads import thread_findings
from atoll.inspect.rule_context import RuleContext
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
    """What was observed of a process. None: not examined, or unreadable."""

    threads: Sequence[ThreadLook]
    policy: str = ""
    memory: MemoryLook | None = None
    page_cache: Sequence[PageCacheLook] = ()
    malloc: MallocLook | None = None
    jvm: JvmLook | None = None
    thp: bool | None = None


def find(looks: Looks, context: RuleContext, weights: Mapping[int, int]) -> list[Finding]:
    """The findings, drift before notes. `weights`: the node weights of weighted interleave."""
    findings = thread_findings(looks.threads, context)
    findings += policy_findings(looks.policy, looks.threads, context)
    if looks.memory is not None:
        findings += memory_findings(looks.memory, looks.policy, looks.threads, context, weights)
    findings += page_cache_findings(looks.page_cache, context)
    findings += malloc_findings(looks.malloc, context)
    findings += thp_findings(looks.thp, context)
    findings += jvm_findings(looks.jvm, looks.policy, looks.threads, context)
    return sorted(findings, key=lambda finding: finding.severity)  # 'drift' < 'note'
