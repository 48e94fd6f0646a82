"""The environment that figures hold for, read through the host. Unknown is the empty string.

These are the switches over which the field disagrees (transparent huge pages, AutoNUMA, the
governor) and what changes a result unseen (kernel, microcode, hypervisor, mask, cgroup). The
host's name goes in as a hash only: two machines can be told apart, none is named.
"""

from __future__ import annotations

import hashlib

from atoll import __version__
from atoll.host.api import Host
from atoll.host.procfs import status_field
from atoll.schema.cpulist import format_cpulist
from atoll.schema.environment import Environment
from atoll.schema.machine import Machine

_THP = "/sys/kernel/mm/transparent_hugepage"
_CLOCK_SOURCES = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
# What QEMU's emulation of x86 signs with in CPUID leaf 0x40000000 (target/i386/cpu.c).
_TCG_SIGNATURE = "TCGTCGTCGTCG"


def environment(host: Host, machine: Machine) -> Environment:
    cpuinfo = _text(host, "/proc/cpuinfo")
    return Environment(
        hostname_hash=hostname_hash(host),
        cpu_model=machine.cpu_model,
        kernel=_text(host, "/proc/sys/kernel/osrelease"),
        kernel_cmdline=_text(host, "/proc/cmdline"),
        microcode=_cpuinfo_field(cpuinfo, "microcode"),
        virtualization=_virtualization(host, cpuinfo),
        thp_enabled=_chosen(_text(host, f"{_THP}/enabled")),
        thp_defrag=_chosen(_text(host, f"{_THP}/defrag")),
        numa_balancing=_text(host, "/proc/sys/kernel/numa_balancing"),
        governor=_governors(host),
        affinity=format_cpulist(host.affinity(0)),
        cgroup=_cgroup(host),
        memory_bytes=machine.memory_bytes,
        atoll_version=__version__,
    )


def hostname_hash(host: Host) -> str:
    """Of the host's name and machine-id; empty where neither is to be had."""
    name = _text(host, "/proc/sys/kernel/hostname") + _text(host, "/etc/machine-id")
    return hashlib.sha256(name.encode()).hexdigest()[:12] if name else ""


def emulated(host: Host, signature: str = "") -> bool:
    """Whether the CPU is an emulated one, as far as that can be known. `signature` is that of
    the hypervisor, where somebody could ask for it.

    QEMU's firmware looks alike under TCG and KVM, but only KVM gives its guests its own clock. A
    guest of KVM from which that clock was taken would count as emulated, so the signature wins.
    """
    if signature:
        return signature == _TCG_SIGNATURE
    cpuinfo = _text(host, "/proc/cpuinfo")
    model = _cpuinfo_field(cpuinfo, "model name")
    if "QEMU TCG" in model:
        return True
    if "hypervisor" not in _cpuinfo_field(cpuinfo, "flags").split():
        return False
    made_by_qemu = "QEMU" in _text(host, "/sys/class/dmi/id/sys_vendor")
    sources = _text(host, _CLOCK_SOURCES).split()
    return made_by_qemu and bool(sources) and "kvm-clock" not in sources


def _text(host: Host, path: str) -> str:
    try:
        return host.read_text(path).strip()
    except OSError:
        return ""


def _chosen(text: str) -> str:
    """The word in brackets of a sysfs choice: 'always [madvise] never'."""
    _, opening, rest = text.partition("[")
    return rest.partition("]")[0] if opening else text


def _cpuinfo_field(cpuinfo: str, name: str) -> str:
    return status_field(cpuinfo.replace("\t", ""), name)


def _virtualization(host: Host, cpuinfo: str) -> str:
    """The hypervisor's name where the firmware tells one; 'none' on bare x86 metal."""
    if "hypervisor" not in _cpuinfo_field(cpuinfo, "flags").split():
        return "none" if "flags\t" in cpuinfo else ""
    named = _text(host, "/sys/hypervisor/type")
    if not named:
        fields = ("sys_vendor", "product_name")
        named = " ".join(_text(host, f"/sys/class/dmi/id/{field}") for field in fields).strip()
    return named or "hypervisor"


def _governors(host: Host) -> str:
    """All governors in use over the CPUs that may be used, '' where there is no cpufreq."""
    found = {
        _text(host, f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")
        for cpu in host.affinity(0)
    }
    return ", ".join(sorted(found - {""}))


def _cgroup(host: Host) -> str:
    """The unified path, else the cpuset controller's (cgroup v1)."""
    paths: dict[str, str] = {}
    for line in _text(host, "/proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            paths[controller] = path
    unified, cpuset = paths.get("", ""), paths.get("cpuset", "")
    return cpuset if cpuset and unified in ("", "/") else unified
