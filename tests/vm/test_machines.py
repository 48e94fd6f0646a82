"""Real machines by name, booted with simulated caches: `atoll topo` shows their chiplets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atoll.guest import machines, native, simulated
from atoll.guest.guest import Guest
from atoll.schema.fills import FillCounts
from tests.vm import expected
from tests.vm.proof import ask

# Packages, nodes, chiplets, cores. A package that is one L3 has no chiplets.
COUNTS = {
    "epyc-7713x2": (2, 2, 8, 16),
    "epyc-9654x2": (2, 2, 8, 16),
    "graviton3": (1, 1, 0, 16),
    "xeon-8480x2": (2, 2, 0, 16),
    "xeon-8480x2-snc4": (2, 8, 8, 16),
}


def test_every_machine_is_booted() -> None:
    assert sorted(COUNTS) == machines.names()


@pytest.mark.long
@pytest.mark.parametrize("name", COUNTS)
def test_a_named_machine_has_its_chiplets(name: str, tmp_path: Path) -> None:
    built = machines.load(name)
    with Guest(built, quantum=simulated.QUANTUM_CYCLES) as guest:
        (done,) = ask(guest, [("atoll", ["topo", "--json"])])
        assert done[0] == 0, done
        topo = json.loads(done[1])
        names = ("packages", "numa_nodes", "chiplets", "cores")
        assert tuple(topo["summary"][name] for name in names) == COUNTS[name]
        found = sorted(sorted(chiplet["pus"]) for chiplet in topo["chiplets"])
        assert found == sorted(map(sorted, expected.layout(built).chiplets))

        done = guest.run([native.fills(), "--json", f"{guest.share}/fills.json", "--", "true"])
        assert done.returncode == 0, done.stderr
        counts = FillCounts.model_validate_json((guest.share / "fills.json").read_text())
        assert len(counts.node_of_chiplet) == built.packages * built.l3
        assert counts.sources("kernel").lines > 0
