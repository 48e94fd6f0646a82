"""The runtime's workers on real nodes and chiplets: where they sit, that they move when they are
told to and memory with them, that groups keep to their cores, and that steals are near. Judged by
the kernel's words on threads and pages. The program is native/tests/runtime/guests/workers.cpp.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

import pytest

from atoll.guest.guest import Guest
from atoll.guest.seen import cpu_list
from tests.vm import expected
from tests.vm.landing import Layout
from tests.vm.looks import Answer, Look, read
from tests.vm.native import program
from tests.vm.proof import STILL

CGROUP = "/sys/fs/cgroup/runtime-workers"
FRESH_BYTES = 256 << 10  # as in guest/look.hpp
ARRAY_BYTES = 2 << 20
CHIPLET, NEAR, NODE, ELSEWHERE = range(4)  # atl::Distance


def ask(guest: Guest, *words: str, before: str = "true") -> Answer:
    """What the program says in a guest where no pages move but by its will."""
    still = " && ".join(f"echo {value} >{path}" for path, value in STILL.items())
    script = f'{still} && {before} && exec "$@"'
    argv = ["sh", "-c", script, "sh", program("runtime-workers-guest"), *words]
    done = guest.run(argv, timeout_s=300)
    assert done.returncode == 0, (done.returncode, done.stdout[-2000:], done.stderr)
    return read(done.stdout)


def said(answer: Answer, word: str) -> list[str]:
    """The lines that begin with the word, without it."""
    return [line.removeprefix(f"{word} ") for line in answer.said if line.startswith(f"{word} ")]


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def chiplet_of(layout: Layout, cpu: int) -> frozenset[int]:
    """On a machine without chiplets: the node's CPUs."""
    for chiplet in layout.chiplets:
        if cpu in chiplet:
            return chiplet
    return frozenset(other for other in layout.cpus if layout.node_of[other] == layout.node_of[cpu])


def chiplets_of(layout: Layout, cpus: Collection[int]) -> set[frozenset[int]]:
    return {chiplet_of(layout, cpu) for cpu in cpus}


def judge_seats(layout: Layout, look: Look) -> list[tuple[int, ...]]:
    """Each worker is on one core, and memory is on its node: what it touches from now on, and its
    part of the array. Gives back the cores."""
    cores = {frozenset(core): core for core in layout.cores}
    seats = [cores[worker.cpus] for worker in look.workers]
    nodes = [layout.node_of[core[0]] for core in seats]
    parts: defaultdict[int, list[str]] = defaultdict(list)
    for rank, (worker, node) in enumerate(zip(look.workers, nodes, strict=True)):
        assert worker.policy == f"prefer:{node}", f"{look.label}: worker {rank}"
        assert look.nodes(f"fresh{rank}") == {node: FRESH_BYTES}, f"{look.label}: worker {rank}"
        parts[node].append(f"part{rank}")
    for node, labels in parts.items():
        # Neighbours of one node may be one mapping; it holds no part of another.
        share = ARRAY_BYTES * len(labels) // len(nodes)
        assert look.nodes(*labels) == {node: pytest.approx(share, abs=4096 * len(labels))}
    assert sum(look.nodes(*(f"part{rank}" for rank in range(len(nodes)))).values()) == ARRAY_BYTES
    return seats


def judge_work(answer: Answer) -> None:
    for line in said(answer, "rounds"):
        found = re.fullmatch(r"right (\d+) wrong 0", line)
        assert found and int(found[1]) > 0, line


