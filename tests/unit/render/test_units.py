"""Systemd units: places, what closes a service off, when it counts as started."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from atoll.engines import registry
from atoll.engines.api import Installation
from atoll.engines.rendered import Target
from atoll.errors import UsageError
from atoll.plan import make_plan
from atoll.render.deployment import lay_out
from atoll.render.systemd import unit_files
from atoll.schema.plan import MemoryPolicy
from tests.parts.faults import fails
from tests.parts.machines import listening, milan
from tests.parts.render import ENGINES, TARGET, unattended


def unit_of(made_slot: dict[str, object]) -> str:
    made = unattended("trino", milan(2, 2, 4), "win")
    slots = tuple(slot.model_copy(update=made_slot) for slot in made.plan.slots)
    changed = replace(made, plan=made.plan.model_copy(update={"slots": slots}))
    return unit_files(changed)["t-worker-1.service"]


def test_bound_memory_is_a_limit_of_the_cgroup_and_a_wish_is_not() -> None:
    bound = unit_of({"memory_policy": MemoryPolicy.BIND})
    assert "AllowedCPUs=8-15\nCPUAffinity=8-15\nAllowedMemoryNodes=1\n" in bound
    assert "NUMAPolicy=bind\nNUMAMask=1\n" in bound
    preferred = unit_of({"memory_policy": MemoryPolicy.PREFERRED})
    assert "AllowedMemoryNodes" not in preferred
    assert "NUMAPolicy=preferred\nNUMAMask=1\n" in preferred
    local = unit_of({"memory_policy": MemoryPolicy.LOCAL, "memory_nodes": ()})
    assert "NUMAPolicy=local\n" in local
    assert "NUMAMask" not in local


@pytest.mark.parametrize("policy", [MemoryPolicy.WEIGHTED_INTERLEAVE, MemoryPolicy.PREFERRED])
def test_what_systemd_cannot_say_is_refused(policy: MemoryPolicy) -> None:
    with fails(UsageError, policy=policy.value, nodes="0-1"):
        unit_of({"memory_policy": policy, "memory_nodes": (0, 1)})


def test_units_are_closed_off_and_limited() -> None:
    made = unattended("trino")
    units = unit_files(made)
    unit = units["t-worker-0.service"]
    for line in (
        *("PrivateTmp=yes", "ProtectSystem=strict", "ReadWritePaths=/srv/t/data"),
        *("StartLimitIntervalSec=3000", "StartLimitBurst=5", "RestartSec=5"),
    ):
        assert f"\n{line}\n" in unit
    place = made.plan.coordinator
    assert place is not None
    most = sum(slot.memory_bytes for slot in made.plan.slots) + place.heap_bytes
    assert (
        f"[Slice]\nMemoryMax={most + registry.get('trino').traits.coordinator_overhead_bytes}\n"
        in (units["t.slice"])
    )


def test_wim_has_no_limit() -> None:
    assert "MemoryMax" not in unit_files(unattended("trino", policy="wim"))["t.slice"]


def test_an_address_of_a_nic_is_awaited() -> None:
    made = unattended("trino")
    unit = unit_files(made)["t-worker-0.service"]
    assert "\nAfter=network.target\n" in unit and "Wants=" not in unit
    plan = listening(made.plan, coordinator="10.0.0.5", slots=["10.0.0.5"])
    unit = unit_files(replace(made, plan=plan))["t-worker-0.service"]
    assert "\nAfter=network-online.target\nWants=network-online.target\n" in unit


def test_a_deployment_below_tmp_is_not_hidden_from_its_units() -> None:
    below = replace(TARGET, folder="/tmp/t", data="/srv/d")
    assert (
        "\nPrivateTmp=no\n" in unit_files(unattended("trino", target=below))["t-worker-0.service"]
    )


def test_a_server_with_a_socket_may_write_next_to_its_configuration() -> None:
    elsewhere = replace(TARGET, data="/var/lib/it's")
    unit = unit_files(unattended("postgresql", target=elsewhere))["t-worker-0.service"]
    assert '\nReadWritePaths="/var/lib/it\'s" /srv/t\n' in unit


def check_of(unit: str) -> list[str]:
    """The check after the start, as systemd passes it on."""
    (line,) = [line for line in unit.splitlines() if line.startswith("ExecStartPost=")]
    words = line.removeprefix("ExecStartPost=").replace("$$", "$").replace("%%", "%")
    return shlex.split(words)


@pytest.mark.parametrize("kind", ["port", "socket"])
def test_a_unit_has_started_once_its_process_accepts_connections(kind: str, tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET if kind == "port" else socket.AF_UNIX) as server:
        path = str(tmp_path / "100% it's $x.sock")
        server.bind(("127.0.0.1", 0) if kind == "port" else path)
        where: dict[str, object] = {"ready_socket": path}
        if kind == "port":
            where = {"ready_port": server.getsockname()[1]}
        made = unattended("postgresql")
        spec = made.processes[0].model_copy(update={"ready_socket": None, **where})
        unit = unit_files(replace(made, processes=(spec,)))["t-worker-0.service"]
        alive = subprocess.Popen(["sleep", "600"])
        env = {**os.environ, "MAINPID": str(alive.pid)}
        check = subprocess.Popen(check_of(unit), env=env)
        with pytest.raises(subprocess.TimeoutExpired):
            check.wait(timeout=1)  # nothing listens yet
        server.listen()
        assert check.wait(timeout=60) == 0
        server.close()
        alive.kill()
        alive.wait()
        done = subprocess.run(check_of(unit), env=env, timeout=60, check=False, capture_output=True)
        assert done.returncode == 1, "the process has ended, so the check fails"


def test_units_start_by_stage() -> None:
    units = unit_files(unattended("spark"))
    assert "Requires=t-master.service" in units["t-worker-0.service"]
    assert "After=network.target t-master.service" in units["t-worker-0.service"]
    assert "Requires" not in units["t-master.service"]
    assert all("User=engine\n" in text for name, text in units.items() if name.endswith("service"))


@pytest.mark.parametrize("engine", ENGINES)
def test_systemd_reads_the_units(engine: str, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed (Debian's package systemd)")
    for path in ("java", "postgres", "bin/mariadbd"):  # systemd looks whether they can be run
        stub = tmp_path / path
        stub.parent.mkdir(exist_ok=True)
        stub.write_text("#!/bin/sh\n")
        stub.chmod(0o755)
    there = Installation("1", str(tmp_path), str(tmp_path / "java"))
    user = os.environ.get("USER", "root")
    folder = str(tmp_path / "100% it's")
    target = Target("t", folder, user, 9000, f"{folder}/data")
    Path(target.folder).mkdir()
    made = registry.get(engine)
    plan = make_plan(milan(1, 2, 4), made.traits, "wicp")
    units = unit_files(lay_out(plan, made, there, target))
    for name, text in units.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [program, "verify", *(str(tmp_path / name) for name in units)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "t-" in line]
    assert said == []
    # Its own scale, from 0 (closed) to 100; without the settings of `_CLOSED_OFF` it says 90.
    services = [str(tmp_path / name) for name in units if name.endswith(".service")]
    done = subprocess.run(
        [program, "security", "--offline=true", "--threshold=55", "--no-pager", services[-1]],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
