"""The catalog of CPU models: every row is plausible, has a source, and matches real names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from atoll.probing.catalog import Catalog, Cpu, catalog, parse_catalog

# Model names as /proc/cpuinfo writes them, and what a package of the model has at most.
MODELS = [
    ("AMD EPYC 7601 32-Core Processor", "Naples", 8, 170.6),
    ("AMD EPYC 7551P 32-Core Processor", "Naples", 8, 170.6),
    ("AMD EPYC 7742 64-Core Processor", "Rome", 16, 204.8),
    ("AMD EPYC 7V12 64-Core Processor", "Rome", 16, 204.8),
    ("AMD EPYC 7R32", "Rome", 16, 204.8),
    ("AMD EPYC 7F52 16-Core Processor", "Rome", 16, 204.8),
    ("AMD EPYC 7713 64-Core Processor", "Milan", 8, 204.8),
    ("AMD EPYC 7773X 64-Core Processor", "Milan", 8, 204.8),
    ("AMD EPYC 7R13 Processor", "Milan", 8, 204.8),
    ("AMD EPYC 7V73X 64-Core Processor", "Milan", 8, 204.8),
    ("AMD EPYC 9654 96-Core Processor", "Genoa", 12, 460.8),
    ("AMD EPYC 9R14", "Genoa", 12, 460.8),
    ("AMD EPYC 9V33X 96-Core Processor", "Genoa", 12, 460.8),
    ("AMD EPYC 9754 128-Core Processor", "Bergamo", 16, 460.8),
    ("AMD EPYC 9755 128-Core Processor", "(Turin)", 16, 576.0),
    ("AMD EPYC 9965 192-Core Processor", "Turin Dense", 12, 576.0),
    ("AMD Ryzen 9 5950X 16-Core Processor", "5950X", 2, 51.2),
    ("AMD Ryzen 9 7950X 16-Core Processor", "7950X", 2, 83.2),
    ("AMD Ryzen Threadripper 3960X 24-Core Processor", "3960X", 8, 102.4),
    ("Intel(R) Xeon(R) Platinum 8168 CPU @ 2.70GHz", "Skylake", 1, 128.0),
    ("Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz", "Cascade Lake", 1, 140.8),
    ("Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", "Ice Lake", 1, 204.8),
    ("Intel(R) Xeon(R) Platinum 8480+", "Sapphire Rapids", 4, 307.2),
    ("Intel(R) Xeon(R) Platinum 8592+", "Emerald Rapids", 2, 358.4),
    ("Intel(R) Xeon(R) 6980P", "Granite Rapids", 3, 614.4),
]
# Near them, and something else: another generation, another memory speed, nothing told.
UNKNOWN = [
    "",
    "Intel(R) Xeon(R) Processor",
    "Intel(R) Xeon(R) Platinum 8380H CPU @ 2.90GHz",
    "Intel(R) Xeon(R) Platinum 8462Y+",
    "Intel(R) Xeon(R) 6972P-C",
    "AMD EPYC 7251 8-Core Processor",
    "Intel(R) Xeon(R) Gold 6222V CPU @ 1.80GHz",
    "AMD EPYC Processor",
    "QEMU Virtual CPU version 2.5+",
]


@pytest.mark.parametrize(("name", "word", "islands", "peak_gbs"), MODELS)
def test_real_model_names_are_known(name: str, word: str, islands: int, peak_gbs: float) -> None:
    found = catalog().cpu_of([name])
    assert found is not None
    assert word in found.model
    assert found.islands == islands
    assert found.peak_gbs == pytest.approx(peak_gbs, abs=0.05)


def test_makes_for_one_cloud_are_known_as_such() -> None:
    told = {name for name, *_ in MODELS if catalog().unspecified.matches(name)}
    assert told == {
        "AMD EPYC 7R32", "AMD EPYC 7R13 Processor", "AMD EPYC 9R14",
        "Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz",
    }  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_others_are_not(name: str) -> None:
    assert catalog().cpu_of([name]) is None


@pytest.mark.parametrize("row", catalog().cpu, ids=lambda row: row.model)
def test_a_rows_peak_is_channels_times_speed(row: Cpu) -> None:
    assert row.peak_gbs == pytest.approx(row.channels * 8 * row.speed_mts * 1e6 / 1e9)
    assert row.tiles <= row.l3_groups or row.l3_groups == 1, "an L3 over some of the tiles"
    assert len(row.source) > 10


def test_a_published_triad_is_of_a_known_model_and_below_its_peak() -> None:
    names = ["AMD EPYC 7V12", "AMD EPYC 7V13", "AMD EPYC 7V73X", "AMD EPYC 9V33X"]
    for machine in catalog().machine:
        cpu = catalog().cpu_of(name for name in names if machine.matches(name))
        assert cpu is not None, machine.name
        assert 0.5 < machine.triad_gbs / (machine.packages * cpu.peak_gbs) < 1


def test_a_published_machine_is_told_by_its_size() -> None:
    found = catalog().machine_of("AMD EPYC 7V73X 64-Core Processor", packages=2, cores=120)
    assert found is not None and found.name == "Azure HBv3"
    assert catalog().machine_of(found.name, packages=2, cores=120) is None
    assert catalog().machine_of("AMD EPYC 7V73X", packages=2, cores=16) is None


@given(st.integers(1, 64), st.integers(100, 20_000))
def test_the_peak_is_computed(channels: int, speed_mts: int) -> None:
    row = Cpu(
        pattern="x", source="s", model="m", tiles=1, l3_groups=1, cores_per_l3=1, exact=True,
        channels=channels, speed_mts=speed_mts,
    )  # fmt: skip
    assert row.peak_gbs * 1000 == pytest.approx(8 * channels * speed_mts)


ROW = """
[triad]
share = 0.7
source = "a rule"
[unspecified]
pattern = 'X'
source = "nowhere"
[[cpu]]
model = "M"
pattern = 'M\\b'
tiles = 2
l3_groups = 2
cores_per_l3 = 4
exact = true
channels = 8
speed_mts = 3200
source = "a sheet"
"""


def test_a_row_is_read() -> None:
    found = parse_catalog(ROW + "\n[[machine]]\nname = 'a'\npattern = 'M'\npackages = 1\n"
                          "cores = 8\ntriad_gbs = 1\nsource = 's'\n")  # fmt: skip
    assert isinstance(found, Catalog)
    assert found.cpu[0].most_cores == 8


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("channels = 8", "channels = 0"),
        ("channels = 8", ""),
        ("channels = 8", "chanels = 8"),
        ("share = 0.7", "share = 70"),
        ("'M\\b'", "'M('"),
        ('source = "a sheet"', 'source = ""'),
        ("[[cpu]]", "[[cpu"),
    ],
)
def test_a_row_that_cannot_be_is_refused(old: str, new: str) -> None:
    with pytest.raises((ValidationError, ValueError)):
        parse_catalog(ROW.replace(old, new) + "machine = []\n")


@given(st.text(max_size=200))
def test_foreign_text_is_refused_or_read(text: str) -> None:
    with pytest.raises(ValueError):
        parse_catalog(text)
    catalog().cpu_of([text])
