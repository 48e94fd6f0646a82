"""The tuners of the whole system, which are knobs, and of the firmware. Pure.

A knob is advised only if no setting of the one program does the same (`Situation.then`).
"""

from __future__ import annotations

from atoll.advice import evidence as cited
from atoll.advice.process_rules import NEVER, PROCESS_TUNERS
from atoll.advice.rule import ABSENT, Rule, Tuner, Value, always
from atoll.advice.situation import DEFAULT_POLICY, Situation
from atoll.schema.advice import Evidence, Reach, Workload


def _knob(name: str) -> Value:
    return lambda s: s.knob(name) or ABSENT


def _absent(name: str, source: Evidence) -> Rule:
    return Rule(
        f"no-{name}",
        "if the machine does not have it",
        lambda s: not s.knob(name),
        "this machine does not have it",
        (source,),
    )


def _has_policy(s: Situation) -> bool:
    """The program will have a memory policy of its own."""
    return s.then.get("memory", s.subject.policy) != DEFAULT_POLICY


def _is_bound(s: Situation) -> bool:
    return s.then.get("memory", s.subject.policy).startswith("bind:")


BALANCING = Tuner(
    name="numa-balancing",
    title="AutoNUMA: pages follow threads between nodes",
    reach=Reach.SYSTEM,
    current=_knob("numa-balancing"),
    rules=(
        _absent("numa-balancing", cited.ONE_NODE),
        Rule(
            "balancing-one-node",
            "if there is one memory node",
            lambda s: not s.several_nodes,
            "with one memory node it means nothing",
            (cited.ONE_NODE,),
        ),
        Rule(
            "balancing-tiers",
            "if some nodes are memory only",
            lambda s: bool(s.memory_only),
            "it may be what promotes hot pages from slow memory",
            (cited.TIERING,),
        ),
        Rule(
            "balancing-policy",
            "if the program has a memory policy of its own",
            _has_policy,
            "AutoNUMA leaves memory with a policy alone",
            (cited.AUTONUMA_SKIPS, cited.AUTONUMA),
        ),
        Rule(
            "balancing-latency",
            "if latency limits the program",
            lambda s: s.workload is Workload.LATENCY,
            "AutoNUMA brings pages to the threads that wait",
            (cited.AUTONUMA_SAME, cited.FIRST_TOUCH),
        ),
        Rule(
            "balancing-off",
            "otherwise: first touch on several nodes",
            always,
            "moving shared pages costs more than it gains; papers disagree, so measure",
            (cited.AUTONUMA, cited.AUTONUMA_SAME),
            lambda s: "0",
        ),
    ),
    risk="programs that rely on it keep remote pages",
    check="atoll bench ENGINE --axis knob:numa-balancing=0,1",
)

THP_ENABLED = Tuner(
    name="thp-enabled",
    title="transparent huge pages: for which memory",
    reach=Reach.SYSTEM,
    current=_knob("thp-enabled"),
    rules=(
        _absent("thp-enabled", cited.MADVISE),
        Rule(
            "thp-process",
            "otherwise: a program can do without huge pages on its own, without root",
            always,
            "one program can do without them by itself; see thp",
            (cited.THP_HURTS, cited.MADVISE),
        ),
    ),
    risk="other programs lose huge pages, and with them may miss the TLB more often",
    check="atoll bench ENGINE --axis knob:thp-enabled=always,madvise",
)

THP_DEFRAG = Tuner(
    name="thp-defrag",
    title="transparent huge pages: which page faults wait for one",
    reach=Reach.SYSTEM,
    current=_knob("thp-defrag"),
    rules=(
        _absent("thp-defrag", cited.DEFRAG),
        Rule(
            "defrag-unused",
            "if the program has no huge pages",
            lambda s: s.then.get("thp") in (NEVER, ABSENT),
            "the program has no huge pages",
            (cited.DEFRAG,),
        ),
        Rule(
            "defrag-stalls",
            "if every page fault waits, and latency limits the program",
            lambda s: s.knob("thp-defrag") == "always" and s.workload is Workload.LATENCY,
            "a page fault stalls until memory is compacted",
            (cited.DEFRAG,),
            lambda s: "defer+madvise",
        ),
        Rule(
            "defrag-leave",
            "otherwise",
            always,
            "no source advises a value for this workload",
            (cited.DEFRAG,),
        ),
    ),
    risk="huge pages come later",
    check="atoll bench ENGINE --axis knob:thp-defrag=always,defer+madvise",
)

ZONE_RECLAIM = Tuner(
    name="zone-reclaim",
    title="reclaim memory on a node before using another",
    reach=Reach.SYSTEM,
    current=_knob("zone-reclaim"),
    rules=(
        _absent("zone-reclaim", cited.RECLAIM),
        Rule(
            "reclaim-one-node",
            "if there is one memory node",
            lambda s: not s.several_nodes,
            "with one memory node it means nothing",
            (cited.RECLAIM,),
        ),
        Rule(
            "reclaim-bound",
            "if the program's memory is bound",
            _is_bound,
            "a bound program reclaims only on its own nodes anyway",
            (cited.RECLAIM,),
        ),
        Rule(
            "reclaim-off",
            "otherwise",
            always,
            "it drops the page cache, which engines read their data from",
            (cited.RECLAIM,),
            lambda s: "0",
        ),
    ),
    risk="a program that fits a node may get memory of another node",
    check="atoll bench ENGINE --axis knob:zone-reclaim=0,1",
)

