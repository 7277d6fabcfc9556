"""Pods' traces, across real processes, at a real receiver."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dsched.tracing import trace_id
from tests.acceptance.fixtures import MakeSystem
from tests.acceptance.processes import wait_until
from tests.collector import Collector, Span
from tests.manifests import node_manifest, pod_manifest


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    yield found
    found.close()


def pod(key: str, cpu: str = "100m") -> dict[str, Any]:
    return pod_manifest(key, containers=[{"name": "main", "resources": {"requests": {"cpu": cpu}}}])


def of(spans: list[Span], name: str) -> list[Span]:
    return [span for span in spans if span.name == name]


def test_one_trace_a_pod_through_leader_evaluator_and_binder(make_system: MakeSystem, collector: Collector) -> None:
    system = make_system(OTEL_BSP_SCHEDULE_DELAY="200")
    system.up("--evaluators", "1", "--binders", "1", "--mode", "distributed", "--otlp", collector.url)
    system.apply(node_manifest("n1"), node_manifest("n2"))
    evaluator = "the evaluator is known"
    wait_until(evaluator, lambda: [each for each in system.status()["state"]["workers"] if each["kind"] == "evaluator"])
    system.apply(pod("shop/web"))
    system.settle()
    system.apply(pod("shop/big", cpu="100"))
    system.settle()
    uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in system.get("pods")}

    def trace(name: str) -> list[Span]:
        return [span for span in collector.spans if span.trace == f"{trace_id(uids[name]):032x}"]

    wanted = {"schedule pod", "queue", "decide", "evaluate", "evaluate shard", "reserve", "bind", "bind pod"}
    wait_until("all spans of the pod", lambda: wanted <= {span.name for span in trace("web")})
    spans = trace("web")
    (root,) = of(spans, "schedule pod")
    assert root.parent == ""
    assert root.attributes["k8s.pod.uid"] == uids["web"]
    assert root.attributes["dsched.result"] == "bound"
    assert root.attributes["dsched.batch"].startswith(f"{root.attributes['dsched.epoch']}-")
    names = {span.id: span.name for span in spans}
    above = {span.name: names.get(span.parent, "") for span in spans}
    assert above == {
        "schedule pod": "",
        "queue": "schedule pod",
        "decide": "schedule pod",
        "evaluate": "schedule pod",
        "evaluate shard": "evaluate",
        "reserve": "schedule pod",
        "bind": "schedule pod",
        "bind pod": "bind",
    }
    services = {span.name: span.service for span in spans}
    assert services["evaluate shard"] == "dsched-evaluator"
    assert services["bind pod"] == "dsched-binder"
    assert {services[name] for name in wanted - {"evaluate shard", "bind pod"}} == {"dsched-leader"}
    assert of(spans, "bind pod")[0].attributes["dsched.verdict"] == "bound"
    assert of(spans, "evaluate")[0].attributes["dsched.where"] == "distributed"
    assert all(root.start_ns <= span.start_ns <= span.end_ns for span in spans)
    assert max(span.end_ns for span in spans if span.service == "dsched-leader") == root.end_ns

    rejected = wait_until("the attempt that failed", lambda: of(trace("big"), "schedule pod"))
    assert rejected[0].attributes["dsched.result"] == "unschedulable"
    assert rejected[0].attributes["dsched.plugins"] == "NodeResourcesFit"
    assert not of(trace("big"), "bind")


def test_asking_for_traces_without_what_sends_them_is_an_error(make_system: MakeSystem) -> None:
    """The import is made to fail as it does where the extra is not installed."""
    system = make_system()
    blocker = "import sys; sys.modules['opentelemetry'] = None; from dsched.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", blocker, "leader", "--redis-url", "redis://127.0.0.1:1/0", "--otlp", "http://c:4318"],
        env=system.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert "pip install 'dsched[otel]'" in done.stderr
    assert "Traceback" not in done.stderr