@pytest.mark.parametrize("guest", ["milan2", "milan4", "smt", "short"], indirect=True)
def test_a_worker_sits_on_each_core(guest: Guest) -> None:
    layout = expected.layout(guest.topology)
    answer = ask(guest, "seats")
    judge_work(answer)

    # The places are the machine's.
    shape = re.compile(r"(\S+) chiplet (\d+) node (\d+) package (\d+)")
    places = [found.groups() for found in map(shape.fullmatch, said(answer, "core")) if found]
    cores = [tuple(numbers(cpus)) for cpus, *_ in places]
    assert sorted(cores) == sorted(layout.cores)
    chiplets: defaultdict[int, set[int]] = defaultdict(set)
    for cpus, (_, chiplet, node, package) in zip(cores, places, strict=True):
        chiplets[int(chiplet)] |= set(cpus)
        assert {layout.node_of[cpu] for cpu in cpus} == {int(node)}
        assert {layout.package_of[cpu] for cpu in cpus} == {int(package)}
    assert sorted(chiplets) == list(range(len(layout.chiplets)))
    assert {frozenset(chiplet) for chiplet in chiplets.values()} == set(layout.chiplets)

    def level(one: int, other: int) -> int:
        """From CPU to CPU, as places.hpp has it."""
        if chiplet_of(layout, one) == chiplet_of(layout, other):
            return 0
        if layout.package_of[one] != layout.package_of[other]:
            return 3
        return 1 if layout.node_of[one] == layout.node_of[other] else 2

    firsts = [min(chiplets[chiplet]) for chiplet in sorted(chiplets)]
    levels = [[level(one, other) for other in firsts] for one in firsts]
    assert [numbers(line) for line in said(answer, "levels")] == levels

    # So are the workers' seats, one on each core.
    (look,) = answer.looks
    seats = judge_seats(layout, look)
    assert sorted(seats) == sorted(layout.cores)
    assert [cores[core] for core in numbers(*said(answer, "cores"))] == seats

    # Victims: all others, nearest first.
    for thief, line in enumerate(said(answer, "victims")):
        rank, *rings = line.split()
        assert int(rank) == thief
        found = [(int(ring[0]), numbers(ring[2:])) for ring in rings]
        own = seats[thief][0]
        wanted: defaultdict[int, list[int]] = defaultdict(list)
        for other, seat in enumerate(seats):
            if other != thief:
                wanted[level(own, seat[0])].append(other)
        same_node = layout.node_of[own]
        assert [others for _, others in found] == [wanted[key] for key in sorted(wanted)]
        for distance, others in found:
            cpu = seats[others[0]][0]
            if level(own, cpu) == 0:
                assert distance == CHIPLET
            else:
                assert distance == (NODE if layout.node_of[cpu] == same_node else ELSEWHERE)


@pytest.mark.parametrize("guest", ["milan4"], indirect=True)
def test_workers_move_as_fills_ask_and_memory_moves_along(guest: Guest) -> None:
    layout = expected.layout(guest.topology)
    answer = ask(guest, "steered")
    judge_work(answer)
    assert [look.label for look in answer.looks] == ["4", "6", "8", "6", "4"]
    seats = []
    for look in answer.looks:
        seats.append(judge_seats(layout, look))
        sizes = Counter(chiplet_of(layout, core[0]) for core in seats[-1])
        assert len(seats[-1]) == len(set(seats[-1])) == 8
        assert len(sizes) == int(look.label), (look.label, answer.said)
        assert max(sizes.values()) - min(sizes.values()) <= 1
    # The way back is the way there.
    assert seats[3:] == [seats[1], seats[0]]
    nodes = [{layout.node_of[core[0]] for core in seat} for seat in seats]
    assert len(nodes[0]) == 2 and len(nodes[2]) == 4  # so pages had to move
    reasons = [line.partition(": ")[2].partition(":")[0] for line in said(answer, "spread")]
    assert reasons[1:] == ["spreads", "spreads", "compacts", "compacts"]


@pytest.mark.parametrize("guest", ["short"], indirect=True)
def test_a_group_keeps_to_its_cores(guest: Guest) -> None:
    layout = expected.layout(guest.topology)
    answer = ask(guest, "groups")
    ranks, *times = answer.looks
    lines = said(answer, "group")
    assert len(lines) == 5 and len(times) == 10
    chosen = []
    for turn, line in enumerate(lines):
        spread, members, cpus = line.split()
        chosen.append(numbers(members))
        cores = [ranks.workers[member].cpus for member in chosen[-1]]
        assert len(cores) == len(set(cores)) == 4
        assert len(chiplets_of(layout, [min(core) for core in cores])) == int(spread)
        # From inside: where its tasks were.
        assert set(numbers(cpus)) == set().union(*cores)
        # From outside: whose time has grown.
        before, after = times[2 * turn], times[2 * turn + 1]
        grown = {
            rank: after.tasks[thread].cpu_ns - before.tasks[thread].cpu_ns
            for rank, thread in ranks.threads.items()
        }
        least = min(grown[member] for member in chosen[-1])
        assert least > 0
        for rank, grown_ns in grown.items():
            # Workers outside of it sleep; the kernel itself may take a moment of its time.
            assert rank in chosen[-1] or grown_ns < least / 20, (line, grown)
    assert chosen[3:] == [chosen[1], chosen[0]]
    assert said(answer, "fault") == [
        "a spread of 5: 4 threads can be spread over 1 to 4 chiplets here"
    ]


