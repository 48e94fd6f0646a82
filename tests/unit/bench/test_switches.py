"""Knobs inside a bench: turned through the journal, restored at the end and after kill -9."""

from __future__ import annotations

import errno
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from atoll.bench.axes import make_grid, parse_axis
from atoll.bench.switches import present_values, restore, try_out, turning, without_twins
from atoll.errors import CheckFailed, DownloadFailed, NotPermitted, UsageError
from atoll.knobs.control import BOOT_ID, Control
from atoll.knobs.journal import JournalFolder
from atoll.schema.plan import Policy
from tests.parts.bench import WIM, Run, entrant, header
from tests.parts.faults import fails
from tests.parts.knobs import BALANCING, CPUFREQ, SWAPPINESS, Kernel

AXIS = parse_axis("knob:swappiness=10,60")
BEFORE = {"numa-balancing": "1", "swappiness": "60"}


class Forbidden(JournalFolder):
    """As another user sees it."""

    def _opened(self) -> int:
        raise NotPermitted(f"{self.folder}: cannot keep a journal (Permission denied)")


@pytest.fixture
def folder(tmp_path: Path) -> JournalFolder:
    return JournalFolder(tmp_path / "knobs")


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


def now(kernel: Kernel) -> str:
    return kernel.read_text(SWAPPINESS).strip()


def left_by_a_kill(kernel: Kernel, folder: JournalFolder, knobs: Mapping[str, str]) -> None:
    """What is on disk and in the kernel if a bench dies after it turned `knobs`."""

    def steps() -> Iterator[None]:
        with turning({"swappiness": now(kernel)}, kernel, folder) as turn:
            turn(knobs)
            note = (folder.folder / "bench.json").read_text()
            journal = folder.path.read_text()
            value = now(kernel)
            yield
        kernel.files[SWAPPINESS] = f"{value}\n"
        (folder.folder / "bench.json").write_text(note)
        folder.path.write_text(journal)

    list(steps())


def test_the_present_value_is_in_the_axiss_own_words(kernel: Kernel, folder: JournalFolder) -> None:
    assert present_values([AXIS], kernel, folder) == {"swappiness": "60"}
    other = parse_axis("knob:swappiness=10,20")
    assert present_values([other], kernel, folder) == {"swappiness": "60"}
    for policy in (0, 1, 10):
        kernel.files[f"{CPUFREQ}/policy{policy}/scaling_governor"] = "schedutil\n"
    governor = parse_axis("knob:governor=performance,schedutil")
    assert present_values([governor], kernel, folder) == {"governor": "schedutil"}
    assert present_values([parse_axis("memory=bind,local")], kernel, folder) == {}


def test_a_value_in_two_spellings_is_one(kernel: Kernel, folder: JournalFolder) -> None:
    axes = map(parse_axis, ("knob:swappiness=60,060,10", "memory=bind,interleave"))
    found = without_twins(make_grid(axes), kernel, folder)
    assert found.values("knob:swappiness") == ("60", "10")
    assert found.values("memory") == ("bind", "interleave")
    with pytest.raises(UsageError, match="0 to 200"):
        without_twins(make_grid([parse_axis("knob:swappiness=10,900")]), kernel, folder)


def test_values_are_turned_and_restored(kernel: Kernel, folder: JournalFolder) -> None:
    written: list[str] = []
    kernel.before = lambda path, value: written.append(value)
    with turning({"swappiness": "60"}, kernel, folder) as turn:
        for value in ("60", "10", "10", "60", "10"):
            turn({"swappiness": value})
            assert now(kernel) == value
    assert now(kernel) == "60"
    assert written == ["10", "60", "10", "60"], "nothing is written twice"
    journal = folder.read()
    assert journal is not None and journal.switches == ()
    assert not (folder.folder / "bench.json").exists()
    assert restore(kernel, folder) == ""


def test_the_users_own_setting_is_what_is_restored(kernel: Kernel, folder: JournalFolder) -> None:
    Control(kernel, folder).set([("swappiness", "30")])
    before = present_values([AXIS], kernel, folder)
    with suppress(RuntimeError), turning(before, kernel, folder) as turn:
        turn({"swappiness": "10"})
        raise RuntimeError
    assert now(kernel) == "30"
    journal = folder.read()
    assert journal is not None and journal.switches[0].original == "60"


