"""What only dsched has: batches, evaluators, reservations, fencing."""

from dsched.metrics.instruments import (
    ALL,
    BINDER,
    EVALUATOR,
    LEADER,
    WORKERS,
    counter,
    exponential,
    gauge,
    histogram,
    scraped,
)

_SECONDS = exponential(0.0005, 2, 16)

EVALUATIONS = counter(
    "dsched_evaluations_total",
    "Classes of pods judged over the whole node table; where: local (in the leader) or distributed (by evaluators).",
    ["where"],
)
SHARD_FALLBACKS = counter(
    "dsched_shard_fallbacks_total",
    "Shards that evaluators did not answer in time, or could not be asked about, and the leader judged itself.",
)
SHARD_DURATION = histogram(
    "dsched_shard_duration_seconds", "What an evaluator took to judge a shard.", buckets=_SECONDS
)
SCATTER_DURATION = histogram(
    "dsched_scatter_duration_seconds",
    "From sending shards to the evaluators to having all answers, fallbacks included.",
    buckets=_SECONDS,
)
STALE_REPLIES = counter(
    "dsched_stale_replies_total",
    "Replies of evaluators that were dropped; why: stale (another request or epoch, or the second answer), refused "
    "(another configuration, no such table version), malformed.",
    ["why"],
)
PREEMPTION_STOPPED = counter(
    "dsched_preemption_stopped_total",
    "Times that a pod was kept from preempting for a while: it had evicted others again and again without landing.",
)
PROMISES_EXPIRED = counter(
    "dsched_nominations_expired_total", "Nominations that ended because the node did not become free in time."
)
RESERVATIONS_REFUSED = counter(
    "dsched_reservations_refused_total",
    "Reservations that Redis refused; why: changed (the node did, underneath), gone (the pod is no longer in flight).",
    ["why"],
)
RECORDED = counter("dsched_recorded_bytes_total", "JSON that the leader has told to recorders (dsched record).")
RECORDING_INTERRUPTED = counter(
    "dsched_recordings_interrupted_total",
    "Times that the leader stopped telling a recorder, because he did not keep up or Redis was full.",
)
BINDS = counter("dsched_binds_total", "Binds by how they ended (see BindVerdict).", ["verdict"])
REBINDS = counter("dsched_binds_handed_out_again_total", "Reserved pods handed to binders again: no outcome in time.")
STALE_RESULTS = counter("dsched_stale_results_total", "Bind results of an older epoch, looked up instead of believed.")
EXTENDER_REQUESTS = counter(
    "dsched_extender_requests_total",
    "Calls of extenders; extender: its urlPrefix; result: ok, error (it answered that it failed, or what nobody can "
    "read), timeout, broken (the connection ended first), unreachable (no connection), skipped (the breaker is open).",
    ["extender", "verb", "result"],
    exporters=(*LEADER, *BINDER),
)
EXTENDER_DURATION = histogram(
    "dsched_extender_duration_seconds",
    "From calling an extender to having its answer or giving up on it.",
    ["extender", "verb"],
    buckets=exponential(0.001, 2, 15),
    exporters=(*LEADER, *BINDER),
)
EXTENDER_BREAKER_OPEN = gauge(
    "dsched_extender_breaker_open",
    "1 while an extender that does not answer is not waited for.",
    ["extender"],
    exporters=(*LEADER, *BINDER),
    mode="livemax",
)
CONFIG_RELOADS = counter(
    "dsched_config_reloads_total",
    "Times that another configuration was found; result: taken, unchanged (it means the same), refused (the last good "
    "one stays). Workers count when they take up the leader's.",
    ["result"],
    exporters=ALL,
)
CONFIG_REFUSED = gauge(
    "dsched_config_refused", "1 while the configuration file was refused and the last good one is in use."
)
PLUGIN_OVERRUNS = counter(
    "dsched_plugin_overruns_total",
    "Calls of plugins that took longer than they may; how: told (the plugin was ended), lost (the process ended with "
    "it, for that or another reason).",
    ["plugin", "how"],
    exporters=ALL,
)
PODS_PARKED = counter(
    "dsched_pods_parked_total", "Times that a pod was set aside for minutes because processes kept dying of it."
)
SPANS = counter(
    "dsched_trace_spans_total",
    "Spans of traces, where they are sent; result: exported, failed (the collector did not take them), dropped (too "
    "many waited to be sent).",
    ["result"],
    exporters=ALL,
)
UNREADABLE = counter(
    "dsched_unreadable_state_total",
    "Entries of the scheduler's own state that could not be read and were made anew; what: record (of a pending pod), "
    "reservation, or the name of a key (docs/redis.md; of a family, what its names begin with).",
    ["what"],
)
FENCED = counter("dsched_fencing_rejections_total", "Times this process found that another leader has taken over.")
RESCUED = counter(
    "dsched_rescued_pods_total",
    "Pods that only the flush of old unschedulable pods moved; plugin: one that had rejected them.",
    ["plugin"],
)
MISSED = counter(
    "dsched_missed_pods_total",
    "Pods that only the flush of old unschedulable pods moved and that were then placed: no event moved them when they "
    "began to fit; plugin: one that had rejected them; event: each kind of event that this plugin has registered for "
    "and that came since, but by its hints did not help (named as in `scheduler_queue_incoming_pods_total`), or none: "
    "it has not registered for what helped, or that was never heard of.",
    ["plugin", "event"],
)
CACHE_MISMATCHES = counter(
    "dsched_cache_mismatch_total",
    "Things that the leader believed and were not so, found by comparing and repaired; what: see "
    "`dsched/leader/audit/compare.py`.",
    ["what"],
)
FOREIGN_BINDS = counter(
    "dsched_foreign_binds_total",
    "Pods that waited here and were bound by somebody else: another scheduler answers to the same name, or a hand.",
)
NODES_SET_ASIDE = counter(
    "dsched_nodes_set_aside_total", "Times that a node was set aside for a while because it kept refusing binds."
)
NODES_ASIDE = gauge("dsched_nodes_aside", "Nodes that are set aside at present because they kept refusing binds.")
BATCH_SIZE = histogram("dsched_batch_size", "Pods decided in one batch.", buckets=exponential(1, 2, 10))
BATCH_DURATION = histogram(
    "dsched_batch_duration_seconds",
    "Popping, deciding, reserving and handing out a batch; it is kept so small that this is about 50 ms.",
    buckets=_SECONDS,
)
TURN_DURATION = histogram(
    "dsched_loop_turn_duration_seconds",
    "One turn of the leader's loop, without the wait for something to do.",
    buckets=_SECONDS,
)
PHASE_SECONDS = counter(
    "dsched_leader_phase_seconds_total",
    "Where the leader's loop spent its time; phase: wait, intake, settle, timers, events, pop, evaluate, reserve, hand "
    "out, requeue. They add up to all of it.",
    ["phase"],
)
TAKEOVER_DURATION = histogram(
    "dsched_takeover_duration_seconds",
    "From getting the lease to deciding: reading Redis and the cluster, settling what was in flight.",
    buckets=exponential(0.01, 2, 14),
)
RESERVATIONS = gauge("dsched_reservations", "Reservations that stand: pods assumed and not yet bound.")

