"""Inside the guest, as root: `atoll knobs` killed before each of its system calls, and more.

    python -m tests.vm.inside.knobs SCENARIO...      prints JSON; the host judges

One Python for all of it: each command that is to die runs in a fork, with the modules loaded. A
fork counts the calls below and sends itself SIGKILL before the one whose number it was given, in
the production code as it is. CPU frequencies do not exist here, so a tmpfs stands in for them.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from atoll import cli
from atoll.host.local import LocalHost
from atoll.knobs.catalog import KNOBS
from atoll.knobs.files import files
from atoll.knobs.journal import FOLDER

CPUFREQ = Path("/sys/devices/system/cpu/cpufreq")
SWAPPINESS = Path("/proc/sys/vm/swappiness")
# Each changes what a fresh guest has; interrupt 8 is the clock's, 24 and 26 are virtio's.
ASKED = [
    "numa-balancing=0",
    "thp-enabled=never",
    "thp-defrag=defer+madvise",
    "zone-reclaim=1",
    "swappiness=10",
    "governor=powersave",
    "weighted-interleave=0=3,1=7",
    "irq-affinity=8=0,24=1-3,5,26=4",
    "arp-ignore=1",
    "arp-announce=2",
]
NAMES = ("open", "write", "ftruncate", "close", "mkdir", "chmod", "fchmod", "fsync", "replace")
CALLS = [(os, name) for name in NAMES]


def atoll(*arguments: str) -> dict[str, Any]:
    """`atoll ARGUMENTS` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.run(list(arguments))
    return {"status": status, "out": out.getvalue(), "err": err.getvalue()}


def snapshot() -> dict[str, str]:
    """Every file of every knob, as it reads."""
    host = LocalHost()
    return {
        path: host.read_text(path) for knob in KNOBS.values() for path in files(knob.patterns, host)
    }


def changed(fresh: dict[str, str]) -> list[str]:
    """Of these files, what reads otherwise than it did."""
    host = LocalHost()
    return sorted(path for path in fresh if host.read_text(path) != fresh[path])


def action() -> str | None:
    """What the journal says is going on."""
    journal = FOLDER / "journal.json"
    if not journal.exists():
        return None
    running: str | None = json.loads(journal.read_text())["action"]
    return running


def started(work: Callable[[], int]) -> int:
    """The pid of a fork that does `work`, mute, and ends with the status that it gives."""
    child = os.fork()
    if child == 0:
        with open(os.devnull, "w") as null:
            sys.stdout = sys.stderr = null
            os._exit(work())
    return child


def ended(child: int) -> int:
    """The status that a fork ended with, or the signal, negative."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(number: int, arguments: list[str]) -> int:
    """Run a command that dies before its system call `number`."""
    left = number

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **named)

        return call

    def work() -> int:
        for module, name in [*CALLS, (fcntl, "flock")]:
            setattr(module, name, counted(getattr(module, name)))
        return cli.run(list(arguments))

    return ended(started(work))


def every_kill(
    arguments: list[str], prepare: Callable[[], None], fresh: dict[str, str]
) -> list[dict[str, Any]]:
    """What the next commands find after a kill before each call, and after none."""
    found = []
    for number in range(1000):
        prepare()
        status = killed_at(number, arguments)
        found.append(
            {
                "ended": status,
                "at_death": changed(fresh),
                "show": atoll("knobs", "--json")["status"],
                "settled": changed(fresh),
                "action": action(),
                "undo": atoll("undo", "--all")["status"],
                "left": changed(fresh),
                "files": sorted(path.name for path in FOLDER.iterdir()),
            }
        )
        if status == 0:
            return found
    raise AssertionError("the command never ended")


def kills() -> dict[str, Any]:
    fresh = snapshot()

    def nothing() -> None:
        shutil.rmtree(FOLDER, ignore_errors=True)

    def all_set() -> None:
        nothing()
        assert atoll("apply", *ASKED)["status"] == 0

    all_set()
    asked = changed(fresh)
    assert atoll("undo", "--all")["status"] == 0
    turned = {path: fresh[path] for path in asked}  # the others are looked at in the end
    found: dict[str, Any] = {
        "switches": {name: files(knob.patterns, LocalHost()) for name, knob in KNOBS.items()},
        "asked": asked,
        "set": every_kill(["apply", *ASKED], nothing, turned),
        "undo": every_kill(["undo", "--all"], all_set, turned),
    }
    half = [len(each["at_death"]) for each in found["set"]].index(len(asked) // 2)

    def half_set() -> None:
        nothing()
        killed_at(half, ["apply", *ASKED])

    found["settle"] = every_kill(["knobs"], half_set, turned)
    return found | {"after_all": snapshot() == fresh}


def refusals() -> dict[str, Any]:
    """Interrupt 2 cannot be moved; another boot; somebody else; two at once."""
    fresh = snapshot()
    refused = atoll("apply", "swappiness=10", "irq-affinity=24=1,2=0")
    found: dict[str, Any] = {"refused": refused, "after_refusal": snapshot() == fresh}

    atoll("apply", "swappiness=10", "thp-enabled=never")
    SWAPPINESS.write_text("30\n")
    found["foreign"] = atoll("undo", "--all")
    found["foreign_value"] = SWAPPINESS.read_text()
    SWAPPINESS.write_text("60\n")
    found["put_back"] = atoll("undo", "--all")
    found["after_foreign"] = snapshot() == fresh

    atoll("apply", "swappiness=10")
    journal = FOLDER / "journal.json"
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    journal.write_text(journal.read_text().replace(boot_id, "another"))
    found["boot"] = atoll("undo", "--all")
    found["boot_value"] = SWAPPINESS.read_text()
    SWAPPINESS.write_text("60\n")

    at_once = [
        started(partial(cli.run, ["apply", f"swappiness={value}"])) for value in (10, 20, 30, 40)
    ]
    found["at_once"] = [ended(child) for child in at_once]
    found["set_at_once"] = SWAPPINESS.read_text()
    atoll("undo", "--all")
    found["after_all"] = snapshot() == fresh
    return found


def as_nobody(*arguments: str) -> dict[str, Any]:
    """A command of an ordinary user's."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            sys.stdout, sys.stderr = out, err
            status = cli.run(list(arguments))
            out.flush()
            err.flush()
            os._exit(status)
        status = ended(child)
        out.seek(0)
        err.seek(0)
        return {"status": status, "out": out.read(), "err": err.read()}


