"""Dashboard, alerts and Prometheus configuration name only what is there."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dsched import metrics
from dsched.metrics.instruments import DECLARED, Declared

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "deploy" / "monitoring"
KUBERNETES = ROOT / "deploy" / "kubernetes"
RUNBOOK = ROOT / "docs" / "runbook.md"
DASHBOARD = json.loads((MONITORING / "grafana" / "dashboards" / "dsched.json").read_text())
RULES = yaml.safe_load((MONITORING / "rules.yml").read_text())["groups"]
PROMETHEUS = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]

STRING = re.compile(r'"[^"]*"')
NAME = re.compile(r"(?<![\w:$])(?:scheduler|dsched|leader_election)_\w+")
SELECTOR = re.compile(rf"({NAME.pattern})\{{([^}}]*)\}}")
GROUPING = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
RECORDED = re.compile(r"\bdsched:[\w:]+")

assert metrics.__file__


def series(metric: Declared) -> set[str]:
    """What a metric is called in queries."""
    ends = ("_bucket", "_sum", "_count") if metric.type == "histogram" else ("",)
    return {metric.name + end for end in ends}


EXPORTED = {name: metric for metric in DECLARED.values() for name in series(metric)}


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def scaling() -> Iterator[str]:
    """What KEDA asks for."""
    for scaled in yaml.safe_load_all((KUBERNETES / "components/autoscaling-by-tasks/scaled-objects.yaml").read_text()):
        yield from (trigger["metadata"]["query"] for trigger in scaled["spec"]["triggers"])


def queries() -> Iterator[str]:
    yield from scaling()
    for panel in panels():
        yield from (target["expr"] for target in panel["targets"])
    for group in RULES:
        yield from (rule["expr"] for rule in group["rules"])


def matched(query: str) -> Iterator[tuple[str, str]]:
    """(metric, label) for each label that a selector of a query looks at."""
    for name, selector in SELECTOR.findall(STRING.sub('""', query)):
        yield from ((name, part.split("=")[0].strip("!~ ")) for part in selector.split(",") if part.strip())


def grouped(query: str) -> set[str]:
    """The labels that a query groups or joins by."""
    return {label.strip() for group in GROUPING.findall(query) for label in group.split(",") if label.strip()}


@pytest.mark.parametrize("query", sorted(set(queries())))
def test_every_metric_in_a_query_is_exported(query):
    named = NAME.findall(STRING.sub('""', query))
    assert named or RECORDED.search(query) or query.startswith("up{")
    assert [name for name in named if name not in EXPORTED] == []


@pytest.mark.parametrize("query", sorted(set(queries())))
def test_every_label_in_a_query_is_one_that_the_metric_has(query):
    # The namespace is the operator's to add.
    named = [(name, label) for name, label in matched(query) if label != "namespace"]
    assert [(name, label) for name, label in named if label not in EXPORTED[name].labels] == []
    known = {label for name in NAME.findall(STRING.sub('""', query)) for label in EXPORTED[name].labels}
    recorded = {"result"} if RECORDED.search(query) else set()
    assert grouped(query) <= known | recorded | {"le", "instance", "job", "process"}


def test_recorded_series_are_recorded():
    recorded = {rule["record"] for group in RULES for rule in group["rules"] if "record" in rule}
    used = {name for query in queries() for name in RECORDED.findall(query)}
    assert used <= recorded


def test_alerts_say_what_is_wrong_and_what_to_do():
    alerts = [rule for group in RULES for rule in group["rules"] if "alert" in rule]
    assert len({rule["alert"] for rule in alerts}) == len(alerts) > 10
    for rule in alerts:
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]


def test_the_runbook_has_a_section_for_each_alert_and_each_alert_names_it():
    alerts = [rule for group in RULES for rule in group["rules"] if "alert" in rule]
    told = dict(re.findall(r"^## (Dsched\w+)\n(.*?)(?=^## |\Z)", RUNBOOK.read_text(), re.MULTILINE | re.DOTALL))
    assert list(told) == [rule["alert"] for rule in alerts]
    for rule in alerts:
        page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert page == "https://github.com/dsched/dsched/blob/main/docs/runbook.md"
        assert anchor == rule["alert"].lower()
        assert "*Means*: " in told[rule["alert"]]
        assert "*Do*: " in told[rule["alert"]]


def test_panels_are_told_apart_and_lie_side_by_side():
    everything = DASHBOARD["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in everything)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_the_dashboard_takes_any_data_source():
    assert {panel["datasource"]["uid"] for panel in panels()} == {"${datasource}"}
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource"]


def test_prometheus_finds_the_processes_of_the_compose_file():
    (job,) = [job for job in PROMETHEUS["scrape_configs"] if job["job_name"] == "dsched"]
    (found,) = job["dns_sd_configs"]
    assert set(found["names"]) == {"leader", "evaluator", "binder"} <= set(COMPOSE)
    for name in found["names"]:
        environment = COMPOSE[name]["environment"]
        assert environment["DSCHED_METRICS_PORT"] == str(found["port"])
        assert environment["DSCHED_METRICS_HOST"] == "0.0.0.0"


def test_files_lie_where_the_containers_look_for_them():
    mounted = dict(volume.split(":")[:2] for name in ("prometheus", "grafana") for volume in COMPOSE[name]["volumes"])
    places = {inside: ROOT / outside for outside, inside in mounted.items() if outside.startswith("./")}
    assert all(path.exists() for path in places.values())
    assert set(PROMETHEUS["rule_files"]) <= set(places)
    provider = yaml.safe_load((MONITORING / "grafana/provisioning/dashboards/dsched.yml").read_text())["providers"][0]
    assert (places[provider["options"]["path"]] / "dsched.json").exists()
    source = yaml.safe_load((MONITORING / "grafana/provisioning/datasources/prometheus.yml").read_text())
    assert source["datasources"][0]["url"] == "http://prometheus:9090"


def test_the_alerts_of_the_operator_are_the_same():
    written = KUBERNETES / "components" / "monitoring" / "prometheus-rule.yaml"
    made = subprocess.run([ROOT / "deploy" / "prometheus-rule", "--print"], capture_output=True, text=True, check=True)
    assert written.read_text() == made.stdout, "run: make rules"
    assert yaml.safe_load(made.stdout)["spec"]["groups"] == RULES


@pytest.mark.parametrize(
    "words", [["check", "rules", "rules.yml"], ["check", "config", "--syntax-only", "prometheus.yml"]]
)
def test_promtool_has_nothing_to_say(words):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on PATH (Debian package prometheus)")
    done = subprocess.run([promtool, *words], cwd=MONITORING, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
