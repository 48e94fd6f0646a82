"""A cluster of Slurm with one node, this machine, on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from atoll.host.ports import free_ports
from tests.parts.deployment import until

_CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
CommunicationParameters=NoInAddrAny
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
MpiDefault=none
GresTypes=nic
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=4000000 Gres=nic:eth0:1,nic:eth0.7:1
PartitionName=all Nodes={host} Default=YES
"""


@dataclass(frozen=True)
class Slurm:
    conf: Path

    def run(self, *argv: str) -> str:
        """What the command printed, stderr too. Raises CalledProcessError."""
        return subprocess.run(
            argv,
            env=os.environ | {"SLURM_CONF": str(self.conf)},
            cwd=self.conf.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
            timeout=60,
        ).stdout


@contextmanager
def slurm(folder: Path, cpus: int) -> Iterator[Slurm]:
    """Skips without Slurm. `cpus`: what the node claims to have."""
    programs = [shutil.which(name) for name in ("slurmctld", "slurmd", "sbatch")]
    if None in programs:
        pytest.skip("Slurm is not installed (Debian's packages slurmctld, slurmd, slurm-client)")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    conf = folder / "slurm.conf"
    ports = free_ports(2)
    host = socket.gethostname().partition(".")[0]
    conf.write_text(
        _CONF.format(folder=folder, host=host, user=os.geteuid(), ports=ports, cpus=cpus)
    )
    (folder / "gres.conf").write_text("Name=nic Type=eth0\nName=nic Type=eth0.7\n")
    made = Slurm(conf)
    daemons = []
    try:
        for program in programs[:2]:
            with open(folder / f"{Path(str(program)).name}.log", "w") as log:
                daemons.append(
                    subprocess.Popen(
                        [str(program), "-D", "-f", str(conf)],
                        stdout=log,
                        stderr=log,
                        env=os.environ | {"SLURM_CONF": str(conf)},
                    )
                )
        until(lambda: _is_idle(made), lambda: (folder / "slurmctld.log").read_text())
        yield made
        made.run("scancel", "--full", "--signal=KILL", "--state=RUNNING")
        until(lambda: not made.run("squeue", "-h"), lambda: made.run("squeue"))
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(timeout=30)


def _is_idle(made: Slurm) -> bool:
    try:
        return "idle" in made.run("sinfo", "-h", "-o", "%t")
    except subprocess.CalledProcessError:
        return False
