"""Generate docs/formats/ from the records of atoll.schema: JSON Schemas and the page about them.

`python -m tools.schemas` writes them; with `--check` it writes nothing and exits 1 if what is
there is not what would be written.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter

from atoll.schema import (
    advice,
    deployment,
    duckdb_profile,
    fills,
    fleet,
    fleet_answers,
    inspection,
    instance_types,
    inventory,
    kernel,
    knobs,
    live,
    machine,
    masks,
    oltp,
    operator_graph,
    operator_runs,
    placement,
    plan,
    profile,
    rendered,
    results,
    runtime_profile,
    shared_plan,
    summary,
    tuning,
    workload,
)

FOLDER = Path(__file__).resolve().parent.parent / "docs/formats"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

# name -> the module whose docstring tells the format, the type of one document (of one line
# of results.jsonl).
FORMATS: dict[str, tuple[ModuleType, Any]] = {
    "machine": (machine, machine.Machine),
    "profile": (profile, profile.Profile),
    "plan": (plan, plan.Plan),
    "deployment": (deployment, deployment.Deployment),
    "instance-types": (instance_types, instance_types.InstanceTypes),
    "instance-type-plans": (instance_types, instance_types.InstanceTypePlans),
    "rendered": (rendered, rendered.Rendered),
    "inventory": (inventory, inventory.Inventory),
    "fleet": (fleet, fleet.Fleet),
    "fleet-answers": (fleet_answers, fleet_answers.FleetAnswers),
    "inspection": (inspection, inspection.Inspection),
    "live": (live, live.LiveView),
    "knobs": (knobs, knobs.Journal),
    "advice": (advice, advice.Advice),
    "tuning": (tuning, tuning.Tuning),
    "fills": (fills, fills.FillCounts),
    "results": (results, results.RunHeader | results.Line),
    "runtime-profile": (runtime_profile, runtime_profile.RuntimeProfile),
    "duckdb-profile": (duckdb_profile, duckdb_profile.DuckDBProfile),
    "summary": (summary, summary.BenchSummary),
    "oltp": (oltp, oltp.OltpRuns),
    "operators": (operator_graph, operator_graph.OperatorGraph),
    "placement": (placement, placement.Placement),
    "operator-runs": (operator_runs, operator_runs.OperatorRuns),
    "masks": (masks, masks.SavedMasks),
    "workload": (workload, workload.WorkloadResult),
    "kernel": (kernel, kernel.KernelResult),
    "shared-plan": (shared_plan, shared_plan.SharedPlanResult),
    "workload-runs": (workload, workload.WorkloadRuns),
}


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of one format."""
    made = TypeAdapter(FORMATS[name][1]).json_schema(mode="validation")
    # The records have defaults here, for whoever makes one; `parse` refuses a file without them.
    for node in whole_files(made):
        node["required"] = ["format", "version", *node["required"]]
    return {"$schema": DIALECT, "title": f"atoll/{name} {version(made)}"} | made


def whole_files(made: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a schema that name the format and its version."""
    nodes = (made, *made.get("$defs", {}).values())
    return [node for node in nodes if {"format", "version"} <= node.get("properties", {}).keys()]


def version(made: dict[str, Any]) -> int:
    number: int = whole_files(made)[0]["properties"]["version"]["const"]
    return number


def type_words(node: Mapping[str, Any]) -> str:
    """A field's type in a few words, references linked to their place on the page."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in node:
        return f"`{json.dumps(node['const'])}`"
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    if "anyOf" in node:
        return " or ".join(type_words(choice) for choice in node["anyOf"])
    kind = str(node.get("type", "any"))
    if kind == "array":
        if "prefixItems" in node:
            return "(" + ", ".join(type_words(item) for item in node["prefixItems"]) + ")"
        return f"list of {type_words(node.get('items', {}))}"
    if kind == "object" and isinstance(node.get("additionalProperties"), dict):
        return f"map to {type_words(node['additionalProperties'])}"
    return kind


def field_table(node: Mapping[str, Any]) -> list[str]:
    """A Markdown table of an object's fields."""
    required = set(node.get("required", ()))
    rows = ["| field | type | default |", "|---|---|---|"]
    for name, field in node.get("properties", {}).items():
        default = "required" if name in required else f"`{json.dumps(field.get('default'))}`"
        rows.append(f"| `{name}` | {type_words(field)} | {default} |")
    return rows


def definition(name: str, node: Mapping[str, Any]) -> list[str]:
    lines = [f"### {name} {{ #{name.lower()} }}", ""]
    if text := node.get("description"):
        lines += [inspect.cleandoc(text), ""]
    if "enum" in node:
        return [*lines, "One of " + ", ".join(f"`{value}`" for value in node["enum"]) + ".", ""]
    return [*lines, *field_table(node), ""]


def page() -> str:
    """The page docs/formats/index.md: every format, every record, every field."""
    lines = [
        "# File formats",
        "",
        "Generated from `src/atoll/schema` by `make docs`; do not edit.",
        "Every file names its format and version. An unknown field is an error, so that a",
        "misspelt key in a hand-edited file cannot pass for a default.",
        "",
    ]
    seen = {name.capitalize() for name in FORMATS}  # they have a section of their own
    for name, (module, _) in FORMATS.items():
        made = schema(name)
        definitions = dict(made.get("$defs", {}))
        lines += [
            f"## atoll/{name} {version(made)} {{ #{name} }}",
            "",
            inspect.getdoc(module) or "",
            "",
        ]
        lines += [f"JSON Schema: [{name}.schema.json]({name}.schema.json)", ""]
        if "properties" in made:
            lines += [*field_table(made), ""]
        for record, node in sorted(definitions.items()):
            if record not in seen:
                lines += definition(record, node)
                seen.add(record)
    return "\n".join(lines).rstrip() + "\n"


def wanted() -> dict[str, str]:
    """File name in docs/formats/ -> its content."""
    files = {f"{name}.schema.json": json.dumps(schema(name), indent=2) + "\n" for name in FORMATS}
    return files | {"index.md": page()}


def main(argv: list[str]) -> int:
    files = wanted()
    there = {path.name: path.read_text() for path in FOLDER.glob("*")}
    if argv == ["--check"]:
        stale = sorted(
            name for name in files.keys() | there.keys() if files.get(name) != there.get(name)
        )
        for name in stale:
            print(f"docs/formats/{name}: not what src/atoll/schema says; run 'make docs'")
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name in there.keys() - files.keys():
        (FOLDER / name).unlink()
    for name, content in files.items():
        (FOLDER / name).write_text(content)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
