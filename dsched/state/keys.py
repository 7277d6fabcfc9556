"""Every key of the scheduler's state: its name, type, members. ``docs/redis.md`` is checked against this list.

The standalone cluster's own keys (``cluster:…``) are listed in `dsched.cluster.standalone.keys`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """A key, or a family of keys when its name ends with a colon.

    Attributes:
        name: without the system's prefix ``dsched:{NAME}:``.
        type: Redis type.
        members: what is in it, for people.
    """

    name: str
    type: str
    members: str


LEADER = Key("leader", "string", "who leads, `IDENTITY EPOCH`; expires with the lease")
EPOCH = Key("leader:epoch", "string", "the present epoch; grows for ever")
RELEASED = Key(
    "leader:released", "stream", "one entry, `EPOCH-0`: the lease that was given back last wakes who stands by"
)
ACTIVE = Key("queue:active", "zset", "pods to be scheduled in this order: `QUEUED-TIME NS/NAME` by minus priority")
BACKOFF = Key("queue:backoff", "zset", "pods that wait before they are tried again: `NS/NAME` by when that ends, ms")
UNSCHEDULABLE = Key(
    "queue:unschedulable", "zset", "pods that fit nowhere until something changes: `NS/NAME` by when that was found, ms"
)
GATED = Key("queue:gated", "zset", "pods held back by a PreEnqueue plugin: `NS/NAME` by since when, ms")
INFLIGHT = Key("queue:inflight", "hash", "pods popped and not yet decided: `NS/NAME` to `EPOCH BATCH`")
WAITING = Key("queue:waiting", "zset", "reserved pods that Permit holds back: `NS/NAME` by deadline, ms")
POD = Key(
    "pod:",
    "hash",
    "`pod:NS/NAME`, a pending pod: uid, queue, attempts, times, plugins that rejected it, message; "
    "`pod:podgroup/NS/NAME` the same of a pod group",
)
GROUP = Key(
    "queue:group",
    "zset",
    "pods that wait with their pod group, which stands in a queue as `podgroup/NS/NAME`: `GROUP NS/NAME` by when they "
    "were queued, microseconds; GROUP is the `NS/NAME` of the pod group",
)
RESERVATIONS = Key("reservations", "hash", "pod uid to `NS/NAME NODE EPOCH STATE ATTEMPT SINCE-MS`")
DEVICES = Key(
    "devices",
    "hash",
    "uid of a reserved pod to what it takes of devices until its claims say so in the cluster: JSON, by holder (uid of "
    "a claim, or of the pod) and device, share or counter",
)
DEVICES_USED = Key(
    "devices:used",
    "hash",
    "`DRIVER/POOL/DEVICE`, a share or a counter to how much reserved pods take of it; `sharers/HOLDER` to how many "
    "pods hold devices for that claim beside the first",
)
NODE = Key("node:", "hash", "`node:NAME`: version, object, allocatable.RESOURCE, used.RESOURCE (bound and reserved)")
QUOTA = Key(
    "quota:",
    "hash",
    "`quota:NAME`, a queue with limits, written as a node is: allocatable.RESOURCE its limit, used.RESOURCE what its "
    "pods, bound and reserved, take of that",
)
NODES_LOG = Key("nodes:log", "stream", "changes of the node table for the evaluators' replicas (msgpack)")
RESULTS = Key("bind:results", "stream", "outcomes of binds, one entry a job, until the leader has acted on them")
INTAKE = Key(
    "intake",
    "hash",
    "version: up to which of the cluster the leader has taken everything in; schedulers: whose pods; cluster: "
    "standalone or kubernetes; held_back: how many entries of queue:active limits of queues hold back, when there was "
    "nothing else to try; settled: the epoch whose leader had nothing else left to try, absent while it may have",
)
WORKERS = Key(
    "workers",
    "hash",
    "worker to `KIND LAST-SEEN-MS CONFIG-HASH CLUSTER TABLE TROUBLE`, written by a task that ran there",
)
LEADERS = Key("leaders", "hash", "leader process, standby or not, to what it says of itself (JSON), every 2 s")
CONFIGURATION = Key(
    "leader:configuration",
    "string",
    "the leader's configuration, for workers to take up (JSON): epoch, hash, cluster, source, text, whose code carries "
    "it out",
)
REPLIES = Key(
    "replies:", "list", "`replies:ID`, answers of evaluators to the leader, of the leader to commands; expires"
)
PHASES = Key(
    "leader:time",
    "hash",
    "the leader's seconds by phase, and how long attempts took; counted since its process began",
)
BEYOND = Key(
    "leader:beyond",
    "string",
    "nodes whose pods request more of something than 64 bits hold, as the leader last told (JSON)",
)
REWRITTEN = Key(
    "redis:rewritten",
    "string",
    "the start of Redis (`run_id`) after which it was asked to write its append-only file anew",
)
DECISIONS = Key("decisions", "string", "number of decisions written with --decisions")
PAUSED = Key("control:paused", "hash", "whose pods are not tried: a profile, or `*` for all, to `SINCE-MS REASON`")
RELOAD = Key("control:reload", "string", "how often leaders were asked to read their configuration files again")
REQUESTS = Key("control:requests", "list", "what commands ask of the leader (JSON), oldest first; expires")
EXPLAINED = Key(
    "explained:", "list", "`explained:NS/NAME`, newest first, at most 10: what was said at an attempt (JSON); expires"
)
EXPLANATIONS = Key("explanations", "zset", "pods with kept explanations, at most 5000: `NS/NAME` by last attempt, ms")
RECORDER = Key("recorder", "string", "who records, `TOKEN WHO`; expires 10 s after it was last there")
RECORDING = Key(
    "recording", "stream", "JSON lines that the leader tells the recorder and that are not in its file yet; expires"
)

ALL = (
    LEADER,
    EPOCH,
    RELEASED,
    ACTIVE,
    BACKOFF,
    UNSCHEDULABLE,
    GATED,
    INFLIGHT,
    WAITING,
    POD,
    GROUP,
    RESERVATIONS,
    DEVICES,
    DEVICES_USED,
    NODE,
    QUOTA,
    NODES_LOG,
    RESULTS,
    INTAKE,
    WORKERS,
    LEADERS,
    CONFIGURATION,
    REPLIES,
    PHASES,
    BEYOND,
    REWRITTEN,
    DECISIONS,
    PAUSED,
    RELOAD,
    REQUESTS,
    EXPLAINED,
    EXPLANATIONS,
    RECORDER,
    RECORDING,
)

FORMER = ("configuration",)
"""Names of keys that earlier versions wrote; a leader deletes them."""

_QUEUES = (EPOCH, ACTIVE, BACKOFF, UNSCHEDULABLE, GATED, INFLIGHT, WAITING, POD)
QUEUES = (*_QUEUES, GROUP)
"""KEYS of the queue scripts, in their order."""
QUEUES_AND_RESERVATIONS = (*_QUEUES, RESERVATIONS, NODE, DEVICES, DEVICES_USED, GROUP)
"""KEYS of the scripts that move pods into or out of a reservation."""
RELEASE = (*_QUEUES, RESERVATIONS, NODE, DEVICES, DEVICES_USED, INTAKE, GROUP)
"""KEYS of the script that ends a reservation without a bind."""
RESERVE = (*_QUEUES, RESERVATIONS, NODE, DEVICES, DEVICES_USED, QUOTA, GROUP)
"""KEYS of the script that reserves."""


def names(*keys: Key) -> tuple[str, ...]:
    """The names of keys, as a script call takes them."""
    return tuple(key.name for key in keys)
