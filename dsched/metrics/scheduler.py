"""kube-scheduler's metrics: its names, labels and buckets, so that dashboards made for it work.

Source: kubernetes v1.34 pkg/scheduler/metrics/metrics.go; those about devices: v1.35 to v1.37, and
k8s.io/dynamic-resource-allocation/resourceclaim/metrics/metrics.go; those about pod groups: v1.37.
"""

from dsched.metrics.instruments import ALL, BINDER, counter, exponential, histogram, scraped

_MILLISECONDS = exponential(0.001, 2, 15)
_PREEMPTION = exponential(0.001, 2, 16)
EXTENSION_POINTS = exponential(0.0001, 2, 12)
PLUGIN_CALLS = exponential(0.00001, 1.5, 20)

SCHEDULE_ATTEMPTS = counter(
    "scheduler_schedule_attempts_total",
    "Attempts to schedule pods; result: scheduled (bound), unschedulable (it fits nowhere or was turned away), error "
    "(something failed).",
    ["result", "profile"],
)
ATTEMPT_DURATION = histogram(
    "scheduler_scheduling_attempt_duration_seconds",
    "From when a pod was popped to when it was bound or put back; pods of a batch are popped together.",
    ["result", "profile"],
    buckets=_MILLISECONDS,
)
ALGORITHM_DURATION = histogram(
    "scheduler_scheduling_algorithm_duration_seconds",
    "What deciding a pod took: a batch's time divided by its pods, observed once a pod.",
    buckets=_MILLISECONDS,
)
SLI_DURATION = histogram(
    "scheduler_pod_scheduling_sli_duration_seconds",
    "From a pod's first attempt to when it was bound; attempts: how many it took, 15+ from 15 on.",
    ["attempts"],
    buckets=exponential(0.01, 2, 20),
)
SCHEDULED_AFTER_FLUSH = counter(
    "scheduler_pod_scheduled_after_flush_total",
    "Pods that only the flush of old unschedulable pods moved and that were then placed.",
)
POD_ATTEMPTS = histogram(
    "scheduler_pod_scheduling_attempts", "Attempts that bound pods took.", buckets=exponential(1, 2, 5)
)
EXTENSION_POINT_DURATION = histogram(
    "scheduler_framework_extension_point_duration_seconds",
    "All plugins of an extension point; PreFilter, Filter, PreScore and Score run once for a class of equal pods. "
    "Points without plugins are left out.",
    ["extension_point", "status", "profile"],
    buckets=EXTENSION_POINTS,
    exporters=ALL,
)
PLUGIN_DURATION = histogram(
    "scheduler_plugin_execution_duration_seconds",
    "One call of a plugin, one in ten measured; Filter and Score are one call for all nodes where the plugin judges "
    "the whole table.",
    ["plugin", "extension_point", "status"],
    buckets=PLUGIN_CALLS,
    exporters=ALL,
)
PLUGIN_EVALUATIONS = counter(
    "scheduler_plugin_evaluation_total",
    "Times that a plugin ran at PreFilter, Filter, PreScore or Score: once for a class of equal pods.",
    ["plugin", "extension_point", "profile"],
    exporters=ALL,
)
HINT_DURATION = histogram(
    "scheduler_queueing_hint_execution_duration_seconds",
    "One call of a plugin's queueing hint, one in ten measured; hint: Queue, QueueSkip, Error.",
    ["plugin", "event", "hint"],
    buckets=PLUGIN_CALLS,
)
EVENT_DURATION = histogram(
    "scheduler_event_handling_duration_seconds",
    "Looking for the pods that an event may help; events that are handled together share the time evenly.",
    ["event"],
    buckets=EXTENSION_POINTS,
)
INCOMING_PODS = counter(
    "scheduler_queue_incoming_pods_total",
    "Pods put into a queue (active, backoff, unschedulable: gated ones, too), and the event that brought them there; "
    "all pods of a pod group that is.",
    ["queue", "event"],
)
INCOMING_ENTITIES = counter(
    "scheduler_queue_incoming_entities_total",
    "Pods (type: pod) and pod groups (podgroup) put into a queue, and the event that brought them there; not where a "
    "hint sends a pod into backoff, and where an attempt leaves it unschedulable.",
    ["queue", "event", "type"],
)
PERMIT_WAIT = histogram(
    "scheduler_permit_wait_duration_seconds",
    "How long Permit held a pod back; result: Success, Unschedulable.",
    ["result"],
    buckets=_MILLISECONDS,
)
PREEMPTION_ATTEMPTS = counter(
    "scheduler_preemption_attempts_total", "Times that DefaultPreemption was asked for room, whatever came of it."
)
PREEMPTION_VICTIMS = histogram(
    "scheduler_preemption_victims",
    "Pods that have to go for one preemption, those included that are leaving anyway.",
    buckets=exponential(1, 2, 7),
)
PREEMPTION_EVALUATION = histogram(
    "scheduler_preemption_evaluation_duration_seconds",
    "Looking for pods to evict; preemptor: pod, podgroup; result: the status that it ended with.",
    ["preemptor", "result"],
    buckets=_PREEMPTION,
)
PREEMPTION_EXECUTION = histogram(
    "scheduler_preemption_execution_duration_seconds",
    "Evicting what was found; preemptor: pod, podgroup; result: success, error.",
    ["preemptor", "result"],
    buckets=_PREEMPTION,
)
PREEMPTION_DISRUPTIONS = histogram(
    "scheduler_preemption_workload_disruptions",
    "Pods of pod groups, and groups that are disrupted together, that one preemption for a pod group evicts.",
    ["preemptor"],
    buckets=exponential(1, 2, 11),
)
PREEMPTION_VIOLATIONS = counter(
    "scheduler_preemption_pdb_violations_total",
    "Evicted pods by which preemption violates a disruption budget; preemptor: pod, podgroup.",
    ["preemptor"],
)

