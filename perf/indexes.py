"""The indexes of W4 beside their peers: what a lookup takes.

One program has them all (native/perf/indexes), those of peers where they are here: congee,
masstree (the authors' own and a crate), crossbeam-skiplist, libcds and absl::btree. Each run is a
process with one index, built from the same keys in random order and asked for the same ones by one
thread; its figure is the thread's CPU time. Every answer is compared.

A bar is an index, one lookup after the other, over the fastest peer of its kind. `-fast` has many
lookups on their way (docs/workloads.md), which no peer offers.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

from perf import runtime_runs as runs
from perf.harness import WrongAnswer, at_most, interleave, median, note, ratio

KEYS, PROBES = 1_000_000, 1_000_000
ROUNDS = 5
TARGET = 1.1
DATASETS = ("sequential", "zipf")  # W4's own, and one that is random
# Ours -> the peers of its kind, and what brings them.
KINDS = {
    "art": ("congee",),
    "masstree": ("masstree-beta", "masstree-crate"),
    "btree": ("absl::btree",),
    "skiplist": ("crossbeam-skiplist", "libcds"),
}
BROUGHT_BY = {
    "congee": "install cargo; it fetches the crate",
    "masstree-beta": "put its clone, configured, into CMAKE_INCLUDE_PATH",
    "masstree-crate": "install cargo; it fetches the crate",
    "absl::btree": "install libabsl-dev",
    "crossbeam-skiplist": "install cargo; it fetches the crate",
    "libcds": "install libcds-dev",
}
_PROGRAM = runs.FOLDER / "native/perf/indexes/perf-indexes"


def compare() -> None:
    crates = runs.crate_library("indexes/crates", "perf_indexes")
    runs.build_target("perf-indexes", f"-DATOLL_PERF_CRATES={crates or ''}")
    found = _asked().split()
    for peer, how in BROUGHT_BY.items():
        if peer not in found:
            note(f"indexes: without {peer}; {how}")
    for dataset in DATASETS:
        compare_on(dataset, found)


def compare_on(dataset: str, found: list[str]) -> None:
    answers: dict[str, Any] = {}

    def subject(name: str) -> Callable[[], float]:
        def run() -> float:
            said = json.loads(_asked(name, dataset, str(KEYS), str(PROBES)))
            first = answers.setdefault("answer", said["answer"])
            if said["answer"] != first or said["answer"][0] != PROBES:  # each key is there
                raise WrongAnswer(f"{name} on {dataset}: {said['answer']}, not {first}")
            return float(said["lookup_ns"]) * 1e-9

        return run

    seconds = interleave({name: subject(name) for name in found}, rounds=ROUNDS, warmup=0)
    note(f"{dataset}: {KEYS:,} keys, {PROBES:,} lookups by one thread, {ROUNDS} rounds")
    medians = {name: median(own) for name, own in seconds.items()}
    for name, own in medians.items():
        note(f"{dataset} {name}: {own.scaled(1e9)} ns")
    for ours, kind in KINDS.items():
        peers = [peer for peer in kind if peer in found]
        if not peers:
            continue
        best = min(peers, key=lambda peer: medians[peer].value)
        over = ratio(seconds[ours], seconds[best])
        note(f"{dataset} {ours} over {best}: {over}")
        note(f"{dataset} {ours}-fast over {best}: {ratio(seconds[ours + '-fast'], seconds[best])}")
        at_most(f"indexes-{ours}-{dataset}-ratio", over.value, TARGET)


def _asked(*arguments: str) -> str:
    done = subprocess.run([str(_PROGRAM), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WrongAnswer(f"perf-indexes {' '.join(arguments)}: exit status {done.returncode}")
    return done.stdout