QUEUE_AMOUNTS = gauge(
    "dsched_queue_resource",
    "Of a queue (docs/queues.md) and those below it, by resource, CPU in cores; what: used, fair (its share as things "
    "are), pending (what pods that wait ask for), guaranteed, limit.",
    ["queue", "resource", "what"],
)
QUEUE_PODS = gauge(
    "dsched_queue_pods", "Pods of a queue and of those below it; state: running or pending.", ["queue", "state"]
)
QUEUE_RECLAIMED = counter(
    "dsched_queue_pods_reclaimed_total", "Pods that other queues took back from a queue or those below it.", ["queue"]
)

EPOCH = scraped("dsched_leader_epoch", "The epoch under which this process leads, 0 while it stands by.")
OWN_FEATURE_ENABLED = scraped(
    "dsched_feature_enabled", "Whether a feature gate of dsched's own is on (1) or off (0).", ["name"]
)
TURNED = scraped(
    "dsched_loop_last_turn_age_seconds", "How long ago the leader's loop last turned; 0 while it stands by."
)
INFLIGHT = scraped("dsched_inflight_pods", "Pods popped and not yet decided.")
WAITING = scraped("dsched_waiting_pods", "Reserved pods that Permit holds back.")
RESULTS = scraped("dsched_bind_results_pending", "Bind results that the leader has not acted on.")
NODE_LOG = scraped("dsched_node_log_entries", "Entries of the node table's log for the evaluators' replicas.")
PAUSED_PROFILES = scraped(
    "dsched_paused",
    "1 for each profile whose pods are not tried until somebody resumes; `*`: all of them.",
    ["profile"],
)
TASKS_WAITING = scraped(
    "dsched_tasks_waiting", "Messages that no worker has taken; queue: evaluators, binders.", ["queue"]
)
WORKERS_SEEN = scraped(
    "dsched_workers",
    "Workers by kind and state: live (ran a task within 10 s), silent (did not).",
    ["kind", "state"],
)