GROUP_ATTEMPTS = counter(
    "scheduler_podgroup_schedule_attempts_total",
    "Attempts to schedule pod groups; result: scheduled (pods of it got nodes), unschedulable, waiting_on_preemption "
    "(room is being made), error.",
    ["result", "profile"],
)
GROUP_ATTEMPT_DURATION = histogram(
    "scheduler_podgroup_scheduling_attempt_duration_seconds",
    "From when a pod group was popped to when its pods were reserved or it was put back.",
    ["result", "profile"],
    buckets=_MILLISECONDS,
)
GROUP_ALGORITHM_DURATION = histogram(
    "scheduler_podgroup_scheduling_algorithm_duration_seconds",
    "Looking for nodes for all pods of a pod group; what PodGroupPostFilter takes is not part of it.",
    buckets=_MILLISECONDS,
)
GENERATED_PLACEMENTS = counter(
    "scheduler_generated_placements_total",
    "Placements that were candidates for pod groups, those of trials for preemption included.",
    ["profile"],
)
PLACEMENT_EVALUATIONS = counter(
    "scheduler_placement_evaluations_total",
    "Placements of which was found out whether the pod group fits; result: feasible, infeasible.",
    ["result", "profile"],
)
GROUP_PREEMPTION_ATTEMPTS = counter(
    "scheduler_workload_preemption_attempts_total",
    "Times that DefaultPreemption was asked for room for a pod group; result: the status it answered with.",
    ["result"],
)
GROUP_PREEMPTION_VICTIMS = histogram(
    "scheduler_workload_preemption_victims",
    "Pods that have to go for one preemption for a pod group, those included that are leaving anyway.",
    buckets=exponential(1, 2, 11),
)

CLAIMS_CREATED = counter(
    "dynamic_resource_allocation_resourceclaim_creates_total",
    "ResourceClaims that the binder tried to make for extended resources; status: success, failure. Since 1.37.",
    ["status", "admin_access", "owner_api_group", "owner_api_kind"],
    exporters=BINDER,
)
CLAIMS_CREATED_BEFORE_1_37 = counter(
    "scheduler_resourceclaim_creates_total",
    "ResourceClaims that the binder tried to make for extended resources; status: success, failure. In 1.35 and 1.36.",
    ["status"],
    exporters=BINDER,
)
BINDING_CONDITIONS_ALLOCATIONS = counter(
    "scheduler_dra_bindingconditions_allocations_total",
    "Devices with binding conditions that a pod has waited for, once a device and attempt; status: success, failure, "
    "timeout, error. Since 1.36.",
    ["profile", "driver", "status"],
    exporters=BINDER,
)
BINDING_CONDITIONS_WAIT = histogram(
    "scheduler_dra_bindingconditions_wait_duration_seconds",
    "From the decision to when the binding conditions of a pod's devices were met or given up, once for each device of "
    "its claims; status: success, failure, timeout, error. Since 1.36.",
    ["profile", "driver", "status"],
    buckets=exponential(0.1, 2, 14),
    exporters=BINDER,
)

PENDING_PODS = scraped(
    "scheduler_pending_pods",
    "Pods in a queue: active, backoff, unschedulable, gated, where pods are counted with their pod group; incomplete: "
    "they wait for their PodGroup to be made; pending: their pod group is being decided without them. Read from Redis.",
    ["queue"],
)
QUEUED_ENTITIES = scraped(
    "scheduler_queued_entities",
    "Pods (type: pod) and pod groups (podgroup) in a queue: active, backoff, unschedulable, gated; read from Redis.",
    ["queue", "type"],
)
UNSCHEDULABLE_PODS = scraped(
    "scheduler_unschedulable_pods",
    "Unschedulable and gated pods by each plugin that rejected them; a pod counts once for every such plugin.",
    ["plugin", "profile"],
)
CACHE_SIZE = scraped(
    "scheduler_cache_size",
    "What the leader's cache holds: nodes, pods, assumed_pods (reserved, not yet bound).",
    ["type"],
)
INFLIGHT_EVENTS = scraped(
    "scheduler_inflight_events", "Events that have happened and have not been applied to the queue.", ["event"]
)
LEADS = scraped(
    "leader_election_master_status", "Whether this process leads (1) or stands by (0); name: the system's.", ["name"]
)
BUILD_INFO = scraped(
    "kubernetes_build_info",
    "Always 1. major, minor: the version that is emulated; git_version: that and dsched's own; git_commit, "
    "git_tree_state: dsched's; compiler: the Python; build_date, go_version: empty.",
    [
        "major",
        "minor",
        "git_version",
        "git_commit",
        "git_tree_state",
        "build_date",
        "go_version",
        "compiler",
        "platform",
    ],
)
FEATURE_ENABLED = scraped(
    "kubernetes_feature_enabled",
    "Whether a feature gate of the emulated version is on (1) or off (0); stage: ALPHA, BETA, or empty once it is "
    "stable.",
    ["name", "stage"],
)
