"""The machine that a guest shall be: a topology file, read and checked, and its CPUs laid out.

docs/guest.md describes every key. A position counts the hardware threads of the whole machine
package by package, L3 domain by L3 domain, core by core; `numbering` says in which order the
firmware lists the positions, and Linux numbers CPUs in that order. No I/O but `load`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atoll.errors import UsageError

FOLDER = Path(__file__).resolve().parent / "topologies"
MAX_CPUS = 64
MAX_NODES = 16
MAX_MEMORY_MIB = 32768
MAX_CACHE_KIB = 1 << 18
MIN_MEMORY_MIB = 1024  # of the whole machine; with less, root's tmpfs and Python do not fit
# Linux shows no dies of an EPYC; with Icelake-Server and Skylake-Server QEMU 10.0 ends itself.
WITH_DIES = ("SapphireRapids", "GraniteRapids")
NOT_64_BIT = ("486", "athlon", "coreduo", "kvm32", "n270", "pentium", "qemu32")
LOCAL_DISTANCE = 10  # ACPI 6.5, 5.2.17: the distance of a node from itself


class TopologyRefused(UsageError):
    """What a topology file has wrong, and where."""


@dataclass(frozen=True, slots=True)
class Place:
    """One hardware thread of the machine as built, whether or not Linux gets to see it."""

    package: int
    die: int  # in its package
    l3: int  # in its package
    core: int  # in its L3 domain
    thread: int  # in its core
    node: int


@dataclass(frozen=True, slots=True)
class Topology:
    name: str
    about: str
    cpu: str
    packages: int
    dies: int  # per package
    l3: int  # per package
    cores: int  # per L3 domain
    threads: int  # per core
    nodes: int  # per package
    memory_mib: tuple[int, ...]  # per node, those without CPUs last
    memory_only_nodes: int
    distance_near: int
    distance_far: int
    memory_only_near: int
    memory_only_far: int
    hide_l3: bool
    missing: tuple[int, ...]  # positions
    numbering: tuple[int, ...]  # positions, in the order of the CPU numbers
    offline: tuple[int, ...]  # CPU numbers
    kernel: tuple[str, ...]
    caches: str  # of which CPU they are simulated; empty: of `cpu`
    l2_kib: int  # of a core, as simulated; 0: that CPU's
    l3_kib: int  # of an L3 domain, as simulated; 0: that CPU's
    nics: bool  # a network card on a PCI bus of each node with CPUs
    latency_ns: tuple[tuple[str, float], ...] = ()  # as simulated, in place of that CPU's

    @property
    def cpu_nodes(self) -> int:
        return self.packages * self.nodes

    @property
    def amd(self) -> bool:
        return self.cpu.startswith("EPYC")

    def places(self) -> list[Place]:
        """All positions, in order."""
        per_package = self.l3 * self.cores
        return [
            Place(
                package=package,
                die=l3 * self.dies // self.l3 if self.l3 > 1 else core * self.dies // self.cores,
                l3=l3,
                core=core,
                thread=thread,
                node=package * self.nodes + (l3 * self.cores + core) * self.nodes // per_package,
            )
            for package in range(self.packages)
            for l3 in range(self.l3)
            for core in range(self.cores)
            for thread in range(self.threads)
        ]

    def online(self) -> dict[int, Place]:
        """The CPUs that Linux runs on, by their numbers."""
        places = self.places()
        return {
            cpu: places[position]
            for cpu, position in enumerate(self.numbering)
            if cpu not in self.offline
        }

    def package_of_node(self, node: int) -> int:
        """Memory without CPUs is dealt out to the packages in turn."""
        if node < self.cpu_nodes:
            return node // self.nodes
        return (node - self.cpu_nodes) % self.packages

    def distance(self, one: int, other: int) -> int:
        if one == other:
            return LOCAL_DISTANCE
        near = self.package_of_node(one) == self.package_of_node(other)
        if max(one, other) >= self.cpu_nodes:
            return self.memory_only_near if near else self.memory_only_far
        return self.distance_near if near else self.distance_far


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Topology:
    """One of ours by its name, or a file. Raises TopologyRefused."""
    path = FOLDER / f"{name}.toml"
    if "/" in name or name.endswith(".toml") or not path.is_file():
        path = Path(name)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError, ValueError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else "not a text file"
        raise TopologyRefused(
            f"{name}: neither a topology of ours ({', '.join(names())}) nor a file: {why}"
        ) from None
    return parse(text, path.stem, str(path) if path.parent != FOLDER else name)


def parse(text: str, name: str, where: str = "") -> Topology:
    """Raises TopologyRefused, with the key and what it may be."""
    try:
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as fault:
        raise TopologyRefused(f"{where or name}: not TOML: {_line(str(fault))}") from None
    try:
        return _checked(_Keys(given), name)
    except TopologyRefused as fault:
        raise TopologyRefused(f"{where or name}: {fault}") from None


def _line(text: str) -> str:
    """Foreign text, in one line that cannot steer a terminal."""
    return "".join(sign if sign.isprintable() else "?" for sign in " ".join(text.split()))


class _Keys:
    """The keys of a table, taken one by one, so that what is left over is unknown."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._left = dict(given)

    def number(self, key: str, default: int | None, low: int, high: int) -> int:
        value = self._left.pop(key, default)
        if value is None:
            raise TopologyRefused(f"{key}: missing")
        return _number(key, value, low, high)

    def numbers(self, key: str, low: int, high: int) -> tuple[int, ...]:
        value = self._left.pop(key, [])
        if not isinstance(value, list):
            raise TopologyRefused(f"{key}: wants a list of whole numbers")
        found = tuple(_number(key, one, low, high) for one in value)
        if len(set(found)) != len(found):
            raise TopologyRefused(f"{key}: names a number twice")
        return found

    def take(self, key: str, default: object) -> object:
        return self._left.pop(key, default)

    def word(self, key: str, default: str, good: Callable[[str], bool], what: str) -> str:
        value = self._left.pop(key, default)
        if not isinstance(value, str) or not good(value):
            raise TopologyRefused(f"{key}: wants {what}")
        return value

    def flag(self, key: str) -> bool:
        value = self._left.pop(key, False)
        if not isinstance(value, bool):
            raise TopologyRefused(f"{key}: wants true or false")
        return value

    def done(self) -> None:
        if self._left:
            unknown = sorted(_line(key)[:40] for key in self._left)
            raise TopologyRefused(f"{unknown[0]}: no such key")


