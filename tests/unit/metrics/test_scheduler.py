"""Names, labels and buckets are kube-scheduler's, so that its dashboards work.

Source: kubernetes v1.34 pkg/scheduler/metrics/metrics.go; those about devices: v1.35 to v1.37, and
k8s.io/dynamic-resource-allocation/resourceclaim/metrics/metrics.go; those about pod groups, and
what preemption takes: v1.37.
"""

import pytest

from dsched import metrics
from dsched.metrics.instruments import DECLARED, exponential

UPSTREAM = {
    "scheduler_schedule_attempts_total": ("counter", "result profile"),
    "scheduler_scheduling_attempt_duration_seconds": ("histogram", "result profile"),
    "scheduler_scheduling_algorithm_duration_seconds": ("histogram", ""),
    "scheduler_event_handling_duration_seconds": ("histogram", "event"),
    "scheduler_preemption_victims": ("histogram", ""),
    "scheduler_preemption_attempts_total": ("counter", ""),
    "scheduler_preemption_evaluation_duration_seconds": ("histogram", "preemptor result"),
    "scheduler_preemption_execution_duration_seconds": ("histogram", "preemptor result"),
    "scheduler_preemption_workload_disruptions": ("histogram", "preemptor"),
    "scheduler_preemption_pdb_violations_total": ("counter", "preemptor"),
    "scheduler_pod_scheduled_after_flush_total": ("counter", ""),
    "scheduler_pending_pods": ("gauge", "queue"),
    "scheduler_inflight_events": ("gauge", "event"),
    "scheduler_pod_scheduling_sli_duration_seconds": ("histogram", "attempts"),
    "scheduler_pod_scheduling_attempts": ("histogram", ""),
    "scheduler_framework_extension_point_duration_seconds": ("histogram", "extension_point status profile"),
    "scheduler_plugin_execution_duration_seconds": ("histogram", "plugin extension_point status"),
    "scheduler_queueing_hint_execution_duration_seconds": ("histogram", "plugin event hint"),
    "scheduler_queue_incoming_pods_total": ("counter", "queue event"),
    "scheduler_permit_wait_duration_seconds": ("histogram", "result"),
    "scheduler_queued_entities": ("gauge", "queue type"),
    "scheduler_queue_incoming_entities_total": ("counter", "queue event type"),
    "scheduler_podgroup_schedule_attempts_total": ("counter", "result profile"),
    "scheduler_podgroup_scheduling_attempt_duration_seconds": ("histogram", "result profile"),
    "scheduler_podgroup_scheduling_algorithm_duration_seconds": ("histogram", ""),
    "scheduler_generated_placements_total": ("counter", "profile"),
    "scheduler_placement_evaluations_total": ("counter", "result profile"),
    "scheduler_workload_preemption_attempts_total": ("counter", "result"),
    "scheduler_workload_preemption_victims": ("histogram", ""),
    "scheduler_cache_size": ("gauge", "type"),
    "scheduler_unschedulable_pods": ("gauge", "plugin profile"),
    "scheduler_resourceclaim_creates_total": ("counter", "status"),
    "scheduler_dra_bindingconditions_allocations_total": ("counter", "profile driver status"),
    "scheduler_dra_bindingconditions_wait_duration_seconds": ("histogram", "profile driver status"),
    "dynamic_resource_allocation_resourceclaim_creates_total": (
        "counter",
        "status admin_access owner_api_group owner_api_kind",
    ),
    "scheduler_plugin_evaluation_total": ("counter", "plugin extension_point profile"),
}
BUCKETS = {
    "scheduler_scheduling_attempt_duration_seconds": (0.001, 2, 15),
    "scheduler_scheduling_algorithm_duration_seconds": (0.001, 2, 15),
    "scheduler_event_handling_duration_seconds": (0.0001, 2, 12),
    "scheduler_preemption_victims": (1, 2, 7),
    "scheduler_preemption_evaluation_duration_seconds": (0.001, 2, 16),
    "scheduler_preemption_execution_duration_seconds": (0.001, 2, 16),
    "scheduler_preemption_workload_disruptions": (1, 2, 11),
    "scheduler_pod_scheduling_sli_duration_seconds": (0.01, 2, 20),
    "scheduler_pod_scheduling_attempts": (1, 2, 5),
    "scheduler_framework_extension_point_duration_seconds": (0.0001, 2, 12),
    "scheduler_plugin_execution_duration_seconds": (0.00001, 1.5, 20),
    "scheduler_queueing_hint_execution_duration_seconds": (0.00001, 1.5, 20),
    "scheduler_permit_wait_duration_seconds": (0.001, 2, 15),
    "scheduler_podgroup_scheduling_attempt_duration_seconds": (0.001, 2, 15),
    "scheduler_podgroup_scheduling_algorithm_duration_seconds": (0.001, 2, 15),
    "scheduler_workload_preemption_victims": (1, 2, 11),
    "scheduler_dra_bindingconditions_wait_duration_seconds": (0.1, 2, 14),
}

assert metrics.__file__


def test_the_metrics_are_those_of_kube_scheduler_and_no_others():
    found = {name: (metric.type, " ".join(metric.labels)) for name, metric in DECLARED.items()}
    assert {name: each for name, each in found.items() if name.startswith(("scheduler_", "dynamic_"))} == UPSTREAM


@pytest.mark.parametrize("name", [name for name, (kind, _) in UPSTREAM.items() if kind == "histogram"])
def test_buckets(name):
    assert DECLARED[name].buckets == pytest.approx(
        [BUCKETS[name][0] * BUCKETS[name][1] ** n for n in range(BUCKETS[name][2])]
    )


def test_bounds_are_multiplied_step_by_step():
    # In Go: b[i] = start; start *= factor. 0.00001 * 1.5 * 1.5 is 2.25e-05, with the rounding of each step.
    assert exponential(0.00001, 1.5, 3) == (0.00001, 0.00001 * 1.5, 0.00001 * 1.5 * 1.5)


def test_every_metric_says_what_it_means_and_who_exports_it():
    for metric in DECLARED.values():
        assert metric.help.endswith((".", ")")) and metric.exporters
        assert metric.name.endswith("_total") == (metric.type == "counter")
