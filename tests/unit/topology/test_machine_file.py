"""A machine file that was edited by hand and contradicts itself is refused, in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atoll.errors import TopologyError
from atoll.host.topology import read_machine
from atoll.schema.consistency import contradiction
from tests.parts.paths import GOLDEN

MACHINES = sorted((GOLDEN / "machines").glob("*.xml"))
DISTANT = next(path for path in MACHINES if path.name == "snc2-distances.xml")


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_what_the_native_library_accepts_is_consistent(path: Path) -> None:
    assert contradiction(read_machine(str(path))) == ""


Edit = Callable[[Any], object]


@pytest.mark.parametrize(
    ("says", "edit"),
    [
        ("distances: 4 nodes", lambda m: m["distances"]["values"].pop()),
        ("distances: 4 nodes", lambda m: m["distances"]["values"][1].pop()),
        ("cores.3: its index is 7", lambda m: m["cores"][3].update(index=7)),
        ("cores.0: packages has no index 9", lambda m: m["cores"][0].update(package=9)),
        ("cores.0: there is no node 77", lambda m: m["cores"][0].update(node=77)),
        ("cores.1: its PUs", lambda m: m["cores"][1].update(pus=[])),
        ("a PU is in two cores", lambda m: m["cores"][1].update(pus=m["cores"][0]["pus"])),
        ("memory_bytes: is negative", lambda m: m.update(memory_bytes=-1)),
        ("there are no PUs", lambda m: m.update(cores=[])),
        ("an os_index occurs twice", lambda m: m["nodes"][0].update(os_index=1)),
        ("nodes.1: memory_bytes", lambda m: m["nodes"][1].update(memory_bytes=-1)),
        ("nodes.1: packages has no", lambda m: m["nodes"][1].update(package=5)),
        ("l3.0: has PUs", lambda m: m["l3"][0]["pus"].append(4000)),
        ("chiplets.0: names a core", lambda m: m["chiplets"][0]["cores"].append(4000)),
        ("chiplets.0: its PUs", lambda m: m["chiplets"][0]["pus"].pop()),
        ("chiplets.1: has a core", lambda m: m["chiplets"].insert(1, {**m["chiplets"][0]})),
        ("chiplets.0: its cores", lambda m: m["chiplets"][0].update(package=None)),
        ("allowed: this machine has no CPU 4000", lambda m: m["allowed"]["pus"].append(4000)),
        ("allowed: names a node", lambda m: m["allowed"]["nodes"].append(4000)),
    ],
)
def test_a_contradiction_is_named(tmp_path: Path, says: str, edit: Edit) -> None:
    machine = json.loads(read_machine(str(DISTANT)).model_dump_json())
    edit(machine)
    for place, chiplet in enumerate(machine["chiplets"]):
        chiplet["index"] = place
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(machine))
    with pytest.raises(TopologyError) as caught:
        read_machine(str(path))
    message = str(caught.value)
    assert says in message
    assert message.startswith(f"{path}: contradicts itself")
    assert "\n" not in message
