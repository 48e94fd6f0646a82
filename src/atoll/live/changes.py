"""What changed between two looks, as lines of a log. Pure."""

from __future__ import annotations

from atoll.inspect.verify import brief
from atoll.live.views import alike
from atoll.schema.deployment import State
from atoll.schema.live import DeploymentView, LiveView
from atoll.schema.text import printable

MOST_FINDINGS = 5


def changes(before: LiveView | None, after: LiveView) -> list[str]:
    """Deployments that came, went or failed, and drift that began or ended."""
    known = {one.name: one for one in before.deployments} if before else {}
    lines = []
    for one in after.deployments:
        was = known.pop(one.name, None)
        if was is None or was.state is not one.state:
            lines.append(f"{one.name}: {one.state.value}{f', {one.error}' if one.error else ''}")
        lines += _drift(one, was)
    lines += [f"{name}: is down" for name in known]
    lines += [notice for notice in after.notices if before is None or notice not in before.notices]
    return [printable(line) for line in lines]


def _drift(one: DeploymentView, was: DeploymentView | None) -> list[str]:
    """Nothing if only counts have changed: threads come and go."""
    before = was.drift_by_code if was else {}
    if one.state is State.FAILED or not (one.drift_by_code or before):
        return []
    if not one.drift_by_code:
        return [f"{one.name}: no drift any more"]
    seen = {alike(finding) for finding in was.findings} if was else set()
    new = [finding for finding in one.findings if alike(finding) not in seen]
    if not new and one.drift_by_code.keys() == before.keys():
        return []
    counts = ", ".join(f"{code} {count}" for code, count in one.drift_by_code.items())
    shown = [f"{one.name}: {brief(finding)}; {finding.remedy}" for finding in new[:MOST_FINDINGS]]
    return [f"{one.name}: drift: {counts}", *shown]
