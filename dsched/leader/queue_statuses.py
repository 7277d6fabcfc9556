"""What the leader says of queues: on the objects themselves, and as metrics."""

from collections import Counter
from collections.abc import Mapping

from prometheus_client import Gauge

from dsched.cluster.interface import Cluster, SchedulingStatus
from dsched.leader.failure import UNSCHEDULABLE, Failures
from dsched.metrics import QUEUE_AMOUNTS, QUEUE_PODS, QUEUE_RECLAIMED
from dsched.model.meta import PodUid
from dsched.model.quantity import Quantity
from dsched.model.queues import QueueStatus
from dsched.scheduler.queue import QueuedGroup
from dsched.scheduler.quota.picking import Picking
from dsched.scheduler.quota.tree import Share

EVERY_S, SHARE = 2.0, 0.01
"""How often statuses and metrics are brought up to date, unless that takes more than this share of the time: of 1,000
queues that all have changed it takes some 0.05 s, which pods that come would wait for."""
TOLD_AT_ONCE = 500
"""Pods at a look that are told that a limit holds them back."""


class QueueStatuses:
    """Writes statuses of queues that have changed since it last did, and tells pods that a limit holds them back."""

    def __init__(self, picking: Picking, failures: Failures, cluster: Cluster) -> None:
        self._picking = picking
        self._failures = failures
        self._ledger = picking.ledger
        self._cluster = cluster
        self._held: dict[PodUid, str] = {}
        self._written: dict[str, QueueStatus] = {}
        self._counted: dict[str, int] = {}
        self._measured: dict[str, dict[tuple[str, str], float]] = {}
        self._series: dict[str, dict[tuple[str, str], Gauge]] = {}
        self._pods: dict[str, tuple[Gauge, Gauge]] = {}
        self._told: Counter[str] = Counter()

    def write(self) -> None:
        """Bring statuses and metrics up to date; that of a queue is counted on from what its object says."""
        tree, reclaimed = self._ledger.divide(), self._ledger.reclaimed
        shares = tree.shares
        news = [share for name, share in shares.items() if share.news or reclaimed[name] != self._told[name]]
        found = {share.name: self._status(share) for share in news}
        changed = {name: status for name, status in found.items() if self._written.get(name) != status}
        if changed:
            self._cluster.report_queues(changed)
        for name in self._written.keys() - shares.keys():
            self._forget(name)
        self._written |= found
        for share in news:
            name = share.name
            self._measure(name, share)
            QUEUE_RECLAIMED.labels(name).inc(reclaimed[name] - self._told[name])
            self._told[name] = reclaimed[name]
        for share in (tree.root, *news):
            share.news = False
        self._tell_held()

    def close(self) -> None:
        """Another leader says how things are from now on."""
        QUEUE_AMOUNTS.clear()
        QUEUE_PODS.clear()

    def _tell_held(self) -> None:
        """Say why on pods that wait in the active queue for room below a limit, once for each reason."""
        news: list[SchedulingStatus] = []
        held: dict[PodUid, str] = {}
        for pod, message in self._picking.held_back():
            if isinstance(pod, QueuedGroup) or (self._held.get(pod.uid) != message and len(news) == TOLD_AT_ONCE):
                continue
            held[pod.uid] = message
            if self._held.get(pod.uid) != message:
                news.append(SchedulingStatus(pod.key, pod.uid, UNSCHEDULABLE, message))
        self._held = held
        if news:
            self._failures.tell(news)

    def _forget(self, name: str) -> None:
        """The queue is gone. Each of its series by itself: `remove_by_labels` looks at those of all queues."""
        del self._written[name]
        self._series.pop(name, None)
        self._pods.pop(name, None)
        for resource, what in self._measured.pop(name, {}):
            QUEUE_AMOUNTS.remove(name, resource, what)
        for what in ("running", "pending"):
            QUEUE_PODS.remove(name, what)

    def _status(self, share: Share) -> QueueStatus:
        assert share.queue is not None
        before = self._counted.setdefault(share.name, share.queue.status.reclaimed_pods)
        reclaimed = self._ledger.reclaimed[share.name]
        borrowed = {name: used - share.guaranteed.get(name, 0) for name, used in share.usage.items()}
        return QueueStatus(
            usage=_texts(share.usage),
            fair_share=_texts({name: round(due) for name, due in share.fair.items()}),
            borrowed=_texts(borrowed),
            pending=_texts(share.pending),
            pending_pods=share.waiting,
            reclaimed_pods=before + reclaimed,
        )

    def _measure(self, name: str, share: Share) -> None:
        measured, before = _amounts(share), self._measured.get(name, {})
        self._measured[name] = measured
        series = self._series.setdefault(name, {})
        for gone in before.keys() - measured.keys():
            QUEUE_AMOUNTS.remove(name, *gone)
            del series[gone]
        for each, amount in measured.items():
            if before.get(each) != amount:
                if (one := series.get(each)) is None:  # looking it up takes longer than what it is for
                    one = series[each] = QUEUE_AMOUNTS.labels(name, *each)
                one.set(amount / 1000 if each[0] == "cpu" else amount)
        if (pods := self._pods.get(name)) is None:
            pods = self._pods[name] = QUEUE_PODS.labels(name, "running"), QUEUE_PODS.labels(name, "pending")
        pods[0].set(share.running)
        pods[1].set(share.waiting)


def _amounts(share: Share) -> dict[tuple[str, str], float]:
    """Resource and word of the metric to the amount; nothing where a queue has no guarantee or limit."""
    has: dict[str, Mapping[str, float]] = {"used": share.usage, "fair": share.fair, "pending": share.pending}
    said = {"guaranteed": share.guaranteed, "limit": share.limits}
    resources = {resource for amounts in (*has.values(), *said.values()) for resource in amounts}
    found: dict[tuple[str, str], float] = {
        (resource, what): amounts[resource] for what, amounts in said.items() for resource in amounts
    }
    return found | {(each, what): amounts.get(each, 0) for what, amounts in has.items() for each in resources}


def _texts(amounts: dict[str, int]) -> dict[str, Quantity]:
    """As quantities; CPU is counted in milli-units."""
    return {
        resource: f"{amount}m" if resource == "cpu" and amount % 1000 else str(_whole(resource, amount))
        for resource, amount in sorted(amounts.items())
        if amount > 0
    }


def _whole(resource: str, amount: int) -> int:
    return amount // 1000 if resource == "cpu" else amount
