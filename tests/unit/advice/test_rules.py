"""The rules of advice: each decides somewhere and not everywhere, and they never contradict."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.advice.advise import advise
from atoll.advice.process_rules import HURT_BY_THP, NEVER
from atoll.advice.rule import Tuner, decide, deciding
from atoll.advice.situation import DEFAULT_POLICY, Situation
from atoll.advice.system_rules import TUNERS
from atoll.host.topology import read_machine
from atoll.inspect.policy import parse_policy
from atoll.schema.advice import Line, Reach, SubjectKind, Supported, Workload
from atoll.schema.machine import Machine
from atoll.schema.plan import Placement
from tests.parts import advice as parts
from tests.parts.paths import GOLDEN

MADE = (
    *(parts.ONE, parts.TWO, parts.MILAN, parts.NPS2, parts.L3_AS_NUMA),
    *(parts.TIERS, parts.CXL, parts.BARE),
)
GOLDEN_MACHINES = sorted((GOLDEN / "machines").glob("*.xml"))
EXPECTED = GOLDEN / "advice.json"
RULES = {rule.name: tuner for tuner in TUNERS for rule in tuner.rules}


def by_tuner(situation: Situation) -> dict[str, Line]:
    return {line.tuner: line for line in decide(TUNERS, situation)}


def test_every_rule_has_a_name_of_its_own_and_a_case() -> None:
    assert len(RULES) == sum(len(tuner.rules) for tuner in TUNERS)
    assert RULES.keys().isdisjoint(tuner.name for tuner in TUNERS)
    assert parts.CASES.keys() == RULES.keys()


@pytest.mark.parametrize("name", parts.CASES)
def test_a_rule_decides_in_its_case_and_not_in_all(name: str) -> None:
    tuner = RULES[name]
    assert by_tuner(parts.CASES[name])[tuner.name].rule == name
    assert {by_tuner(case)[tuner.name].rule for case in parts.CASES.values()} != {name}


@pytest.mark.parametrize("tuner", TUNERS, ids=lambda tuner: tuner.name)
def test_the_last_rule_of_a_tuner_always_holds(tuner: Tuner) -> None:
    last = replace(tuner, rules=tuner.rules[-1:])
    assert all(deciding(last, case) for case in parts.CASES.values())


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    machine = draw(st.sampled_from(MADE))
    node = draw(st.sampled_from([None, *(one.os_index for one in machine.nodes if one.pus)]))
    policies = [DEFAULT_POLICY, "local", "bind:0", "interleave:0", "prefer:0"]
    changes = {
        "kind": draw(st.sampled_from(list(SubjectKind))),
        "instances": draw(st.integers(1, 4)),
        "policy": draw(st.sampled_from(policies)),
        "malloc": draw(st.sampled_from(["system", "jemalloc", "mimalloc"])),
        "preload": draw(st.sampled_from([parts.EFFECTIVE, parts.PARTIAL, parts.NO_EFFECT])),
        "may_have_thp": draw(st.booleans()),
        "threads": draw(st.sampled_from(list(Placement))),
        "binding_fault": draw(st.sampled_from(["", "no names"])),
        "is_bound": draw(st.booleans()),
    }
    sub = parts.subject(machine, **changes)
    if node is not None:
        sub = parts.on_node(machine, node, **changes)
    knobs = {
        "numa-balancing": draw(st.sampled_from("012")),
        "thp-enabled": draw(st.sampled_from(["always", "madvise", "never"])),
        "thp-defrag": draw(st.sampled_from(["always", "defer+madvise", "never"])),
        "zone-reclaim": draw(st.sampled_from("013")),
        "governor": draw(st.sampled_from(["performance", "powersave"])),
        "weighted-interleave": draw(st.sampled_from(["0-1=1 (manual)", "0=3,1=1 (auto)"])),
    }
    for name in draw(st.sets(st.sampled_from(sorted(knobs)))):
        del knobs[name]
    return Situation(
        machine=machine,
        subject=sub,
        workload=draw(st.sampled_from(list(Workload))),
        knobs=knobs,
        root=draw(st.booleans()),
        policy_fault=draw(st.sampled_from(["", "EPERM"])),
        knobs_fault=draw(st.sampled_from(["", "read-only"])),
        virtual=draw(st.booleans()),
        frequency_driver=draw(st.sampled_from(["", "intel_pstate", "acpi-cpufreq"])),
        mallocs=tuple(draw(st.sets(st.sampled_from(["tbbmalloc", "jemalloc", "mimalloc"])))),
        churn_ns=draw(
            st.dictionaries(
                st.sampled_from(["system", "tbbmalloc", "jemalloc", "mimalloc"]),
                st.floats(1, 1000),
            )
        ),
    )


@settings(max_examples=400, deadline=None)
@given(situations())
def test_advice_that_was_followed_is_to_leave_it(situation: Situation) -> None:
    lines = decide(TUNERS, situation)
    after = by_tuner(parts.followed(situation, lines))
    for line in lines:
        if line.reach is not Reach.FIRMWARE and line.supported is not Supported.NO:
            assert after[line.tuner].current == line.advised
            assert after[line.tuner].leaves, (line, after[line.tuner])


@settings(max_examples=400, deadline=None)
@given(situations())
def test_lines_never_contradict_each_other(situation: Situation) -> None:
    lines = decide(TUNERS, situation)
    assert lines == decide(TUNERS, situation)
    assert [line.tuner for line in lines] == [tuner.name for tuner in TUNERS]
    by_name = {line.tuner: line for line in lines}
    memory, thp = by_name["memory"], by_name["thp"]
    for line in lines:
        assert line.evidence and line.why and line.risk and line.check
        assert bool(line.apply) == bool(line.undo) == (not line.leaves)
        assert line.supported is not Supported.NO or line.obstacle
    if not memory.leaves:
        policy = parse_policy(memory.advised)
        assert policy.nodes <= set(situation.nodes)
        assert policy.interleaves == (situation.spans or memory.rule == "weighted")
        assert len(policy.nodes) > 1 or policy.mode == "bind"
    if memory.advised != DEFAULT_POLICY and memory.supported is Supported.YES:
        assert by_name["numa-balancing"].leaves
    if thp.advised == NEVER and thp.supported is Supported.YES:
        assert by_name["thp-enabled"].leaves and by_name["thp-defrag"].leaves
    if not thp.leaves:
        malloc = by_name["malloc"]
        reached = malloc.current if malloc.supported is Supported.NO else malloc.advised
        assert reached in HURT_BY_THP
    if not situation.several_nodes:
        assert all(by_name[name].leaves for name in ("memory", "numa-balancing", "zone-reclaim"))
    if situation.subject.kind is SubjectKind.PROCESS:
        assert not any(
            line.supported is Supported.YES and not line.leaves
            for line in lines
            if line.reach is Reach.PROCESS
        )


def test_slow_memory_beside_one_node_is_used_for_bandwidth_and_never_refused() -> None:
    """CXL memory of a machine with one socket: bind would let a program fail beside free memory."""
    lines = {one: by_tuner(parts.situation(parts.CXL, workload=one)) for one in Workload}
    assert lines[Workload.BANDWIDTH]["memory"].advised == "weighted interleave:0-1"
    for weights, rule in (("0-1=1 (auto)", "own-node-first"), ("0=3,1=1 (manual)", "weighted")):
        knobs = parts.KNOBS | {"weighted-interleave": weights}
        case = parts.situation(parts.CXL, workload=Workload.BANDWIDTH, knobs=knobs)
        assert by_tuner(case)["memory"].rule == rule
    assert all(
        line["memory"].leaves for one, line in lines.items() if one is not Workload.BANDWIDTH
    )


def test_powersave_is_left_only_to_drivers_that_follow_the_load() -> None:
    knobs = parts.KNOBS | {"governor": "powersave"}
    for driver, advised in (
        ("acpi-cpufreq", "performance"),
        ("intel_cpufreq", "performance"),
        ("intel_pstate", "powersave"),
        ("amd-pstate-epp", "powersave"),
    ):
        case = parts.situation(parts.TWO, knobs=knobs, frequency_driver=driver)
        assert by_tuner(case)["governor"].advised == advised


def golden(machine: Machine) -> dict[str, list[str]]:
    """What is advised for a program of unknown workload that spans the machine."""
    situation = parts.situation(
        machine, parts.subject(machine, cpus=frozenset(machine.allowed.pus))
    )
    return {line.tuner: [line.rule, line.advised] for line in decide(TUNERS, situation)}


@pytest.mark.parametrize("path", GOLDEN_MACHINES, ids=lambda path: path.stem)
def test_recorded_machines_get_the_advice_that_was_checked_by_hand(path: object) -> None:
    expected = json.loads(EXPECTED.read_text())
    name = getattr(path, "stem", "")
    assert golden(read_machine(str(path))) == expected["all"] | expected["machines"][name]


def test_the_prefix_follows_all_advice_for_one_program() -> None:
    two = parts.TWO
    made = advise(parts.situation(two, workload=parts.A), kernel="6.12", mallocs={})
    assert made.prefix == (
        "OMP_PLACES=cores OMP_PROC_BIND=spread atoll-exec -i 0-1 --malloc tbbmalloc --no-thp --"
    )
    engine = parts.subject(two, kind=SubjectKind.ENGINE, name="reef")
    made = advise(parts.situation(two, engine, workload=parts.A), kernel="6.12", mallocs={})
    assert made.prefix == ("--placement sparse --memory interleave --malloc tbbmalloc --thp never")


def test_a_measured_malloc_is_cited_with_its_figures() -> None:
    line = by_tuner(parts.CASES["measured-malloc"])["malloc"]
    assert line.advised == "jemalloc"
    assert line.evidence[-1].kind == "measured" and "jemalloc 20" in line.evidence[-1].says


def test_papers_that_clash_are_settled_by_the_case() -> None:
    """numa-query-tuning finds interleave best, numa-distributed-engines worst."""
    spanning = by_tuner(parts.situation(parts.TWO))["memory"]
    confined = by_tuner(parts.situation(parts.TWO, parts.on_node(parts.TWO, 1)))["memory"]
    assert (spanning.advised, confined.advised) == ("interleave:0-1", "bind:1")
