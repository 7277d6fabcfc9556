"""What the leader counts while it schedules, and what it holds when somebody asks; a real Redis, no threads."""

import pytest
from prometheus_client import REGISTRY

from dsched import config
from dsched.config import feature_gates
from dsched.leader.gauges import Memory
from dsched.leader.health import LeaderHealth, Stage
from dsched.metrics import collect
from dsched.observe.queues import Queues
from dsched.scheduler.pod_groups import NO_GROUPS
from dsched.state import pauses
from tests.integration.leader.rig import Led, Rig
from tests.manifests import group_manifest, node_manifest, pod_manifest
from tests.unit.scheduler.grouped import features

PROFILE = "default-scheduler"
HUGE = [{"name": "main", "resources": {"requests": {"cpu": "64"}}}]


class Counts:
    """How far metrics went on since."""

    def __init__(self):
        self._before = self._now()

    def _now(self):
        collect.flush()
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in REGISTRY.collect()
            for sample in family.samples
        }

    def more(self, name, **labels):
        now = self._now()
        return sum(
            value - self._before.get(key, 0)
            for key, value in now.items()
            if key[0] == name and labels.items() <= dict(key[1]).items()
        )


@pytest.fixture
def counts():
    return Counts()


class Process:
    """A leader process that leads by this term."""

    def __init__(self, led: Led, rig: Rig) -> None:
        self.progress = LeaderHealth(rig.clock)
        self.progress.enter(Stage.LEADING, 1)
        self.held = led.term.held
        self.group_counts = led.term.memory.groups.counts


def gauges(collector):
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in collector.collect()
        for sample in family.samples
    }


def lead(rig: Rig) -> Led:
    led = rig.lead()
    led.turns()
    return led


def test_a_pod_that_is_bound_counts_once_with_its_times(rig: Rig, counts: Counts):
    rig.apply(node_manifest("n1"), node_manifest("n2"), pod_manifest("shop/web"))  # a single node is not scored
    led = lead(rig)
    (request,) = led.requests()
    rig.clock.advance(2.0)
    rig.binder.work(request)
    led.settle()
    led.hear()
    bound = {"result": "scheduled", "profile": PROFILE}
    assert counts.more("scheduler_schedule_attempts_total") == 1
    assert counts.more("scheduler_schedule_attempts_total", **bound) == 1
    assert counts.more("scheduler_scheduling_attempt_duration_seconds_sum", **bound) == pytest.approx(2.0)
    assert counts.more("scheduler_pod_scheduling_sli_duration_seconds_sum", attempts="1") == pytest.approx(2.0)
    assert counts.more("scheduler_pod_scheduling_attempts_sum") == 1
    assert counts.more("scheduler_scheduling_algorithm_duration_seconds_count") == 1
    assert counts.more("scheduler_queue_incoming_pods_total", queue="active") == 1
    for point in ("PreEnqueue", "PreFilter", "Filter", "PreScore", "Score", "Reserve"):
        found = counts.more("scheduler_framework_extension_point_duration_seconds_count", extension_point=point)
        assert found == 1, point
    evaluated = {"plugin": "NodeResourcesFit", "profile": PROFILE}
    for point in ("PreFilter", "Filter", "PreScore", "Score"):
        assert counts.more("scheduler_plugin_evaluation_total", extension_point=point, **evaluated) == 1, point


def test_a_pod_that_changes_right_after_it_was_bound_counts_once(rig: Rig, counts: Counts):
    """The watch tells of the bind and of what the kubelet says together, before the binder does."""
    rig.apply(node_manifest("n1"), pod_manifest("shop/web"))
    led = lead(rig)
    (request,) = led.requests()
    rig.binder.work(request)
    (bound,) = rig.cluster.get_objects("Pod", ["shop/web"])
    rig.apply({**bound, "status": {"phase": "Running"}})
    led.hear()
    led.settle()
    assert counts.more("scheduler_schedule_attempts_total") == 1
    assert counts.more("scheduler_pod_scheduling_attempts_count") == 1
    assert counts.more("scheduler_pod_scheduling_sli_duration_seconds_count") == 1
    led.turns()
    assert counts.more("scheduler_event_handling_duration_seconds_count", event="AssignedPodAdd") == 1


def test_a_pod_that_is_tried_before_its_pause_is_over(rig: Rig, counts: Counts):
    rig.apply(node_manifest("n1"), pod_manifest("shop/huge", containers=HUGE))
    led = lead(rig)
    came = "scheduler_queue_incoming_pods_total"
    rig.apply(node_manifest("n2", cpu="100"))
    led.hear()
    led.turns()
    assert rig.reserved() == {"shop/huge": ("n2", "reserved")}
    entities = "scheduler_queue_incoming_entities_total"
    assert [counts.more(name, queue="backoff", event="NodeAdd") for name in (came, entities)] == [1, 0]
    assert [counts.more(name, queue="active", event="PopFromBackoffQ") for name in (came, entities)] == [1, 1]
    assert [counts.more(name, queue="active", event="UnscheduledPodAdd") for name in (came, entities)] == [1, 1]
    failed = {"queue": "unschedulable", "event": "ScheduleAttemptFailure"}
    assert [counts.more(name, **failed) for name in (came, entities)] == [1, 0]


