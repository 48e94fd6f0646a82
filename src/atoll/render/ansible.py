"""A deployment as Ansible playbooks, which install its systemd units on other machines. Pure.

A playbook may run again: what is as it should be stays, data is created once, and changed files
restart the units.

Source: docs.ansible.com, ansible.builtin, of ansible-core 2.19; checked by ansible-lint 26.10.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping
from dataclasses import replace
from posixpath import dirname

from atoll.engines.rendered import Rendering
from atoll.errors import UsageError
from atoll.render.deployment import UnattendedDeployment
from atoll.render.native import creating, readme
from atoll.render.systemd import render_systemd, unit_name
from atoll.render.yaml import Value, yaml_text
from atoll.supervise.place import counts

_START, _STOP = "ansible/start.yml", "ansible/stop.yml"
# Jinja's, which Ansible finds in every text, and variables, which it finds in every path.
_TEMPLATES = ("{{", "{%", "{#", "$")
_UNITS = "/etc/systemd/system"


def render_ansible(deployment: UnattendedDeployment) -> Rendering:
    """Raises UsageError as render_systemd, for an account that is only a number, and for a word
    that Ansible would replace."""
    target = deployment.target
    if target.user.isdigit():
        raise UsageError(f"--user {target.user}: runuser(1) needs the account's name")
    created = [word for name in deployment.prepare for word in _creating(deployment, name)]
    for word in (target.folder, target.data, *created):
        if any(mark in word for mark in _TEMPLATES):
            raise UsageError(f"{word!r}: Ansible would replace a part of this; use other paths")
    rendering = render_systemd(deployment)
    units = [path for path in rendering.files if path.startswith("systemd/")]
    plays = {
        _START: _start(deployment, _copied(deployment, rendering)),
        _STOP: _stop(deployment, [path.removeprefix("systemd/") for path in units]),
    }
    texts = {name: yaml_text([play]) for name, play in plays.items()}
    how = {"README.md": readme(deployment, _how(deployment))}
    return replace(rendering, files={**rendering.files, **how, **texts})


def _copied(deployment: UnattendedDeployment, rendering: Rendering) -> list[str]:
    """What is at the top of the folder, without what grows there while the deployment runs."""
    paths: Iterable[str] = (
        *rendering.files,
        *rendering.scripts,
        *rendering.copies,
        *rendering.links,
        *(set(rendering.folders) - set(deployment.target.own_data)),
    )
    return sorted({path.partition("/")[0] for path in paths})


def _creating(deployment: UnattendedDeployment, name: str) -> list[str]:
    (spec,) = (spec for spec in deployment.processes if spec.name == name)
    return ["runuser", "-u", deployment.target.user, "--", *creating(deployment, spec)]


def _start(deployment: UnattendedDeployment, copied: list[str]) -> Value:
    target = deployment.target
    plan = deployment.plan
    owned: dict[str, Value] = {"owner": target.user}
    folders = [target.folder, target.data]
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
        # Else they would be the account's, and closed to others. A mode would change old ones.
        _task(
            "Create the folders around",
            "command",
            {"argv": ["install", "-d", "{{ item }}"], "creates": "{{ item }}"},
            loop=list(dict.fromkeys(map(dirname, folders))),
        ),
        _task(
            "Create the folder, and that for data",
            "file",
            {"path": "{{ item }}", "state": "directory", **owned, "mode": "0700"},
            loop=folders,
        ),
        _task(
            "Copy the files",
            "copy",
            {
                "src": "{{ playbook_dir }}/../{{ item }}",
                "dest": f"{target.folder}/",
                **owned,
                "mode": "preserve",
                "directory_mode": "0700",
                "local_follow": False,
            },
            loop=copied,
            register="atoll_folder",
        ),
        *(
            _task(
                f"Create the data of {name}",
                "command",
                {
                    "argv": _creating(deployment, name),
                    "creates": f"{glob.escape(deployment.data_of[name])}/*",
                },
            )
            for name in deployment.prepare
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


def _stop(deployment: UnattendedDeployment, units: list[str]) -> Value:
    """And takes the units away: a later rendering may have fewer."""
    name = f"{deployment.target.name}.target"
    tasks: list[Value] = [
        _task(
            "Stop all of it",
            "systemd_service",
            {"name": name, "enabled": False, "state": "stopped"},
        ),
        _task(
            "Remove the units",
            "file",
            {"path": f"{_UNITS}/{{{{ item }}}}", "state": "absent"},
            loop=units,
        ),
        _task("Read what is left", "systemd_service", {"daemon_reload": True}),
    ]
    return _play(f"Stop {deployment.target.name}", tasks)


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
        f"`ansible-playbook -i HOSTS {_STOP}` stops all of it and removes the units. Do that "
        "before you start a rendering with fewer processes.",
        "",
        "A machine with another number of CPUs is refused. Render for each kind of machine.",
    ]
