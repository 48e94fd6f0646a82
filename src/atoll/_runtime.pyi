"""The runtime's places and mapping, in C++ (native/python/runtime.cpp), for `atoll.runtime`."""

from collections.abc import Sequence

class Core:
    """The place of one worker."""

    @property
    def cpus(self) -> list[int]: ...
    @property
    def chiplet(self) -> int:
        """Index of its chiplet, dense over the machine."""
    @property
    def node(self) -> int:
        """OS index of its NUMA node."""
    @property
    def package(self) -> int: ...

class Places:
    """A machine as the runtime sees it: cores in the order package, node, chiplet."""

    @property
    def cores(self) -> list[Core]: ...
    @property
    def chiplet_levels(self) -> list[list[int]]:
        """[a][b]: how far chiplet b is from a; 0 for itself."""
    @property
    def chiplet_l3_bytes(self) -> int:
        """Of the chiplet with the smallest L3; 0: not known."""
    @property
    def made_up(self) -> bool: ...
    @property
    def chiplets(self) -> int: ...
    @property
    def nodes(self) -> list[int]: ...
    @property
    def workers(self) -> int:
        """How many a runtime starts here by default, within the CPU quota of the cgroup."""

def places_here() -> Places: ...
def synthetic_places(words: str, cpus: Sequence[int]) -> Places: ...
def places_from_machine(json: str) -> Places: ...
def spread_cores(places: Places, threads: int, spread: int) -> list[int]: ...
