"""Reads the environment of a measurement through the host. An unknown value is an empty string.

It consists of the switches on which experts disagree (transparent huge pages, AutoNUMA, the
governor), and of what changes a result silently (kernel, microcode, hypervisor, mask, cgroup). The
host's name enters only as a hash, which tells two machines apart without naming them.
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
        virtualization=virtualization(host, cpuinfo),
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
    """A hash of the host's name and machine-id; empty if both are unknown."""
    name = _text(host, "/proc/sys/kernel/hostname") + _text(host, "/etc/machine-id")
    return hashlib.sha256(name.encode()).hexdigest()[:12] if name else ""


def emulated(host: Host, signature: str = "") -> bool:
    """Whether the CPU is emulated, as far as Atoll can know. `signature` is the hypervisor's, if
    known.

    QEMU's firmware looks alike under TCG and KVM, but only KVM gives its guests its own clock. A
    guest of KVM without that clock would count as emulated, so a signature takes precedence.
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
    """The word in brackets of a sysfs choice such as 'always [madvise] never'."""
    _, opening, rest = text.partition("[")
    return rest.partition("]")[0] if opening else text


def _cpuinfo_field(cpuinfo: str, name: str) -> str:
    return status_field(cpuinfo.replace("\t", ""), name)


def virtualization(host: Host, cpuinfo: str) -> str:
    """The hypervisor's name if the firmware reports one; 'none' on an x86 machine without one."""
    if "hypervisor" not in _cpuinfo_field(cpuinfo, "flags").split():
        return "none" if "flags\t" in cpuinfo else ""
    named = _text(host, "/sys/hypervisor/type")
    if not named:
        fields = ("sys_vendor", "product_name")
        named = " ".join(_text(host, f"/sys/class/dmi/id/{field}") for field in fields).strip()
    return named or "hypervisor"


def _governors(host: Host) -> str:
    """The governors of the CPUs that this process may use; '' without cpufreq."""
    found = {
        _text(host, f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")
        for cpu in host.affinity(0)
    }
    return ", ".join(sorted(found - {""}))


def _cgroup(host: Host) -> str:
    """The path of the unified hierarchy, else of the cpuset controller (cgroup v1)."""
    paths: dict[str, str] = {}
    for line in _text(host, "/proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            paths[controller] = path
    unified, cpuset = paths.get("", ""), paths.get("cpuset", "")
    return cpuset if cpuset and unified in ("", "/") else unified
