"""Check the models of native/models by spin: what must hold holds, and what must fail fails.

Each model is checked as the code is, and again with one thing taken away that the code says it
needs; a model in which nothing can be taken away would prove nothing. `python -m
tools.check_models` prints a line for each variant and exits 1 if one is not as expected;
`--trace NAME` shows the steps that lead a variant to its fault. Needs spin and a C compiler.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

MODELS = Path(__file__).resolve().parent.parent / "native/models"

# Not optimised: to compile one takes longer than most searches.
# Without partial order reduction, so that nothing rests on its rules for `timeout`.
COMPILE = ["cc", "-DSAFETY", "-DNOREDUCE", "-o", "pan", "pan.c"]
DEPTH = 100_000  # steps; a search that was cut off there is no proof
SECONDS = 300  # for one variant on a slow machine; here they take up to 5


@dataclass(frozen=True)
class Variant:
    """One check. `fault`: what the failing assertion must name; None where none may fail."""

    model: str
    flags: tuple[str, ...]
    fault: str | None
    what: str

    @property
    def name(self) -> str:
        """As `--trace` takes it."""
        return "+".join((self.model, *self.flags))


@dataclass(frozen=True)
class Outcome:
    """What spin's verifier said."""

    failed: str | None  # the assertion
    states: int
    complete: bool


LOST, TWICE, INSIDE, UNSEEN = "lost_wake_up", "each_once", "inside|entered|taken", "overlooked"
EARLY, LEFT = "by_phases", "all_through"