@pytest.mark.parametrize(
    ("version", "added", "changed"),
    [("1.37", "UnscheduledPodAdd", "TargetPodUpdate"), ("1.36", "UnschedulablePodAdd", "UnschedulablePodUpdate")],
)
def test_gated_pods_are_in_the_unschedulable_queue(
    rig: Rig, counts: Counts, version: str, added: str, changed: str
) -> None:
    rig.configuration = config.default(feature_gates.features(feature_gates.parse_version(version)))
    rig.apply(node_manifest("n1"))
    led = rig.lead()
    rig.apply(pod_manifest("shop/late", schedulingGates=[{"name": "quota"}]))
    led.hear()
    came = "scheduler_queue_incoming_pods_total"
    assert counts.more(came, queue="unschedulable", event=added) == 1
    assert counts.more(came, queue="gated") == 0
    rig.apply(pod_manifest("shop/late"))
    led.hear()
    assert counts.more(came, queue="active", event=changed) == 1


def test_the_time_of_a_pod_counts_from_its_first_attempt_also_under_another_leader(rig: Rig, counts: Counts):
    rig.apply(node_manifest("n1", cpu="1"), pod_manifest("shop/web", containers=HUGE))
    lead(rig)
    rig.clock.advance(30.0)
    rig.apply(node_manifest("n2", cpu="100"))
    led = lead(rig)
    (request,) = led.requests()
    rig.binder.work(request)
    led.settle()
    assert counts.more("scheduler_pod_scheduling_sli_duration_seconds_sum", attempts="2") == pytest.approx(30.0)
    assert counts.more("scheduler_pod_scheduling_attempts_sum") == 2
    assert counts.more("scheduler_queue_incoming_pods_total", event="LeaderTakeover", queue="active") == 1


def test_a_pod_that_fits_nowhere(rig: Rig, counts: Counts):
    rig.apply(node_manifest("n1"), pod_manifest("shop/huge", containers=HUGE))
    led = lead(rig)
    failed = {"result": "unschedulable", "profile": PROFILE}
    assert counts.more("scheduler_schedule_attempts_total", **failed) == 1
    assert counts.more("scheduler_scheduling_attempt_duration_seconds_count", **failed) == 1
    came = {"queue": "unschedulable", "event": "ScheduleAttemptFailure"}
    assert counts.more("scheduler_queue_incoming_pods_total", **came) == 1
    rig.clock.advance(60.0)
    rig.apply(node_manifest("n2", cpu="100"))
    led.hear()
    led.turns()
    assert counts.more("scheduler_queue_incoming_pods_total", queue="active", event="NodeAdd") == 1
    assert counts.more("scheduler_event_handling_duration_seconds_count", event="NodeAdd") == 1


def test_a_bind_that_fails_is_an_error(rig: Rig, counts: Counts):
    rig.apply(node_manifest("n1"), pod_manifest("shop/web"))
    led = lead(rig)
    (request,) = led.requests()
    rig.binder.says(request, "rejected")
    led.settle()
    assert counts.more("scheduler_schedule_attempts_total", result="error") == 1
    assert counts.more("scheduler_queue_incoming_pods_total", queue="backoff", event="ScheduleAttemptFailure") == 1
    rig.clock.advance(20.0)
    led.term.flush_backoff()
    assert counts.more("scheduler_queue_incoming_pods_total", queue="active", event="BackoffComplete") == 1


def test_what_the_leader_holds(rig: Rig):
    rig.apply(node_manifest("n1"), pod_manifest("shop/web"), pod_manifest("shop/huge", containers=HUGE))
    rig.apply(pod_manifest("shop/gated", schedulingGates=[{"name": "quota"}]))
    led = lead(rig)
    process = Process(led, rig)
    found = gauges(Memory("shop", process))
    assert found["leader_election_master_status", "shop"] == 1
    assert found["dsched_leader_epoch",] == 1
    assert {kind: found["scheduler_cache_size", kind] for kind in ("nodes", "pods", "assumed_pods")} == {
        "nodes": 1,
        "pods": 1,
        "assumed_pods": 1,
    }
    assert found["scheduler_unschedulable_pods", "NodeResourcesFit", PROFILE] == 1
    assert found["scheduler_unschedulable_pods", "SchedulingGates", PROFILE] == 1


