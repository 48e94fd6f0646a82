"""Failures between Atoll and atoll-probe; each message is one line.

A kind of figure survives all of them: whatever was not measured goes into the profile's `left_out`,
with the message as the reason. (A missing probe is `atoll.errors.ProbeMissing`.)
"""

from __future__ import annotations

from atoll.errors import AtollError, EngineFailed


class ProbeFault(AtollError):
    """A request brought no figures; `code` is for `left_out`."""

    exit_code = EngineFailed.exit_code
    code = ""


class ProbeRefused(ProbeFault):
    """The probe refused; `code` is the protocol's: argument, cpu, memory, kernel."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ProbeHung(ProbeFault):
    """No answer in time; the probe has been killed."""

    code = "hung"


class ProbeDied(ProbeFault):
    """The probe ended before it answered, or its answer is malformed."""

    code = "died"
