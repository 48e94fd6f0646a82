"""The tuners of one program: threads, memory policy, malloc, huge pages, SMT. Pure.

They follow numa-query-tuning, figure 10, top down. Where papers contradict each other, the rule
names the case in which each is right: interleave wins if one instance with shared data spans nodes,
bound memory wins if an instance is confined to a node. No rule looks at the local share alone.
"""

from __future__ import annotations

import re

from atoll.advice import evidence as cited
from atoll.advice.rule import ABSENT, Rule, Setting, Tuner, always
from atoll.advice.situation import DEFAULT_POLICY, Situation
from atoll.schema.advice import PreloadEffect, Reach, SubjectKind, Workload
from atoll.schema.plan import Placement

SYSTEM = "system"
NEVER = "never"
# numa-query-tuning, IV-C 2: these three do not handle huge pages well.
HURT_BY_THP = frozenset({"tbbmalloc", "jemalloc", "tcmalloc"})
# For programs whose mallocs nobody has measured here. tbbmalloc is numa-query-tuning's best (IV-D
# 1), jemalloc does well with little memory, and tcmalloc falls behind with several threads (III-A
# 8); mimalloc is not in it.
PREFERRED = ("tbbmalloc", "jemalloc", "mimalloc", "tcmalloc")
_MARGIN = 1.1  # a measured malloc must be so much faster to be worth a preload


# ---- threads -----------------------------------------------------------------------------------

_OPENMP = {Placement.SPARSE: "spread", Placement.DENSE: "close"}


def _bound(value: str) -> Setting:
    word = _OPENMP[Placement(value)]
    return Setting(
        environment=("OMP_PLACES=cores", f"OMP_PROC_BIND={word}"),
        options=("--placement", value),
    )


THREADS = Tuner(
    name="threads",
    title="which core each thread runs on",
    reach=Reach.PROCESS,
    current=lambda s: s.subject.threads.value,
    rules=(
        Rule(
            "one-core",
            "if the program may use only one core",
            lambda s: s.own_cores <= 1,
            "one core leaves no choice",
            (cited.SPARSE,),
        ),
        Rule(
            "one-place",
            "if all its cores are on one node and one chiplet",
            lambda s: len(s.own_nodes) <= 1 and s.own_chiplets <= 1,
            "its cores share one memory and one L3: sparse and dense are the same",
            (cited.SPARSE,),
        ),
        Rule(
            "bound-already",
            "if its threads already have one CPU each",
            lambda s: s.subject.is_bound,
            "something binds its threads already; two that bind undo each other's work",
            (cited.SPARSE,),
        ),
        Rule(
            "dense",
            "if latency limits it: its threads share data",
            lambda s: s.workload is Workload.LATENCY,
            "threads that share data talk within one L3",
            (cited.BETWEEN_CORES, cited.DENSE),
            lambda s: Placement.DENSE.value,
        ),
        Rule(
            "sparse",
            "otherwise: it is limited by bandwidth, or nobody knows",
            always,
            "binding ends migrations; spread threads use all memory controllers and L3s",
            (cited.SPARSE,),
            lambda s: Placement.SPARSE.value,
        ),
    ),
    risk="two bound programs on the same cores wait for each other; more threads than cores stack",
    check="atoll bench ENGINE --axis placement=none,sparse,dense",
    setting=_bound,
    obstacle=lambda s, value: s.subject.binding_fault,
)


# ---- memory policy -----------------------------------------------------------------------------


def _policy_setting(value: str) -> Setting:
    mode, _, nodes = value.partition(":")
    flag, option = {
        "bind": ("-m", "bind"),
        "interleave": ("-i", "interleave"),
        "weighted interleave": ("-w", "weighted-interleave"),
    }[mode]
    return Setting(flags=(flag, nodes), options=("--memory", option))


def _has_weights(s: Situation) -> bool:
    """The kernel's own or somebody's; without either all are 1."""
    return len(set(re.findall(r"=(\d+)", s.knob("weighted-interleave")))) > 1