def sh(text: str) -> tuple[int, str]:
    done = subprocess.run(["sh"], input=text, text=True, capture_output=True, check=False)
    return done.returncode, done.stderr


def scripts() -> dict[str, Any]:
    fresh = snapshot()
    atoll("apply", *ASKED)
    wanted = snapshot()
    atoll("undo", "--all")
    shutil.rmtree(FOLDER)

    printed = as_nobody("apply", *ASKED)
    found: dict[str, Any] = {"set": printed, "untouched": snapshot() == fresh}
    found["set_ran"] = sh(printed["out"])
    found["set_as_wanted"] = snapshot() == wanted
    found["again"] = sh(printed["out"])
    found["shown"] = as_nobody("knobs", "--json")["status"]
    undo = as_nobody("undo", "--all")
    found["undo"] = undo
    found["undo_ran"] = sh(undo["out"])
    found["undone"] = snapshot() == fresh

    found["cut"] = []
    lines = as_nobody("apply", *ASKED)["out"].splitlines()
    turns = [number for number, line in enumerate(lines) if "; turn " in line]
    for number in [*turns[::3], turns[-1] + 1]:
        died = sh("\n".join([*lines[:number], "kill -9 $$", *lines[number:]]))[0]
        begun = snapshot() != fresh
        shown = atoll("knobs")["status"]
        whole = snapshot() in (fresh, wanted)
        undone = atoll("undo", "--all")["status"]
        found["cut"].append([died, begun, shown, whole, undone, snapshot() == fresh])
        lines = as_nobody("apply", *ASKED)["out"].splitlines()

    good = as_nobody("apply", "thp-enabled=never", "swappiness=10")["out"]
    found["refused"] = sh(good.replace(f"turn {SWAPPINESS} 10 ", f"turn {SWAPPINESS} 999 "))
    found["after_refusal"] = snapshot() == fresh
    SWAPPINESS.write_text("30\n")
    found["changed"] = sh(good)
    SWAPPINESS.write_text("60\n")
    found["after_all"] = snapshot() == fresh
    found["not_root"] = ended(started(lambda: _script_as_nobody(good)))
    return found


def _script_as_nobody(text: str) -> int:
    os.setuid(65534)
    return sh(text)[0]


@contextlib.contextmanager
def governors() -> Iterator[None]:
    """Two CPU frequency policies."""
    subprocess.run(["mount", "-t", "tmpfs", "governors", str(CPUFREQ)], check=True)
    for policy, value in ((0, "schedutil"), (8, "performance")):
        folder = CPUFREQ / f"policy{policy}"
        folder.mkdir()
        (folder / "scaling_governor").write_text(f"{value}\n")
        (folder / "scaling_available_governors").write_text("performance powersave schedutil \n")
    try:
        yield
    finally:
        subprocess.run(["umount", str(CPUFREQ)], check=True)


def main(names: list[str]) -> None:
    scenarios = {"kills": kills, "refusals": refusals, "scripts": scripts}
    with governors():
        atoll("knobs", "--json")  # load what commands load
        for name in ("apply", "undo"):
            importlib.import_module(f"atoll.cli.{name}")
        gc.freeze()  # a fork copies fewer pages
        found = {}
        for name in names:
            shutil.rmtree(FOLDER, ignore_errors=True)
            found[name] = scenarios[name]()
    shutil.rmtree(FOLDER.parent, ignore_errors=True)
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
