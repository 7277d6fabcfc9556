"""What plugins may reach in the leader, and wherever its decisions are tried out."""

from collections.abc import Iterable, Iterator

from dsched.clock import Clock
from dsched.framework.long_search import Searches
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import PodKey, PodUid
from dsched.scheduler.nominations import Nomination
from dsched.scheduler.ports import Assumptions
from dsched.scheduler.queue import PendingPods, QueuedPod
from dsched.scheduler.quota.ledger import Ledger
from dsched.scheduler.waiting_pods import WaitingPod, WaitingPods


class LeaderHandle:
    """Given to every plugin that the leader, a simulation or an explanation builds.

    Attributes:
        clock: the time; plugins take it from here.
        queues: between which the cluster is divided, None where it is not.
        searches: where work goes that would hold up all other pods, None where there are none.
    """

    def __init__(
        self,
        cache: Assumptions,
        waiting: WaitingPods,
        pending: PendingPods,
        clock: Clock,
        queues: Ledger | None = None,
        searches: Searches | None = None,
    ) -> None:
        self._cache = cache
        self._waiting = waiting
        self._pending = pending
        self.clock = clock
        self.queues = queues
        self.searches = searches

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as the present attempt sees it."""
        return self._cache.snapshot

    def waiting_pods(self, group: str = "") -> Iterator[WaitingPod]:
        """Pods that Permit holds back; those of a pod group, where its key is given."""
        return self._waiting.of_group(group) if group else iter(self._waiting)

    def waiting_pod(self, uid: PodUid) -> WaitingPod | None:
        """A pod that Permit holds back, None when it does not."""
        return self._waiting.get(uid)

    def pending_pods(self) -> Iterator[QueuedPod]:
        """Pods that are not bound, those that Permit holds back among them."""
        return iter(self._pending)

    def activate(self, keys: Iterable[PodKey]) -> None:
        """Have pods that are not bound tried again, once the present batch is over: at once, whatever their pauses, if
        PreEnqueue lets them. Those that are in flight now wait for the end of their pause, should they not be placed.
        Of a pod group that is the whole group.

        Source: k8s.io/kube-scheduler framework/interface.go ``PodActivator``.
        """
        self._pending.activate(keys)

    def preempting(self, key: PodKey) -> Nomination:
        """What preemption has brought a pod so far; nothing for a pod that is not pending here."""
        pod = self._pending.get(key)
        return pod.nomination if pod is not None and pod.nomination is not None else Nomination()

    def pending_pod(self, key: PodKey) -> QueuedPod | None:
        """A pod that is not bound, None when it is, or is not there."""
        return self._pending.get(key)
