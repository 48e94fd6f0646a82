"""The metrics, read by Prometheus's own parser; and what the dashboard and the rules use."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from atoll.live.metrics import FAMILIES, open_metrics
from atoll.schema.live import LiveView
from tests.parts.live import live_view
from tests.parts.paths import ROOT


def samples(view: LiveView) -> list[Sample]:
    families = list(text_string_to_metric_families(open_metrics(view, look_age_s=7.5)))
    assert [family.name for family in families[:-1]] == [family.name for family in FAMILIES]
    return [sample for family in families for sample in family.samples]


def value(found: list[Sample], name: str, **labels: str) -> float:
    (sample,) = [one for one in found if one.name == name and one.labels.items() >= labels.items()]
    return float(sample.value)


def test_every_figure_is_there_with_its_labels() -> None:
    found = samples(live_view(2, drift=3))
    assert value(found, "atoll_deployment_ready", engine="toy", policy="wicp") == 1
    assert value(found, "atoll_drift_findings", deployment="sea", code="thread-outside") == 3
    first = {"deployment": "sea", "slot": "0"}
    for name, wanted in {
        "atoll_slot_drift_findings": 3,
        "atoll_slot_threads": 10,
        "atoll_slot_threads_outside": 3,
        "atoll_slot_cpu_seconds_total": 100,
        "atoll_slot_home_ratio": 0.97,
        "atoll_slot_local_memory_ratio": 0.9,
        "atoll_slot_migrations_total": 300,
        "atoll_slot_memory_bytes": 2**31,
        "atoll_slot_memory_bytes_per_second": 2e9,
        "atoll_slot_local_memory_bytes_per_second": 1e9,
    }.items():
        assert value(found, name, **first) == wanted
    assert value(found, "atoll_figures_age_seconds", figures="memory", **first) == 40
    assert value(found, "atoll_watch_cpu_ratio") == 0.002
    assert value(found, "atoll_watch_look_age_seconds") == 7.5
    names = {one.name.removesuffix("_total") for one in found}
    assert {one.name for one in FAMILIES} <= names


def test_help_says_alone_what_a_metric_is() -> None:
    assert all("slot" in one.help for one in FAMILIES if one.name.startswith("atoll_slot_"))


def test_a_dead_agent_has_a_rule_and_remote_memory_by_design_has_none() -> None:
    rules = (ROOT / "docs/live/atoll-alerts.yml").read_text()
    assert "absent(up" in rules and "atoll_watch_look_age_seconds >" in rules
    assert "time()" not in rules, "it compares the clocks of two machines"
    assert "local_memory_ratio" not in rules
    assert "vector(" not in (ROOT / "docs/live/atoll-dashboard.json").read_text()


def test_what_is_not_known_has_no_sample() -> None:
    view = live_view(1)
    (one,) = view.deployments
    slot = one.slots[0].model_copy(
        update=dict.fromkeys(("local_share", "home_share", "migrations_per_s", "memory_age_s"))
    )
    one = one.model_copy(update={"slots": (slot,)})
    names = {
        sample.name
        for sample in samples(view.model_copy(update={"deployments": (one,), "cost": None}))
    }
    assert not names & {
        "atoll_slot_local_memory_ratio",
        "atoll_slot_home_ratio",
        "atoll_slot_migrations_total",
        "atoll_watch_cpu_ratio",
    }


def test_names_cannot_end_a_label_or_a_line() -> None:
    bad = 'x"} 1\nevil{a="\\n\\'
    view = live_view(1)
    one = view.deployments[0].model_copy(update={"name": bad, "engine": bad, "policy": bad})
    found = samples(view.model_copy(update={"deployments": (one,)}))
    assert value(found, "atoll_deployment_ready", deployment=bad.replace("\n", "\ufffd")) == 1


def test_nothing_up_is_valid() -> None:
    found = samples(live_view(1).model_copy(update={"deployments": ()}))
    assert value(found, "atoll_watch_unreadable_records") == 0


@pytest.mark.parametrize("name", ["atoll-dashboard.json", "atoll-alerts.yml"])
def test_dashboard_and_alerts_use_metrics_and_labels_that_exist(name: str) -> None:
    text = (ROOT / "docs/live" / name).read_text()
    found = samples(live_view(2, drift=3))
    known = {sample.name for sample in found}
    used = set(re.findall(r"\batoll_\w+", text))
    assert used <= known, used - known
    assert len(used) >= 6
    labels = {label for sample in found for label in sample.labels} | {"instance"}
    grouped = " ".join(re.findall(r"by \(([\w, ]+)\)", text))
    assert {*re.findall(r"\w+", grouped), *re.findall(r"(\w+)=~", text)} <= labels


def test_dashboard_and_alerts_are_what_their_programs_read() -> None:
    board = json.loads((ROOT / "docs/live/atoll-dashboard.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(queries) > 10 and all("atoll_" in query for query in queries)
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    alerts = yaml.safe_load((ROOT / "docs/live/atoll-alerts.yml").read_text())
    rules = [rule for group in alerts["groups"] for rule in group["rules"]]
    assert {"AtollDrift", "AtollAgentSilent"} <= {rule["alert"] for rule in rules}
    assert all({"expr", "for", "labels", "annotations"} <= rule.keys() for rule in rules)
