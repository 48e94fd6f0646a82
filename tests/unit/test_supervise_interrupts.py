"""Ctrl-C while a deployment is taken down."""

from __future__ import annotations

import os
import signal

import pytest

from atoll.supervise.interrupts import shielded, terminate_is_interrupt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_waits_for_the_end_of_the_cleaning_up(number: signal.Signals) -> None:
    cleaned = []

    def stop() -> None:
        with terminate_is_interrupt(), shielded():
            os.kill(os.getpid(), number)
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert cleaned


def test_it_outdoes_another_fault_of_the_cleaning_up() -> None:
    def stop() -> None:
        with shielded():
            os.kill(os.getpid(), signal.SIGINT)
            raise OSError

    with pytest.raises(KeyboardInterrupt):
        stop()


def test_a_second_one_adds_nothing() -> None:
    cleaned = False
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with shielded():
            os.kill(os.getpid(), signal.SIGINT)
            cleaned = True
    assert cleaned


def test_handlers_are_as_they_were() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with shielded():
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
