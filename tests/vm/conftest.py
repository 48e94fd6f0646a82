"""The fixture `guest`: one booted guest for all tests that ask for the same topology.

    @pytest.mark.parametrize("guest", ["milan2"], indirect=True)
    def test_something(guest: Guest) -> None: ...

Tests are sorted by topology, so that each boots once. A boot is tried three times at most; each
failure is printed, and the summary counts them. A boot that fails for good is an error at set-up
that says BOOT FAILED, never a failed test.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.vm import topology
from tests.vm.guest import BootFailed, Guest

TRIES = 3
_COUNTS = pytest.StashKey[dict[str, int]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_COUNTS] = {"boots": 0, "retries": 0, "failed": 0}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def wanted(item: pytest.Item) -> str:
        callspec = getattr(item, "callspec", None)
        return str(callspec.params.get("guest", "")) if callspec else ""

    items.sort(key=wanted)


@pytest.fixture(scope="session")
def guest(request: pytest.FixtureRequest) -> Iterator[Guest]:
    wanted = topology.load(request.param)
    counts = request.config.stash[_COUNTS]
    for left in reversed(range(TRIES)):
        running = Guest(wanted)
        try:
            running.boot()
            break
        except BootFailed as fault:
            counts["retries" if left else "failed"] += 1
            with request.config.pluginmanager.getplugin(
                "capturemanager"
            ).global_and_fixture_disabled():
                print(f"\nBOOT FAILED ({left} tries left): {fault}")
            if not left:
                raise BootFailed(f"BOOT FAILED {TRIES} times: {fault}") from None
    counts["boots"] += 1
    with contextlib.closing(running):
        yield running


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    counts = config.stash[_COUNTS]
    if any(counts.values()):
        terminalreporter.write_line(
            f"guest: {counts['boots']} boots, {counts['retries']} retries, "
            f"{counts['failed']} topologies that did not boot"
        )
