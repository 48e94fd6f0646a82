"""Saved profiles: found by file names alone, used if the topology shows no chiplets, and
rejected with a reason if they cannot be trusted."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.errors import UsageError
from atoll.host.environment import hostname_hash
from atoll.probing import profiles
from atoll.probing.profiles import apply, use_given, use_saved
from atoll.schema.confidence import LEAST_CONFIDENCE
from atoll.schema.machine import ChipletSource, Machine
from atoll.schema.profile import Profile
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails
from tests.parts.machines import milan, plain, restrict
from tests.parts.profiles import epyc, graviton, sapphire_rapids

HOST = FakeHost({"/proc/sys/kernel/hostname": "host-a\n", "/etc/machine-id": "1\n"})
OTHER_HOST = FakeHost({"/proc/sys/kernel/hostname": "host-b\n"})


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "atoll" / "profiles"


def machine() -> Machine:
    """Four tiles that the system does not show."""
    return plain(56).model_copy(
        update={"origin": plain(2).origin.model_copy(update={"kind": "live"})}
    )


def of(measured: Profile, machine: Machine, **changes: Any) -> Profile:
    """The profile, as if it had been measured on that machine, by HOST."""
    environment = measured.environment.model_copy(
        update={"hostname_hash": hostname_hash(HOST), "cpu_model": machine.cpu_model}
    )
    return measured.model_copy(
        update={"machine_id": machine.machine_id, "environment": environment, **changes}
    )


def inferred(measured: Profile, **changes: Any) -> Profile:
    assert measured.inference is not None
    return measured.model_copy(update={"inference": measured.inference.model_copy(update=changes)})


def written(folder: Path, measured: Profile, name: str = "given.json") -> str:
    path = folder / name
    path.write_text(measured.model_dump_json())
    return str(path)


def test_what_was_saved_is_found_again_and_private(state: Path) -> None:
    mine = of(sapphire_rapids(), machine())
    path = profiles.save(mine)
    assert path.parent == state
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert profiles.find(machine(), HOST) == mine
    assert profiles.read(path) == mine


def test_the_newest_is_found_and_nobody_elses() -> None:
    old = of(sapphire_rapids(), machine(), created="2026-01-01T00:00:00+00:00")
    new = of(sapphire_rapids(), machine(), created="2026-02-01T00:00:00+00:00")
    for one in (new, old):
        profiles.save(one)
    assert profiles.find(machine(), HOST) == new
    assert profiles.find(machine(), OTHER_HOST) is None, "a host of the same layout"
    assert profiles.find(plain(28), HOST) is None, "another layout"


def test_tiles_that_show_in_bandwidth_alone_become_chiplets() -> None:
    profiles.save(of(sapphire_rapids(), machine()))
    found, said = use_saved(machine(), HOST)
    assert [len(chiplet.cores) for chiplet in found.chiplets] == [14] * 4
    assert {chiplet.source for chiplet in found.chiplets} == {ChipletSource.BANDWIDTH}
    assert "of 2026-01-01 (bandwidth, confidence 0.91)" in said
    assert found.machine_id == machine().machine_id, "it is still the same machine"


def test_both_kinds_of_figures_count_as_latency() -> None:
    whole = milan(2, 8, 6, smt=2)
    hidden = whole.model_copy(update={"chiplets": ()})
    found, said = apply(hidden, of(epyc(), hidden), where="p.json")
    assert len(found.chiplets) == 16
    assert {chiplet.source for chiplet in found.chiplets} == {ChipletSource.LATENCY}
    assert said.startswith("chiplets from the profile p.json of 2026-01-01 (latency,")


def test_the_topology_comes_first(tmp_path: Path) -> None:
    shown = milan(2, 8, 6, smt=2)
    mine = of(epyc(), shown)
    profiles.save(mine)
    assert use_saved(shown, HOST) == (shown, "")
    found, said = use_given(shown, written(tmp_path, mine), HOST)
    assert found is shown
    assert "already known (l3)" in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"confidence": LEAST_CONFIDENCE - 0.01}, "uncertain"),
        ({"chiplets": ((0, 1), (50, 99))}, "does not have CPUs 99"),
        ({"chiplets": (tuple(range(56)),)}, "covers a whole package"),
        ({"chiplets": ((0, 1), (1, 2))}, "already in another chiplet"),
        ({"chiplets": ((3,),)}, "has one core"),
    ],
)
def test_what_cannot_be_trusted_is_not_used_and_the_reason_is_said(
    changes: dict[str, Any], words: str
) -> None:
    profiles.save(inferred(of(sapphire_rapids(), machine()), **changes))
    found, said = use_saved(machine(), HOST)
    assert found.chiplets == ()
    assert "is not used" in said and words in said


def test_a_part_of_the_cores_is_not_enough() -> None:
    """Chiplets of the measured CPUs would leave the others outside of all."""
    wider = plain(60)
    found, said = apply(wider, of(sapphire_rapids(), wider), where="p.json")
    assert found is wider
    assert "4 of 60 cores were not paired" in said
    masked = restrict(wider, pus=range(56))
    assert len(apply(masked, of(sapphire_rapids(), masked), where="p.json").machine.chiplets) == 4


def test_an_emulated_cpu_concludes_nothing(tmp_path: Path) -> None:
    mine = of(sapphire_rapids(), machine(), emulated=True)
    profiles.save(mine)
    found, said = use_saved(machine(), HOST)
    assert found.chiplets == () and "emulated" in said
    with fails(UsageError, path=written(tmp_path, mine), cpu="emulated"):
        use_given(machine(), written(tmp_path, mine), HOST)


def test_none_at_all_is_quiet_unless_it_was_asked_for(tmp_path: Path) -> None:
    flat = plain(64)
    mine = of(graviton(), flat)
    profiles.save(mine)
    assert use_saved(flat, HOST) == (flat, "")
    assert "shows no chiplets" in use_given(flat, written(tmp_path, mine), HOST).report
    unsure = inferred(mine, confidence=0.2)
    assert "cannot tell" in use_given(flat, written(tmp_path, unsure), HOST).report


def test_newer_profiles_of_other_kinds_do_not_hide_the_chiplets() -> None:
    profiles.save(of(sapphire_rapids(), machine(), created="2026-01-01T00:00:00+00:00"))
    profiles.save(
        of(sapphire_rapids(), machine(), created="2026-03-01T00:00:00+00:00", inference=None)
    )
    assert len(use_saved(machine(), HOST).machine.chiplets) == 4


def test_a_newer_uncertain_one_does_not_hide_them_either() -> None:
    sure = of(sapphire_rapids(), machine(), created="2026-01-01T00:00:00+00:00")
    profiles.save(sure)
    doubted = sure.model_copy(update={"created": "2026-03-01T00:00:00+00:00"})
    profiles.save(inferred(doubted, confidence=0.1))
    assert len(use_saved(machine(), HOST).machine.chiplets) == 4


@pytest.mark.parametrize(("confidence", "used"), [(0.9, 0), (0.2, 4)])
def test_a_newer_one_without_chiplets_counts_if_it_is_certain(confidence: float, used: int) -> None:
    sure = of(sapphire_rapids(), machine(), created="2026-01-01T00:00:00+00:00")
    profiles.save(sure)
    newer = sure.model_copy(update={"created": "2026-03-01T00:00:00+00:00"})
    profiles.save(inferred(newer, chiplets=(), source="none", confidence=confidence))
    assert len(use_saved(machine(), HOST).machine.chiplets) == used


def test_a_broken_file_in_the_state_folder_breaks_no_command() -> None:
    path = profiles.save(of(sapphire_rapids(), machine()))
    path.write_text(path.read_text()[:5000])
    found, said = use_saved(machine(), HOST)
    assert found.chiplets == ()
    assert "not JSON" in said and "\n" not in said


def test_another_machines_profile_is_refused_with_both_ids(tmp_path: Path) -> None:
    here = machine()
    path = written(tmp_path, of(sapphire_rapids(), plain(57)))
    theirs = plain(57)
    with fails(
        UsageError,
        path=path,
        theirs=theirs.machine_id,
        ours=here.machine_id,
    ):
        use_given(here, path, HOST)
    model = of(sapphire_rapids(), here)
    environment = model.environment.model_copy(update={"cpu_model": "Other CPU"})
    path = written(tmp_path, model.model_copy(update={"environment": environment}))
    with fails(UsageError, path=path, was="Other CPU", now=here.cpu_model, id=here.machine_id):
        use_given(here, path, HOST)


def test_a_twin_may_lend_its_profile_and_that_is_said(tmp_path: Path) -> None:
    path = written(tmp_path, of(sapphire_rapids(), machine()))
    found, said = use_given(machine(), path, OTHER_HOST)
    assert len(found.chiplets) == 4
    assert "another host" in said


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", {}),
        ("[]", {"format": "atoll/profile"}),
        (
            '{"format": "atoll/machine", "version": 1}',
            {"format": "atoll/profile", "found": "atoll/machine"},
        ),
        ('{"format": "atoll/profile", "version": 99}', {"version": "version 99"}),
        ('{"format": "atoll/profile", "version": 1}', {}),
    ],
)
def test_what_is_no_profile_is_refused_in_one_line(
    tmp_path: Path, text: str, named: dict[str, str]
) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    for read in (profiles.read, profiles.read_chiplets):
        with fails(UsageError, path=path, **named) as refused:
            read(path)
        assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path, "a\0b"):
        with pytest.raises(UsageError):
            profiles.read_chiplets(path)


MEASURED = of(sapphire_rapids(), machine())


@given(
    st.lists(st.lists(st.integers(0, 63), min_size=1, max_size=40), max_size=6),
    st.floats(0, 1),
    st.sampled_from(["latency", "bandwidth", "both", "none"]),
)
def test_applying_never_raises_and_keeps_the_machine(
    sets: list[list[int]], confidence: float, source: str
) -> None:
    here = machine()
    mine = inferred(
        MEASURED, chiplets=tuple(map(tuple, sets)), confidence=confidence,
        source=source,
    )  # fmt: skip
    found, said = apply(here, mine, where="p.json")
    assert said and "\n" not in said
    assert found.pus == here.pus and found.machine_id == here.machine_id
    owned = [pu for chiplet in found.chiplets for pu in chiplet.pus]
    assert len(owned) == len(set(owned))
    assert not found.chiplets or confidence >= LEAST_CONFIDENCE


def test_a_folder_that_cannot_be_reached_has_no_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user whose HOME belongs to another one; here, its name is too long to be reached."""
    monkeypatch.setenv("XDG_STATE_HOME", "/" + "x" * 300)
    assert use_saved(machine(), HOST).report == ""
