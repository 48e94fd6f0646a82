"""Simulated caches in the emulated guest: the accesses that a host core simulates in a second.

In a guest like `milan2`, each of 16 CPUs adds to the numbers of an array of its own
(native/tests/cachesim/guests/speed.cpp). The array fits into L1, into L2, into L3, or into none.
Accesses are divided by the CPU time that QEMU took, so that other work of the host matters little.
Guests with and without the plugin boot in turn, and their CPU time is compared.
"""

from __future__ import annotations

import numpy as np

from atoll.guest import native, topology
from atoll.guest.guest import Guest
from perf.harness import WrongAnswer, at_least, at_most, median, note, ratio

ROUNDS = 5  # boots with and without
MILLION = 160  # accesses of a run
SIZES_KIB = {"l1": 16, "l2": 256, "l3": 2048, "memory": 16384}
TARGET_MILLION = {10_000: 15.0, 1_000: 10.0}  # by quantum
BOOT_TARGET_RATIO = 1.05
SWITCH_TARGET_MS = 100.0


def compare() -> None:
    _boots()
    for quantum in TARGET_MILLION:
        _speeds(quantum)


def _guest(quantum: int) -> Guest:
    return Guest(topology.load("milan2"), quantum=quantum)


def _boots() -> None:
    taken: dict[int, list[float]] = {0: [], 10_000: []}
    for number in range(ROUNDS):
        for quantum in sorted(taken, reverse=number % 2 == 1):
            with _guest(quantum) as guest:
                taken[quantum].append(guest.cpu_s())
    without, loaded = (np.array(seconds) for seconds in taken.values())
    note(f"CPU seconds of a boot: without {median(without)}, with the plugin {median(loaded)}")
    at_most("cachesim-boot-ratio", ratio(loaded, without).value, BOOT_TARGET_RATIO)


def _speeds(quantum: int) -> None:
    program = native.built("cachesim-speed", "native/tests/cachesim/cachesim-speed")
    switches_ms: list[float] = []
    with _guest(quantum) as guest:
        for name, kib in SIZES_KIB.items():
            before = guest.cpu_s()
            done = guest.run([program, str(kib), str(MILLION)], timeout_s=300)
            if done.returncode != 0:
                raise WrongAnswer(f"cachesim-speed: {done.stderr}")
            counted, on_ms, off_ms = map(float, done.stdout.split())
            # QEMU's time also has the program's start, so the rate is a little too low.
            rate = counted / (guest.cpu_s() - before)
            note(f"{name}, quantum {quantum}: on in {on_ms:.0f} ms, off in {off_ms:.0f} ms")
            bar = f"cachesim-{name}-{quantum}-million-a-second"
            at_least(bar, rate / 1e6, TARGET_MILLION[quantum])
            switches_ms += [on_ms, off_ms]
    switch_ms = float(np.median(switches_ms))
    at_most(f"cachesim-switch-{quantum}-ms", switch_ms, SWITCH_TARGET_MS)