TASKS = counter(
    "dsched_tasks_total", "Tasks that a worker has run; result: done, failed.", ["task", "result"], exporters=WORKERS
)
MESSAGES_REFUSED = counter(
    "dsched_messages_refused_total",
    "Messages in a worker's queues that were none of dsched's, and were dropped.",
    exporters=WORKERS,
)
TASK_DURATION = histogram(
    "dsched_task_duration_seconds", "What a task took in the worker.", ["task"], buckets=_SECONDS, exporters=WORKERS
)
LAST_TASK = gauge(
    "dsched_last_task_timestamp_seconds",
    "When the worker last ran a task; the leader's pings are tasks too.",
    exporters=WORKERS,
    mode="max",
)
REPLICA_LAG = gauge(
    "dsched_replica_lag_versions",
    "Versions that the node table's replica was behind when a shard was last asked for; 0 where it had to begin anew.",
    exporters=EVALUATOR,
)
REPLICA_REBUILDS = counter(
    "dsched_replica_rebuilds_total",
    "Times the replica of the node table had to begin anew: at first, after each change of leader, and when the "
    "evaluator got parts of the table that another one had.",
    exporters=EVALUATOR,
)
CATCH_UP_DURATION = histogram(
    "dsched_replica_catch_up_seconds",
    "Bringing the replica to the version that a shard names.",
    buckets=_SECONDS,
    exporters=EVALUATOR,
)
REFUSALS = counter("dsched_shards_refused_total", "Shards that the evaluator could not judge.", exporters=EVALUATOR)
BOUND = counter(
    "dsched_binder_pods_total", "Pods that the binder took through the binding cycle.", ["verdict"], exporters=BINDER
)
SCRAPE_FAILURES = counter(
    "dsched_scrape_failures_total",
    "Scrapes in which values could not be looked up, because Redis did not answer.",
    exporters=ALL,
)
WATCH_LISTS = counter(
    "dsched_watch_lists_total", "Times that all objects of a kind were read from the API server.", ["kind"]
)
WATCH_UNREADABLE = counter(
    "dsched_watch_unreadable_objects_total",
    "Objects of the cluster that could not be read and were left out.",
    ["kind"],
)
UNKNOWN_FIELDS = counter(
    "dsched_unknown_fields_total",
    "Pods, as a leader first hears of them, with a field in their spec that dsched does not know and ignores: the API "
    "server or who wrote it is newer; field: its path, other beyond 50 of them.",
    ["field"],
)
CLUSTER_WRITES = counter(
    "dsched_cluster_writes_total",
    "What the leader writes to the API server in the background; what: status, evict, group (a pod group's condition), "
    "queue (its status); result: done, passed over (the pod is gone, bound or another one), failed.",
    ["what", "result"],
)
EVENTS_RECORDED = counter(
    "dsched_events_total",
    "Events for the API server; result: sent, counted (a repeat, told later with others), dropped (too many wait), "
    "failed.",
    ["result"],
    exporters=(*LEADER, *BINDER),
)
