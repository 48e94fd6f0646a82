"""Inside the guest, as root: rendered systemd units of PostgreSQL under a real systemd.

    python -m tests.vm.inside.units ANSWER HOME TEMPLATE

HOME is PostgreSQL's, TEMPLATE an empty data directory (initdb takes minutes in the guest). systemd
is PID 1 of namespaces of its own, with a cgroup of the guest's as its root; the targets that every
unit wants are empty. Writes what was seen as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from atoll.engines.postgresql.client import PostgreSQLClient
from atoll.errors import EngineFailed
from tests.parts.deployment import until
from tests.vm.inside.postgresql import allowed, pages_by_node, policies
from tests.vm.inside.steps import atoll

ACCOUNT, NUMBER = "atoll", 4242
FOLDER = Path("/srv/postgresql")
UNITS = Path("/etc/systemd/system")
CGROUP = Path("/sys/fs/cgroup/under-systemd")
SLICE = CGROUP / "postgresql.slice"
PATIENCE_S = 180.0  # all is emulated, perhaps beside another guest
TARGETS = ("basic", "multi-user", "network", "shutdown", "sysinit", "umount")
# $1: the cgroup. systemd wants a /run of its own, and says to a container what it is.
BEGIN = """
set -e
echo $$ >"$1/cgroup.procs"
exec unshare --fork --kill-child --pid --mount --cgroup sh -ec '
    mount -t proc proc /proc
    umount /sys/fs/cgroup
    mount -t cgroup2 cgroup /sys/fs/cgroup
    mount -t tmpfs run /run
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=atoll SYSTEMD_UNIT_PATH="$1" \
        /lib/systemd/systemd --system --unit=basic.target --show-status=no
' sh "$2"
"""


def account() -> None:
    """As `useradd` makes one; what lies below somebody's home it may pass."""
    with open("/etc/passwd", "a", encoding="utf-8") as passwd:
        passwd.write(f"{ACCOUNT}:x:{NUMBER}:{NUMBER}::/nonexistent:/bin/sh\n")
    with open("/etc/group", "a", encoding="utf-8") as group:
        group.write(f"{ACCOUNT}:x:{NUMBER}:\n")


def let_pass(path: str) -> None:
    for folder in (Path(path), *Path(path).parents):
        folder.chmod(folder.stat().st_mode | 0o555)


def prepare(home: str, template: str) -> list[dict[str, Any]]:
    """The rendered folder, ready for its units; the plan's slots."""
    let_pass(home)
    asked = ["render", "postgresql", "--policy", "win", "--to", "systemd", "--user", ACCOUNT]
    status, _, said = atoll([*asked, "--home", home, "-o", str(FOLDER)])
    assert status == 0, said
    slots = json.loads((FOLDER / "plan.json").read_text())["slots"]
    for slot in slots:
        shutil.copytree(template, FOLDER / f"data/data-{slot['index']}")
    run("chown", "-R", f"{ACCOUNT}:", str(FOLDER))
    for name in TARGETS:
        (UNITS / f"{name}.target").write_text(f"[Unit]\nDescription={name}\n")
    run("install", "-m", "644", *map(str, (FOLDER / "systemd").iterdir()), str(UNITS))
    return list(slots)


def run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return done.stdout.strip()


@contextmanager
def systemd() -> Iterator[Callable[..., str]]:
    """`systemctl`, with a systemd that runs."""
    CGROUP.mkdir()
    begun = subprocess.Popen(["sh", "-c", BEGIN, "sh", str(CGROUP), str(UNITS)])
    try:
        children = Path(f"/proc/{begun.pid}/task/{begun.pid}/children")
        await_that(lambda: bool(children.read_text()), "systemd does not begin")
        first = children.read_text().strip()
        # A cgroup with processes of its own hands no controller down.
        (CGROUP.parent / "cgroup.procs").write_text(str(begun.pid))
        enter = ("nsenter", "--target", first, "--mount", "--pid", "--cgroup", "systemctl")
        await_that(lambda: succeeds(*enter, "list-units"), "systemd does not answer")
        yield lambda *words: run(*enter, *words)
    finally:
        begun.kill()
        begun.wait()


def await_that(what: Callable[[], bool], else_say: str) -> None:
    until(what, lambda: else_say, patience_s=PATIENCE_S)


def succeeds(*argv: str) -> bool:
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def ask(socket: Path, sql: str) -> list[list[str]]:
    """The answer, once the server has begun to give any."""
    found: list[list[str]] = []

    def answers() -> bool:
        try:
            client = PostgreSQLClient.at(str(socket), timeout_s=10)
        except EngineFailed:
            return False
        rows = client.execute(sql, timeout_s=60).rows
        found.extend([str(value) for value in row] for row in rows)
        client.close()
        return True

    await_that(answers, f"{socket}: no answer")
    return found


def process(pid: int) -> dict[str, Any] | None:
    """None: it has ended, as a worker of autovacuum does after a moment."""
    try:
        return {
            "allowed": allowed(pid),
            "policies": policies(pid),
            "user": os.stat(f"/proc/{pid}").st_uid,
        }
    except (FileNotFoundError, ProcessLookupError):
        return None


def instance(slot: dict[str, Any], systemctl: Callable[..., str]) -> dict[str, Any]:
    socket = FOLDER / f".s.PGSQL.{5432 + slot['index']}"
    unit = f"postgresql-worker-{slot['index']}.service"
    answer = ask(socket, "select sum(n) from generate_series(1, 1000) as n")
    pids = [int(pid) for pid in (SLICE / unit / "cgroup.procs").read_text().split()]
    processes = {pid: found for pid in pids if (found := process(pid))}
    seen = {
        "answer": answer,
        "processes": processes,
        "shared": pages_by_node(min(pids), "/dev/zero"),  # the server's first process
        "cpus": (SLICE / unit / "cpuset.cpus.effective").read_text().strip(),
        "nodes": (SLICE / unit / "cpuset.mems.effective").read_text().strip(),
        "told": systemctl("show", "-p", "EffectiveCPUs", "--value", unit),
    }
    os.sched_setaffinity(min(pids), range(os.cpu_count() or 1))
    seen["widened"] = sorted(os.sched_getaffinity(min(pids)))
    return seen


def state(unit: str, systemctl: Callable[..., str]) -> dict[str, str]:
    lines = systemctl("show", "-p", "ActiveState,Result", unit).splitlines()
    return dict(line.split("=", 1) for line in lines)


def life(home: str, template: str) -> dict[str, Any]:
    account()
    slots = prepare(home, template)
    with systemd() as systemctl:
        systemctl("daemon-reload")
        systemctl("enable", "--now", "postgresql.target")
        instances = [instance(slot, systemctl) for slot in slots]
        systemctl("stop", "postgresql.target")
        units = [f"postgresql-worker-{slot['index']}.service" for slot in slots]
        # The target's own stop does not wait for its parts'.
        await_that(
            lambda: all(state(unit, systemctl)["ActiveState"] == "inactive" for unit in units),
            "the servers do not stop",
        )
        ended = [state(unit, systemctl)["Result"] for unit in units]
        left = [path.read_text() for path in SLICE.rglob("cgroup.procs")]
    return {"slots": slots, "instances": instances, "ended": ended, "left": left}


def main(answer: str, home: str, template: str) -> None:
    Path(answer).write_text(json.dumps(life(home, template)))


if __name__ == "__main__":
    main(*sys.argv[1:])