VARIANTS = (
    Variant("parking", (), None, "two full fences"),
    Variant("parking", ("MEMBARRIER",), None, "asymmetric fences"),
    Variant("parking", ("RESTRICTED",), None, "notify_allowed"),
    Variant("parking", ("RESTRICTED", "MEMBARRIER"), None, "notify_allowed, asymmetric fences"),
    Variant("parking", ("RESTRICTED", "MIXED"), None, "a deque gives up what not all may run"),
    Variant("parking", ("RESTRICTED", "MIXED", "MEMBARRIER"), None, "that, asymmetric fences"),
    Variant("parking", ("NO_LIGHT_FENCE",), LOST, "without the producer's fence"),
    Variant("parking", ("NO_HEAVY_FENCE",), LOST, "without the sleeper's fence"),
    Variant("parking", ("MEMBARRIER", "NO_MEMBARRIER"), LOST, "without membarrier"),
    Variant("parking", ("NO_SECOND_LOOK",), LOST, "without the look between prepare and commit"),
    Variant("parking", ("NO_LAST_SEARCHER",), LOST, "the last searcher wakes nobody"),
    Variant("parking", ("LATE_COUNT",), "searchers", "the woken runs before it is counted"),
    Variant("parking", ("RESTRICTED", "PLAIN_NOTIFY"), LOST, "notify for what not all may run"),
    Variant("parking", ("RESTRICTED", "MIXED", "NO_MOVE"), LOST, "it keeps it, and hides the rest"),
    Variant("parking", ("LEVELS",), None, "counts by chiplet"),
    Variant("parking", ("LEVELS", "MEMBARRIER"), None, "... asymmetric fences"),
    Variant("parking", ("LEVELS", "RESTRICTED"), None, "... notify_allowed"),
    Variant("parking", ("LEVELS", "RESTRICTED", "LATE_RAISE"), LOST, "raised after the count"),
    Variant("parking", ("STAND_IN",), None, "a thread in a sleeper's place"),
    Variant("parking", ("STAND_IN", "MEMBARRIER"), None, "... asymmetric fences"),
    Variant("parking", ("STAND_IN", "NO_LAST_SEARCHER"), LOST, "the last searcher wakes nobody"),
    Variant("parking", ("STAND_IN", "NO_RETURN_LOOK"), LOST, "it gives the place back unseen"),
    Variant("parking", ("STAND_IN", "NO_RETURN_FENCE"), LOST, "... without a fence"),
    Variant("parking", ("STAND_IN", "MEMBARRIER", "ONLY_OWN_FENCE"), LOST, "... no heavy fence"),
    Variant("parking", ("STAND_IN", "BATCH"), None, "a searcher offers what it stole"),
    Variant("parking", ("STAND_IN", "BATCH", "MEMBARRIER"), None, "... asymmetric fences"),
    Variant("parking", ("STAND_IN", "BATCH", "SEARCHERS_SLEEP"), LOST, "... and counts as asleep"),
    Variant("parking", ("STAND_IN", "LATE_STATE"), LOST, "... nobody can call it meanwhile"),
    Variant("parking", ("STAND_IN", "ALONE", "MEMBARRIER"), None, "... of the only worker"),
    Variant(
        "parking",
        ("STAND_IN", "ALONE", "MEMBARRIER", "LIGHT_OUTSIDE"),
        LOST,
        "... a light fence outside of workers",
    ),
    Variant("parking", ("LAST_LOOK",), None, "it looks instead where all others sleep"),
    Variant("parking", ("LAST_LOOK", "MEMBARRIER"), None, "... asymmetric fences"),
    Variant("parking", ("LAST_LOOK", "NO_LOOK"), LOST, "... does not look"),
    Variant("parking", ("LAST_LOOK", "MEMBARRIER", "LIGHT_OUTSIDE"), LOST, "... a light fence"),
    Variant("parking", ("LAST_LOOK", "BUSY"), None, "... a third worker is busy"),
    Variant("parking", ("LAST_LOOK", "BUSY", "MEMBARRIER"), None, "... asymmetric fences"),
    Variant("parking", ("LAST_LOOK", "BUSY", "BUSY_SLEEPS"), LOST, "... and counts as asleep"),
    Variant("parking", ("TREE",), None, "two workers wake as a tree"),
    Variant("parking", ("TREE", "MEMBARRIER"), None, "... asymmetric fences"),
    Variant("parking", ("TREE", "NO_LIGHT_FENCE"), LOST, "... without the producer's fence"),
    Variant("parking", ("TREE", "NO_CHILD"), LOST, "... the first wakes nobody"),
    Variant("parking", ("TREE", "LATE_LINK"), LOST, "... is linked to the second late"),
    Variant("parking", ("TREE", "PARENT_FIRST"), LOST, "... may run before the second may"),
    Variant("deque", (), None, "one owner, two thieves"),
    Variant("deque", ("MEMBARRIER",), None, "asymmetric fences"),
    Variant("deque", ("SMALL",), None, "slots that are reused more"),
    Variant("deque", ("SLEEPER",), None, "a worker is about to sleep"),
    Variant("deque", ("SLEEPER", "MEMBARRIER"), None, "that, asymmetric fences"),
    Variant("deque", ("NO_LIGHT_FENCE",), TWICE, "without pop's fence"),
    Variant("deque", ("MEMBARRIER", "NO_MEMBARRIER"), TWICE, "without membarrier"),
    Variant("deque", ("NO_FORCE_LOCK",), TWICE, "two thieves force at once"),
    Variant("deque", ("NO_CLOSE",), TWICE, "force does not close the public part"),
    Variant("deque", ("SPLIT_FALLS",), TWICE, "the owner lowers the split"),
    Variant("deque", ("SMALL", "SLOT_AFTER_CAS"), TWICE, "a thief reads the slot after its CAS"),
    Variant("deque", ("SLEEPER", "TOP_FIRST"), UNSEEN, "words move up, the top before the bottom"),
    Variant("deque", ("SLEEPER", "PUBLIC_ONLY"), UNSEEN, "a sleeper looks at public words only"),
    Variant("word_queue", (), None, "two producers, two consumers, a sleeper"),
    Variant("word_queue", ("NO_MARK",), UNSEEN, "no mark in place of the list that is taken"),
    Variant("word_queue", ("LIST_FIRST",), UNSEEN, "the list is looked at before the stack"),
    Variant("domain", (), None, "two producers, a passer-by, a sleeper"),
    Variant("domain", ("BIT_FIRST",), LOST, "the bit is set before the push"),
    Variant("domain", ("NO_LOOK",), LOST, "no look at the queue after the bit is cleared"),
    Variant("domain", ("NO_WAKE",), LOST, "nobody is woken after the bit is set again"),
    Variant("barrier", (), None, "two leaves, more tasks than parties"),
    Variant("barrier", ("NO_SUM",), EARLY, "the last party does not count what leaves show"),
    Variant("barrier", ("NO_FIRST_LOOK",), LEFT, "it looks at each leaf when that goes through"),
    Variant("barrier", ("EARLY_ROOT",), LEFT, "the root has room before the leaves go through"),
    Variant("event", (), None, "a list and a table of waiters"),
    Variant("event", ("BIT_WITHOUT_LOCK",), "released|sets", "the table's bit without its lock"),
    Variant("event", ("FLAG_FIRST",), "gone", "the flag is raised before the waiters are taken"),
    Variant("event", ("NEXT_AFTER_RESUME",), "frame", "the list is read after a resume"),
    Variant("yield_queue", (), None, "two full fences"),
    Variant("yield_queue", ("MEMBARRIER",), None, "asymmetric fences"),
    Variant("yield_queue", ("NO_LIGHT_FENCE",), INSIDE, "without the owner's fence"),
    Variant("yield_queue", ("MEMBARRIER", "NO_MEMBARRIER"), INSIDE, "without membarrier"),
    Variant("yield_queue", ("NO_OWNER_LOOK",), INSIDE, "the owner does not look for a thief"),
    Variant("yield_queue", ("PUT_BLINDLY",), "puts", "the next word's place is filled blindly"),
    Variant("yield_queue", ("TAKE_OUTSIDE",), "taken", "the next word is taken without the lock"),
)


