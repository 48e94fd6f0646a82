"""A Compose file: places, order, rights, and texts that Compose would change."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.engines import registry
from atoll.engines.api import ConfigurableEngine
from atoll.engines.userconfig.tree import UserTree
from atoll.render.compose import compose_file, render_compose
from atoll.render.deployment import UnattendedDeployment, numactl_argv
from atoll.schema.plan import MemoryPolicy
from tests.parts.machines import milan
from tests.parts.render import ENGINES, TARGET, unattended

ODD = '/srv/it\'s 100% ${HOME} $$ "x": é'
CONTAINERS = replace(TARGET, image="db:1", user="1001")


def services(made: UnattendedDeployment) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(compose_file(made))["services"]
    return found


def test_a_service_has_the_cpus_of_its_slot_and_numactl_its_memory() -> None:
    made = unattended("trino", milan(2, 2, 4), "win", CONTAINERS)
    worker = services(made)["worker-1"]
    assert worker["cpuset"] == "8-15"
    assert worker["entrypoint"][:4] == ["numactl", "-m", "1", "--"]
    assert worker["cap_add"] == ["SYS_NICE"]
    assert worker["mem_limit"] == made.plan.slots[1].memory_bytes
    coordinator = services(made)["coordinator"]
    assert "cpuset" not in coordinator and "cap_add" not in coordinator


@pytest.mark.parametrize("policy", MemoryPolicy)
def test_every_memory_policy_is_set(policy: MemoryPolicy) -> None:
    made = unattended("trino", milan(2, 2, 4), "win", CONTAINERS)
    changed = {"memory_policy": policy, "memory_nodes": (0, 1)}
    slots = tuple(slot.model_copy(update=changed) for slot in made.plan.slots)
    made = replace(made, plan=made.plan.model_copy(update={"slots": slots}))
    flags = numactl_argv(made.plan, made.processes[1])[3 : -len(made.processes[1].argv) - 1]
    argv = services(made)["worker-0"]["entrypoint"]
    if policy is MemoryPolicy.FIRST_TOUCH:
        assert flags == [] and argv[0] == "/opt/java/bin/java"
    else:
        assert argv[: len(flags) + 2] == ["numactl", *flags, "--"]


def test_wim_has_no_limit() -> None:
    worker = services(unattended("trino", policy="wim", target=CONTAINERS))["worker-0"]
    assert not {"cpuset", "mem_limit", "shm_size", "cap_add"} & set(worker)
    assert worker["ipc"] == "host"


def test_services_start_by_stage_and_once_those_before_answer() -> None:
    found = services(unattended("spark", target=CONTAINERS))
    assert found["worker-0"]["depends_on"] == {"master": {"condition": "service_healthy"}}
    assert found["master"]["healthcheck"]["test"][-1] == ": </dev/tcp/127.0.0.1/9000"


def test_data_is_made_once_in_the_place_of_its_server() -> None:
    made = unattended("postgresql", target=CONTAINERS)
    found = services(made)
    creator = found["create-worker-1"]
    assert creator["profiles"] == ["create"]
    assert creator["entrypoint"] == list(made.prepare["worker-1"])
    assert creator["cpuset"] == found["worker-1"]["cpuset"] == "4-7"
    assert "run --rm create-worker-1\n" in render_compose(made).files["README.md"]
    assert found["worker-1"]["stop_signal"] == "SIGINT"
    assert [mount["read_only"] for mount in found["worker-1"]["volumes"]] == [False, False]


def test_secrets_stay_in_their_files() -> None:
    spark = registry.get("spark")
    assert isinstance(spark, ConfigurableEngine)
    tree = UserTree("/etc/x", {"spark-env.sh": "AWS_SECRET_ACCESS_KEY='a$b'\n"})
    made = unattended(spark.on(tree), target=CONTAINERS)
    text = compose_file(made)
    assert "a$" not in text
    argv = services(made)["worker-0"]["entrypoint"]
    assert argv[3] == "/srv/t/secret/worker-0.env"


@pytest.mark.parametrize("engine", ENGINES)
def test_compose_reads_the_file(engine: str, tmp_path: Path) -> None:
    program = shutil.which("docker-compose")
    if program is None:
        pytest.skip("docker-compose is not installed (Debian's package docker-compose)")
    made = unattended(engine, target=replace(CONTAINERS, folder=ODD, data=f"{ODD}/data"))
    file = tmp_path / "compose.yaml"
    file.write_text(compose_file(made))
    done = subprocess.run(
        [program, "--profile", "create", "-f", str(file), "config"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    read = yaml.safe_load(done.stdout)["services"]
    assert len(read) == len(made.processes) + len(made.prepare)
    for spec in made.processes:
        words = [word.replace("$$", "$") for word in read[spec.name]["entrypoint"]]
        assert words[-len(spec.argv) :] == list(spec.argv)
        assert read[spec.name]["working_dir"].replace("$$", "$").startswith(ODD)


@settings(max_examples=40)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20))
def test_no_text_is_another_after_compose_has_replaced_variables(text: str) -> None:
    made = unattended("postgresql", target=CONTAINERS)
    spec = made.processes[0].model_copy(update={"argv": ("/bin/x", text), "env": {"A": text}})
    worker = services(replace(made, processes=(spec,)))["worker-0"]
    for found in (worker["entrypoint"][-1], worker["environment"]["A"]):
        assert "$" not in found.replace("$$", "")
        assert found.replace("$$", "$") == text
