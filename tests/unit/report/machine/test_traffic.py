"""Pictures of simulated traffic: all links that carried lines, on one scale, inside the box."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

from atoll.report.machine.traffic import CLASSES, Scale, Traffic, traffic_drawings
from atoll.report.svg.elements import document, inline
from tests.parts.fills import counts, of_machine, row

SVG = "{http://www.w3.org/2000/svg}"
MACHINES = [(1, 1, 1), (1, 1, 8), (2, 1, 1), (2, 1, 8), (2, 4, 4), (2, 1, 16), (1, 8, 2)]


def links(picture: ElementTree.Element) -> list[ElementTree.Element]:
    return [one for one in picture.iter(f"{SVG}path") if one.get("data-lines")]


def test_a_link_has_the_lines_of_both_directions() -> None:
    """Chiplets 0 and 1 are on node 0, chiplet 2 on node 1."""
    found = counts(row((1, 10, 100), (1000, 5)).model_copy(update={"written": (7, 70)}))
    back = row((20, 0, 0)).model_copy(update={"written": (0, 0)})
    traffic = Traffic(found.model_copy(update={"user": (found.user[0], back, row((200, 0, 0)))}))
    assert dict(traffic.chiplets) == {(0, 1): 30}
    assert {link: lines for link, lines in traffic.memory.items() if lines} == {(0, 0): 1007}
    assert dict(traffic.nodes) == {(0, 1): 100 + 5 + 70 + 200}
    assert traffic.busiest == 1007


def test_classes_are_steps_of_about_three() -> None:
    scale = Scale(1_200_000)
    assert scale.least == [30_000, 100_000, 300_000, 1_000_000]
    assert [scale.of(lines) for lines in (1, 29_999, 30_000, 999_999, 1_200_000)] == [1, 1, 2, 4, 5]
    assert Scale(2).of(2) == CLASSES
    assert Scale(0).least == []


@pytest.mark.parametrize("shape", MACHINES)
def test_every_link_with_lines_is_drawn_once(shape: tuple[int, int, int]) -> None:
    packages, nodes, chiplets = shape
    all_nodes = packages * nodes
    busy, idle = (of_machine(*shape, crossing=crossing) for crossing in (1, 0))
    _, *pictures = traffic_drawings([("d/wim", busy), ("d/wic", idle)])
    drawn = [links(ElementTree.fromstring(inline(one))) for one in pictures]
    memories = all_nodes * chiplets
    between = all_nodes * chiplets * (chiplets - 1) // 2 + all_nodes * (all_nodes - 1) // 2
    assert [len(one) for one in drawn] == [memories + between, memories]
    assert {one.get("class") for one in drawn[1]} == {one.get("class") for one in drawn[1][:1]}
    for one in drawn[0]:
        title = one.find(f"{SVG}title")
        assert title is not None and (title.text or "").endswith("million simulated lines")


@pytest.mark.parametrize("shape", MACHINES)
def test_nothing_lies_outside_the_picture(shape: tuple[int, int, int]) -> None:
    for picture in traffic_drawings([("d/wim", of_machine(*shape, crossing=1))]):
        root = ElementTree.fromstring(inline(picture))
        for x, y in points(root, 0, 0):
            assert -1 <= x <= picture.width + 1
            assert -1 <= y <= picture.height + 1


def points(element: ElementTree.Element, x: float, y: float) -> list[tuple[float, float]]:
    """The corners of rectangles and the highest points of arcs, as they come to lie."""
    if move := element.get("transform"):
        dx, dy = re.findall(r"[-\d.]+", move)
        x, y = x + float(dx), y + float(dy)
    found = [point for child in element for point in points(child, x, y)]
    if element.tag == f"{SVG}rect":
        left, top, wide, high = (float(element.attrib[n]) for n in ("x", "y", "width", "height"))
        found += [(x + left, y + top), (x + left + wide, y + top + high)]
    if "C" in (shape := element.get("d", "")):
        ends = [float(number) for number in re.findall(r"[-\d.]+", shape)]
        # A cubic with both handles in one direction reaches three quarters of the way to them.
        found.append(
            (
                x + ends[0] / 4 + ends[2] * 3 / 4 if ends[0] == ends[6] else x + ends[0],
                y + ends[1] / 4 + ends[3] * 3 / 4,
            )
        )
    return found


def test_a_package_whose_nodes_are_not_neighbours_is_drawn_once() -> None:
    found = of_machine(2, 2, 1, crossing=1).model_copy(update={"package_of_node": (0, 1, 0, 1)})
    _, picture = traffic_drawings([("d/wim", found)])
    words = [one.text for one in ElementTree.fromstring(inline(picture)).iter(f"{SVG}text")]
    assert [one for one in words if one and one.startswith(("package", "node"))] == [
        *("package 0", "node 0", "node 2"),
        *("package 1", "node 1", "node 3"),
    ]


def test_a_picture_says_in_words_what_it_shows() -> None:
    _, picture = traffic_drawings([('<b> & "co"', of_machine(2, 1, 2, crossing=1))])
    root = ElementTree.fromstring(inline(picture))
    words = root.find(f"{SVG}desc")
    assert words is not None
    assert (words.text or "").startswith('<b> & "co", simulated: ')
    assert "million lines between nodes" in (words.text or "")
    assert root.get("aria-label") == '<b> & "co", simulated traffic'


def test_the_pictures_stand_alone_in_one_file() -> None:
    text = document(traffic_drawings([("d/wim", of_machine(2, 1, 8, crossing=1))]), "traffic")
    assert ".atoll .t5{" in text and "prefers-color-scheme:dark" in text
    ElementTree.fromstring(text)
