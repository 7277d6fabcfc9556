"""kube-scheduler's metrics: its names, labels and buckets, so that dashboards made for it work.

Source: kubernetes v1.34 pkg/scheduler/metrics/metrics.go.
"""

from dsched.metrics.instruments import ALL, counter, exponential, histogram, scraped

_MILLISECONDS = exponential(0.001, 2, 15)
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
    "Pods put into a queue (active, backoff, unschedulable, gated), and the event that brought them there.",
    ["queue", "event"],
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
    "scheduler_preemption_victims", "Pods deleted by one preemption.", buckets=exponential(1, 2, 7)
)

PENDING_PODS = scraped(
    "scheduler_pending_pods", "Pods in a queue: active, backoff, unschedulable, gated; read from Redis.", ["queue"]
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
