"""What the agent reports of two looks."""

from __future__ import annotations

from atoll.live.changes import changes
from atoll.schema.deployment import State
from tests.parts.live import live_view


def test_drift_is_reported_when_it_begins_changes_and_ends() -> None:
    calm, drifting, more = live_view(2), live_view(2, drift=1), live_view(2, drift=2)
    assert changes(None, calm) == ["sea: ready"]
    assert changes(calm, calm) == []
    began = changes(calm, drifting)
    assert began[0] == "sea: drift: thread-outside 1"
    assert began[1].startswith("sea: worker-0 pid 7 tid 8 (evil): thread-outside: CPUs 9 instead")
    assert changes(drifting, drifting) == []
    assert changes(drifting, more) == [], "a second thread with the same fault"
    other = more.deployments[0].findings[0].model_copy(update={"found": "CPUs 10"})
    moved = more.deployments[0].model_copy(update={"findings": (other,)})
    said = changes(more, more.model_copy(update={"deployments": (moved,)}))
    assert said[0] == "sea: drift: thread-outside 2" and "CPUs 10" in said[1]
    assert changes(more, calm) == ["sea: no drift any more"]


def test_deployments_that_fail_or_go_are_reported_on_one_line() -> None:
    view = live_view(1)
    failed = view.deployments[0].model_copy(update={"state": State.FAILED, "error": "a\nb"})
    after = view.model_copy(update={"deployments": (failed,), "notices": ("bad record",)})
    assert changes(view, after) == ["sea: failed, a\ufffdb", "bad record"]
    assert changes(after, after) == []
    assert changes(view, view.model_copy(update={"deployments": ()})) == ["sea: is down"]
