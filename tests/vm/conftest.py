"""The fixture `guest`: one booted guest for all tests that ask for the same topology.

    @pytest.mark.parametrize("guest", ["milan2"], indirect=True)
    def test_something(guest: Guest) -> None: ...

Tests are sorted by guest, so that each boots once. A name after a colon ("milan2:pages") asks for
another guest of that topology: for tests that leave traces, or that traces of others disturb. A
boot is tried three times at most; each failure is printed, and the summary counts them. A boot
that fails for good is an error at set-up that says BOOT FAILED, never a failed test.

`--turns FOLDER` lets several pytest processes share the tests: each takes the next guest's that
no other has taken. A guest boots on little more than one core, so two processes use two cores.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.vm import topology
from tests.vm.guest import BootFailed, Guest

TRIES = 3
COUNTED = ("boots", "boots retried", "boots given up")
_COUNTS = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--turns", metavar="FOLDER", help="share the tests with other processes")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_COUNTS] = Counter()


def _wanted(item: pytest.Item) -> str:
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get("guest", "")) if callspec else ""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # What takes longest goes first, so that the rest evens out the processes: the tests with a
    # guest of their own, then the guests that most tests want.
    tests = Counter(map(_wanted, items))

    def turn(item: pytest.Item) -> tuple[bool, int, str]:
        wanted = _wanted(item)
        return ":" not in wanted, -tests[wanted], wanted

    items.sort(key=turn)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> object:
    turns = session.config.getoption("--turns", default=None)
    if not turns or session.config.option.collectonly or session.testsfailed:
        return None  # pytest's own loop
    for wanted, group in itertools.groupby(session.items, _wanted):
        try:
            Path(turns, wanted or "none").touch(exist_ok=False)
        except FileExistsError:
            continue
        items = list(group)
        for item, following in itertools.zip_longest(items, items[1:]):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    return True


@pytest.fixture(scope="session")
def guest(
    request: pytest.FixtureRequest, record_testsuite_property: Callable[[str, object], None]
) -> Iterator[Guest]:
    def count(what: str) -> None:
        request.config.stash[_COUNTS][what] += 1
        record_testsuite_property(what, 1)  # one each; tools/test_summary.py adds them up

    def say(what: str) -> None:
        capture = request.config.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            print(f"\n{what}", flush=True)

    running = Guest(topology.load(request.param.partition(":")[0]))
    for left in reversed(range(TRIES)):
        try:
            running.boot()
            break
        except BootFailed as fault:
            say(f"BOOT FAILED, {left} tries left: {fault}")
            count("boots retried" if left else "boots given up")
            if not left:
                raise BootFailed(f"BOOT FAILED {TRIES} times: {fault}") from None
    count("boots")
    with contextlib.closing(running):
        running.run(["sh", "-c", _SAVE])
        yield running


# The chosen word of a list such as 'always [madvise] never'; else the whole value. In /run, which
# is the guest's own.
_SAVE = """
for file in /proc/sys/kernel/numa_balancing /sys/kernel/mm/transparent_hugepage/enabled \\
    /sys/kernel/mm/transparent_hugepage/defrag /sys/kernel/mm/mempolicy/weighted_interleave/node*
do
    echo "$(sed 's/.*\\[\\(.*\\)\\].*/\\1/' $file) $file"
done >/run/switches
"""
_RESTORE = "while read -r value file; do echo $value >$file; done </run/switches"


@pytest.fixture(autouse=True)
def switches_as_found(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test turns in its guest is turned back for the next one that shares the boot."""
    running = request.getfixturevalue("guest") if "guest" in request.fixturenames else None
    yield
    if running is not None:
        running.run(["sh", "-c", _RESTORE])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    counts = config.stash[_COUNTS]
    if counts:
        said = ", ".join(f"{counts[what]} {what}" for what in COUNTED)
        terminalreporter.write_line(f"guest: {said}")
