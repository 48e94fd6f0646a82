"""The context that the drift rules for one process share, and how they build a finding. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from atoll.inspect.clues import Clues, NumaSystem
from atoll.inspect.expectation import Expectation
from atoll.schema.inspection import Finding, Severity, ThreadLook


@dataclass(frozen=True, slots=True)
class RuleContext:
    """What the drift rules know of the process that they examine."""

    pid: int
    expectation: Expectation
    machine: NumaSystem
    clues: Clues

    def finding(
        self,
        code: str,
        severity: Severity,
        *,
        expected: str,
        found: str,
        cause: str,
        remedy: str,
        thread: ThreadLook | None = None,
        mapping: str = "",
    ) -> Finding:
        return Finding(
            code=code,
            severity=severity,
            process=self.expectation.process,
            pid=self.pid,
            tid=thread.tid if thread else None,
            comm=thread.comm if thread else "",
            mapping=mapping,
            expected=expected,
            found=found,
            cause=cause,
            remedy=remedy,
        )
