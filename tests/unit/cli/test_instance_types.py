"""`atoll plan --compare` with instance types and the user's prices."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.cli import run
from atoll.errors import UsageError
from atoll.schema.base import parse
from atoll.schema.instance_types import InstanceTypePlans, InstanceTypes
from atoll.schema.plan import Plan
from atoll.store.instance_types_file import read_compared
from tests.parts.faults import check_complaint
from tests.parts.paths import GOLDEN

Capture = pytest.CaptureFixture[str]
SYNTHETIC = "Package:1 NUMANode:1(memory=64GiB) L3:2(size=32MiB) Core:4 PU:2"


def kind(name: str = "small", price: Any = 1.5, **machine: str) -> dict[str, Any]:
    return {"name": name, "price_per_hour": price, **(machine or {"synthetic": SYNTHETIC})}


def write(folder: Path, *types: dict[str, Any], **fields: Any) -> Path:
    head = {"format": "atoll/instance-types", "version": 1, "currency": "EUR"}
    path = folder / "types.yaml"
    path.write_text(yaml.safe_dump({**head, "types": list(types), **fields}))
    return path


def test_slots_heap_l3_and_price(tmp_path: Path, capsys: Capture) -> None:
    """The machine of the second is found beside the file; the third is too small."""
    (tmp_path / "milan.xml").write_text((GOLDEN / "machines/dual-milan.xml").read_text())
    path = write(
        tmp_path,
        kind(),
        kind("dual", 12, machine="milan.xml"),
        kind("tiny", 0.01, synthetic="NUMANode:1(memory=1GiB) Core:1 PU:1"),
    )
    assert run(["plan", "spark", "--policy", "wicp", "--compare", str(path), "--json"]) == 0
    plans = parse(InstanceTypePlans, capsys.readouterr().out, where="stdout")
    small, dual, tiny = plans.types
    assert [(slot.cores, slot.l3_bytes) for slot in small.slots] == [(4, 32 << 20)] * 2
    assert small.price_per_slot == 0.75
    assert (len(dual.slots), dual.price_per_slot) == (16, 0.75)
    assert (tiny.slots, tiny.policy, tiny.price_per_slot) == ((), None, None)
    assert tiny.refused
    assert run(["plan", "spark", "--compare", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "EUR per hour" in shown
    assert f"tiny: {tiny.refused[:30]}" in shown
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("price", "shown"),
    [
        (123456.7, ["123456.70", "61728.35"]),
        (100000, ["100000.00", "50000.00"]),
        (1234.5678, ["1234.5678", "617.28"]),
        (0.0000125, ["0.0000125", "0.00000625"]),
        (2.1, ["2.10", "1.05"]),
        (4.1111, ["4.1111", "2.056"]),
    ],
)
def test_prices_are_those_of_the_file(
    tmp_path: Path, capsys: Capture, price: float, shown: list[str]
) -> None:
    path = write(tmp_path, kind(price=price), currency="€")
    assert run(["plan", "spark", "--policy", "wicp", "--compare", str(path)]) == 0
    heading, _, row, _ = capsys.readouterr().out.splitlines()
    assert "€ per hour" in heading
    assert row.split()[-2:] == shown


@pytest.mark.parametrize(("policy", "each"), [("wim", [64]), ("win", [64]), ("wic", [8] * 8)])
def test_slots_share_their_l3(tmp_path: Path, capsys: Capture, policy: str, each: Any) -> None:
    argv = ["plan", "spark", "--policy", policy, "--compare", str(write(tmp_path, kind()))]
    assert run([*argv, "--json"]) == 0
    [only] = json.loads(capsys.readouterr().out)["types"]
    assert [slot["l3_bytes"] >> 20 for slot in only["slots"]] == each


@pytest.mark.parametrize(
    ("types", "fields", "says"),
    [
        ([kind(price=-1)], {}, "types.0.price_per_hour"),
        ([kind(price=float("inf"))], {}, "types.0.price_per_hour"),
        ([kind(price=1e300)], {}, "types.0.price_per_hour: must be less than"),
        ([kind(price=1e-300)], {}, "types.0.price_per_hour: must be greater than"),
        ([kind(price="cheap")], {}, "types.0.price_per_hour"),
        ([kind(price=True)], {}, "types.0.price_per_hour: must be a number"),
        ([kind(name="a\nb")], {}, "types.0.name"),
        ([kind(), kind()], {}, "type small occurs 2 times"),
        ([kind(machine="a.xml", synthetic=SYNTHETIC)], {}, "either machine"),
        ([], {}, "types"),
        ([kind()], {"currency": "US dollars"}, "currency"),
        ([kind()], {"currency": "\x1bc"}, "currency"),
        ([kind()], {"version": 2}, "version 2"),
        ([kind()], {"spot": True}, "spot is unknown"),
        ([], {"types": 5}, "field types: must be a list"),
        ([kind(str(n)) for n in range(501)], {}, "types: must have at most 500 items"),
    ],
)
def test_refused(tmp_path: Path, types: list[Any], fields: Any, says: str, capsys: Capture) -> None:
    path = write(tmp_path, *types, **fields)
    with pytest.raises(UsageError) as caught:
        read_compared(str(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", ["block", "json", "flow", "format-last"])
def test_forms_of_the_file(tmp_path: Path, form: str) -> None:
    path = write(tmp_path, *(kind(f"type {n}") for n in range(80)))
    document = yaml.safe_load(path.read_text())
    if form == "format-last":
        document["format"] = document.pop("format")
    if form == "flow":
        path.write_text(yaml.safe_dump(document, default_flow_style=True))
    elif form != "block":
        path.write_text(json.dumps(document))
    found = read_compared(str(path))
    assert isinstance(found, InstanceTypes)
    assert len(found.types) == 80


def test_a_file_without_an_end() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + (1 << 30), before[1]))
    try:
        with pytest.raises(UsageError, match="is over 2 MiB"):
            read_compared("/dev/zero")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_a_machine_that_cannot_be_read(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, kind(machine="missing.xml"))
    assert run(["plan", "spark", "--compare", str(path)]) == 3
    check_complaint(
        capsys.readouterr().err, path=path, type="small", machine=tmp_path / "missing.xml"
    )


@pytest.mark.parametrize("option", [["--machine", "x.xml"], ["-o", "plan.json"], ["--explain"]])
def test_types_have_their_own_machines(tmp_path: Path, option: list[str], capsys: Capture) -> None:
    path = write(tmp_path, kind())
    assert run(["plan", "spark", "--compare", str(path), *option]) == 2
    check_complaint(capsys.readouterr().err, path=path)


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=60) | st.text(alphabet="{}[]:-,&*!'\" \nab1", max_size=60))
def test_any_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes | str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        assert isinstance(read_compared(str(path)), Plan | InstanceTypes)
    except UsageError as fault:
        assert "\n" not in str(fault)  # noqa: PT017 - either outcome is right
