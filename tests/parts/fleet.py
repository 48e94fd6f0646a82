"""Three 'machines' as network namespaces, each with an sshd, a home and a state of its own.

    controller's namespace  fc-br  10.77.0.1/24
                            ├─ veth ─ namespace a  10.77.0.2, sshd
                            ├─ ...                 b  10.77.0.3
                            └─ ...                 c  10.77.0.4

The controller has a namespace of its own, too, so that no address meets one of this machine. sshd
sets HOME and the XDG folders for what it starts; processes of a host are those in its namespace.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.parts.deployment import until
from tests.parts.namespaces import need

SSHD = "/usr/sbin/sshd"
ATOLL = str(Path(sys.executable).with_name("atoll"))
NAMES = ("a", "b", "c")
_CONFIG = """
ListenAddress {address}
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
SetEnv {environment}
"""


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}: {done.stderr}"
    return done.stdout


@dataclass
class Machine:
    """One of the hosts."""

    name: str
    address: str
    namespace: str
    folder: Path  # short, for the sockets below it
    sshd: subprocess.Popen[bytes] | None = None

    def start_sshd(self) -> None:
        self.sshd = subprocess.Popen(
            ["ip", "netns", "exec", self.namespace, SSHD, "-D", "-e", "-f", f"{self.folder}/sshd"],
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "sshd.log").open("ab"),
        )

    def pids(self) -> list[int]:
        return [int(pid) for pid in _run("ip", "netns", "pids", self.namespace).split()]

    def processes(self) -> dict[int, str]:
        """pid -> command line, of everything but sshd."""
        found = {}
        for pid in self.pids():
            with contextlib.suppress(OSError):
                argv = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                if argv and "sshd" not in argv.split(" -", 1)[0]:
                    found[pid] = argv
        return found

    def kill_all_sshd(self) -> None:
        for pid in self.pids():
            with contextlib.suppress(OSError):
                if "sshd" in Path(f"/proc/{pid}/comm").read_text():
                    os.kill(pid, signal.SIGKILL)

    def revive_sshd(self) -> None:
        assert self.sshd is not None
        if self.sshd.poll() is not None:
            self.start_sshd()

    def link(self, state: str) -> None:
        _run("ip", "-n", self.namespace, "link", "set", "eth0", state)

    @contextlib.contextmanager
    def full_disk(self) -> Iterator[None]:
        """Its state folder on a disk without room."""
        assert self.sshd is not None  # `ip netns exec` gave it mounts of its own
        inside = ("nsenter", "-m", "-t", str(self.sshd.pid))
        state = str(self.folder / "state")
        _run(*inside, "mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", state)
        try:
            full = subprocess.run(
                [*inside, "dd", "if=/dev/zero", f"of={state}/filler"],
                capture_output=True,
                check=False,
            )
            assert full.returncode
            yield
        finally:
            _run(*inside, "umount", "-l", state)

    def deployments(self) -> list[str]:
        return [path.parent.name for path in (self.folder / "state").rglob("deployment.json")]


@dataclass
class Fleet:
    folder: Path
    namespace: str
    machines: dict[str, Machine] = field(default_factory=dict)

    @property
    def inventory(self) -> Path:
        return self.folder / "hosts.json"

    def document(self, **changes: Any) -> dict[str, Any]:
        return {
            "format": "atoll/inventory",
            "version": 1,
            "user": "root",
            "key_file": "key",
            "known_hosts": "known_hosts",
            "atoll": ATOLL,
            "hosts": [
                {"name": machine.name, "address": machine.address, **changes.get(machine.name, {})}
                for machine in self.machines.values()
            ],
        }

    def state(self, name: str) -> Path:
        """The controller's record of a fleet."""
        return Path(os.environ["XDG_STATE_HOME"], "atoll", "fleets", f"{name}.json")

    def any_deployment(self) -> bool:
        return any(machine.deployments() for machine in self.machines.values())

    def write(self, **changes: Any) -> None:
        self.inventory.write_text(json.dumps(self.document(**changes)))

    def start(self, *argv: str) -> subprocess.Popen[str]:
        """`atoll fleet ARGV` as the controller; in its argv, INVENTORY stands for the file."""
        words = [str(self.inventory) if word == "INVENTORY" else word for word in argv]
        inside = ["ip", "netns", "exec", self.namespace, ATOLL, "fleet", *words]
        return subprocess.Popen(
            inside, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder
        )

    def run(self, *argv: str, timeout_s: float = 120) -> tuple[int, str, str]:
        process = self.start(*argv)
        try:
            out, err = process.communicate(timeout=timeout_s)
        finally:
            process.kill()
        assert "Traceback" not in err, err
        return process.returncode, out, err

    def answers(
        self, *argv: str, code: int = 0, timeout_s: float = 120
    ) -> dict[str, dict[str, Any]]:
        returned, out, err = self.run(*argv, "--json", timeout_s=timeout_s)
        assert returned == code, err
        return {answer["host"]: answer for answer in json.loads(out)["hosts"]}

    def nothing_is_left(self) -> None:
        """Waits for hosts that have not noticed yet that nobody is there."""
        machines = self.machines.values()
        until(
            lambda: not any(machine.processes() for machine in machines),
            lambda: {machine.name: machine.processes() for machine in machines},
            patience_s=60,
        )
        assert not self.any_deployment()
        assert not list(self.state("x").parent.glob("*.json"))
        for machine in machines:
            assert not list((machine.folder / "run").glob("atoll/*"))
        assert not _run("ip", "netns", "pids", self.namespace)


