"""What the leader writes onto pods besides binding them: why they were not placed, promises, evictions; what came of
pod groups, onto these; and onto queues, how much they have.

All of it is written in the background, promises and evictions first, so that no decision waits for it. A newer status
of a pod replaces one that still waits. Killed before something is written: the next leader tries the pod again and says
so again; a victim that was not deleted is found again.

What the API server cannot be asked for, or keeps failing at, is put off and written when it can: without the eviction
the pod that waits for the room would wait for the next event.

A status is written only onto the pod that was looked at (its resourceVersion goes along): a pod that was bound
meanwhile must not be told that it is unschedulable.

Source: pkg/scheduler/util/utils.go ``PatchPodStatus``, ``DeletePod``; schedule_one.go ``updatePod``; framework/
preemption/executor.go ``prepareCandidate``.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from dsched.cluster.interface import GroupStatus, SchedulingStatus
from dsched.cluster.kubernetes import bindings, resources
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.http import client
from dsched.cluster.kubernetes.http.client import Calls, Outcome
from dsched.cluster.kubernetes.http.exchange import STRATEGIC_MERGE_PATCH, Answer, Request
from dsched.cluster.kubernetes.patchers import GroupPatcher, KnownObject, QueuePatcher, QueueReport, report
from dsched.errors import ClusterUnavailable
from dsched.log import logger
from dsched.metrics import CLUSTER_WRITES
from dsched.model.meta import PodKey, PodUid
from dsched.model.pod import Pod, PodCondition
from dsched.model.queues import QueueStatus

_log = logger(__name__)

PATIENCE_S = 30.0
PUT_OFF = 10
"""How often a write is put off at which the API server fails, though it answers."""
ATTEMPTS = 5
"""How often a pod that changes all the time is looked at anew."""
LOOK_S = 0.05
"""How often it is looked whether the lease is good again."""
REMEMBERED = 10_000
POD_SCHEDULED, DISRUPTION_TARGET = "PodScheduled", "DisruptionTarget"


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod to be deleted, and why."""

    key: PodKey
    uid: PodUid
    reason: str
    message: str


Said = SchedulingStatus | GroupStatus | QueueReport
"""What is said of a pod, a group or a queue; a newer one replaces it while it waits."""
Job = Said | Eviction


