"""The leader's spans, turn by turn, at a real receiver; and what becomes of spans that cannot be sent."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from dsched import tracing
from dsched.metrics import SPANS
from dsched.state.client import Store
from dsched.tracing import Tracing, context_of, trace_id, traceparent
from tests.collector import Collector, Span
from tests.integration.leader.rig import Rig
from tests.integration.workers.processes import wait_until
from tests.manifests import node_manifest, pod_manifest
from tests.metrics import value


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    found = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    yield found
    found.close()


def started() -> Tracing:
    found = tracing.start("leader", "leader-1", "test")
    assert found is not None
    return found


@pytest.fixture
def rig(store: Store, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Rig:
    made = Rig(store, tmp_path, monkeypatch)
    made.apply(node_manifest("n1"))
    return made


def counted() -> dict[str, int]:
    return {result: int(value(SPANS.labels(result))) for result in ("exported", "failed", "dropped")}


def pod(key: str, cpu: str = "100m") -> dict[str, Any]:
    return pod_manifest(key, containers=[{"name": "main", "resources": {"requests": {"cpu": cpu}}}])


def spans_of(rig: Rig, collector: Collector, key: str, uid: str) -> list[Span]:
    return [span for span in collector.spans if span.trace == f"{trace_id(uid):032x}"]


def test_attempts_of_a_pod_are_in_one_trace(rig: Rig, collector: Collector) -> None:
    rig.tracing = started()
    rig.apply(pod("shop/a"), pod("shop/b"), pod("shop/big", "100"))
    uids = {key: rig.uid(key) for key in ("shop/a", "shop/b", "shop/big")}
    led = rig.lead()
    led.turns()
    (request,) = led.requests()
    told = dict(zip([item.key for item in request.pods], request.traces, strict=True))
    assert {key: context_of(text).trace_id for key, text in told.items()} == {  # type: ignore[union-attr]
        key: trace_id(uids[key]) for key in ("shop/a", "shop/b")
    }
    rig.binder.work(request)
    led.turns()
    led.term.traces.settled()
    rig.apply(node_manifest("n2", cpu="200"))
    rig.clock.advance(60)
    led.run()
    led.term.traces.settled()
    rig.tracing.close()

    (first,) = [span for span in spans_of(rig, collector, "shop/a", uids["shop/a"]) if not span.parent]
    assert first.attributes["dsched.result"] == "bound"
    attempts = [span for span in spans_of(rig, collector, "shop/big", uids["shop/big"]) if not span.parent]
    assert [span.attributes["dsched.result"] for span in sorted(attempts, key=lambda span: span.start_ns)] == [
        "unschedulable",
        "bound",
    ]
    # The two pods are of one class: one stands for both in the evaluation, and the other's decision links to it.
    evaluated = [span for span in collector.spans if span.name == "evaluate" and span.trace == first.trace]
    other = [span for span in spans_of(rig, collector, "shop/b", uids["shop/b"]) if span.name == "decide"]
    assert evaluated
    assert other[0].links == (first.trace,)


def test_a_new_leader_goes_on_in_the_same_trace(rig: Rig, collector: Collector) -> None:
    rig.tracing = started()
    rig.apply(pod("shop/a"))
    led = rig.lead()
    led.turns()
    led.requests()
    led.term.traces.close()
    again = rig.lead()
    (request,) = again.requests()
    rig.binder.work(request)
    again.turns()
    again.term.traces.settled()
    rig.tracing.close()
    roots = [span for span in spans_of(rig, collector, "shop/a", rig.uid("shop/a")) if not span.parent]
    assert sorted(span.attributes["dsched.result"] for span in roots) == ["bound", "left to the next leader"]


def test_what_is_not_sampled_costs_no_message(rig: Rig, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    rig.tracing = started()
    rig.apply(pod("shop/a"))
    led = rig.lead()
    led.turns()
    (request,) = led.requests()
    assert request.traces == [""]
    rig.binder.work(request)
    led.turns()
    rig.tracing.close()
    assert collector.requests == 0


def test_nothing_is_traced_unless_asked_for(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    assert tracing.start("leader", "leader-1", "test") is None
    rig.apply(pod("shop/a"))
    led = rig.lead()
    led.turns()
    (request,) = led.requests()
    assert request.traces == []


@pytest.mark.parametrize(
    "environment",
    [
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {},
    ],
)
def test_the_standard_variables_switch_it_off(environment: dict[str, str]) -> None:
    assert not tracing.wanted(environment)
    assert tracing.wanted({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/v1/traces"})


def test_a_collector_that_hangs_holds_nobody_up_and_what_is_lost_is_counted(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5")
    hangs, before = threading.Event(), counted()
    collector.hangs = hangs
    sending = started()
    for number in range(50):
        sending.root(f"pod-{number}", "schedule pod", time.time_ns(), {}).end()
    assert counted()["dropped"] - before["dropped"] >= 30, "no more than the queue and what is being sent was kept"
    hangs.set()
    sending.close()
    now = counted()
    assert sum(now.values()) - sum(before.values()) == 50, "every span is accounted for"
    assert now["exported"] > before["exported"]


def test_a_collector_that_refuses(collector: Collector) -> None:
    collector.status, before = 400, counted()
    sending = started()
    sending.root("pod", "schedule pod", time.time_ns(), {}).end()
    wait_until("it is counted", lambda: counted()["failed"] - before["failed"] == 1)
    sending.close()


def test_a_traceparent_says_which_span(collector: Collector) -> None:
    sending = started()
    span = sending.root("uid", "schedule pod", time.time_ns(), {})
    found = context_of(traceparent(span))
    assert found is not None
    assert (found.trace_id, found.span_id) == (trace_id("uid"), span.get_span_context().span_id)
    span.end()
    sending.close()
    for text in ("", "00", "00-x-y-01", "01-" + traceparent(span)[3:], traceparent(span)[:-2] + "00"):
        assert context_of(text) is None
