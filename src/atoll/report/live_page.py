"""The page of `atoll serve`: static files, and the pictures of the plans. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files

from atoll.plan.identity import machine_id
from atoll.report.machine.svg import plan_drawing
from atoll.report.pages import page
from atoll.report.svg.elements import inline
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan


def live_files() -> dict[str, tuple[str, bytes]]:
    """Content type and body by path."""
    script = files("atoll.report").joinpath("templates/live.js").read_bytes()
    return {
        "/": ("text/html; charset=utf-8", page("live.html.j2").encode()),
        "/live.css": ("text/css; charset=utf-8", page("live.css.j2").encode()),
        "/live.js": ("text/javascript; charset=utf-8", script),
    }


def live_pictures(machine: Machine, plans: Mapping[str, Plan]) -> bytes:
    """JSON: SVG by the deployment's name. A plan for another machine has no picture."""
    here = machine_id(machine)
    drawn = {
        name: str(inline(plan_drawing(machine, plan)))
        for name, plan in plans.items()
        if plan.machine_id == here
    }
    return json.dumps(drawn).encode()
