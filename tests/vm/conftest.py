"""The fixture `guest`: one booted guest for all tests that ask for the same topology.

    @pytest.mark.parametrize("guest", ["milan2"], indirect=True)
    def test_something(guest: Guest) -> None: ...

Tests are sorted by guest, so that each boots once. A name after a colon ("milan2:pages") asks for
another guest of that topology: for tests that leave traces, or that traces of others disturb. The
name "simulated" asks for simulated caches, "simulated-10000" for coarser and faster ones. A boot is
tried three times at most; each failure is printed, and the summary counts them. A boot that keeps
failing is an error at set-up (BootFailed), never a failed test. A guest that no longer answers is
printed and counted as lost, and the next test that wants it gets a fresh boot. If its kernel was
stuck, which is the emulator's fault, the test itself runs once more on that boot.

Processes that share the tests (`--turns`, tests/conftest.py) take those of a guest as one. A guest
boots on little more than one core, so two processes use two cores.
"""

from __future__ import annotations

import contextlib
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest

from atoll.errors import GuestFailed
from atoll.guest import topology
from atoll.guest.guest import BootFailed, Guest, KernelStuck
from tests.conftest import TURN

MOST_LOST = 3  # of a topology
SIMULATED = {"simulated": 200, "simulated-10000": 10_000}  # the quantum in cycles
RESTORE_TIMEOUT_S = 120.0
COUNTED = ("boots", "boots retried", "boots given up", "lost")
_COUNTS = pytest.StashKey[Counter[str]]()
_LOST = pytest.StashKey[Counter[str]]()  # by topology


class Note(Protocol):
    def __call__(self, what: str, said: str = "") -> None: ...


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_COUNTS] = Counter()
    config.stash[_LOST] = Counter()


def _wanted(item: pytest.Item) -> str:
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get("guest", "")) if callspec else ""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # What takes longest goes first, so that the rest evens out the processes: the tests with a
    # guest or a machine of their own, then the guests that most tests want.
    tests = Counter(map(_wanted, items))

    def turn(item: pytest.Item) -> tuple[bool, int, str]:
        wanted = _wanted(item)
        return ":" not in wanted and "/" not in wanted, -tests[wanted], wanted

    items.sort(key=turn)
    for item in items:
        item.stash[TURN] = _wanted(item)


@pytest.fixture(scope="session")
def note(
    request: pytest.FixtureRequest, record_testsuite_property: Callable[[str, object], None]
) -> Note:
    """Counts one of COUNTED, and prints what there is to say of it."""

    def counted(what: str, said: str = "") -> None:
        request.config.stash[_COUNTS][what] += 1
        record_testsuite_property(what, 1)  # one each; tools/test_summary.py adds them up
        capture = request.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            if said:
                print(f"\n{said}", flush=True)

    return counted


@pytest.fixture(scope="session")
def guest(request: pytest.FixtureRequest, note: Note) -> Iterator[Guest]:
    name, _, tag = request.param.partition(":")
    running = Guest(topology.load(name), quantum=SIMULATED.get(tag, 0))
    with contextlib.closing(running):
        _boot(running, note)
        yield running


def _boot(running: Guest, note: Note) -> None:
    def failed(fault: GuestFailed, left: int) -> None:
        what = "boots retried" if left else "boots given up"
        note(what, f"BOOT FAILED, {left} tries left: {fault}\n{fault.console}")

    running.boot(failed=failed)
    running.run(["sh", "-c", _SAVE])
    note("boots")


# The chosen word of a list such as 'always [madvise] never'; else the whole value. In /run, which
# is the guest's own.
_SAVE = """
for file in /proc/sys/kernel/numa_balancing /proc/sys/vm/compaction_proactiveness \\
    /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/transparent_hugepage/defrag \\
    /sys/kernel/mm/mempolicy/weighted_interleave/node*
do
    echo "$(sed 's/.*\\[\\(.*\\)\\].*/\\1/' $file) $file"
done >/run/switches
"""
_RESTORE = "while read -r value file; do echo $value >$file; done </run/switches"


@pytest.fixture(autouse=True)
def as_found(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test turns in its guest is turned back for the next one that shares the boot. A
    guest that does not answer to that is lost, and boots again for the next one."""
    if "guest" not in request.fixturenames:
        yield
        return
    running: Guest = request.getfixturevalue("guest")
    note: Note = request.getfixturevalue("note")
    lost = request.config.stash[_LOST]
    if not running.is_on:
        if lost[running.topology.name] >= MOST_LOST:
            raise BootFailed(f"GUEST LOST {MOST_LOST} times: {running.topology.name} stays off")
        _boot(running, note)
    yield
    try:
        running.run(["sh", "-c", _RESTORE], timeout_s=RESTORE_TIMEOUT_S)
    except GuestFailed as fault:
        running.close()
        lost[running.topology.name] += 1
        note("lost", f"GUEST LOST at {request.node.name}: {fault}\n{fault.console}")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not {"guest", "note"} <= set(pyfuncitem.fixturenames):
        return None
    values: dict[str, Any] = pyfuncitem.funcargs
    asked_for = {name: values[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    try:
        pyfuncitem.obj(**asked_for)
    except KernelStuck as fault:
        said = f"GUEST LOST at {pyfuncitem.name}, which runs again: {fault}\n{fault.console}"
        values["note"]("lost", said)
        _boot(values["guest"], values["note"])
        pyfuncitem.obj(**asked_for)
    return True


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    counts = config.stash[_COUNTS]
    if counts:
        said = ", ".join(f"{counts[what]} {what}" for what in COUNTED)
        terminalreporter.write_line(f"guest: {said}")