MEMORY = Tuner(
    name="memory",
    title="memory policy: the nodes of its pages",
    reach=Reach.PROCESS,
    current=lambda s: s.subject.policy,
    rules=(
        Rule(
            "one-node",
            "if the program may use the memory of only one node",
            lambda s: not s.several_nodes,
            "with one memory node a policy means nothing",
            (cited.ONE_NODE,),
        ),
        Rule(
            "far-memory",
            "if none of its CPUs has memory of its own",
            lambda s: not s.own_nodes,
            "its CPUs have no memory of their own: no node is better",
            (cited.FIRST_TOUCH,),
        ),
        Rule(
            "weighted",
            "if bandwidth limits it, it spans the nodes with CPUs, others are memory only, and the "
            "nodes have weights",
            lambda s: (
                s.workload is Workload.BANDWIDTH
                and bool(s.memory_only)
                and (s.spans or s.spans_cpus)
                and _has_weights(s)
            ),
            "nodes of unlike bandwidth: pages in the ratio of their bandwidths",
            (cited.WEIGHTS,),
            lambda s: s.on("weighted interleave", (*s.own_nodes, *s.memory_only)),
        ),
        Rule(
            "own-node-first",
            "if one node has CPUs, and the others are memory only",
            lambda s: s.spans_cpus and not s.spans,
            "first touch takes its own node first, and the slow memory when that is full",
            (cited.LOCAL_FIRST,),
        ),
        Rule(
            "bind-confined",
            "if each instance is confined to one node",
            lambda s: not s.spans,
            "confined to a node: its data is its own, so bind it there",
            (cited.BIND, cited.FIRST_TOUCH),
            lambda s: s.on("bind", s.own_nodes),
        ),
        Rule(
            "touch-latency",
            "if one instance spans nodes, and latency limits it",
            lambda s: s.workload is Workload.LATENCY,
            "lookups wait for each access: interleave would make most of them remote",
            (cited.FIRST_TOUCH, cited.INTERLEAVE),
        ),
        Rule(
            "interleave-spanning",
            "otherwise: one instance with shared data spans nodes",
            always,
            "one instance spans nodes and shares its data: no node's memory is the bottleneck",
            (cited.INTERLEAVE, cited.INTERLEAVE_2, cited.BIND),
            lambda s: s.on("interleave", s.own_nodes),
        ),
    ),
    risk="bind: the program fails or swaps if the node is full; interleave: a program whose "
    "threads use only their own data becomes slower",
    check="atoll bench ENGINE --axis memory=first-touch,interleave,bind",
    setting=_policy_setting,
    obstacle=lambda s, value: s.policy_fault,
)


# ---- malloc ------------------------------------------------------------------------------------


def _times(s: Situation) -> dict[str, float]:
    """Those of the measured mallocs that the program can have."""
    usable = {SYSTEM, s.subject.malloc, *s.mallocs}
    return {name: ns for name, ns in s.churn_ns.items() if name in usable}


def _fastest(s: Situation) -> str:
    """The fastest measured malloc, if it is worth it; else the present one."""
    times = _times(s)
    best = min(times, key=lambda name: (times[name], name))
    now = times.get(s.subject.malloc)
    return best if now is None or now >= _MARGIN * times[best] else s.subject.malloc


def _by_paper(s: Situation) -> str:
    return next((name for name in PREFERRED if name in s.mallocs), PREFERRED[0])


def _preload(value: str) -> Setting:
    return Setting(flags=("--malloc", value), options=("--malloc", value))


MALLOC = Tuner(
    name="malloc",
    title="memory allocator, by preload",
    reach=Reach.PROCESS,
    current=lambda s: s.subject.malloc,
    rules=(
        Rule(
            "no-effect",
            "if a preloaded malloc would not be called",
            lambda s: s.subject.preload.effect is PreloadEffect.NONE,
            "a preload has no effect on this program",
            (cited.PRELOADED,),
            measured=lambda s: cited.preload(s.subject.preload.why),
        ),
        Rule(
            "partial-effect",
            "if a part of the program has an allocator of its own",
            lambda s: s.subject.preload.effect is PreloadEffect.PARTIAL,
            "a preload reaches only a part of this program",
            (cited.PRELOADED,),
            measured=lambda s: cited.preload(s.subject.preload.why),
        ),
        Rule(
            "one-thread",
            "if the program may use only one core",
            lambda s: s.own_cores <= 1,
            "on one core no threads compete for malloc's locks",
            (cited.CHURN,),
        ),
        Rule(
            "allocates-little",
            "if bandwidth or latency limits it, not allocation",
            lambda s: s.workload in (Workload.BANDWIDTH, Workload.LATENCY),
            "programs that allocate little gain little",
            (cited.NOT_ALLOCATING,),
        ),
        Rule(
            "unknown-allocation",
            "if nobody knows whether it allocates much",
            lambda s: s.workload is Workload.UNKNOWN,
            "it pays only if several threads allocate; --workload allocation, if they do",
            (cited.ALLOCATORS, cited.TRY_ALLOCATORS),
        ),
        Rule(
            "measured-malloc",
            "if it allocates in several threads, and mallocs were measured here",
            lambda s: bool(_times(s)) and len(s.churn_ns) > 1,
            "the fastest under churn as measured on this machine, if by 10 %",
            (cited.ALLOCATORS, cited.TRY_ALLOCATORS),
            _fastest,
            lambda s: cited.churn(_times(s)),
        ),
        Rule(
            "has-malloc",
            "if it allocates in several threads, and already has another malloc",
            lambda s: s.subject.malloc != SYSTEM,
            "another malloc is in place; which one is best, only measuring shows",
            (cited.TRY_ALLOCATORS,),
        ),
        Rule(
            "papers-malloc",
            "otherwise: it allocates in several threads",
            always,
            "tbbmalloc is the paper's best; without it, the next one here: measure them",
            (cited.ALLOCATORS, cited.TRY_ALLOCATORS),
            _by_paper,
        ),
    ),
    risk="more memory (numa-query-tuning, figure 2b); a program that depends on its malloc fails",
    check="atoll measure --full --only churn, then atoll advise again",
    setting=_preload,
    obstacle=lambda s, value: (
        ""
        if value in (SYSTEM, *s.mallocs)
        else f"'atoll-exec --malloc {value} true' names the package to install"
    ),
)