class Writer:
    """Writes in a thread of its own, started when there is something to write.

    Args:
        known: what the watch knows of a pod; None for nothing.
        known_group, known_queue: the same of a pod group and of a queue.

    Attributes:
        holds: whether to write at the moment; else what there is waits. A leader that was stopped for longer than its
            lease must not go on with the evictions that it had in mind.
    """

    def __init__(
        self,
        access: Access,
        known: Callable[[PodKey], Pod | None],
        known_group: KnownObject = lambda key: None,
        known_queue: KnownObject = lambda key: None,
    ) -> None:
        self._access = access
        self._known = known
        self.holds: Callable[[], bool] = lambda: True
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._calls = Calls(access, stopped=self._stop)
        self._groups = GroupPatcher(self._calls, known_group)
        self._queues = QueuePatcher(self._calls, known_queue)
        self._urgent: deque[SchedulingStatus | Eviction] = deque()
        self._statuses: dict[str, Said] = {}
        self._written: dict[PodKey, Pod] = {}
        self._put_off: Counter[Job] = Counter()
        self._dropped = 0
        self._busy = False
        self._thread: threading.Thread | None = None

    def report(self, statuses: Sequence[SchedulingStatus]) -> None:
        """Write statuses soon."""
        with self._changed:
            for status in statuses:
                waiting = self._statuses.pop(status.uid, None)
                merged = _merged(waiting, status) if isinstance(waiting, SchedulingStatus) else status
                if merged.nominated:
                    self._urgent.append(merged)
                else:
                    self._statuses[status.uid] = merged
            self._wake()

    def report_groups(self, statuses: Sequence[GroupStatus]) -> None:
        """Write what is said of groups soon; one that was scheduled once stays so."""
        with self._changed:
            for status in statuses:
                waiting = self._statuses.pop(status.uid, None)
                kept = isinstance(waiting, GroupStatus) and waiting.scheduled and not status.scheduled
                self._statuses[status.uid] = waiting if waiting is not None and kept else status
            self._wake()

    def report_queues(self, statuses: Mapping[str, QueueStatus]) -> None:
        """Write the status of queues soon."""
        with self._changed:
            for name, status in statuses.items():
                job = report(name, status)
                self._statuses[job.uid] = job
            self._wake()

    def evict(self, pods: Sequence[tuple[PodKey, PodUid]], reason: str, message: str) -> None:
        """Delete pods soon, after the promises that were reported before."""
        with self._changed:
            self._urgent.extend(Eviction(key, uid, reason, message) for key, uid in pods)
            self._wake()

    def drain(self, timeout_s: float) -> bool:
        """Wait until everything is written; False when it is not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._busy or self._urgent or self._statuses), timeout_s)

    def drop(self) -> None:
        """Forget what waits to be written."""
        with self._changed:
            self._urgent.clear()
            self._statuses.clear()
            self._put_off.clear()
            self._dropped += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Stop writing; what waits is dropped."""
        self._stop.set()
        self.drop()

    # -- the thread ------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._urgent or self._statuses or self._stop.is_set())
                while not (self._stop.is_set() or self.holds()):
                    self._changed.wait(LOOK_S)
                if self._stop.is_set():
                    break
                if not (self._urgent or self._statuses):  # dropped meanwhile
                    continue
                job = self._urgent.popleft() if self._urgent else self._statuses.pop(next(iter(self._statuses)))
                self._busy, dropped = True, self._dropped
            try:
                self._do(job, dropped)
            except Exception:  # noqa: BLE001 - one pod must not keep the others from being written
                CLUSTER_WRITES.labels(_what(job), "failed").inc()
                _log.exception("not written", extra=_about(job))
        self._calls.close()

    def _do(self, job: Job, dropped: int) -> None:
        outcome = self._made(job)
        if outcome is not None and self._later(job, outcome, dropped):
            return
        result = "done"
        if outcome is None or (isinstance(outcome, Answer) and outcome.status in (client.NOT_FOUND, client.CONFLICT)):
            result = "passed over"
        elif not client.succeeded(outcome):
            result = "failed"
            _log.error(
                "not written to the API server",
                extra={**_about(job), "error": client.told(outcome)},
            )
        CLUSTER_WRITES.labels(_what(job), result).inc()

    def _made(self, job: Job) -> Outcome | None:
        """Make the request; None when there is nothing to write."""
        match job:
            case Eviction():
                return self._evict(job)
            case GroupStatus():
                return self._groups.write(job)
            case QueueReport():
                return self._queues.write(job)
            case SchedulingStatus():
                return self._tell(job)

    def _later(self, job: Job, outcome: Outcome, dropped: int) -> bool:
        """Whether it is written later: nobody answers, or what answers is out of order. A newer status goes first; what
        was dropped meanwhile stays dropped."""
        away = isinstance(outcome, ClusterUnavailable)
        failing = isinstance(outcome, Answer) and client.worth_repeating(outcome)
        with self._changed:
            if not (away or failing) or dropped != self._dropped or self._put_off[job] >= PUT_OFF:
                del self._put_off[job]
                return False
            if failing:
                self._put_off[job] += 1
            if isinstance(job, Eviction) or (isinstance(job, SchedulingStatus) and job.nominated):
                (self._urgent.appendleft if away else self._urgent.append)(job)
            else:
                self._statuses.setdefault(job.uid, job)
        _log.warning(
            "not written to the API server, put off",
            extra={**_about(job), "error": client.told(outcome)},
        )
        return True

    def _tell(self, status: SchedulingStatus) -> Outcome | None:
        return self._patch(status.key, status.uid, lambda pod: None if pod.node_name else status_patch(pod, status))

    def _evict(self, eviction: Eviction) -> Outcome | None:
        condition = PodCondition(DISRUPTION_TARGET, "True", eviction.reason, eviction.message)
        told = self._patch(eviction.key, eviction.uid, lambda pod: _status(pod, {}, condition))
        if isinstance(told, ClusterUnavailable) or (told is not None and told.status == client.NOT_FOUND):
            return told
        if told is not None and not client.succeeded(told):  # who waits for the room needs it more than the reason why
            pod = {"pod": eviction.key, "uid": eviction.uid}
            _log.warning("condition not written", extra={"action": "evict", **pod, "error": client.told(told)})
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": eviction.uid}}
        path = resources.POD.path(eviction.key)
        return self._calls.make(Request("DELETE", path, msgspec.json.encode(body)), PATIENCE_S)

    def _patch(self, key: PodKey, uid: PodUid, make: Callable[[Pod], dict[str, Any] | None]) -> Outcome | None:
        """Patch a pod's status; None when there is nothing to change, or no such pod."""
        pod, outcome = self._newest(key), None
        for _ in range(ATTEMPTS):
            if pod is None or outcome is not None:
                looked = self._calls.make(Request("GET", resources.POD.path(key)), PATIENCE_S)
                pod = bindings.decoded(looked)
                if pod is None:
                    return looked
            if pod.uid != uid or pod.finished:
                return None
            status = make(pod)
            if not status:
                return None
            patch = {"metadata": {"uid": uid, "resourceVersion": pod.metadata.resource_version}, "status": status}
            path = f"{resources.POD.path(key)}/status"
            outcome = self._calls.make(
                Request("PATCH", path, msgspec.json.encode(patch), STRATEGIC_MERGE_PATCH), PATIENCE_S
            )
            if not isinstance(outcome, Answer) or outcome.status != client.CONFLICT:
                self._remember(key, bindings.decoded(outcome))
                return outcome
        return outcome

    def _newest(self, key: PodKey) -> Pod | None:
        """The pod as this process knows it: the watch may not have told yet what was written last."""
        known, written = self._known(key), self._written.get(key)
        if written is None or (known is not None and _version(known) >= _version(written)):
            self._written.pop(key, None)
            return known
        return written

    def _remember(self, key: PodKey, pod: Pod | None) -> None:
        if pod is not None:
            self._written[key] = pod
            while len(self._written) > REMEMBERED:
                del self._written[next(iter(self._written))]


