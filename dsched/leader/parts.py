"""What the parts of a leader share: what stands in Redis, and what is held in memory.

Both belong to one epoch and to the loop; neither does anything by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dsched.clock import Clock
from dsched.framework.runtime import Framework
from dsched.leader.events import Events
from dsched.scheduler.cache import Cache
from dsched.scheduler.pod_groups import QueuedGroups
from dsched.scheduler.queue import PendingPods
from dsched.scheduler.waiting_pods import WaitingPods
from dsched.state.client import Store
from dsched.state.node_log import NodeLog
from dsched.state.pipeline import Pipeline
from dsched.state.queue import Queue
from dsched.state.reservations import Reservations
from dsched.state.results import Results


@dataclass(frozen=True, slots=True)
class StoredState:
    """What stands in Redis; whatever is written is written under the epoch.

    Attributes:
        store: for what is read, and for what is written at once.
        line: that scripts are sent on, one behind the other, without waiting for what they answer.
        lined: the same system as ``store``, on that line; so are queue, reservations and results.
        node_log: for the evaluators' replicas.
    """

    store: Store
    epoch: int
    line: Pipeline
    lined: Store
    queue: Queue
    reservations: Reservations
    results: Results
    node_log: NodeLog


@dataclass(frozen=True, slots=True)
class LeaderMemory:
    """What the leader holds in memory.

    Attributes:
        frameworks: of the profiles, by scheduler name.
        pending: pods that are not bound.
        cache: nodes and the pods on them.
        waiting: pods that Permit holds back.
        events: on their way to the pods that they may help.
        groups: pod groups in the queue.
    """

    clock: Clock
    frameworks: Mapping[str, Framework]
    pending: PendingPods
    cache: Cache
    waiting: WaitingPods
    events: Events
    groups: QueuedGroups
