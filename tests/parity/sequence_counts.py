"""What is counted while a sequence is gone through: kube-scheduler's metrics, and dsched's of the same names."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from prometheus_client import REGISTRY

from dsched.metrics import collect

Counts = Mapping[str, float]
"""By name and labels, ``name{label=value,…}``."""

NOT_OF_GROUPS = (
    "scheduler_queue_incoming_pods_total",
    "scheduler_queue_incoming_entities_total",
    "scheduler_scheduling_algorithm_duration_seconds_count",
)
"""Not alike where there are groups: kube-scheduler counts all pods of a group anew with each that comes, and each trial
to place one."""
COUNTED = (
    "scheduler_schedule_attempts_total",
    "scheduler_scheduling_attempt_duration_seconds_count",
    "scheduler_pod_scheduling_sli_duration_seconds_count",
    "scheduler_pod_scheduling_attempts_count",
    "scheduler_pod_scheduling_attempts_sum",
    "scheduler_pod_scheduled_after_flush_total",
    "scheduler_preemption_attempts_total",
    "scheduler_preemption_victims_count",
    "scheduler_preemption_victims_sum",
    "scheduler_podgroup_schedule_attempts_total",
    "scheduler_podgroup_scheduling_attempt_duration_seconds_count",
    "scheduler_podgroup_scheduling_algorithm_duration_seconds_count",
    "scheduler_generated_placements_total",
    "scheduler_placement_evaluations_total",
    "scheduler_workload_preemption_attempts_total",
    "scheduler_workload_preemption_victims_count",
    "scheduler_workload_preemption_victims_sum",
    "scheduler_resourceclaim_creates_total",
    "dynamic_resource_allocation_resourceclaim_creates_total",
    "scheduler_dra_bindingconditions_allocations_total",
    *NOT_OF_GROUPS,
)
"""Those that have to be the same, as far as both have them; of durations, how often they were told."""
SINCE = {"scheduler_pod_scheduled_after_flush_total": 36, "scheduler_queue_incoming_entities_total": 37}
"""The minor version from which on kube-scheduler has some of them."""
STAYS_GATED = "event=change,queue=unschedulable"
"""A gated pod that an event leaves gated is counted there as if it came anew."""

_NO_CHANGES = (
    "PopFromBackoffQ|BackoffComplete|ScheduleAttemptFailure|ForceActivate|UnschedulableTimeout|Unsched\\w+PodAdd"
)
_BY_A_CHANGE = re.compile(rf"event=(?!{_NO_CHANGES})[^,}}]+")


def now() -> dict[str, float]:
    """What dsched has counted in this process."""
    collect.flush()
    return {
        f"{sample.name}{{{','.join(sorted(f'{name}={value}' for name, value in sample.labels.items()))}}}": sample.value
        for family in REGISTRY.collect()
        for sample in family.samples
        if sample.name in COUNTED
    }


def since(before: Counts) -> dict[str, float]:
    """What it has counted since."""
    return {key: value - before.get(key, 0) for key, value in now().items()}


def uncertain(runs: Sequence[Counts]) -> set[str]:
    """What was not counted alike in all runs of one sequence."""
    return {key for each in runs for key in each if len({other.get(key, 0) for other in runs}) > 1}


def comparable(counted: Counts, without: set[str], minor: int, *, grouped: bool) -> Counter[str]:
    """What has to be the same in a version.

    Args:
        without: what is left out.
        grouped: whether there are pod groups.
    """
    found: Counter[str] = Counter()
    left_out = {_plain(key) for key in without}
    names = set(COUNTED).difference(NOT_OF_GROUPS if grouped else ())
    for key, value in counted.items():
        name, plain = key.partition("{")[0], _plain(key)
        if name in names and minor >= SINCE.get(name, 0) and plain not in left_out and STAYS_GATED not in plain:
            found[plain] += int(value)
    return found


def _plain(key: str) -> str:
    """Which one of several changes of the cluster that come together helps a pod is not told alike."""
    return _BY_A_CHANGE.sub("event=change", key)


def differences(
    theirs: Sequence[Mapping[str, Any]],
    ours: Sequence[Mapping[str, Any]],
    minor: int,
    *,
    grouped: bool,
) -> list[str]:
    """What has been counted otherwise after the first moment at which anything has."""
    for number, (there, here) in enumerate(zip(theirs, ours, strict=True)):
        one, other = (comparable(each["counted"], there["uncertain"], minor, grouped=grouped) for each in (there, here))
        found = [
            f"moment {number}, {key}: kube-scheduler has counted {one[key]}, dsched {other[key]}"
            for key in sorted(one.keys() | other.keys())
            if one[key] != other[key]
        ]
        if found:
            return found
    return []