def run(folder: Path, *command: str) -> str:
    """What a command printed. Raises CalledProcessError or TimeoutExpired."""
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, timeout=SECONDS
    ).stdout


def verify(variant: Variant, folder: Path) -> Outcome:
    """Search all states of a variant, working in an empty folder."""
    defines = (f"-D{flag}" for flag in variant.flags)
    run(folder, "spin", *defines, "-a", str(MODELS / f"{variant.model}.pml"))
    run(folder, *COMPILE)
    return read_outcome(run(folder, "./pan", f"-m{DEPTH}"))


def read_outcome(text: str) -> Outcome:
    """The verifier's report. Raises ValueError if it is not a report."""
    errors = re.search(r"errors: (\d+)", text)
    states = re.search(r"(\d+) states, stored", text)
    if errors is None or states is None:
        raise ValueError(f"no report of spin's verifier: {text}")
    failed = re.search(r"assertion violated (.*) \(at depth", text)
    if failed is None and errors[1] != "0":
        raise ValueError(f"the verifier found a fault that is no assertion: {text}")
    complete = "max search depth too small" not in text and "Search not completed" not in text
    return Outcome(failed[1] if failed else None, int(states[1]), complete)


def complaint(variant: Variant, outcome: Outcome) -> str | None:
    """Why this outcome is not the expected one; None if it is."""
    if variant.fault is None:
        if outcome.failed is not None:
            return f"must hold, but this fails: {outcome.failed}"
        return None if outcome.complete else "the search was cut off"
    if outcome.failed is None:
        return "must fail, but holds: the model does not see what the code needs this for"
    if not re.search(variant.fault, outcome.failed):
        return f"must fail by {variant.fault}, but fails by {outcome.failed}"
    return None


def timed(variant: Variant) -> tuple[Outcome, float]:
    """Check one, in seconds."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="atoll-model-") as folder:
        return verify(variant, Path(folder)), time.monotonic() - began


def check(variants: Sequence[Variant]) -> int:
    """Check them all and print the table. Returns how many were not as expected."""
    pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    try:
        return sum(
            say(variant, *found)
            for variant, found in zip(variants, pool.map(timed, variants), strict=True)
        )
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C does not wait for the others


def say(variant: Variant, outcome: Outcome, seconds: float) -> bool:
    """Print a line of the table. Returns whether the outcome is not the expected one."""
    found = complaint(variant, outcome)
    said = "holds" if outcome.failed is None else "fails"
    print(
        f"{'ok   ' if found is None else 'WRONG'} {variant.model:<11} {said}  "
        f"{outcome.states:>8} states {seconds:5.1f} s  "
        f"{variant.what} [{' '.join(variant.flags) or 'as the code is'}]",
        flush=True,
    )
    if found is not None:
        print(f"      {found}; see --trace {variant.name}")
    return found is not None


def trace(name: str) -> None:
    """Print the steps to a variant's fault, a column for each process."""
    variant = next((v for v in VARIANTS if v.name == name), None)
    if variant is None:
        sys.exit(f"no variant {name}; there are {', '.join(v.name for v in VARIANTS)}")
    with tempfile.TemporaryDirectory(prefix="atoll-model-") as folder:
        # Breadth first: the shortest way there.
        here = Path(folder)
        defines = [f"-D{flag}" for flag in variant.flags]
        model = str(MODELS / f"{variant.model}.pml")
        run(here, "spin", *defines, "-a", model)
        run(here, *COMPILE, "-DBFS")
        run(here, "./pan")
        if not (trail := here / f"{variant.model}.pml.trail").exists():
            sys.exit(f"{name} has no fault")
        print(run(here, "spin", *defines, "-p", "-g", "-k", str(trail), model))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--trace", metavar="NAME", help="show how this variant fails")
    if name := parser.parse_args().trace:
        trace(name)
        return 0
    wrong = check(VARIANTS)
    print(f"{len(VARIANTS) - wrong} of {len(VARIANTS)} as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FileNotFoundError as missing:
        sys.exit(f"models: no {missing.filename} here; install it: apt-get install spin gcc")
    except (subprocess.SubprocessError, ValueError) as error:
        sys.exit(f"models: {error}")
