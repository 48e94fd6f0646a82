"""What all tests share: a private state folder, plain output, and the markers.

Deployments that tests start must not meet those of the user, so state and sockets lie in
folders of this run. The cache is the user's: data sets are expensive and checksummed.

`--turns FOLDER` lets several pytest processes share the tests: each takes the next file, or what
else a folder's conftest takes as one, that no other has taken.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
PRIVATE_PREFIX = "atoll-t-"  # of the private folders of all runs
_PRIVATE = pytest.StashKey[str]()
TURN = pytest.StashKey[str]()  # of a test: what is taken as one, if not its file
_LEFT_OUT = ("long", "installed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--turns", metavar="FOLDER", help="share the tests with other processes")


def pytest_configure(config: pytest.Config) -> None:
    # As at a terminal: the background jobs of a shell ignore Ctrl-C, and what they start does.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Short, because paths of UNIX sockets end at 107 bytes. Set for the whole run and not for a
    # test, because deployments outlive single tests.
    private = tempfile.mkdtemp(prefix=PRIVATE_PREFIX, dir="/tmp")
    config.stash[_PRIVATE] = private
    # A mark: the one variable of ours that engines get too, so that runs know their own apart.
    os.environ["PATH"] += f"{os.pathsep}{private}"
    for variable, name in (("XDG_STATE_HOME", "state"), ("XDG_RUNTIME_DIR", "run")):
        folder = Path(private, name)
        folder.mkdir(mode=0o700)
        os.environ[variable] = str(folder)
    for variable in ("ATOLL_DEBUG", "FORCE_COLOR", "CLICOLOR_FORCE"):
        os.environ.pop(variable, None)
    os.environ["COLUMNS"] = "80"
    # Hypothesis fails an example that takes 200 ms; on a busy machine any may.
    settings.register_profile("atoll", deadline=None)
    settings.load_profile("atoll")


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[_PRIVATE], ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave marked tests out, unless `-m` or the command line asks for them."""
    if config.option.markexpr or any("::" in argument for argument in config.args):
        return
    marked = [item for item in items if any(map(item.get_closest_marker, _LEFT_OUT))]
    if marked:
        config.hook.pytest_deselected(items=marked)
        items[:] = [item for item in items if item not in set(marked)]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> object:
    turns = session.config.getoption("--turns")
    if not turns or session.config.option.collectonly or session.testsfailed:
        return None  # pytest's own loop
    groups: dict[str, list[pytest.Item]] = {}
    for item in session.items:
        groups.setdefault(_turn(item), []).append(item)
    for wanted, items in groups.items():
        try:
            Path(turns, wanted.replace("/", "_") or "none").touch(exist_ok=False)
        except FileExistsError:
            continue
        for item, following in itertools.zip_longest(items, items[1:]):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    return True


def _turn(item: pytest.Item) -> str:
    return item.stash.get(TURN, item.nodeid.partition("::")[0])


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT
