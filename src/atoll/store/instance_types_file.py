"""Files for `atoll plan --compare`: a plan, or instance types with prices."""

from __future__ import annotations

import re
from pathlib import Path

from atoll.errors import TopologyError, UsageError
from atoll.host.topology import read_machine
from atoll.schema.base import validated
from atoll.schema.instance_types import InstanceType, InstanceTypes
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan
from atoll.schema.yaml_text import MOST_BYTES, parse_yaml
from atoll.store.plan_file import read_plan

_TYPES = re.compile(rb"""format["']?\s*:\s*["']?atoll/instance-types""")


def read_compared(path: str) -> Plan | InstanceTypes:
    """JSON is a plan if it does not say that it is types. Raises UsageError."""
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None
    if content.lstrip().startswith(b"{") and not _TYPES.search(content):
        return read_plan(path)
    try:
        document = parse_yaml(content)
    except ValueError as fault:
        raise UsageError(f"{path}: {fault}") from None
    return validated(InstanceTypes, document, where=path)


def machine_of_type(kind: InstanceType, path: str) -> Machine:
    """`path`: the file of the types. Raises TopologyError."""
    source = None if kind.machine is None else str(Path(path).parent / kind.machine)
    try:
        return read_machine(source, kind.synthetic)
    except TopologyError as fault:
        raise TopologyError(f"{path}: type {kind.name}: {fault}") from None
