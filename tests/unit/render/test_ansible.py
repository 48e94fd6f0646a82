"""Ansible playbooks: what they do and in which order; and Ansible's own checks of them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from atoll.errors import UsageError
from atoll.render.ansible import render_ansible
from atoll.render.deployment import UnattendedDeployment
from atoll.render.systemd import render_systemd, unit_files
from tests.parts.faults import fails
from tests.parts.machines import milan
from tests.parts.render import ENGINES, TARGET, unattended

ODD = '/srv/it\'s 100% "x": é { [a]*'


def tasks(made: UnattendedDeployment) -> dict[str, dict[str, Any]]:
    """Module -> the options of the last task that uses it."""
    (found,) = yaml.safe_load(render_ansible(made).files["ansible/start.yml"])
    assert found["hosts"] == "all" and found["become"] is True
    return {
        key.removeprefix("ansible.builtin."): task[key]
        for task in found["tasks"]
        for key in task
        if key.startswith("ansible.builtin.")
    }


def test_a_machine_with_other_cpus_is_refused() -> None:
    made = unattended("trino", milan(2, 2, 4), "win")
    assert tasks(made)["assert"]["that"] == ["atoll_cpus.stdout | int == 16"]


def test_data_is_created_by_its_account_where_there_is_none() -> None:
    made = unattended("postgresql")
    (play,) = yaml.safe_load(render_ansible(made).files["ansible/start.yml"])
    own = [task for task in play["tasks"] if task["name"].startswith("Create the data of")]
    assert len(own) == len(made.processes)
    for task, (name, argv) in zip(own, made.prepare.items(), strict=True):
        options = task["ansible.builtin.command"]
        assert options["argv"][:5] == ["runuser", "-u", "engine", "--", "env"]
        assert options["argv"][-len(argv) :] == list(argv)
        folder = options["creates"].removesuffix("/*")
        assert folder == made.data_of[name] and any(folder in word for word in argv)


def test_what_creates_data_is_looked_for_under_its_own_name() -> None:
    made = unattended("postgresql", target=replace(TARGET, folder=ODD, data=f"{ODD}/data"))
    (play,) = yaml.safe_load(render_ansible(made).files["ansible/start.yml"])
    found = [task.get("ansible.builtin.command", {}).get("creates") for task in play["tasks"]]
    assert '/srv/it\'s 100% "x": é { [[]a][*]/data/data-1/*' in found


def test_all_units_are_installed_started_and_looked_at() -> None:
    made = unattended("spark")
    rendering = render_ansible(made)
    units = {f"systemd/{name}": text for name, text in unit_files(made).items()}
    assert units.items() <= rendering.files.items()
    found = tasks(made)
    assert found["copy"]["src"] == "{{ playbook_dir }}/../systemd/"
    assert found["systemd_service"]["name"] == "t.target"
    assert found["command"]["argv"][2:] == [f"t-{spec.name}.service" for spec in made.processes]
    (stop,) = yaml.safe_load(rendering.files["ansible/stop.yml"])
    assert stop["tasks"][0]["ansible.builtin.systemd_service"]["state"] == "stopped"
    assert stop["tasks"][1]["loop"] == [name.removeprefix("systemd/") for name in units]


@pytest.mark.parametrize("mark", ["{{", "{%", "{#", "$"])
def test_a_path_that_ansible_would_replace_is_refused(mark: str) -> None:
    path = f"/srv/{mark}x"
    for target in (replace(TARGET, folder=path), replace(TARGET, data=path)):
        with fails(UsageError, path=path):
            render_ansible(unattended("trino", target=target))
    made = unattended("postgresql")
    argv = (path, *made.prepare["worker-1"])
    with fails(UsageError, path=path):
        render_ansible(replace(made, prepare={**made.prepare, "worker-1": argv}))


def test_what_grows_is_not_copied_and_all_else_is() -> None:
    """Else a second run on the machine of the deployment would replace files of a live database."""
    made = unattended("postgresql")
    (play,) = yaml.safe_load(render_ansible(made).files["ansible/start.yml"])
    (loop,) = (task["loop"] for task in play["tasks"] if task["name"] == "Copy the files")
    names = {path.partition("/")[0] for path in render_systemd(made).files}
    assert names <= set(loop) and "data" not in loop


def test_data_beside_configuration_does_not_keep_that_from_being_copied() -> None:
    made = unattended("trino", target=replace(TARGET, data="/srv/t/coordinator/data"))
    (play,) = yaml.safe_load(render_ansible(made).files["ansible/start.yml"])
    (loop,) = (task["loop"] for task in play["tasks"] if task["name"] == "Copy the files")
    assert "coordinator" in loop


def test_folders_around_stay_roots() -> None:
    made = unattended("trino", target=replace(TARGET, folder="/opt/db/t", data="/d/e"))
    (play,) = yaml.safe_load(render_ansible(made).files["ansible/start.yml"])
    around, own = (task for task in play["tasks"] if str(task.get("loop")).startswith("['/"))
    assert around["loop"] == ["/opt/db", "/d"]
    assert around["ansible.builtin.command"]["argv"] == ["install", "-d", "{{ item }}"]
    assert own["loop"] == ["/opt/db/t", "/d/e"] and own["ansible.builtin.file"]["mode"] == "0700"


def test_an_account_without_a_name_is_refused() -> None:
    with fails(UsageError, user="1001"):
        render_ansible(unattended("trino", target=replace(TARGET, user="1001")))


def written(root: Path, engines: Sequence[str]) -> list[str]:
    """Their playbooks, for folders whose names are odd."""
    found = []
    for engine in engines:
        made = unattended(engine, target=replace(TARGET, folder=ODD, data=f"{ODD}/data"))
        for name, text in render_ansible(made).files.items():
            if name.startswith("ansible/"):
                path = Path(root, engine, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                found.append(str(path))
    return found


@pytest.mark.parametrize(
    ("command", "engines"),
    [
        (("ansible-playbook", "-i", "localhost,", "--syntax-check"), ENGINES),
        (("ansible-lint", "--offline", "--profile", "production"), ["postgresql"]),
    ],
    ids=["syntax", "lint"],
)
def test_ansible_takes_the_playbooks(
    command: tuple[str, ...], engines: Sequence[str], tmp_path: Path
) -> None:
    """Lint takes seconds for a playbook; PostgreSQL's has every task that there is."""
    playbooks = written(tmp_path, engines)
    home = {"HOME": str(tmp_path), "NO_COLOR": "1", "ANSIBLE_LOCALHOST_WARNING": "0"}
    programs = Path(sys.executable).parent
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [programs / command[0], *command[1:], *playbooks],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, **home, "PATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
