"""A Slurm job: masks, order, the end; and a Slurm on loopback that reads it and runs one."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.errors import UsageError
from atoll.render.deployment import UnattendedDeployment, numactl_argv
from atoll.render.native import script
from atoll.render.slurm import job_script, render_slurm
from atoll.schema.plan import MemoryPolicy
from tests.parts.deployment import until
from tests.parts.faults import fails
from tests.parts.machines import milan
from tests.parts.render import ENGINES, TARGET, unattended
from tests.parts.slurm import Slurm, slurm

ODD = '/srv/it\'s 100% ${HOME} $$ "x" é'


def with_slots(made: UnattendedDeployment, **changed: object) -> UnattendedDeployment:
    slots = tuple(slot.model_copy(update=changed) for slot in made.plan.slots)
    return replace(made, plan=made.plan.model_copy(update={"slots": slots}))


def steps(made: UnattendedDeployment) -> dict[str, list[str]]:
    """Process -> what its step is started with."""
    lines = [line for line in job_script(made).splitlines() if line.startswith("start ")]
    return {words[1]: words[2:] for words in map(shlex.split, lines)}


def test_a_step_has_the_masks_of_its_slot() -> None:
    found = steps(unattended("trino", milan(2, 2, 4), "win"))
    assert found["worker-1"][:2] == ["--cpu-bind=mask_cpu:0xff00", "--mem-bind=mask_mem:0x2"]
    assert found["coordinator"][:2] == ["--cpu-bind=none", "--mem-bind=none"]


@pytest.mark.parametrize("policy", MemoryPolicy)
def test_every_memory_policy_is_set_once(policy: MemoryPolicy) -> None:
    made = unattended("trino", milan(2, 2, 4), "win")
    made = with_slots(made, memory_policy=policy, memory_nodes=(0, 1))
    spec = made.processes[1]
    argv = numactl_argv(made.plan, spec, cpus=False)
    by_slurm = "--mem-bind=mask_mem:0x3" in steps(made)["worker-0"]
    assert by_slurm is (policy is MemoryPolicy.BIND)
    expected = list(spec.argv) if by_slurm else argv
    assert render_slurm(made).scripts["bin/worker-0.sh"] == script(made, spec, expected)


def test_the_job_asks_for_a_node_its_memory_and_its_nics() -> None:
    made = with_slots(unattended("trino"), nic="eth0")
    made = replace(made, coordinator_bytes=made.coordinator_bytes + 1)  # no whole MiB
    rendering = render_slurm(made)
    lines = rendering.scripts["slurm/job.sh"].splitlines()
    assert made.limit_bytes is not None
    most = made.limit_bytes // (1 << 20)  # `slurmd -C` rounds the node's memory down, too
    assert most << 20 < made.limit_bytes
    assert f"#SBATCH --mem={most}M" in lines
    assert f"asks for {most} MiB." in rendering.files["README.md"]
    assert "#SBATCH --exclusive" in lines
    assert "#SBATCH --gres=nic:eth0:1" in lines
    assert rendering.files["slurm/gres.conf"] == "Name=nic Type=eth0 Count=1\n"
    without = render_slurm(unattended("trino", policy="wim"))
    assert "slurm/gres.conf" not in without.files
    assert "#SBATCH --mem=0" in without.scripts["slurm/job.sh"].splitlines()
    assert "RealMemory" not in without.files["README.md"]


def test_a_nic_that_slurm_cannot_name_is_refused() -> None:
    with fails(UsageError, nic="'e:1,x'"):
        render_slurm(with_slots(unattended("trino"), nic="e:1,x"))


def test_later_steps_wait_for_earlier_ones_and_get_the_engines_signal() -> None:
    text = job_script(unattended("spark"))
    assert text.index("start master") < text.index("await master ") < text.index("start worker-0")
    assert text.count("await master ") == 1
    assert 'scancel --signal=TERM "$SLURM_JOB_ID"' in text
    assert 'scancel --signal=INT "$SLURM_JOB_ID"' in job_script(unattended("postgresql"))


@settings(max_examples=25)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20))
def test_any_folder_is_one_word_of_the_job(name: str) -> None:
    made = unattended("spark", target=replace(TARGET, folder=f"/srv/{name}"))
    assert steps(made)["worker-1"][-1] == f"/srv/{name}/bin/worker-1.sh"
    assert len(steps(made)) == len(made.processes)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with slurm(tmp_path_factory.mktemp("slurm"), cpus=8) as made:
        yield made


@pytest.mark.parametrize("engine", ENGINES)
def test_slurm_accepts_the_job(engine: str, cluster: Slurm, tmp_path: Path) -> None:
    made = unattended(engine, target=replace(TARGET, folder=ODD))
    job = tmp_path / "job.sh"
    job.write_text(job_script(with_slots(made, nic="eth0.7")))
    subprocess.run(["bash", "-n", str(job)], check=True)
    assert re.match("sbatch: Job .* to start at", cluster.run("sbatch", "--test-only", str(job)))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_slurm_runs_each_process_in_its_slot_and_ends_it(cluster: Slurm, tmp_path: Path) -> None:
    folder = tmp_path / "it's $x"
    target = replace(TARGET, folder=str(folder), data=f"{folder}/data")
    cpus = sorted(os.sched_getaffinity(0))[:2]
    made = unattended("postgresql", target=target)
    slots = tuple(
        slot.model_copy(
            update={"cpus": (cpu,), "memory_policy": MemoryPolicy.BIND, "memory_nodes": (0,)}
        )
        for slot, cpu in zip(made.plan.slots, cpus, strict=True)
    )
    program = (
        'trap \'echo ended >>"$1"; exit\' INT; grep Cpus_allowed_list /proc/self/status >"$1";'
        'grep -c bind:0 /proc/self/numa_maps >/dev/null && echo bound >>"$1";'
        "while :; do sleep 0.1; done"
    )
    processes = tuple(
        spec.model_copy(update={"argv": ("sh", "-c", program, "sh", f"{folder}/{spec.name}")})
        for spec in made.processes
    )
    plan = made.plan.model_copy(update={"slots": slots})
    rendering = render_slurm(replace(made, processes=processes, plan=plan))
    for path, text in rendering.scripts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o700)
    number = cluster.run("sbatch", "--parsable", str(folder / "slurm/job.sh")).strip()
    said = [folder / spec.name for spec in processes]
    until(
        lambda: all(path.exists() and "bound" in path.read_text() for path in said),
        lambda: cluster.run("scontrol", "show", "job", number),
    )
    cluster.run("scancel", "--batch", "--signal=TERM", number)
    until(
        lambda: "JobState=COMPLETED" in cluster.run("scontrol", "show", "job", number),
        lambda: cluster.run("scontrol", "show", "job", number),
    )
    for file, cpu in zip(said, cpus, strict=True):
        assert file.read_text() == f"Cpus_allowed_list:\t{cpu}\nbound\nended\n"
