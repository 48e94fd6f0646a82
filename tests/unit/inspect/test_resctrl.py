"""resctrl's monitors on trees in memory, built after the kernel's own document.

No kernel that runs these tests has the feature, so real hardware has not confirmed this part.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.inspect.resctrl import L3Monitor, find_mount, groups_of
from atoll.schema.inspection import L3Look
from tests.parts.fake_host import FakeHost

MOUNTINFO = (
    "24 30 0:22 / /proc rw,nosuid - proc proc rw\n"
    "36 25 0:33 / /sys/fs/resctrl rw,relatime shared:9 - resctrl resctrl rw,mba_MBps\n"
)
ROOT = "/sys/fs/resctrl"


class Resctrl(FakeHost):
    """A mounted resctrl whose counters go on while a test sleeps."""

    def __init__(self, mountinfo: str = MOUNTINFO) -> None:
        super().__init__({"/proc/self/mountinfo": mountinfo})
        self.next: dict[str, str] = {}
        for name in ("schemata", "mode", "cpus", "info/L3_MON/num_rmids"):
            self.files[f"{ROOT}/{name}"] = "x"
        for tid in (7, 8, 9):
            self.files[f"/proc/7/task/{tid}/stat"] = ""

    def group(self, path: str, tasks: str, **domains: tuple[object, object, object]) -> None:
        self.files[f"{path}/tasks"] = tasks
        for domain, values in domains.items():
            for monitor, value in zip(
                ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes"), values, strict=True
            ):
                before, _, after = str(value).partition(">")
                name = f"{path}/mon_data/mon_{domain}/{monitor}"
                self.files[name] = f"{before}\n"
                self.next[name] = f"{after or before}\n"

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.files.update(self.next)


def look_at_l3(host: FakeHost, pid: int, interval_s: float) -> tuple[L3Look, ...]:
    return L3Monitor(host, interval_s).look(pid)


def test_not_mounted_is_nothing_to_see() -> None:
    host = FakeHost({"/proc/self/mountinfo": MOUNTINFO.splitlines()[0]})
    assert look_at_l3(host, 7, 0.5) == ()
    assert host.now_s == 0  # and it is not waited for
    assert look_at_l3(FakeHost(), 7, 0.5) == ()


def test_rates_of_the_default_group_by_domain() -> None:
    host = Resctrl()
    host.group(ROOT, "1\n7\n8\n9\n", L3_00=(4096, "100>2100", "100>1100"), L3_01=(0, "5>5", "5>5"))
    assert look_at_l3(host, 7, 0.5) == (
        L3Look(l3=0, occupancy_bytes=4096, total_bytes_per_s=4000, local_bytes_per_s=2000),
        L3Look(l3=1, occupancy_bytes=0, total_bytes_per_s=0, local_bytes_per_s=0),
    )


@pytest.mark.parametrize("word", ["Unavailable", "Error", "Unassigned", " ", "-1"])
def test_what_the_kernel_does_not_tell_is_unknown(word: str) -> None:
    host = Resctrl()
    host.group(ROOT, "7 8 9", L3_03=(word, f"{word}>9", f"9>{word}"))
    (look,) = look_at_l3(host, 7, 1.0)
    assert look == L3Look(
        l3=3, occupancy_bytes=None, total_bytes_per_s=None, local_bytes_per_s=None
    )


def test_a_counter_that_falls_has_no_rate() -> None:
    host = Resctrl()
    host.group(ROOT, "7 8 9", L3_00=(1, "900>10", "0>1"))
    (look,) = look_at_l3(host, 7, 1.0)
    assert (look.total_bytes_per_s, look.local_bytes_per_s) == (None, 1.0)


def test_a_processor_without_bandwidth_monitors() -> None:
    host = Resctrl()
    host.files[f"{ROOT}/tasks"] = "7"
    host.files[f"{ROOT}/mon_data/mon_L3_00/llc_occupancy"] = "64\n"
    (look,) = look_at_l3(host, 7, 1.0)
    assert (look.occupancy_bytes, look.total_bytes_per_s) == (64, None)


def test_sub_numa_domains_and_other_monitors_are_not_counted_twice() -> None:
    host = Resctrl()
    host.group(ROOT, "7 8 9", L3_00=(10, "0>30", "0>3"))
    host.files[f"{ROOT}/mon_data/mon_L3_00/mon_sub_L3_00/llc_occupancy"] = "4\n"
    host.files[f"{ROOT}/mon_data/mon_L3_00/mon_sub_L3_01/llc_occupancy"] = "6\n"
    host.files[f"{ROOT}/mon_data/mon_PERF_PKG_00/core_energy"] = "1.5\n"
    (look,) = look_at_l3(host, 7, 1.0)
    assert (look.l3, look.occupancy_bytes, look.total_bytes_per_s) == (0, 10, 30)


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ({"": "7 8 9"}, [""]),
        ({"": "1", "/fast": "7 8 9"}, ["/fast"]),
        # All in one monitoring group; its control group's tasks have them too.
        ({"": "1", "/fast": "7 8 9", "/fast/mon_groups/m": "7 8 9"}, ["/fast/mon_groups/m"]),
        ({"": "7 8 9", "/mon_groups/m": "7 8", "/mon_groups/n": "9"}, ["/mon_groups/m", "n"]),
        # One thread is outside of it: the control group counts both.
        ({"": "1", "/fast": "7 8 9", "/fast/mon_groups/m": "7"}, ["/fast"]),
        ({"": "7", "/fast": "8 9"}, ["", "/fast"]),
        ({"": "1"}, []),
    ],
)
def test_the_groups_of_a_process(tasks: dict[str, str], expected: list[str]) -> None:
    host = Resctrl()
    for name, text in tasks.items():
        host.group(f"{ROOT}{name}", text, L3_00=(1, "0>1", "0>1"))
    groups = groups_of(host, ROOT, 7)
    assert len(groups) == len(expected)
    assert all(path.endswith(end) for path, end in zip(groups, expected, strict=True))
    assert bool(look_at_l3(host, 7, 1.0)) is bool(expected)


def test_it_is_waited_once_for_all_processes() -> None:
    host = Resctrl()
    host.files["/proc/5/task/5/stat"] = ""
    host.group(ROOT, "7 8 9", L3_00=(1, "0>10", "0>1"))
    host.group(f"{ROOT}/mon_groups/mine", "5", L3_00=(2, "0>4", "0>2"))
    monitor = L3Monitor(host, 2.0)
    rates = [monitor.look(pid)[0].total_bytes_per_s for pid in (7, 5, 7)]
    assert (rates, host.now_s) == ([5, 2, 5], 2.0)


def test_threads_in_two_groups_are_added() -> None:
    host = Resctrl()
    host.group(ROOT, "7", L3_00=(1, "0>10", "0>1"))
    host.group(f"{ROOT}/fast", "8 9", L3_00=(2, "0>20", "Unavailable"))
    (look,) = look_at_l3(host, 7, 1.0)
    assert (look.occupancy_bytes, look.total_bytes_per_s) == (3, 30)
    assert look.local_bytes_per_s is None  # half of it is not the whole


def test_the_mount_is_found_where_it_is() -> None:
    line = r"36 25 0:33 / /my\040mount rw shared:1 master:2 - resctrl none rw"
    assert find_mount(f"x\n\n - resctrl\n{line}\n") == "/my mount"
    assert find_mount("36 25 0:33 / /a rw - tmpfs resctrl rw") is None


@given(st.text())
def test_any_mountinfo_is_read(text: str) -> None:
    find_mount(text)
    find_mount(MOUNTINFO.replace("/sys", text))
