"""Damaged inputs give a Machine or a TopologyError, and nothing else; never a fault of ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.errors import TopologyError
from atoll.host.topology import read_machine
from atoll.schema.machine import Machine
from tests.parts.paths import GOLDEN

# Small seeds, so that a mutation is likely to hit something that matters.
SEEDS = [
    (GOLDEN / "machines" / name).read_text()
    for name in ("vm-l3-per-cpu.xml", "memoryless-node.xml", "nics.xml", "no-l3-no-package.xml")
]
NUMBERS = ["0", "-1", "4294967295", "18446744073709551616", "0x0", "0xf...f", "0xffffffff,0x3"]
NAMES = ["NUMANode", "Package", "PU", "Core", "L3Cache", "Group", "Machine", "OSDev", "Misc"]
VALUES = st.text(max_size=8) | st.sampled_from([*NUMBERS, *NAMES])


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A seed with attribute values replaced, lines dropped or doubled, or an early end."""
    lines = draw(st.sampled_from(SEEDS)).splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(lines) - 1))
        what = draw(st.sampled_from(["value", "drop", "double", "cut", "move"]))
        if what == "value":
            values = list(re.finditer(r'"[^"]*"', lines[place]))
            if values:
                span = draw(st.sampled_from(values)).span()
                line = lines[place]
                lines[place] = f'{line[: span[0]]}"{draw(VALUES)}"{line[span[1] :]}'
        elif what == "drop" and len(lines) > 1:
            del lines[place]
        elif what == "double":
            lines.insert(place, lines[place])
        elif what == "cut":
            lines[place] = lines[place][: draw(st.integers(0, len(lines[place])))]
        elif what == "move":
            lines.append(lines.pop(place))
    return "".join(lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged")


@settings(max_examples=150)
@given(text=damaged())
def test_damaged_xml(folder: Path, text: str) -> None:
    path = folder / "machine.xml"
    path.write_text(text)
    outcome = read_or_refusal(source=str(path))
    if isinstance(outcome, Machine):
        assert outcome.summary.pus >= 1
        assert len(outcome.pus) == len(set(outcome.pus))
    else:
        assert "fault of Atoll" not in outcome
        assert "\n" not in outcome


@settings(max_examples=150)
@given(text=st.text(alphabet="PackgeCorNUMLie:0123456789()[] =,B\n", max_size=40))
def test_any_synthetic_string(text: str) -> None:
    outcome = read_or_refusal(synthetic=text)
    if isinstance(outcome, Machine):
        assert outcome.summary.pus >= 1
    else:
        assert "fault of Atoll" not in outcome


def read_or_refusal(source: str | None = None, synthetic: str | None = None) -> Machine | str:
    try:
        return read_machine(source, synthetic)
    except TopologyError as fault:
        return str(fault)
