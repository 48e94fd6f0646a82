"""Ctrl-C while a deployment is taken down."""

from __future__ import annotations

import os
import signal

import pytest

from atoll.errors import CheckFailed
from atoll.supervise.interrupts import shielded, terminate_is_interrupt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_waits_for_the_end_of_the_cleaning_up(number: signal.Signals) -> None:
    cleaned = []

    def stop() -> None:
        with terminate_is_interrupt(), shielded():
            os.kill(os.getpid(), number)
            cleaned.append(True)

    before = signal.signal(number, signal.default_int_handler)  # nohup has SIGHUP ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            stop()
    finally:
        signal.signal(number, before)
    assert cleaned


def test_a_fault_of_the_cleaning_up_goes_first() -> None:
    def stop() -> None:
        with shielded():
            os.kill(os.getpid(), signal.SIGINT)
            raise OSError("no such group")

    with pytest.raises(OSError, match="no such group"):
        stop()


@pytest.mark.parametrize("first", [KeyboardInterrupt(), CheckFailed("q1: 2 rows for 1")])
def test_what_ends_the_command_anyway_goes_first(first: BaseException) -> None:
    cleaned = []

    def stop() -> None:
        try:
            raise first
        finally:
            with shielded():
                os.kill(os.getpid(), signal.SIGINT)
                cleaned.append(True)

    with pytest.raises(type(first)):
        stop()
    assert cleaned


def test_what_the_process_ignores_stays_ignored() -> None:
    """As a background job of a shell does."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with shielded():
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_handlers_are_as_they_were() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with shielded():
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_nohup_is_heeded() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminate_is_interrupt():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
