"""A deployment as one Slurm job on one node: a step per process, with its masks. Pure.

`--mem-bind` can bind memory. It cannot interleave, and its `local` binds; so numactl sets every
policy but `bind`. Masks name the machine's CPUs only if the job has the whole node (`--exclusive`).

Source: sbatch(1), srun(1), scancel(1), gres.conf(5) of Slurm 22.05.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import replace

from atoll.engines.rendered import Rendering
from atoll.errors import UsageError
from atoll.render.deployment import (
    STOP_S,
    UnattendedDeployment,
    earlier,
    folder_of,
    listens,
    numactl_argv,
)
from atoll.render.native import preparations, readme, script
from atoll.schema.deployment import ProcessSpec
from atoll.schema.plan import MemoryPolicy

_JOB = "slurm/job.sh"
_GRES = "slurm/gres.conf"
_NIC = re.compile(r"[A-Za-z0-9._-]+")  # what may stand in a list of --gres
_MIB = 1 << 20
_FUNCTIONS = """\
declare -A steps
start() {{  # NAME ARGUMENT...
    local name=$1
    shift
    srun --job-name="$name" --output="slurm-%j-$name.out" \\
        --nodes=1 --ntasks=1 --overlap --mem=0 "$@" &
    steps[$name]=$!
}}
await() {{  # NAME TEST
    until (eval "$2") 2>/dev/null; do
        kill -0 "${{steps[$1]}}" || {{ stop; exit 1; }}
        sleep 0.2
    done
}}
stop() {{
    scancel --signal={stop_signal} "$SLURM_JOB_ID"
    wait
}}
trap 'stop; exit 0' TERM
"""


def render_slurm(deployment: UnattendedDeployment) -> Rendering:
    """Raises UsageError for a NIC that a gres cannot name."""
    scripts = {
        f"bin/{spec.name}.sh": script(deployment, spec, _argv(deployment, spec))
        for spec in deployment.processes
    }
    scripts[_JOB] = job_script(deployment)
    rendering = folder_of(deployment, scripts, readme(deployment, _how(deployment)))
    if nics := _nics(deployment):
        lines = "".join(f"Name=nic Type={nic} Count=1\n" for nic in nics)
        rendering = replace(rendering, files={**rendering.files, _GRES: lines})
    return rendering


def job_script(deployment: UnattendedDeployment) -> str:
    most = deployment.limit_bytes
    nics = ",".join(f"nic:{nic}:1" for nic in _nics(deployment))
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={deployment.target.name}",
        "#SBATCH --nodes=1",
        "#SBATCH --exclusive",
        f"#SBATCH --mem={'0' if most is None else f'{most // _MIB}M'}",
        *([f"#SBATCH --gres={nics}"] if nics else []),
        f"#SBATCH --signal=B:TERM@{STOP_S}",
        "",
        _FUNCTIONS.format(stop_signal=deployment.facts.stop_signal.removeprefix("SIG")),
    ]
    before: list[ProcessSpec] = []
    for spec in deployment.processes:
        for other in earlier(deployment, spec):
            if other not in before and (test := listens(other)):
                lines.append(f"await {other.name} {shlex.quote(test)}")
            before.append(other)
        lines.append(shlex.join(["start", spec.name, *_step(deployment, spec)]))
    lines += [
        "",
        "# The first process that ends, ends all.",
        "wait -n",
        "status=$?",
        "trap - TERM",
        "stop",
        'exit "$status"',
    ]
    return "\n".join(lines) + "\n"


def _step(deployment: UnattendedDeployment, spec: ProcessSpec) -> list[str]:
    place = deployment.place(spec)
    cpus = "none" if place.cpus is None else f"mask_cpu:{_mask(place.cpus)}"
    binds = place.policy is MemoryPolicy.BIND
    return [
        f"--cpu-bind={cpus}",
        f"--mem-bind={f'mask_mem:{_mask(place.nodes)}' if binds else 'none'}",
        f"{deployment.target.folder}/bin/{spec.name}.sh",
    ]


def _argv(deployment: UnattendedDeployment, spec: ProcessSpec) -> list[str]:
    if deployment.place(spec).policy is MemoryPolicy.BIND:
        return list(spec.argv)
    return numactl_argv(deployment.plan, spec, cpus=False)


def _mask(numbers: Iterable[int]) -> str:
    return f"0x{sum(1 << number for number in numbers):x}"


def _nics(deployment: UnattendedDeployment) -> list[str]:
    nics = sorted({slot.nic for slot in deployment.plan.slots if slot.nic is not None})
    for nic in nics:
        if not _NIC.fullmatch(nic):
            raise UsageError(
                f"{nic!r}: a gres of Slurm cannot have the name of this NIC; use --to native"
            )
    return nics


def _how(deployment: UnattendedDeployment) -> list[str]:
    target = deployment.target
    lines = [
        *preparations(deployment),
        "## Start",
        "",
        f"As `{target.user}`. NODE is the machine that the plan was made for:",
        "",
        "```sh",
        f"sbatch --nodelist=NODE {shlex.quote(f'{target.folder}/{_JOB}')}",
        "```",
        "",
        "Each process has its own output, `slurm-JOB-NAME.out` in the folder of the submission. "
        "`scancel --batch --signal=TERM JOB` stops all of it. Without these options, Slurm kills "
        "what has not ended after `KillWait`, which is 30 seconds unless your slurm.conf says "
        f"otherwise. The job also stops its processes {STOP_S} seconds before its time limit.",
        "",
        "The masks need `TaskPlugin=task/affinity` and a node with all its CPUs in slurm.conf; "
        "`scontrol show config` and `scontrol show node NODE` show both. Slurm can only bind "
        "memory: numactl sets other policies.",
    ]
    if deployment.limit_bytes is not None:
        lines += [
            "",
            f"The job asks for {deployment.limit_bytes // _MIB} MiB. The node's `RealMemory` in "
            "slurm.conf must be at least that; if it is less, plan with `--reserve`.",
        ]
    if nics := _nics(deployment):
        types = ",".join(f"nic:{nic}:1" for nic in nics)
        lines += [
            "",
            f"The job takes the NICs as a gres. `{_GRES}` is for the node's gres.conf; slurm.conf "
            f"needs `GresTypes=nic`, and `Gres={types}` in the line of the node. Slurm only "
            "counts them: the addresses in the engine's configuration choose the NIC.",
        ]
    return lines
