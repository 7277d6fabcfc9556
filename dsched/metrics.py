"""Every Prometheus metric, in seconds: kube-scheduler's names where the meaning is the same, else ``dsched_``."""

from prometheus_client import Counter, Gauge, Histogram

EVALUATIONS = Counter(
    "dsched_evaluations_total",
    "Classes of pods judged over the whole node table; where: local (in the leader) or distributed (by evaluators).",
    ["where"],
)
SHARD_FALLBACKS = Counter(
    "dsched_shard_fallbacks_total", "Shards that evaluators did not answer in time and the leader judged itself."
)
STALE_REPLIES = Counter(
    "dsched_stale_replies_total",
    "Replies of evaluators that were dropped; why: stale (another request or epoch, or the second answer), refused "
    "(another configuration, no such table version), malformed.",
    ["why"],
)
SCHEDULE_ATTEMPTS = Counter(
    "scheduler_schedule_attempts_total",
    "Attempts to schedule pods; result: scheduled, unschedulable (it fits nowhere), error (something failed).",
    ["result", "profile"],
)
PREEMPTION_ATTEMPTS = Counter("scheduler_preemption_attempts_total", "Preemptions that named a node.")
PREEMPTION_VICTIMS = Histogram(
    "scheduler_preemption_victims", "Pods deleted by one preemption.", buckets=(1, 2, 4, 8, 16, 32, 64)
)
RESERVATIONS_REFUSED = Counter(
    "dsched_reservations_refused_total",
    "Reservations that Redis refused; why: changed (the node did, underneath), gone (the pod is no longer in flight).",
    ["why"],
)
BINDS = Counter("dsched_binds_total", "Binds by how they ended (see BindVerdict).", ["verdict"])
REBINDS = Counter("dsched_binds_handed_out_again_total", "Reserved pods handed to binders again: no outcome in time.")
STALE_RESULTS = Counter("dsched_stale_results_total", "Bind results of an older epoch, looked up instead of believed.")
FENCED = Counter("dsched_fencing_rejections_total", "Times this process found that another leader has taken over.")
RESCUED = Counter(
    "dsched_rescued_pods_total",
    "Pods that only the flush of old unschedulable pods moved; plugin: one that had rejected them.",
    ["plugin"],
)
BATCH_SIZE = Histogram(
    "dsched_batch_size", "Pods decided in one batch.", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
)
RESERVATIONS = Gauge("dsched_reservations", "Reservations that stand: pods assumed and not yet bound.")
