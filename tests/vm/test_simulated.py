"""Simulated caches in a guest: access patterns whose fills are known by arithmetic."""

from __future__ import annotations

import json
import statistics
import subprocess
from pathlib import Path
from typing import Any

import pytest

from atoll.guest import caches, catalog, image, native, topology
from atoll.guest.guest import Guest
from atoll.schema.fills import FillCounts

LINES_PER_MIB = (1 << 20) // 64
TURNS = 4000  # of patterns.cpp
ADDITIONS = 100_000
TIMES = 100_000
ACCESSES = {"two_lines": 2, "two_pages": 2, "atomic": 1, "atomic_of_thread": 1, "vector": 2}

# Ticks of the kernel take some lines out of the caches.
NOISE = 0.01
# A line may be handed over unseen: the other CPU reads it between a store and its simulation.
HAND_OVER = 0.2
# In a quantum of 200 cycles a CPU adds at most so often: three instructions each.
ADDITIONS_PER_QUANTUM = 67


@pytest.mark.parametrize("guest", ["milan2:simulated"], indirect=True)
def test_fills_are_those_of_arithmetic(guest: Guest, root: Path) -> None:
    """On milan2: two CPUs a chiplet, chiplets 0 to 3 on node 0."""
    program = native.built("cachesim-patterns", "native/tests/cachesim/cachesim-patterns")
    done = guest.run([program, "2", "3", "4", "8", "1"], timeout_s=80, cwd=str(root))
    assert done.returncode == 0, done.stderr
    found: dict[str, list[dict[str, Any]]] = {}
    for line in done.stdout.splitlines():
        counted = json.loads(line)
        found.setdefault(counted["pattern"], []).append(counted)

    (l2,) = found["l2"]
    assert l2["l2_hits"] == pytest.approx(20 * LINES_PER_MIB // 4, rel=NOISE), l2
    (own,) = found["own_l3"]
    assert own["chiplets"][1] == pytest.approx(16 * LINES_PER_MIB, rel=NOISE), own
    assert sum(own["memory"]) < NOISE * 16 * LINES_PER_MIB, own
    (local,) = found["local_memory"]
    assert local["memory"][0] == pytest.approx(40 * LINES_PER_MIB, rel=NOISE), local
    assert local["memory"][1] < NOISE * 40 * LINES_PER_MIB, local
    (remote,) = found["remote_memory"]
    assert remote["memory"][1] == pytest.approx(48 * LINES_PER_MIB, rel=NOISE), remote

    for name, accesses in ACCESSES.items():
        (counted,) = found[name]
        assert counted["accesses"] == pytest.approx(TIMES * accesses, rel=NOISE), counted

    # A CPU's time is its instructions and waits. A host that is busy may hold up the reader.
    missed = [abs(each["spent"] / each["cycles"] - 1) for each in found.pop("window")]
    assert len(missed) > 5, missed
    assert statistics.median(missed) < NOISE, missed

    # 40 MiB do not fit into L3.
    one, other = sorted((each["memory"] for each in found["process"]), key=sum)
    assert one[0] == pytest.approx(40 * LINES_PER_MIB, rel=NOISE), found["process"]
    assert other[1] == pytest.approx(80 * LINES_PER_MIB, rel=NOISE), found["process"]
    assert one[1] + other[0] < NOISE * 40 * LINES_PER_MIB, found["process"]

    for name, chiplet in (
        ("hand_over_in_chiplet", 1),
        ("hand_over_in_node", 2),
        ("hand_over_to_node", 4),
    ):
        one, other = found[name]
        assert one["chiplets"][chiplet] == pytest.approx(TURNS, rel=HAND_OVER), found[name]
        assert other["chiplets"][1] == pytest.approx(TURNS, rel=HAND_OVER), found[name]

    # Each CPU loses the line at least once in most quanta; numbers two lines apart stay.
    taken = {name: sum(each["taken_away"] for each in found[name]) for name in found}
    assert taken["false_sharing"] > ADDITIONS // ADDITIONS_PER_QUANTUM, found["false_sharing"]
    assert taken["apart"] < taken["false_sharing"] / 10, found["apart"]

    (off,) = found["off"]
    assert off["accesses"] == 0, off


@pytest.mark.parametrize("guest", ["milan2:simulated"], indirect=True)
def test_atoll_fills_shows_from_where_a_commands_lines_came(guest: Guest, root: Path) -> None:
    fills = native.fills()
    sweep = native.built("cachesim-sweep", "native/tests/cachesim/cachesim-sweep")
    done = guest.run([fills, "--", sweep, "2", "1", "40", "4"], timeout_s=60, cwd=str(root))
    assert done.returncode == 0, done.stderr
    words = [line.split() for line in done.stderr.splitlines()]
    user = {
        " ".join(each[1:3]): int(each[3]) for each in words if each[:1] == ["from"] and each[3:]
    }
    assert user["remote memory"] == pytest.approx(4 * 40 * LINES_PER_MIB, rel=NOISE), done.stderr
    # All of it was for chiplet 1.
    (chiplet,) = [each[3:] for each in words if each[:3] == ["to", "chiplet", "1"]]
    assert int(chiplet[4]) > (1 - NOISE) * user["remote memory"], done.stderr

    done = guest.run([fills, "--", "sh", "-c", "echo said; exit 7"], cwd=str(root))
    assert (done.returncode, done.stdout) == (7, "said\n"), done.stderr
    assert guest.run([fills, "--", "/nonexistent"], cwd=str(root)).returncode == 127


@pytest.mark.parametrize("guest", ["milan2:simulated"], indirect=True)
def test_counts_by_hand_and_as_json_are_those_of_the_schema(guest: Guest, root: Path) -> None:
    fills = native.fills()
    sweep = native.built("cachesim-sweep", "native/tests/cachesim/cachesim-sweep")

    def ask(verb: str) -> tuple[int, str, str]:
        done = guest.run([fills, verb], timeout_s=60, cwd=str(root))
        return done.returncode, done.stdout, done.stderr.removeprefix("atoll-fills: ")

    assert ask("read") == (2, "", "counting is off; `atoll-fills on` begins it\n")
    assert ask("off") == (2, "", "counting is off\n")
    assert ask("on") == (0, "", "")
    assert ask("on") == (2, "", "counting is on already; `atoll-fills off` ends it\n")
    before = FillCounts.model_validate_json(ask("read")[1])
    assert guest.run([sweep, "2", "1", "40", "4"], timeout_s=60, cwd=str(root)).returncode == 0
    counts = FillCounts.model_validate_json(ask("read")[1]).since(before)
    assert ask("off") == (0, "", "")
    assert ask("read")[0] == 2

    assert counts.quantum_cycles == 200
    assert (counts.node_of_chiplet, counts.package_of_node) == ((0,) * 4 + (1,) * 4, (0, 1))
    remote = counts.sources("user", [1]).remote_memory
    assert remote == pytest.approx(4 * 40 * LINES_PER_MIB, rel=NOISE), counts
    # The sweep's CPU waited for nearly all of them.
    assert counts.cycles > remote * catalog.cpus()["EPYC-Milan"].latency["far_memory"]

    written = f"{fills} --json /tmp/fills.json -- {sweep} 2 1 40 1 && cat /tmp/fills.json"
    done = guest.run(["sh", "-c", written], timeout_s=60, cwd=str(root))
    assert done.returncode == 0, done.stderr
    assert "from remote memory" in done.stderr
    counts = FillCounts.model_validate_json(done.stdout)
    assert counts.sources().remote_memory == pytest.approx(40 * LINES_PER_MIB, rel=NOISE), counts
    # What is over within a quantum is counted too.
    brief = f"{fills} --json /tmp/fills.json -- true && cat /tmp/fills.json"
    counts = FillCounts.model_validate_json(guest.run(["sh", "-c", brief], cwd=str(root)).stdout)
    assert sum(row.instructions for row in counts.user) > 10_000, counts
    assert counts.cycles > 0

    done = guest.run([fills, "--json", "/nonexistent/x", "--", "true"], cwd=str(root))
    assert (done.returncode, done.stderr) == (
        2,
        "atoll-fills: /nonexistent/x: No such file or directory\n",
    )


@pytest.mark.parametrize("guest", ["milan2:simulated"], indirect=True)
def test_cpus_that_share_a_way_between_packages_queue_for_it(guest: Guest, root: Path) -> None:
    fills = native.built("atoll-fills", "native/src/cachesim/atoll-fills")
    sweep = native.built("cachesim-sweep", "native/tests/cachesim/cachesim-sweep")

    def counted(command: str) -> tuple[float, float]:
        """Bytes from node 1 in 1000 cycles; the part of the stalls that was queueing."""
        asked = f"{fills} --json /tmp/fills.json -- sh -c '{command}' && cat /tmp/fills.json"
        done = guest.run(["sh", "-c", asked], timeout_s=100, cwd=str(root))
        assert done.returncode == 0, done.stderr
        counts = FillCounts.model_validate_json(done.stdout)
        rows = [*counts.user[:4], *counts.kernel[:4]]  # of node 0
        stalls = sum(row.stall_cycles for row in rows)
        queued = sum(row.queue_cycles for row in rows)
        lines = sum(row.from_memory[1] for row in rows)
        return lines * 64 * 1000 / counts.cycles, queued / stalls

    text = caches.describe(topology.load("milan2"), 200)
    (limit,) = [int(line.split()[2]) for line in text.splitlines() if "interconnect" in line]
    carried, queued = counted(f"{sweep} 2 1 8 1")
    assert carried < limit / 2
    assert queued < 0.02
    # Alone, each gets a line in about 650 cycles, so all eight at once ask for 1.5 times the limit.
    carried, queued = counted(f"{sweep} 0 1 8 1 8")
    assert limit / 2 < carried < 1.03 * limit
    assert queued > 0.2


@pytest.mark.parametrize("guest", ["milan2:simulated"], indirect=True)
def test_counting_ends_with_a_killed_atoll_fills_but_by_hand_it_stays(
    guest: Guest, root: Path
) -> None:
    fills = native.fills()
    begun = f"until {fills} read >/dev/null 2>&1; do sleep 0.1; done"
    ended = f"while {fills} read >/dev/null 2>&1; do sleep 0.1; done"
    killed = f"{fills} -- sleep 1000 & {begun}; {fills} off; kill -9 $!; {ended}"
    done = guest.run(["sh", "-c", killed], timeout_s=60, cwd=str(root))
    assert done.returncode == 0, done.stderr
    assert "`atoll-fills off --all` ends it for all programs" in done.stderr
    for_all = f"{fills} -- sleep 1000 & {begun}; {fills} off --all; ! {fills} read 2>/dev/null"
    assert guest.run(["sh", "-c", for_all], timeout_s=60, cwd=str(root)).returncode == 0
    by_hand = f"{fills} on; {fills} -- true 2>/dev/null; {fills} read && {fills} off"
    done = guest.run(["sh", "-c", by_hand], timeout_s=60, cwd=str(root))
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


MILAN2 = caches.describe(topology.load("milan2"), quantum=1000)  # 16 CPUs


@pytest.mark.parametrize(
    ("machine", "cpus", "board_bytes", "more", "said"),
    [
        ("", 16, 1 << 20, "", "lacks 'l1'"),
        ("l1 64 8\nl2 100 8\n", 16, 1 << 20, "", "line 2: sets: wants a power of two"),
        (MILAN2, 2, 1 << 20, "", "machine: has another number of CPUs than QEMU's machine"),
        (MILAN2, 16, 4096, "", "board: wants a file of 1 MiB"),
        (MILAN2, 16, 1 << 20, ",machine=/nonexistent", "/nonexistent: cannot be read"),
        (MILAN2, 16, 1 << 20, ",board=", "wants machine=FILE and board=FILE"),
        (MILAN2, 16, 1 << 20, ",colour=red", "no such option; there are machine= and board="),
    ],
)
def test_the_plugin_says_in_a_line_why_it_cannot_be_used(
    tmp_path: Path, machine: str, cpus: int, board_bytes: int, more: str, said: str
) -> None:
    described, board = tmp_path / "machine", tmp_path / "board"
    described.write_text(machine)
    board.write_bytes(bytes(board_bytes))
    argv = [*image.ensure().qemu_argv(), "-accel", "tcg", "-smp", str(cpus), "-S"]
    argv += ["-plugin", f"{native.plugin()},machine={described},board={board}{more}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("atoll-cachesim: ")]
    assert line.endswith(said), line


@pytest.mark.parametrize(("version", "said"), [(0, "minimum version of"), (99, "up to version")])
def test_a_plugin_of_another_interface_is_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, said: str
) -> None:
    source, plugin = tmp_path / "plugin.c", tmp_path / "plugin.so"
    source.write_text(
        f"int qemu_plugin_version = {version};\nint qemu_plugin_install(void) {{ return 0; }}\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", plugin, source], check=True)
    monkeypatch.setattr(native, "plugin", lambda: str(plugin))
    guest = Guest(topology.load("hidden"), quantum=1000)
    refused = rf"^QEMU: Could not load plugin .* {said} \d; remove .*/qemu and try again$"
    with pytest.raises(image.NoImage, match=refused) as fault:
        guest.boot()
    assert (fault.value.exit_code, guest.is_on) == (6, False)