@pytest.mark.parametrize("guest", ["milan4"], indirect=True)
def test_a_cpuset_that_shrinks_and_grows_is_followed(guest: Guest) -> None:
    layout = expected.layout(guest.topology)
    limits = ["1-4,9", "3,12-15", "0-15"]
    enter = f"mkdir {CGROUP} && echo $$ >{CGROUP}/cgroup.procs"
    try:
        answer = ask(guest, "limits", f"{CGROUP}/cpuset.cpus", *limits, before=enter)
    finally:
        guest.run(["rmdir", CGROUP])
    judge_work(answer)
    assert [look.label for look in answer.looks] == ["whole", *limits]
    seats = [judge_seats(layout, look) for look in answer.looks]
    assert len(set(seats[0])) == len(layout.cores)
    for limit, look, seat in zip(limits, answer.looks[1:], seats[1:], strict=True):
        left = cpu_list(limit)
        taken = Counter(cpu for (cpu,) in seat)
        assert set(taken) == left  # all that is left, and nothing else
        assert max(taken.values()) - min(taken.values()) <= 1
        assert all(task.cpus <= left for task in look.tasks.values())
    assert seats[-1] == seats[0]


def steals(lines: Sequence[str]) -> list[list[int]]:
    """By rank and distance."""
    found = [line.split() for line in lines]
    assert [int(rank) for rank, _ in found] == list(range(len(found)))
    return [numbers(counts) for _, counts in found]


@pytest.mark.parametrize("guest", ["milan2"], indirect=True)
def test_a_thief_goes_to_the_nearest_first(guest: Guest) -> None:
    answer = ask(guest, "thief")
    # Worker 1 has worker 0 on its chiplet, 2 in its node, 3 in the other node.
    order = numbers(*said(answer, "order"))
    assert order == [0] * 50 + [2] * 50 + [3] * 50
    counts = steals(said(answer, "steals"))
    # A steal may take several words.
    of_one = counts.pop(1)
    assert counts == [[0] * 4] * 3
    assert of_one[1] == 0 and all(1 <= of_one[victim] <= 50 for victim in (0, 2, 3))


@pytest.mark.parametrize("guest", ["milan2"], indirect=True)
def test_steals_stay_near_where_there_is_work(guest: Guest) -> None:
    layout = expected.layout(guest.topology)
    answer = ask(guest, "steals")
    lines = said(answer, "steals")
    single, after = steals(lines[: len(lines) // 2]), steals(lines[len(lines) // 2 :])
    # A piece at a time, while all sleep: the neighbour is woken, and nobody is faster.
    assert sum(map(sum, single)) == 40
    assert single[1][CHIPLET] > 40 / 2, single
    # Trees, from which all workers live: by distance, for each of the victims that are so far.
    assert set(said(answer, "leaves")) == {"1024"}
    tree = [
        sum(later[distance] - sooner[distance] for sooner, later in zip(single, after, strict=True))
        for distance in range(4)
    ]
    own = min(layout.cpus)
    node = sum(layout.node_of[cpu] == layout.node_of[own] for cpu in layout.cpus)
    near = len(chiplet_of(layout, own)) - 1
    per_victim = [
        tree[CHIPLET] / near,
        tree[NODE] / (node - 1 - near),
        tree[ELSEWHERE] / (len(layout.cpus) - node),
    ]
    assert tree[NEAR] == 0  # no profile tells the chiplets of a node apart
    assert per_victim[0] > per_victim[1] > per_victim[2], per_victim