def _number(key: str, value: object, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise TopologyRefused(f"{key}: wants a whole number from {low} to {high}")
    return value


def _checked(keys: _Keys, name: str) -> Topology:
    def text(value: str) -> bool:
        return value.isprintable() and len(value) <= 200

    def model(value: str) -> bool:
        return value.replace("-", "").replace("_", "").isascii() and all(
            part.isalnum() for part in value.replace("_", "-").split("-")
        )

    about = keys.word("about", "", text, "one line of at most 200 characters") or _line(name)
    cpu = keys.word("cpu", "EPYC-Milan", model, "the name of a CPU model of QEMU (EPYC-Milan)")
    caches = keys.word("caches", "", text, "the name of a CPU of the catalog")
    l2_kib = keys.number("l2_kib", 0, 0, MAX_CACHE_KIB)
    l3_kib = keys.number("l3_kib", 0, 0, MAX_CACHE_KIB)
    packages = keys.number("packages", None, 1, 8)
    dies = keys.number("dies", 1, 1, 8)
    l3 = keys.number("l3", 1, 1, 32)
    cores = keys.number("cores", None, 1, MAX_CPUS)
    threads = keys.number("threads", 1, 1, 2)
    nodes = keys.number("nodes", 1, 1, 8)
    memory_only = keys.number("memory_only_nodes", 0, 0, 8)
    near = keys.number("distance_near", 12, LOCAL_DISTANCE + 1, 254)
    far = keys.number("distance_far", 32, LOCAL_DISTANCE + 1, 254)
    memory_only_near = keys.number("memory_only_near", 20, LOCAL_DISTANCE + 1, 254)
    memory_only_far = keys.number("memory_only_far", 40, LOCAL_DISTANCE + 1, 254)
    hide_l3 = keys.flag("hide_l3")
    nics = keys.flag("nics")
    total = packages * l3 * cores * threads
    if total > MAX_CPUS:
        raise TopologyRefused(f"packages x l3 x cores x threads: {total}, at most {MAX_CPUS}")
    missing = keys.numbers("missing", 1, total - 1)
    numbering = _numbering(
        keys.take("numbering", "packed"), packages, threads, total, frozenset(missing)
    )
    offline = keys.numbers("offline", 1, len(numbering) - 1)
    kernel = tuple(
        keys.word(
            "kernel", "", text, "one line of kernel arguments of at most 200 characters"
        ).split()
    )
    all_nodes = packages * nodes + memory_only
    if all_nodes > MAX_NODES:
        raise TopologyRefused(f"packages x nodes + memory_only_nodes: at most {MAX_NODES}")
    memory_mib = _memory(keys.take("memory_mib", 512), all_nodes)
    keys.done()
    _check_shape(cpu, dies, l3, cores, nodes)
    if any(not word.isascii() or word.startswith("-") for word in kernel):
        raise TopologyRefused("kernel: wants plain words")
    return Topology(
        name=name,
        about=about,
        cpu=cpu,
        packages=packages,
        dies=dies,
        l3=l3,
        cores=cores,
        threads=threads,
        nodes=nodes,
        memory_mib=memory_mib,
        memory_only_nodes=memory_only,
        distance_near=near,
        distance_far=far,
        memory_only_near=memory_only_near,
        memory_only_far=memory_only_far,
        hide_l3=hide_l3,
        missing=missing,
        numbering=numbering,
        offline=offline,
        kernel=kernel,
        caches=caches,
        l2_kib=l2_kib,
        l3_kib=l3_kib,
        nics=nics,
    )


def _check_shape(model: str, dies: int, l3: int, cores: int, nodes: int) -> None:
    """What QEMU 10 can build and Linux 6.12 shows of it; tried, not read off a document."""
    epyc = model.startswith("EPYC")
    if model.startswith(NOT_64_BIT):
        raise TopologyRefused(f"cpu: {model} has no 64-bit mode")
    if (l3 * cores) % nodes:
        raise TopologyRefused("nodes: wants a number that shares out a package's cores evenly")
    if dies > 1 and not model.startswith(WITH_DIES):
        raise TopologyRefused(f"dies: wants 1, or as cpu one of {', '.join(WITH_DIES)}")
    if epyc and l3 % nodes:
        raise TopologyRefused("nodes: Linux cuts an EPYC's L3 at a node; wants a divisor of l3")
    # More L3 domains than dies are modules to QEMU, whose leaf 1F then fails an assertion.
    if not epyc and l3 not in (1, dies):
        raise TopologyRefused("l3: with a CPU that is no EPYC, wants 1 or as many as dies")
    if l3 == 1 and cores % dies:
        raise TopologyRefused("cores: wants a multiple of dies")


def _memory(value: object, nodes: int) -> tuple[int, ...]:
    given = value if isinstance(value, list) else [value] * nodes
    found = tuple(_number("memory_mib", one, 0, MAX_MEMORY_MIB) for one in given)
    if len(found) != nodes:
        raise TopologyRefused(f"memory_mib: has {len(found)} numbers for {nodes} nodes")
    if not MIN_MEMORY_MIB <= sum(found) <= MAX_MEMORY_MIB:
        raise TopologyRefused(
            f"memory_mib: {sum(found)} in all, wants {MIN_MEMORY_MIB} to {MAX_MEMORY_MIB}"
        )
    if found[0] < 256:
        raise TopologyRefused("memory_mib: node 0 holds the kernel and wants at least 256")
    return found


def _numbering(
    value: object, packages: int, threads: int, total: int, missing: frozenset[int]
) -> tuple[int, ...]:
    """The positions in the order of the CPU numbers, the missing ones left out."""
    per_package = total // packages
    orders: dict[str, Callable[[int], tuple[int, ...]]] = {
        "packed": lambda at: (at,),
        "threads-last": lambda at: (at % threads, at),
        "packages-in-turn": lambda at: (at % per_package, at),
        "threads-last-packages-in-turn": lambda at: (at % threads, at % per_package, at),
    }
    present = [at for at in range(total) if at not in missing]
    if isinstance(value, str) and value in orders:
        return tuple(sorted(present, key=orders[value]))
    if not isinstance(value, list):
        raise TopologyRefused(f"numbering: wants one of {', '.join(orders)}, or a list")
    found = tuple(_number("numbering", at, 0, total - 1) for at in value)
    if sorted(found) != present:
        raise TopologyRefused("numbering: wants every position that is not missing, once")
    if found[0] != 0:
        raise TopologyRefused("numbering: wants position 0 first, the machine boots on it")
    return found
