"""The machine's pictures: they fit the screen, show every core once, and stand alone."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter

import pytest
from hypothesis import given, settings

from atoll.plan import make_plan
from atoll.plan.coordinator import parse_coordinator
from atoll.report.machine.layout import distances_label
from atoll.report.machine.svg import machine_svg, plan_drawing
from atoll.report.machine.text import Line, machine_picture
from atoll.report.svg.elements import inline
from atoll.schema.machine import ChipletSource, Distances, Machine, Nic
from tests.parts.machines import NodeShape, build, milan, plain, restrict
from tests.parts.plan import DISTRIBUTED, shapes

SVG = "{http://www.w3.org/2000/svg}"

SNC4 = build(
    [[NodeShape((14,), 0, 128)] * 4] * 2,
    smt=2,
    source=ChipletSource.SUB_NUMA,
    l3_bytes=0,
    nics=(Nic(name="eth0", node=0, rate_mbit_s=25000), Nic(name="eth1", node=4)),
)
MACHINES = {
    "two cores": plain(2),
    "dual Milan": milan(),
    "256 cores, 32 chiplets, SMT": milan(2, 16, 8, smt=2),
    "256 cores in 8 nodes, SMT": milan(2, 16, 8, smt=2, nodes_per_package=4),
    "Xeon SNC4": SNC4,
    "no chiplets": plain(56, nodes=2, smt=2),
    "192 cores, no chiplets": plain(192),
    "unequal": build([[NodeShape((6, 8), 3), NodeShape((8,), 0, 0)], [NodeShape((), 4)]]),
}


def plain_text(lines: list[Line]) -> str:
    return "".join("".join(span.text for span in line).rstrip() + "\n" for line in lines)


def picture(machine: Machine, **options: bool) -> str:
    return plain_text(machine_picture(machine, **options))


@pytest.mark.parametrize("name", MACHINES)
def test_fits_one_screen(name: str) -> None:
    lines = picture(MACHINES[name]).splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 80


def test_shows_chiplets_as_boxes_with_their_l3_and_cpus() -> None:
    text = picture(milan(1, 2, 4))
    assert "─ 0 ─ L3 32 MiB ╮" in text
    assert "│ ■ ■ ■ ■ " in text
    assert "╰─ CPU 0-3 ─" in text
    assert "2 chiplets (by L3)" in text


def test_shows_what_is_not_allowed() -> None:
    text = picture(restrict(plain(4, smt=2), pus=(0, 1, 4), nodes=(0,), memory_max_bytes=1 << 30))
    assert "▣ ◧ □ □" in text
    assert "allowed     CPUs 0-1,4, 1 GiB of memory (cgroup)" in text


def test_counts_what_the_cgroup_leaves_of_the_whole() -> None:
    machine = plain(2)
    half = machine.summary.model_copy(update={"cores": 1, "pus": 1})
    lines = picture(machine.model_copy(update={"summary": half})).splitlines()
    assert "1 of 2 cores" in lines[1]
    assert "2 cores" in lines[2]
    assert "of" not in picture(machine).splitlines()[1]


def test_shows_nodes_distances_cards_and_offline_cpus() -> None:
    machine = SNC4.model_copy(update={"offline_cpus": (300, 301)})
    text = picture(machine)
    assert "node 5 · 128 GiB" in text
    assert "10 within a node, 12 in a package, 32 across packages" in text
    assert "eth0 (node 0, 25 Gbit/s), eth1 (node 4)" in text
    assert "CPUs 300-301" in text


def test_shows_nodes_that_are_only_memory_or_only_cores() -> None:
    machine = build([[NodeShape((), 4, 64), NodeShape((), 4, 0), NodeShape((), 0, 96, "CXL-DRAM")]])
    text = picture(machine)
    assert "node 1 · no memory" in text
    assert "memory only node 2 · 96 GiB CXL-DRAM" in text


@pytest.mark.parametrize("name", MACHINES)
def test_degrades_to_ascii(name: str) -> None:
    picture(MACHINES[name], ascii_only=True).encode("ascii")


@given(shapes)
@settings(max_examples=60)
def test_draws_every_core_once(shape: list[list[NodeShape]]) -> None:
    machine = build(shape)
    lines = machine_picture(machine)
    drawn = Counter("".join(span.text for line in lines[:-2] for span in line))
    assert drawn["■"] == len(machine.cores)
    assert max(map(len, plain_text(lines).splitlines())) <= 80


def test_draws_huge_machines_in_narrow_terminals() -> None:
    for width in (40, 60, 80, 120):
        lines = plain_text(machine_picture(milan(8, 16, 8, smt=2), width=width)).splitlines()
        assert max(map(len, lines)) <= width


def test_many_small_packages_fit_a_screen() -> None:
    machine = build([[NodeShape((), 2)]] * 128)
    text = picture(machine)
    assert "packages, by number · 2 cores each" in text
    assert text.count("■") == 256 + 1, "the legend has one more"
    assert len(text.splitlines()) <= 48
    assert "127 ■■" in text


def test_distances_of_nodes_that_belong_to_no_package() -> None:
    machine = build([[NodeShape((), 2)], [NodeShape((), 2)]])
    distances = Distances(nodes=(0, 1), values=((10, 21), (21, 10)))
    machine = machine.model_copy(update={"distances": distances})
    assert distances_label(machine) == "10 within a node, 21 across packages"
    nodes = tuple(node.model_copy(update={"package": None}) for node in machine.nodes)
    machine = machine.model_copy(update={"nodes": nodes})
    assert distances_label(machine) == "10 within a node, 21 between nodes"


@pytest.mark.parametrize("name", MACHINES)
def test_the_svg_stands_alone_and_shows_every_core(name: str) -> None:
    machine = MACHINES[name]
    text = machine_svg(machine)
    root = ElementTree.fromstring(text)
    tips = [title.text or "" for title in root.iter(f"{SVG}title")]
    cores = [tip for tip in tips if tip.startswith("core ")]
    assert len(set(cores)) == len(cores) == len(machine.cores)
    assert "prefers-color-scheme:dark" in text
    for outside in ("href", "url(", "@import", "<script", "<image", "xlink"):
        assert outside not in text


def test_the_svg_keeps_inside_its_page() -> None:
    for machine in MACHINES.values():
        root = ElementTree.fromstring(machine_svg(machine))
        width, height = (float(root.attrib[name]) for name in ("width", "height"))
        assert root.attrib["viewBox"] == f"0 0 {width:g} {height:g}"
        for x, y, w, h in boxes(root, 0, 0):
            assert x >= 0 and x + w <= width
            assert y >= 0 and y + h <= height


def boxes(
    element: ElementTree.Element, x: float, y: float
) -> list[tuple[float, float, float, float]]:
    """Where every rectangle comes to lie."""
    move = element.get("transform", "")
    if move:
        dx, dy = move.removeprefix("translate(").removesuffix(")").split()
        x, y = x + float(dx), y + float(dy)
    places = [box for child in element for box in boxes(child, x, y)]
    if element.tag == f"{SVG}rect":
        places.append((x, y, float(element.attrib["width"]), float(element.attrib["height"])))
    return places


def test_the_plans_svg_numbers_every_core_with_its_slot() -> None:
    machine = milan(2, 4, 4)
    plan = make_plan(machine, DISTRIBUTED, "wicp", coordinator=parse_coordinator("reserved:2"))
    root = ElementTree.fromstring(inline(plan_drawing(machine, plan)))
    numbers = Counter(
        text.text for text in root.iter(f"{SVG}text") if "tiny" in text.get("class", "")
    )
    assert numbers == {**{str(slot): 4 for slot in range(7)}, "7": 2, "C": 2}


def test_the_svg_escapes_what_it_is_given() -> None:
    machine = milan(1, 2, 2).model_copy(update={"cpu_model": 'Evil <script> & "Sons"'})
    root = ElementTree.fromstring(machine_svg(machine))
    assert 'Evil <script> & "Sons"' in "".join(root.itertext())