def _keys(folder: Path) -> None:
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder))


@contextlib.contextmanager
def fleet(names: Sequence[str] = NAMES) -> Iterator[Fleet]:
    """Skips unless this user may make namespaces and sshd is installed."""
    need("unshare", "-n")
    if os.geteuid() or not Path(SSHD).exists() or shutil.which("ip") is None:
        pytest.skip("no hosts are available here: needs root, openssh-server and iproute2")
    Path("/run/sshd").mkdir(exist_ok=True)  # where sshd separates privileges
    folder = Path(tempfile.mkdtemp(prefix="atoll-f-", dir="/tmp"))
    mark = folder.name.removeprefix("atoll-f-")
    made = Fleet(folder, f"atoll-{mark}")
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    try:
        _run("ip", "netns", "add", made.namespace)
        _run("ip", "-n", made.namespace, "link", "add", "fc-br", "type", "bridge")
        _run("ip", "-n", made.namespace, "addr", "add", "10.77.0.1/24", "dev", "fc-br")
        for device in ("fc-br", "lo"):
            _run("ip", "-n", made.namespace, "link", "set", device, "up")
        _keys(folder / "key")
        known = ""
        for number, name in enumerate(names, 2):
            machine = Machine(name, f"10.77.0.{number}", f"{made.namespace}-{name}", folder / name)
            made.machines[name] = machine
            for part in ("home", "state", "run"):
                (machine.folder / part).mkdir(parents=True, mode=0o700)
            _keys(machine.folder / "host_key")
            shutil.copy(folder / "key.pub", machine.folder / "authorized_keys")
            public = (machine.folder / "host_key.pub").read_text()
            known += f"{machine.address} {public}"
            (machine.folder / "sshd").write_text(
                _CONFIG.format(
                    address=machine.address,
                    folder=machine.folder,
                    environment=" ".join(
                        (
                            f"HOME={machine.folder}/home",
                            f"XDG_STATE_HOME={machine.folder}/state",
                            f"XDG_RUNTIME_DIR={machine.folder}/run",
                            f"XDG_CACHE_HOME={cache}",
                            f"PATH={os.environ['PATH']}",
                        )
                    ),
                )
            )
            _run("ip", "netns", "add", machine.namespace)
            _run("ip", "-n", made.namespace, "link", "add", f"v-{name}", "type", "veth",
                 "peer", "name", "eth0", "netns", machine.namespace)  # fmt: skip
            _run("ip", "-n", made.namespace, "link", "set", f"v-{name}", "master", "fc-br", "up")
            _run("ip", "-n", machine.namespace, "addr", "add", f"{machine.address}/24", "dev",
                 "eth0")  # fmt: skip
            for device in ("lo", "eth0"):
                _run("ip", "-n", machine.namespace, "link", "set", device, "up")
            machine.start_sshd()
        (folder / "known_hosts").write_text(known)
        made.write()
        yield made
    finally:
        for machine in made.machines.values():
            with contextlib.suppress(AssertionError):
                for pid in machine.pids():
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
            if machine.sshd:
                machine.sshd.wait(10)
        for namespace in [made.namespace, *(m.namespace for m in made.machines.values())]:
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)
