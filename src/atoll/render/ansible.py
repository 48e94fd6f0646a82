"""A deployment as Ansible playbooks, which install its systemd units on other machines. Pure.

A playbook may run again: what is as it should be stays, data is created once, and changed files
restart the units.

Source: docs.ansible.com, ansible.builtin, of ansible-core 2.19; checked by ansible-lint 26.10.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from atoll.engines.rendered import Rendering
from atoll.errors import UsageError
from atoll.render.deployment import UnattendedDeployment
from atoll.render.native import creating, readme
from atoll.render.systemd import render_systemd, unit_name
from atoll.render.yaml import Value, yaml_text
from atoll.supervise.place import counts

_START, _STOP = "ansible/start.yml", "ansible/stop.yml"
_TEMPLATES = ("{{", "{%", "{#")  # of Jinja, which Ansible finds in every text
_UNITS = "/etc/systemd/system"


def render_ansible(deployment: UnattendedDeployment) -> Rendering:
    """Raises UsageError as render_systemd, for an account that is only a number, and for a path
    that is a template of Ansible's."""
    plays = {_START: _start(deployment), _STOP: _stop(deployment)}
    texts = {name: yaml_text([play]) for name, play in plays.items()}
    target = deployment.target
    if target.user.isdigit():
        raise UsageError(f"--user {target.user}: runuser(1) needs the account's name")
    for path in (target.folder, target.data):
        if any(mark in path for mark in _TEMPLATES):
            raise UsageError(f"{path!r}: Ansible would take this for a template; use another path")
    rendering = render_systemd(deployment)
    how = {"README.md": readme(deployment, _how(deployment))}
    return replace(rendering, files={**rendering.files, **how, **texts})


def _start(deployment: UnattendedDeployment) -> Value:
    target = deployment.target
    plan = deployment.plan
    owned: dict[str, Value] = {"owner": target.user}
    tasks: list[Value] = [
        _task(
            "Count the CPUs",
            "command",
            {"argv": ["env", "-i", "nproc"]},  # nproc obeys OpenMP's variables
            register="atoll_cpus",
            changed_when=False,
            check_mode=False,
        ),
        _task(
            "Refuse a machine that the plan was not made for",
            "assert",
            {
                "that": [f"atoll_cpus.stdout | int == {plan.machine.pus}"],
                "fail_msg": f"The plan is for a machine with {counts(plan.machine)} and "
                f"{plan.machine.pus} CPUs; this one has other CPUs. Plan for it.",
                "quiet": True,
            },
        ),
        _task(
            "Copy the folder",
            "copy",
            {
                # With its final slash: what is in the folder.
                "src": "{{ playbook_dir }}/../",
                "dest": f"{target.folder}/",
                **owned,
                "mode": "preserve",
                "directory_mode": "0700",
                "local_follow": False,
            },
            register="atoll_folder",
        ),
        _task(
            "Create the folder for data",
            "file",
            {"path": target.data, "state": "directory", **owned, "mode": "0700"},
        ),
        *(
            _task(
                f"Create the data of {spec.name}",
                "command",
                {
                    "argv": [
                        *("runuser", "-u", target.user, "--"),
                        *creating(deployment, spec),
                    ],
                    "creates": f"{deployment.data_of[spec.name]}/*",
                },
            )
            for spec in deployment.processes
            if spec.name in deployment.prepare
        ),
        _task(
            "Install the units",
            "copy",
            {
                "src": "{{ playbook_dir }}/../systemd/",
                "dest": f"{_UNITS}/",
                "owner": "root",
                "group": "root",
                "mode": "0644",
            },
            register="atoll_units",
        ),
        _task(
            "Start them",
            "systemd_service",
            {
                "name": f"{target.name}.target",
                "daemon_reload": True,
                "enabled": True,
                "state": "{{ (atoll_folder is changed or atoll_units is changed) "
                "| ternary('restarted', 'started') }}",
            },
        ),
        _task(
            "Fail unless each of them runs",
            "command",
            {"argv": ["systemctl", "is-active", *_names(deployment)]},
            changed_when=False,
            when="not ansible_check_mode",
        ),
    ]
    return _play(f"Start {target.name}", tasks)


def _stop(deployment: UnattendedDeployment) -> Value:
    target = deployment.target
    stop: Mapping[str, Value] = {
        "name": f"{target.name}.target",
        "enabled": False,
        "state": "stopped",
    }
    return _play(f"Stop {target.name}", [_task("Stop all of it", "systemd_service", stop)])


def _play(name: str, tasks: list[Value]) -> Value:
    return {
        "name": name,
        "hosts": "all",
        "become": True,
        "gather_facts": False,
        "tasks": tasks,
    }


def _task(name: str, module: str, options: Mapping[str, Value], **words: Value) -> Value:
    return {"name": name, f"ansible.builtin.{module}": options, **words}


def _names(deployment: UnattendedDeployment) -> list[str]:
    return [unit_name(deployment, spec) for spec in deployment.processes]


def _how(deployment: UnattendedDeployment) -> list[str]:
    target = deployment.target
    return [
        "## Start",
        "",
        f"Each machine needs the engine, numactl, and the account `{target.user}`. HOSTS is an "
        "inventory, or `NAME,` for one machine. In this folder:",
        "",
        "```sh",
        f"ansible-playbook -i HOSTS {_START}",
        "```",
        "",
        f"It copies this folder to `{target.folder}`, creates the data once, installs the systemd "
        "units and starts them. It may run again, and restarts the units if a file has changed. "
        "The files have secrets, which all these machines then share.",
        "",
        f"`ansible-playbook -i HOSTS {_STOP}` stops all of it.",
        "",
        "A machine with another number of CPUs is refused. Render for each kind of machine.",
    ]