def status_patch(pod: Pod, status: SchedulingStatus) -> dict[str, Any]:
    """What differs between a pod's status and what has to be said; empty when nothing does."""
    wanted: dict[str, Any] = {}
    if status.nominated is not None and status.nominated != pod.status.nominated_node_name:
        wanted["nominatedNodeName"] = status.nominated or None
    condition = PodCondition(POD_SCHEDULED, "False", status.reason, status.message) if status.reason else None
    return _status(pod, wanted, condition)


def _status(pod: Pod, wanted: dict[str, Any], condition: PodCondition | None) -> dict[str, Any]:
    """The wanted fields and the condition, unless the pod has it; its time of change is set when its status does."""
    if condition is None:
        return wanted
    old = next((each for each in pod.status.conditions if each.type == condition.type), None)
    if old == condition:
        return wanted
    said: dict[str, Any] = msgspec.to_builtins(condition)
    if old is None or old.status != condition.status:
        said["lastTransitionTime"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**wanted, "conditions": [said]}


def _merged(older: SchedulingStatus, newer: SchedulingStatus) -> SchedulingStatus:
    nominated = older.nominated if newer.nominated is None else newer.nominated
    said = newer if newer.reason else older
    return replace(newer, reason=said.reason, message=said.message, nominated=nominated)


def _version(pod: Pod) -> int:
    return resources.number(pod.metadata.resource_version)


def _what(job: Job) -> str:
    match job:
        case Eviction():
            return "evict"
        case GroupStatus():
            return "group"
        case QueueReport():
            return "queue"
        case SchedulingStatus():
            return "status"


def _about(job: Job) -> dict[str, str]:
    """What a log line says of it."""
    if isinstance(job, QueueReport):
        return {"action": _what(job), "queue": job.key}
    return {"action": _what(job), "group" if isinstance(job, GroupStatus) else "pod": job.key, "uid": job.uid}