# ---- huge pages of the program -----------------------------------------------------------------


def _thp(s: Situation) -> str:
    system = s.knob("thp-enabled") or ABSENT
    return system if s.subject.may_have_thp or system == ABSENT else NEVER


def _hurt(s: Situation) -> bool:
    return s.then.get("malloc", s.subject.malloc) in HURT_BY_THP


THP = Tuner(
    name="thp",
    title="transparent huge pages of this program",
    reach=Reach.PROCESS,
    current=_thp,
    rules=(
        Rule(
            "thp-off",
            "if the program has none",
            lambda s: _thp(s) in (NEVER, ABSENT),
            "it has no huge pages",
            (cited.THP_HURTS, cited.THP_TLB),
        ),
        Rule(
            "thp-asked",
            "if only memory gets them that asked for them",
            lambda s: _thp(s) == "madvise",
            "only memory has them whose program asked for them",
            (cited.MADVISE,),
        ),
        Rule(
            "thp-lookups",
            "if they are always on, and latency limits it",
            lambda s: s.workload is Workload.LATENCY,
            "lookups in large memory miss the TLB less often",
            (cited.THP_TLB,),
        ),
        Rule(
            "thp-malloc",
            "if they are always on, and its malloc handles them badly",
            _hurt,
            "its malloc does not handle huge pages well",
            (cited.THP_HURTS, cited.THP_TLB, cited.THP_TUNED),
            lambda s: NEVER,
        ),
        Rule(
            "thp-unknown",
            "otherwise: always on, with a malloc that they hurt little",
            always,
            "little harm with this malloc, and fewer TLB misses",
            (cited.THP_HURTS, cited.THP_TLB),
        ),
    ),
    risk="lookups in large memory miss the TLB more often",
    check="atoll bench ENGINE --axis thp=system,never",
    setting=lambda value: Setting(flags=("--no-thp",), options=("--thp", NEVER)),
)


SMT = Tuner(
    name="smt",
    title="hardware threads of each core",
    reach=Reach.PROCESS,
    current=lambda s: "on" if s.machine.smt else "off",
    rules=(
        Rule(
            "smt-off",
            "if cores have one thread",
            lambda s: not s.machine.smt,
            "each core has one thread",
            (cited.SMT,),
        ),
        Rule(
            "smt-engine",
            "if Atoll plans the program",
            lambda s: s.subject.kind is SubjectKind.ENGINE,
            "plans use one thread of each core unless --smt; queries differ",
            (cited.SMT, cited.SMT_ISSUE),
        ),
        Rule(
            "smt-unknown",
            "otherwise",
            always,
            "some queries gain and others lose: only measuring shows",
            (cited.SMT, cited.SMT_ISSUE),
        ),
    ),
    risk="none: nothing is changed",
    check="atoll bench ENGINE --axis smt=off,on",
)

PROCESS_TUNERS = (THREADS, MEMORY, MALLOC, THP, SMT)


def spelled(value: str) -> str:
    """A memory policy as people call it; another value stays."""
    return "first touch" if value == DEFAULT_POLICY else value