def test_the_next_bench_restores_what_a_killed_one_left(
    kernel: Kernel, folder: JournalFolder
) -> None:
    left_by_a_kill(kernel, folder, {"swappiness": "10"})
    assert now(kernel) == "10"
    assert "restored swappiness=60" in restore(kernel, folder)
    assert now(kernel) == "60"
    assert restore(kernel, folder) == ""


def test_a_boot_has_restored_it(kernel: Kernel, folder: JournalFolder) -> None:
    left_by_a_kill(kernel, folder, {"swappiness": "10"})
    kernel.files |= {BOOT_ID: "boot-2\n", SWAPPINESS: "40\n"}
    assert restore(kernel, folder).endswith("the boot since has reset them")
    assert now(kernel) == "40" and not (folder.folder / "bench.json").exists()


def test_two_benches_do_not_turn_knobs_at_once(kernel: Kernel, folder: JournalFolder) -> None:
    with turning({"swappiness": "60"}, kernel, folder) as turn:
        turn({"swappiness": "10"})
        assert restore(kernel, folder) == "", "it is not left, it is in use"
        with (
            pytest.raises(CheckFailed, match="another run"),
            turning({"swappiness": "60"}, kernel, folder),
        ):
            pass
        assert now(kernel) == "10"


def test_a_value_that_changed_since_it_was_read_is_not_taken_for_the_users(
    kernel: Kernel, folder: JournalFolder
) -> None:
    before = present_values([AXIS], kernel, folder)
    kernel.files[SWAPPINESS] = "10\n"  # by another bench that has not ended yet
    with (
        fails(CheckFailed, knob="swappiness", before="60", now="10"),
        turning(before, kernel, folder),
    ):
        pass
    assert now(kernel) == "10" and not (folder.folder / "bench.json").exists()


def test_every_value_is_tried_before_the_first_block(kernel: Kernel, folder: JournalFolder) -> None:
    try_out([AXIS], {"swappiness": "60"}, kernel, folder)
    kernel.refused[(SWAPPINESS, "10")] = 22
    with pytest.raises(NotPermitted, match=r"swappiness=10: .*Invalid argument"):
        try_out([AXIS], {"swappiness": "60"}, kernel, folder)
    assert now(kernel) == "60"