def test_the_queues_are_read_from_redis_by_the_one_that_leads(rig: Rig):
    rig.apply(node_manifest("n1"), pod_manifest("shop/web"), pod_manifest("shop/huge", containers=HUGE))
    rig.apply(pod_manifest("shop/gated", schedulingGates=[{"name": "quota"}]))
    led = lead(rig)
    rig.apply(pod_manifest("shop/new"))
    led.hear()
    pauses.pause(rig.store, "batch", rig.clock.now_ms())
    found = gauges(Queues(rig.store, rig.clock, lambda: True, Process(led, rig).group_counts))
    assert found["dsched_paused", "batch"] == 1
    expected = {"active": 1, "backoff": 0, "unschedulable": 1, "gated": 1}
    assert {queue: found["scheduler_pending_pods", queue] for queue in expected} == expected
    assert {queue: found["scheduler_queued_entities", queue, "pod"] for queue in expected} == expected
    assert found["dsched_inflight_pods",] == 0
    assert found["dsched_tasks_waiting", "binders"] == 0
    assert found["dsched_workers", "binder", "live"] == 0
    assert gauges(Queues(rig.store, rig.clock, lambda: False, lambda: NO_GROUPS)) == {}


def member(name: str, group: str, cpu: str = "1"):
    requests = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return pod_manifest(f"default/{name}", containers=requests, schedulingGroup={"podGroupName": group})


def test_pods_count_with_their_group(rig: Rig, counts: Counts):
    rig.configuration = config.default(features(topology=True))
    rig.apply(*[node_manifest(name, labels={"rack": name}, cpu="2") for name in ("n1", "n2")])
    one_rack = {"topology": [{"key": "rack"}]}
    rig.apply(group_manifest(min_count=3, schedulingConstraints=one_rack), *[member(f"a{n}", "train") for n in "123"])
    rig.apply(group_manifest("default/early", min_count=2), member("b1", "early"), member("c1", "missing"))
    rig.apply(group_manifest("default/fits", min_count=2), member("d1", "fits"), member("d2", "fits"))
    led = lead(rig)
    found = gauges(Queues(rig.store, rig.clock, lambda: True, Process(led, rig).group_counts))
    pods = {"active": 0, "backoff": 3, "unschedulable": 0, "gated": 1, "incomplete": 1, "pending": 0}
    assert {queue: found["scheduler_pending_pods", queue] for queue in pods} == pods
    groups = {"active": 0, "backoff": 1, "unschedulable": 0, "gated": 1}
    assert {queue: found["scheduler_queued_entities", queue, "podgroup"] for queue in groups} == groups
    assert {found["scheduler_queued_entities", queue, "pod"] for queue in groups} == {0}
    attempts = "scheduler_podgroup_schedule_attempts_total"
    assert counts.more(attempts, result="unschedulable", profile=PROFILE) == 1
    assert counts.more(attempts, result="scheduled", profile=PROFILE) == 1
    assert counts.more("scheduler_podgroup_scheduling_algorithm_duration_seconds_count") == 2
    assert counts.more("scheduler_podgroup_scheduling_attempt_duration_seconds_count", profile=PROFILE) == 2
    assert counts.more("scheduler_placement_evaluations_total", result="infeasible") == 2
    assert counts.more("scheduler_placement_evaluations_total", result="feasible") == 1
    assert counts.more("scheduler_workload_preemption_attempts_total") == 1
    incoming = {"queue": "backoff", "event": "ScheduleAttemptFailure"}
    assert counts.more("scheduler_queue_incoming_pods_total", **incoming) == 3
    assert counts.more("scheduler_queue_incoming_entities_total", **incoming) == 1
    rig.clock.advance(20.0)
    led.term.flush_backoff()
    incoming = {"queue": "active", "event": "BackoffComplete"}
    assert counts.more("scheduler_queue_incoming_pods_total", **incoming) == 3
    assert counts.more("scheduler_queue_incoming_entities_total", **incoming, type="podgroup") == 1
    assert counts.more("scheduler_queue_incoming_entities_total", **incoming, type="pod") == 0


def test_a_standby_says_that_it_stands_by_and_no_more(rig: Rig):
    process = Process(rig.lead(), rig)
    process.progress.enter(Stage.STANDBY)
    assert gauges(Memory("shop", process)) == {
        ("leader_election_master_status", "shop"): 0,
        ("dsched_leader_epoch",): 0,
        ("dsched_loop_last_turn_age_seconds",): 0,
    }


def test_a_group_whose_pods_do_not_belong_together_is_no_attempt(rig: Rig, counts: Counts):
    """Its pods have had one. Source: schedule_one_podgroup.go ``handlePodGroupFailureBeforeScheduling``."""
    rig.configuration = config.default(features())
    important = member("a2", "train")
    important["spec"]["priority"] = 7
    rig.apply(node_manifest("n1"), group_manifest(min_count=2), member("a1", "train"), important)
    lead(rig)
    assert counts.more("scheduler_schedule_attempts_total", result="error", profile=PROFILE) == 2
    assert counts.more("scheduler_podgroup_schedule_attempts_total") == 0
    assert counts.more("scheduler_podgroup_scheduling_attempt_duration_seconds_count") == 0
    assert counts.more("scheduler_podgroup_scheduling_algorithm_duration_seconds_count") == 0
