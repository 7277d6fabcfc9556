"""What people ask of the leader from the command line: pods are tried at once, or taken out of the queue; and what they
have paused, in the log.

Killed before a request is taken: the next leader takes it. Killed after: the pods stand where the last move put them,
and whoever asked hears nothing and asks again; a pod that is active already stays as it is.
"""

from collections.abc import Mapping, Sequence

from dsched.framework.runtime import Framework
from dsched.leader.events import Events
from dsched.log import logger
from dsched.metrics import collect
from dsched.model.meta import PodKey
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import PendingPods, QueuedGroup, QueuedPod
from dsched.state import pauses
from dsched.state.client import Store
from dsched.state.pauses import Paused
from dsched.state.requests import DROP, REQUEUE, Answer, PodAnswer, Request, Requests

_log = logger(__name__)

DROPPED = "dsched-queue-drop"
"""Among a gated pod's plugins, for whoever dropped it: no event moves it but a change of the pod or a request."""

_GOES_ON = {
    QueueName.ACTIVE: "is in the active queue already",
    QueueName.INFLIGHT: "is being decided",
    QueueName.WAITING: "has a node and waits for Permit",
    QueueName.RESERVED: "has a node and is being bound",
    QueueName.GROUP: "is scheduled with its pod group",
}


class CommandRequests:
    """Answers the requests of one epoch."""

    def __init__(
        self, store: Store, epoch: int, frameworks: Mapping[str, Framework], pending: PendingPods, events: Events
    ) -> None:
        self._store = store
        self._requests = Requests(store, epoch)
        self._frameworks = frameworks
        self._pending = pending
        self._events = events
        self._paused: list[Paused] = []

    def answer(self) -> None:
        """Do what is asked and say what came of it.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        for request in self._requests.take():
            answer = self._answer(request)
            self._requests.answer(request, answer)
            _log.info(
                "request answered",
                extra={"action": "request", "what": request.what, "pods": len(request.pods), "done": answer.done},
            )

    def _answer(self, request: Request) -> Answer:
        if request.what == DROP:
            return self._drop(request.pods)
        if request.what == REQUEUE:
            return self._requeue_named(request.pods) if request.pods else self._requeue_all(request.namespace)
        return Answer(error=f"this leader does not know what {request.what!r} is; is it an older one?")

    def notice(self) -> None:
        """Write to the log what was paused and what goes on; the queue itself knows without being told."""
        paused = pauses.read(self._store)
        if paused != self._paused:
            self._paused = paused
            _log.info(
                "scheduling is paused" if paused else "scheduling goes on",
                extra={"action": "pause", "profiles": [each.profile for each in paused]},
            )

    def _requeue_named(self, keys: Sequence[PodKey]) -> Answer:
        told: list[PodAnswer] = []
        for key in keys:
            pod = self._pending.get(key)
            if pod is None:
                told.append(PodAnswer(key, False, "", "is not pending here"))
                continue
            queued = (self._pending.group(pod.group) or pod) if pod.place is QueueName.GROUP else pod
            whose = "" if queued is pod else "its pod group "
            place = queued.place
            refusal = self._refusal(queued)
            if not refusal and not self._activate([queued]):
                refusal = "was elsewhere by then"
            what = whose + (refusal or f"{'was ' if whose else ''}put from {place} to the active queue")
            told.append(PodAnswer(key, not refusal, place.value, what))
        return Answer(tuple(told), sum(each.done for each in told))

    def _drop(self, keys: Sequence[PodKey]) -> Answer:
        """Take pods out of the queue: they are gated, by nobody's plugin. Killed before the move: they stand where they
        stood; after it: the next leader finds them gated and leaves them so."""
        told: list[PodAnswer] = []
        for key in keys:
            pod = self._pending.get(key)
            if pod is None:
                told.append(PodAnswer(key, False, "", "is not pending here"))
                continue
            place, why = pod.place, ""
            if DROPPED in pod.plugins:
                why = "was dropped already"
            elif place not in (QueueName.ACTIVE, QueueName.BACKOFF, QueueName.UNSCHEDULABLE, QueueName.GATED):
                why = _GOES_ON.get(place, "")
            else:
                self._pending.held_back(pod, DROPPED)
                move = self._pending.move(pod, QueueName.GATED, message="taken out of the queue by dsched queue drop")
                if not self._events.make([(pod, move)], [collect.REQUESTED]):
                    why = "was elsewhere by then"
            told.append(PodAnswer(key, not why, place.value, why or f"taken out of the queue, where it was {place}"))
        return Answer(tuple(told), sum(each.done for each in told))

    def _requeue_all(self, namespace: str | None) -> Answer:
        pods = [
            pod
            for pod in self._pending
            if pod.place is QueueName.UNSCHEDULABLE and namespace in (None, pod.info.pod.metadata.namespace)
        ]
        pods.sort(key=lambda pod: (pod.order, pod.turn))
        return Answer(done=self._activate(pods))

    def _refusal(self, pod: QueuedPod) -> str:
        """Why a pod is not put back, empty where it can be."""
        if pod.place is not QueueName.GATED:
            return _GOES_ON.get(pod.place, "")
        if isinstance(pod, QueuedGroup):
            return f"is held back by {', '.join(sorted(pod.plugins))}"
        status = self._frameworks[pod.info.pod.spec.scheduler_name].run_pre_enqueue(pod.info.pod)
        return "" if status is None else f"is held back by {status.plugin}: {status.message}"

    def _activate(self, pods: Sequence[QueuedPod]) -> int:
        """Their pauses are over; attempts and turns are kept, so the next pause is no shorter."""
        moves = [(pod, self._pending.move(pod, QueueName.ACTIVE)) for pod in pods]
        return self._events.make(moves, [collect.REQUESTED] * len(moves))