def test_without_root_it_says_so(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    nowhere = JournalFolder(tmp_path / "file" / "knobs")
    with pytest.raises(DownloadFailed, match="cannot keep a journal"):
        try_out([AXIS], {"swappiness": "60"}, kernel, nowhere)

    with pytest.raises(NotPermitted, match="only root"):
        try_out([AXIS], {"swappiness": "60"}, kernel, Forbidden(tmp_path))


def test_a_value_that_a_knob_does_not_take(kernel: Kernel, folder: JournalFolder) -> None:
    with pytest.raises(UsageError, match="0 to 200"):
        present_values([parse_axis("knob:swappiness=10,900")], kernel, folder)
    weights = parse_axis("knob:weighted-interleave=0=3,1=1;0=1,1=1")
    with fails(UsageError, knob="weighted-interleave"):
        present_values([weights], kernel, folder)


def test_another_program_that_turns_it_too(kernel: Kernel, folder: JournalFolder) -> None:
    def measure() -> None:
        with turning({"swappiness": "60"}, kernel, folder) as turn:
            turn({"swappiness": "10"})
            kernel.files[SWAPPINESS] = "77\n"
            turn({"swappiness": "20"})

    with pytest.raises(CheckFailed, match=r"set .*swappiness to 77"):
        measure()
    assert now(kernel) == "77", "it is left alone"
    assert restore(kernel, folder) == ""


def test_both_values_stand_in_every_block(folder: JournalFolder) -> None:
    kernel = Kernel()
    low = WIM.model_copy(
        update={"label": "spark/wim/low", "knobs": {"swappiness": "10"}, "baseline": WIM.label}
    )
    base = WIM.model_copy(update={"knobs": {"swappiness": "60"}})
    seen: list[tuple[str, str]] = []
    run = Run(header(base, low), refuse=lambda label, turn: seen.append((label, now(kernel))))
    with turning({"swappiness": "60"}, kernel, folder) as turn:
        run.bench.turn = turn
        run.bench.run()
    assert seen == [
        ("spark/wim", "60"),
        ("spark/wim/low", "10"),
        ("spark/wim/low", "10"),
        ("spark/wim", "60"),
    ]
    assert now(kernel) == "60" and kernel.read_text(BALANCING).strip() == "1"
    assert entrant("spark", Policy.WIM).knobs == {}


def interrupt(kernel: Kernel, value: str) -> None:
    """Ctrl-C each time that `value` is written."""

    def press(path: str, written: str) -> None:
        if written == value:
            signal.raise_signal(signal.SIGINT)

    kernel.before = press


def test_ctrl_c_right_after_the_write_restores(kernel: Kernel, folder: JournalFolder) -> None:
    interrupt(kernel, "10")
    with pytest.raises(KeyboardInterrupt), turning({"swappiness": "60"}, kernel, folder) as turn:
        turn({"swappiness": "10"})
    assert now(kernel) == "60"
    assert not (folder.folder / "bench.json").exists()


def test_a_second_ctrl_c_does_not_end_the_restoring(folder: JournalFolder) -> None:
    class Pressed(Kernel):
        pressed = False

        def read_text(self, path: str) -> str:
            if self.pressed:
                signal.raise_signal(signal.SIGINT)
            return super().read_text(path)

    kernel = Pressed()
    with suppress(KeyboardInterrupt), turning(BEFORE, kernel, folder) as turn:
        turn({"numa-balancing": "0", "swappiness": "10"})
        kernel.pressed = True
        raise KeyboardInterrupt
    kernel.pressed = False
    assert (kernel.value(BALANCING), now(kernel)) == ("1", "60")
    assert not (folder.folder / "bench.json").exists()


@pytest.mark.parametrize("ending", [KeyboardInterrupt, None])
def test_a_foreign_value_keeps_no_other_knob_turned(
    kernel: Kernel, folder: JournalFolder, ending: type[BaseException] | None
) -> None:
    said: list[str] = []

    def measure() -> None:
        with turning(BEFORE, kernel, folder, said.append) as turn:
            turn({"numa-balancing": "0", "swappiness": "10"})
            kernel.files[BALANCING] = "2\n"
            if ending:
                raise ending

    with pytest.raises(ending or CheckFailed):
        measure()
    assert (kernel.value(BALANCING), now(kernel)) == ("2", "60")
    assert len(said) == bool(ending)
    assert restore(kernel, folder) == "", "nothing is left to restore"


def test_what_the_kernel_refuses_to_restore_is_tried_again(
    kernel: Kernel, folder: JournalFolder
) -> None:
    said: list[str] = []
    with suppress(RuntimeError), turning(BEFORE, kernel, folder, said.append) as turn:
        turn({"numa-balancing": "0", "swappiness": "10"})
        kernel.refused[(BALANCING, "1")] = errno.EBUSY
        raise RuntimeError
    assert (kernel.value(BALANCING), now(kernel)) == ("0", "60")
    assert "numa_balancing: Device or resource busy" in said[0]
    note = folder.folder / "bench.json"
    with fails(CheckFailed, knob="numa-balancing=1", note=str(note)):
        restore(kernel, folder)
    kernel.refused.clear()
    assert "restored numa-balancing=1, swappiness=60" in restore(kernel, folder)
    assert kernel.value(BALANCING) == "1" and not note.exists()


def test_restoring_leaves_a_foreign_value(kernel: Kernel, folder: JournalFolder) -> None:
    def steps() -> Iterator[None]:
        with turning(BEFORE, kernel, folder) as turn:
            turn({"numa-balancing": "0", "swappiness": "10"})
            kept = (folder.folder / "bench.json").read_text(), folder.path.read_text()
            yield
        (folder.folder / "bench.json").write_text(kept[0])
        folder.path.write_text(kept[1])
        kernel.files |= {BALANCING: "2\n", SWAPPINESS: "10\n"}

    list(steps())
    assert restore(kernel, folder) == (
        "an earlier run was killed with knobs turned; restored swappiness=60; numa-balancing "
        "keeps the value that another program has set"
    )
    assert (kernel.value(BALANCING), now(kernel)) == ("2", "60")


def test_another_user_hears_of_roots_bench_and_is_not_refused(
    kernel: Kernel, folder: JournalFolder
) -> None:
    with turning({"swappiness": "60"}, kernel, folder) as turn:
        turn({"swappiness": "10"})
        assert restore(kernel, Forbidden(folder.folder)).startswith(
            "a run of root turns knobs now, or was killed"
        )
        assert now(kernel) == "10"
