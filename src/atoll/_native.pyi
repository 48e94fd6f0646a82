"""The native library (native/python/native.cpp)."""

class TopologyFault(Exception):
    """One line: what is wrong with the topology, where, and what to do."""

class OwnFault(Exception):
    """One line: the library failed on a topology that it had accepted."""

def discover(kind: str, where: str, content: bytes | None = None) -> str:
    """The machine as JSON (format `atoll/machine`).

    `kind` is live, xml, synthetic or sysfs; `where` the path or the synthetic string, empty
    for live. `content` is the XML file's bytes where the caller has them already; `where` then
    only names it. Raises TopologyFault or OwnFault.
    """