# Their powersave follows the load.
_ADAPTIVE_DRIVERS = frozenset({"intel_pstate", "amd-pstate-epp", ""})
_SLOW_TO_RISE = frozenset({"powersave", "ondemand", "conservative", "schedutil"})

GOVERNOR = Tuner(
    name="governor",
    title="how CPUs choose their frequency",
    reach=Reach.SYSTEM,
    current=_knob("governor"),
    rules=(
        _absent("governor", cited.GOVERNOR),
        Rule(
            "governor-lowest",
            "if it is powersave of a driver that then keeps the lowest frequency",
            lambda s: (
                s.knob("governor") == "powersave" and s.frequency_driver not in _ADAPTIVE_DRIVERS
            ),
            "powersave keeps all CPUs at their lowest frequency with this driver",
            (cited.GOVERNOR, cited.PSTATE),
            lambda s: "performance",
        ),
        Rule(
            "governor-latency",
            "if latency limits the program, and frequencies follow the load",
            lambda s: s.workload is Workload.LATENCY and s.knob("governor") in _SLOW_TO_RISE,
            "frequencies rise with a delay after each wait",
            (cited.GOVERNOR,),
            lambda s: "performance",
        ),
        Rule(
            "governor-leave",
            "otherwise",
            always,
            "busy cores reach their highest frequency, unless a program sets it (userspace)",
            (cited.GOVERNOR, cited.PSTATE),
        ),
    ),
    risk="more power and heat",
    check="atoll bench ENGINE --axis knob:governor=powersave,performance",
)


# ---- firmware ----------------------------------------------------------------------------------


def _cpu_nodes(s: Situation) -> int:
    return sum(bool(node.pus) for node in s.machine.nodes)


def _packages(s: Situation) -> int:
    return max(1, sum(bool(package.pus) for package in s.machine.packages))


def _is_l3_as_numa(s: Situation) -> bool:
    """Each node with CPUs is exactly one L3, and packages have several."""
    l3s = {frozenset(l3.pus) for l3 in s.machine.l3 if l3.pus}
    nodes = {frozenset(node.pus) for node in s.machine.nodes if node.pus}
    return len(nodes) > _packages(s) and nodes == l3s


def _cut(s: Situation) -> str:
    """How the firmware cuts packages into nodes."""
    nodes, packages = _cpu_nodes(s), _packages(s)
    if s.virtual:
        return "unknown"
    if _is_l3_as_numa(s):
        return "a node per L3"
    if nodes < packages or nodes % packages:
        return f"{nodes} nodes"
    return f"{nodes // packages} per package"


SUB_NUMA = Tuner(
    name="sub-numa",
    title="nodes of a package: NPS, SNC, L3 as NUMA (firmware)",
    reach=Reach.FIRMWARE,
    current=_cut,
    rules=(
        Rule(
            "sub-numa-virtual",
            "if the machine is virtual",
            lambda s: s.virtual,
            "the hypervisor draws the nodes; ask for the host's setting",
            (cited.SUB_NUMA,),
        ),
        Rule(
            "sub-numa-used",
            "if packages have several nodes, and instances are confined to nodes",
            lambda s: _cpu_nodes(s) > _packages(s) and not s.spans,
            "instances on single nodes use what the cut gives",
            (cited.SUB_NUMA, cited.BIND),
        ),
        Rule(
            "sub-numa-covered",
            "if packages have several nodes, and the program has a memory policy",
            lambda s: _cpu_nodes(s) > _packages(s) and _has_policy(s),
            "the memory policy spreads its pages without a new start",
            (cited.SUB_NUMA, cited.INTERLEAVE),
        ),
        Rule(
            "sub-numa-merge",
            "if packages have several nodes, one instance spans them, no policy can be set, and "
            "latency does not limit it",
            lambda s: _cpu_nodes(s) > _packages(s) and s.workload is not Workload.LATENCY,
            "one instance does not use the cut, and its pages lie where they were touched first",
            (cited.SUB_NUMA,),
            lambda s: "1 per package",
        ),
        Rule(
            "sub-numa-split",
            "if packages have one node and several chiplets, bandwidth limits the program, and it "
            "runs as several instances",
            lambda s: (
                _cpu_nodes(s) == _packages(s)
                and len(s.machine.chiplets) > _packages(s)
                and s.workload is Workload.BANDWIDTH
                and s.subject.instances > 1
            ),
            "several instances can use one node each, with its own memory channels",
            (cited.SUB_NUMA, cited.BIND),
            lambda s: "NPS4 or SNC",
        ),
        Rule(
            "sub-numa-leave",
            "otherwise",
            always,
            "Atoll places instances on chiplets without it",
            (cited.SUB_NUMA,),
        ),
    ),
    risk="a new start of the machine; every other program sees other nodes",
    check="atoll measure before and after; then atoll bench ENGINE",
    advice="in the firmware's setup: AMD 'NUMA nodes per socket' (NPS) and 'ACPI SRAT L3 cache as "
    "NUMA domain'; Intel 'SNC'",
)

TUNERS = (
    *PROCESS_TUNERS,
    BALANCING,
    THP_ENABLED,
    THP_DEFRAG,
    ZONE_RECLAIM,
    GOVERNOR,
    SUB_NUMA,
)
