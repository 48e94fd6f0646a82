"""Values of knobs: the kernel's spelling, the user's spelling, and refused values."""

from __future__ import annotations

from collections.abc import Mapping

import hypothesis.strategies as st
import pytest
from hypothesis import given

from atoll.errors import UsageError
from atoll.knobs.catalog import KNOBS, shown
from atoll.knobs.files import files, key_of
from atoll.knobs.parsers import KnobFiles
from atoll.knobs.values import choices, format_keyed, parse_keyed, value_of
from atoll.schema.cpulist import format_cpulist
from tests.parts.faults import fails
from tests.parts.knobs import FILES, THP, WEIGHTS, Kernel, governor, irq

Cpus = st.sets(st.integers(0, 300), min_size=1).map(format_cpulist)


def asked(name: str, text: str, kernel: Kernel | None = None) -> Mapping[str, str | None]:
    knob, kernel = KNOBS[name], kernel or Kernel()
    return knob.parse(text, KnobFiles(kernel, files(knob.patterns, kernel)))


def test_of_a_choice_the_chosen_word_is_the_value() -> None:
    text = "always defer defer+madvise [madvise] never\n"
    assert value_of(text) == "madvise"
    assert choices(text) == ("always", "defer", "defer+madvise", "madvise", "never")
    assert value_of("60\n") == "60"
    # What a kill before the cut leaves in a plain file that stands in for a kernel's.
    assert value_of("powersave\nce\n") == "powersave"


@given(st.dictionaries(st.integers(0, 400), Cpus, min_size=1))
def test_what_is_shown_can_be_typed(values: dict[int, str]) -> None:
    assert parse_keyed(format_keyed(values)) == values


@given(st.text(alphabet="0123456789=,-; x²", max_size=20))
def test_whatever_is_typed_is_read_or_refused(text: str) -> None:
    try:
        found = parse_keyed(text)
    except ValueError:
        return
    assert all(isinstance(key, int) for key in found)


def test_a_cpu_list_goes_on_after_a_comma() -> None:
    assert parse_keyed("24=0-3,8,25-26=4") == {24: "0-3,8", 25: "4", 26: "4"}


@pytest.mark.parametrize("text", ["", "3", "=3", "x=3", "0=1,0=2", "0-2=1,1=2"])
def test_keys_that_are_missing_or_there_twice_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_keyed(text)


def test_files_are_found_by_number() -> None:
    kernel = Kernel()
    assert files(KNOBS["governor"].patterns, kernel) == [governor(p) for p in (0, 1, 10)]
    assert files(KNOBS["irq-affinity"].patterns, kernel) == [irq(n) for n in (9, 24, 25)]
    assert files(KNOBS["weighted-interleave"].patterns, kernel) == [
        f"{WEIGHTS}/auto",
        f"{WEIGHTS}/node0",
        f"{WEIGHTS}/node1",
    ]
    assert files(KNOBS["governor"].patterns, Kernel({})) == []
    assert [key_of(path) for path in (irq(24), governor(10), f"{THP}/enabled")] == [24, 10, None]


@pytest.mark.parametrize("spelling", ["auto", "__auto_type"])
def test_weights_are_asked_for_as_one_and_auto_goes_first(spelling: str) -> None:
    renamed = {path.replace("/auto", f"/{spelling}"): text for path, text in FILES.items()}
    found = asked("weighted-interleave", "0=3", Kernel(renamed))
    assert list(found.items()) == [
        (f"{WEIGHTS}/{spelling}", "false"),
        (f"{WEIGHTS}/node0", "3"),
        (f"{WEIGHTS}/node1", None),
    ]


def test_weights_of_a_kernel_without_auto() -> None:
    old = {path: text for path, text in FILES.items() if path != f"{WEIGHTS}/auto"}
    assert f"{WEIGHTS}/auto" not in asked("weighted-interleave", "0-1=3", Kernel(old))


def test_cpus_are_spelt_as_the_kernel_shows_them() -> None:
    assert asked("irq-affinity", "24=3,2,0,1") == {irq(24): "0-3"}


def test_one_governor_goes_to_all_policies() -> None:
    assert set(asked("governor", "performance").values()) == {"performance"}
    assert len(asked("governor", "performance")) == 3


@pytest.mark.parametrize(
    ("name", "text", "kind", "fields"),
    [
        ("swappiness", "201", ValueError, {"text": "'201'", "high": 200}),
        ("swappiness", "-1", ValueError, {"text": "'-1'"}),
        ("swappiness", "6²", ValueError, {"text": "'6²'"}),
        ("swappiness", "", ValueError, {"text": "''"}),
        ("numa-balancing", "on", ValueError, {"text": "'on'", "high": 3}),
        ("thp-enabled", "defer", UsageError, {"words": "always, madvise, never"}),
        ("thp-enabled", "[madvise]", UsageError, {"words": "always, madvise, never"}),
        (
            "governor",
            "turbo",
            UsageError,
            {"policy": "policy 0", "governors": "performance, powersave, schedutil"},
        ),
        ("weighted-interleave", "0=0", ValueError, {"text": "'0'", "high": 255}),
        ("weighted-interleave", "2=1", UsageError, {"node": 2, "nodes": "0-1"}),
        ("weighted-interleave", "1", ValueError, {"text": "'1'"}),
        ("irq-affinity", "24=8", UsageError, {"irq": 24, "online": "0-7"}),
        ("irq-affinity", "24=", UsageError, {"irq": 24, "cpus": "''"}),
        ("irq-affinity", "24=a", ValueError, {"text": "'a'"}),
        ("irq-affinity", "7=0", UsageError, {"irq": 7}),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(
    name: str, text: str, kind: type[Exception], fields: dict[str, object]
) -> None:
    with fails(kind, **fields):
        asked(name, text)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("swappiness", "60"),
        ("thp-enabled", "madvise"),
        ("governor", "0-1=powersave,10=schedutil"),
        ("weighted-interleave", "0=5,1=2 (auto)"),
        ("irq-affinity", "9=0-7,24=0-3,25=4-7"),
    ],
)
def test_a_knob_is_shown_in_one_line(name: str, line: str) -> None:
    kernel = Kernel()
    paths = files(KNOBS[name].patterns, kernel)
    assert shown(KNOBS[name], {path: kernel.value(path) for path in paths}) == line


def test_what_is_the_same_everywhere_is_shown_once() -> None:
    assert shown(KNOBS["governor"], {governor(p): "performance" for p in range(9)}) == "performance"
