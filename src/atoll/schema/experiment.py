"""An experiment: a figure or table of a paper, and how Atoll repeats it. The files are NAME.toml.

The files are in `atoll.experiments`. A *term* is a figure in the language of
`atoll.experiments.claims`, such as `speedup(policy=wicp)`: the numbers that a paper prints stand
beside the terms that they are, so ours are found by the same terms. In terms and in the values of
axes, `nodes`, `chiplets` and `cores` are the numbers of the machine in question. Only numbers that
a paper's text or table prints are here; none is read off a picture.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from atoll.schema.base import Record
from atoll.schema.profile import Kind


class PaperMachine(Record):
    """A machine of the paper."""

    title: str = Field(min_length=1)
    where: str = Field(min_length=1)  # the section that describes it
    cores: int = Field(ge=1)
    chiplets: int = Field(ge=1)  # of the whole machine; 1: it has no chiplets
    nodes: int = Field(ge=1)


class Published(Record):
    """A number of the paper."""

    term: str
    value: float = Field(gt=0)
    unit: Literal["times", "ns", "ms", "GB/s", "GB", "%", "count", "WIPS"] = "times"
    engine: str = ""  # empty: of no engine
    machine: str  # of Experiment.machines
    where: str = Field(min_length=1)  # the section or table that prints it
    note: str = ""  # what a reader must know, such as a correction


class Contradiction(Record):
    says: str = Field(min_length=1)
    against: str = Field(min_length=1)


class Needs(Record):
    """What a machine must have, or the figure means nothing on it."""

    nodes: int = Field(default=1, ge=1)
    chiplets: int = Field(default=1, ge=1)
    chiplets_per_node: int = Field(default=1, ge=1)  # else WICP is WIN
    cores: int = Field(default=1, ge=1)
    threads_per_core: int = Field(default=1, ge=1)


Size = Literal["smoke", "small", "paper"]


class Scale(Record):
    """How large a run is."""

    sf: float = Field(gt=0)  # scale factor
    blocks: int = Field(default=5, ge=1)
    queries: str = ""  # as for `atoll bench --queries`; empty: all
    engines: tuple[str, ...] = ()  # in place of the experiment's; empty: those
    memory_gib: float = Field(default=0, ge=0)  # that the machine must have
    deployment_s: float = Field(gt=0)  # our guess for start, warm-up and pass of one deployment


class Network(Record):
    """Virtual machines with NICs, over which a bench deploys (`atoll.bench.machines`)."""

    machines: tuple[Annotated[int, Field(ge=1, le=64)], ...] = Field(min_length=1)  # numbers
    # Of each machine, in Gbit/s: '1', '10', '1+10'.
    nics: tuple[Annotated[str, Field(pattern=r"^[1-9]\d*(\+[1-9]\d*)*$")], ...] = Field(
        min_length=1
    )
    scaled: float = Field(gt=0, le=1)  # what a rate is multiplied with here


class BenchRun(Record):
    """Run by `atoll bench`."""

    engines: tuple[str, ...] = Field(min_length=1)
    suite: str = "tpch"
    axes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    network: Network | None = None  # in place of axes
    product: bool = False
    scales: dict[Size, Scale] = Field(min_length=1)

    @model_validator(mode="after")
    def _varies_something(self) -> Self:
        if bool(self.axes) == (self.network is not None):
            raise ValueError("a bench has either axes or a network")
        return self


class WorkloadScale(Record):
    """How large a run of workloads is."""

    # Of the paper's rows, for W1 to W4: 100 million in w1 and w2, 256 million in w3 and w4.
    part: float = Field(default=1, gt=0)
    flags: dict[str, str] = Field(default_factory=dict)  # kernel -> those of its size
    axes: dict[str, tuple[str, ...]] = Field(default_factory=dict)  # in place of the run's
    blocks: int = Field(default=5, ge=1)
    memory_gib: float = Field(default=0, ge=0)  # that the machine must have
    run_s: float = Field(gt=0)  # our guess for the data, the run and the start of one setting


class WorkloadRun(Record):
    """Run by `atoll-workload` or `atoll-kernels`: in each block each workload once under each
    setting.

    The axes are those of `atoll.experiments.workload_settings`; the first value of each makes the
    baseline.
    """

    workloads: tuple[str, ...] = Field(min_length=1)  # all of W1 to W4, or all kernels
    axes: dict[str, tuple[str, ...]] = Field(min_length=1)
    # Axis of kernels -> value, or KERNEL:VALUE where a kernel differs -> flags. An axis that is not
    # here is a flag itself.
    words: dict[str, dict[str, str]] = Field(default_factory=dict)
    product: bool = False
    keep: bool = False  # w3: keep the joined rows
    scales: dict[Size, WorkloadScale] = Field(min_length=1)


class TransactionScale(Record):
    """How large a run of transactions is."""

    warehouses: int = Field(ge=1)
    records: int = Field(ge=2)
    measured_s: int = Field(ge=1)
    blocks: int = Field(default=5, ge=1)
    memory_gib: float = Field(default=0, ge=0)  # that the machine must have
    run_s: float = Field(gt=0)  # our guess for start, warm-up, measured time and check of a run


class TransactionRun(Record):
    """Run by `atoll oltp`: packed and spread."""

    engine: str
    workloads: tuple[str, ...] = Field(min_length=1)
    cores: tuple[str, ...] = Field(min_length=1)  # numbers; those above the machine's are left out
    scales: dict[Size, TransactionScale] = Field(min_length=1)


class OperatorScale(Record):
    """How long a run of operators is."""

    measured_s: int = Field(ge=1)
    warmup_s: int = Field(ge=0)
    blocks: int = Field(default=5, ge=1)
    memory_gib: float = Field(default=0, ge=0)  # that the machine must have
    run_s: float = Field(gt=0)  # our guess for start, warm-up and measured time of a run


class OperatorRun(Record):
    """Run by `atoll operators compare`: os, per-core and packed."""

    program: str
    scales: dict[Size, OperatorScale] = Field(min_length=1)


class MeasureRun(Record):
    """Run by `atoll measure`, which tells the time itself."""

    kinds: tuple[Kind, ...] = Field(min_length=1)


class Check(Record):
    claim: str = Field(min_length=1)  # in words
    shape: str = Field(min_length=1)  # in the language of claims, so that it can fail
    margin: float = Field(default=1.1, gt=1)  # see `atoll.experiments.claims`


class Experiment(Record):
    name: str = Field(pattern=r"^[a-z]+-[a-z0-9]+$")
    paper: Literal[
        "olap-on-chiplets",
        "numa-distributed-engines",
        "numa-query-tuning",
        "arcas-runtime",
        "query-plan-deployment-poster",
    ]
    figure: str = Field(pattern=r"^(Fig\. |Tab\. )\w+$")
    shows: str = Field(min_length=1)
    statistic: str = Field(min_length=1)  # the paper's
    machines: dict[str, PaperMachine] = Field(min_length=1)
    published: tuple[Published, ...] = ()
    also: tuple[str, ...] = ()  # numbers in the text that are no term, such as ranges
    silent: tuple[str, ...] = Field(min_length=1)  # what the paper does not say: what we chose
    contradicts: tuple[Contradiction, ...] = ()
    stands_for: dict[str, str] = Field(default_factory=dict)  # what cannot be had -> ours instead
    needs: Needs = Needs()
    bench: BenchRun | None = None
    workload: WorkloadRun | None = None
    measure: MeasureRun | None = None
    oltp: TransactionRun | None = None
    operators: OperatorRun | None = None
    check: Check

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        runs = (self.bench, self.workload, self.measure, self.oltp, self.operators)
        if sum(one is not None for one in runs) != 1:
            raise ValueError(
                "an experiment has one of [bench], [workload], [measure], [oltp] and [operators]"
            )
        if unknown := [one.machine for one in self.published if one.machine not in self.machines]:
            raise ValueError(f"the machine {unknown[0]!r} of a published number is not in machines")
        return self
