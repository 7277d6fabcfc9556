"""Binders: run the binding cycle for reserved pods and report what became of them.

``celery -A workers.binder worker``. Holds nothing. A message may come twice, late, or to two binders at once: whether a
reservation still stands is asked right before binding, and binding is a compare-and-set.

Source: pkg/scheduler/schedule_one.go ``bindingCycle``.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from celery.signals import worker_process_shutdown

from dsched import log
from dsched.cluster import opening
from dsched.cluster.interface import Binding, BindOutcome, BindVerdict, Cluster, PodEvent, scheduled
from dsched.config import SchedulerConfiguration
from dsched.errors import ClusterError, StaleEpoch
from dsched.framework.cycle_state import CycleState
from dsched.framework.extender import EXTENDER
from dsched.framework.interface import Code, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.framework.validation import binding_failure
from dsched.log import logger
from dsched.metrics import BOUND, collect
from dsched.model import messages
from dsched.model.messages import BIND, BINDERS, BindItem, BindRequest
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.state.client import UNAVAILABLE
from dsched.state.results import OTHER_CLUSTER, OTHER_CONFIGURATION, REJECTED, WAITING, Binds, Outcome
from workers.app import WorkerApp, WorkerHandle

_log = logger(__name__)

DRAIN_S = 5.0
"""How long a process that ends goes on sending events."""
NOT_BOUND = "the extender says that it has bound the pod, the cluster does not"


@dataclass(slots=True)
class Job:
    """One reserved pod in the binding cycle, the so-and-so-many-th of its request; ``info`` is read only where the
    profile has plugins that want it.

    Attributes:
        pre_binds: whether PreBind has anything to do.
    """

    item: BindItem
    state: CycleState
    number: int
    pre_binds: bool
    info: PodInfo | None = None


class BinderHandle(WorkerHandle):
    """Given to the plugins of the binding cycle.

    Attributes:
        epoch: of the request at hand.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(Snapshot(), cluster)
        self.epoch = 0

    def event(self, pod: PodInfo, kind: str, reason: str, message: str) -> None:
        """Record an event about a pod, ``Normal`` or ``Warning``."""
        self.cluster.record([PodEvent(pod.key, pod.uid, kind, reason, message, pod.pod.spec.scheduler_name)])

    def bind(self, pod: PodInfo, node: NodeName) -> Status | None:
        """Bind one pod through the cluster, as DefaultBinder does; None when it is bound there."""
        outcome = self.cluster.bind([Binding(pod.key, pod.uid, node, self.epoch, pod.pod.spec.scheduler_name)])[0]
        if outcome.verdict is BindVerdict.BOUND:
            return None
        return Status(Code.ERROR, (f"{outcome.verdict.value}: {outcome.message}",))


class Binder:
    """Binds; made on the first task of a process."""

    def __init__(self, worker: WorkerApp) -> None:
        self._worker = worker
        self._cluster = worker.system.cluster
        self._binds = Binds(worker.system.store)
        self._handle = BinderHandle(self._cluster)
        self._frameworks: dict[str, Framework] = {}
        self._request = ""
        self._build(worker.system.config)
        worker.system.following.build = self._build

    def _build(self, config: SchedulerConfiguration) -> None:
        self._frameworks = self._worker.system.frameworks(config, self._handle)

    def run(self, request: BindRequest) -> list[Outcome]:
        """Take the pods of a request through the binding cycle. A request of a leader whose configuration cannot be
        taken up here is refused, for its plugins are not those that decided; so is one about another kind of cluster.

        Raises:
            StaleEpoch: the request is from a leader that no longer leads.
        """
        following = self._worker.system.following
        message = following.refusal(request.config, request.cluster)
        framework = self._frameworks.get(request.profile)
        if message or framework is None:
            message = message or f"no profile {request.profile} here"
            _log.warning(
                "bind request refused", extra={"action": "refuse", "pods": len(request.pods), "reason": message}
            )
            verdict = OTHER_CLUSTER if following.other_cluster(request.cluster) else OTHER_CONFIGURATION
            return [_outcome(item, verdict, message) for item in request.pods]
        self._handle.epoch = request.epoch
        self._request = "" if not request.pods else f"bind-{request.pods[0].uid}"
        standing = self._binds.begin(request.epoch, [_reservation(item) for item in request.pods])
        word = _pre_bind_word(framework)
        jobs = [
            Job(item, CycleState(dict(item.shared)), number, word is None or not word.isdisjoint(item.shared))
            for number, (item, stands) in enumerate(zip(request.pods, standing, strict=True))
            if stands
        ]
        outcomes = [_lost(item) for item, stands in zip(request.pods, standing, strict=True) if not stands]
        self._read_pods(jobs if _wants_pods(framework) else [job for job in jobs if job.pre_binds])
        ready: list[Job] = []
        for job, status in zip(jobs, self._pre_bind(framework, jobs), strict=True):
            if status is None:
                ready.append(job)
            elif status.code is Code.WAIT:
                outcomes.append(_outcome(job.item, WAITING, status.message, status.plugin))
            else:
                outcomes.append(_rejected(job.item, "PreBind", status))
        ready, lost = self._still_standing(ready, request.epoch)
        outcomes += lost
        outcomes += self._bind(framework, ready, request.epoch)
        self._post_bind(framework, ready, outcomes)
        return outcomes

    def _still_standing(self, jobs: list[Job], epoch: int) -> tuple[list[Job], list[Outcome]]:
        """Ask again once PreBind has taken its time: meanwhile another binder may have been asked to bind the pods, and
        have failed, and the leader have given their room away."""
        if not any(job.pre_binds for job in jobs):
            return jobs, []
        standing = self._binds.begin(epoch, [_reservation(job.item) for job in jobs])
        found = list(zip(jobs, standing, strict=True))
        return [job for job, stands in found if stands], [_lost(job.item) for job, stands in found if not stands]

    def _read_pods(self, jobs: list[Job]) -> None:
        """Another pod of the same name is none of ours."""
        if not jobs:
            return
        for job, pod in zip(jobs, self._cluster.get_pods([job.item.key for job in jobs]), strict=True):
            job.info = PodInfo(pod) if pod is not None and pod.uid == job.item.uid else None

    def _pre_bind(self, framework: Framework, jobs: Sequence[Job]) -> list[Status | None]:
        """What PreBind says of each job, as far as it has anything to do."""
        asked = [(job, job.info) for job in jobs if job.info is not None and job.pre_binds]
        pods = [(job.state, info, job.item.node) for job, info in asked]
        statuses = framework.run_pre_bind(pods, lambda number: self._at(asked[number][0])) if pods else []
        said = {job.number: status for (job, _), status in zip(asked, statuses, strict=True)}
        return [_GONE if job.info is None and job.pre_binds else said.get(job.number) for job in jobs]

    def _at(self, job: Job) -> None:
        """Show which pod the plugins are asked about from now on."""
        self._worker.slots.at(job.number, self._request)

    def _bind(self, framework: Framework, jobs: list[Job], epoch: int) -> list[Outcome]:
        """Ask extenders first, then the Bind plugins in order; the default one binds all that the others left in one
        call."""
        left, outcomes = self._bind_by_extender(framework, jobs)
        for plugin in framework.at("bind"):
            if getattr(plugin, "binds_through_cluster", False):
                started = collect.now()
                bound = self._bind_by_default(left, epoch, framework.profile_name)
                _measure(framework.profile_name, bound, collect.now() - started)
                return outcomes + bound
            left, done = self._bind_by(framework, plugin.name, left)
            outcomes += done
        return outcomes + [_outcome(job.item, REJECTED, "no bind plugin took the pod") for job in left]

    def _bind_by_extender(self, framework: Framework, jobs: list[Job]) -> tuple[list[Job], list[Outcome]]:
        """Have pods bound by the extender that wants to; returns those that are left to the Bind plugins.

        Whether an extender has done it, answer or not, the cluster knows: a pod that is not bound there has the outcome
        unknown, so that the leader looks it up again before anybody binds it. One that is bound already, by an earlier
        request, is left to the Bind plugins, to which binding again does nothing.

        Source: pkg/scheduler/schedule_one.go ``extendersBinding``.
        """
        extenders = framework.extenders
        if extenders is None:
            return jobs, []
        asked = [
            (job, job.info)
            for job in jobs
            if job.info is not None and not job.info.node_name and extenders.binds(job.info)
        ]
        failures = extenders.bind([(info, job.item.node) for job, info in asked])
        doubtful = [
            job for (job, _), failure in zip(asked, failures, strict=True) if failure is None or failure.unclear
        ]
        bound = self._bound(doubtful)
        left = {job.item.uid: job for job in jobs}
        outcomes: list[Outcome] = []
        for (job, info), failure in zip(asked, failures, strict=True):
            item = job.item
            if failure is not None and item.uid not in bound and extenders.ignores_failure_to_bind(info):
                told = {"action": "bind", "pod": item.key, "uid": item.uid, "error": failure.message}
                _log.info("extender passed over", extra=told)
                continue
            del left[item.uid]
            if item.uid in bound:
                outcomes.append(_outcome(item, BindVerdict.BOUND.value, ""))
            elif failure is None or failure.unclear:
                message = NOT_BOUND if failure is None else failure.message
                outcomes.append(_outcome(item, BindVerdict.UNKNOWN.value, message, EXTENDER))
            else:
                outcomes.append(_outcome(item, REJECTED, failure.message, EXTENDER))
        if bound and not self._cluster.tells_binds:
            done = [each for each in outcomes if each.uid in bound]
            self._cluster.record([scheduled(each.key, each.uid, each.node, framework.profile_name) for each in done])
        return list(left.values()), outcomes

    def _bound(self, jobs: list[Job]) -> frozenset[PodUid]:
        """Which of these pods are bound where they were to be bound, as far as the cluster can be asked."""
        try:
            found = self._cluster.get_pods([job.item.key for job in jobs]) if jobs else []
        except (ClusterError, *UNAVAILABLE) as error:
            _log.warning("pods not looked up", extra={"action": "bind", "pods": len(jobs), "error": str(error)})
            return frozenset()
        return frozenset(
            job.item.uid
            for job, pod in zip(jobs, found, strict=True)
            if pod is not None and pod.uid == job.item.uid and pod.node_name == job.item.node
        )

    def _bind_by(self, framework: Framework, plugin: str, jobs: list[Job]) -> tuple[list[Job], list[Outcome]]:
        left: list[Job] = []
        done: list[Outcome] = []
        for job in jobs:
            if job.info is None:
                done.append(_outcome(job.item, BindVerdict.GONE.value, "the pod is gone"))
                continue
            self._at(job)
            status = framework.run_bind(plugin, job.state, job.info, job.item.node)
            if status is not None and status.code is Code.SKIP:
                left.append(job)
            elif status is None:
                done.append(_outcome(job.item, BindVerdict.BOUND.value, ""))
            else:
                done.append(_rejected(job.item, "Bind", status))
        return left, done

    def _bind_by_default(self, jobs: list[Job], epoch: int, scheduler: str) -> list[Outcome]:
        if not jobs:
            return []
        bindings = [Binding(job.item.key, job.item.uid, job.item.node, epoch, scheduler) for job in jobs]
        try:
            found = self._cluster.bind(bindings)
        except (ClusterError, *UNAVAILABLE) as error:
            found = [BindOutcome(b.key, b.uid, BindVerdict.UNKNOWN, message=str(error)) for b in bindings]
        return [
            _outcome(job.item, outcome.verdict.value, outcome.message) for job, outcome in zip(jobs, found, strict=True)
        ]

    def _post_bind(self, framework: Framework, jobs: list[Job], outcomes: list[Outcome]) -> None:
        if not framework.at("postBind"):
            return
        bound = {outcome.uid for outcome in outcomes if outcome.verdict == BindVerdict.BOUND.value}
        for job in jobs:
            if job.info is not None and job.item.uid in bound:
                self._at(job)
                framework.run_post_bind(job.state, job.info, job.item.node)

    def end(self) -> None:
        """Send the events that still wait: nobody else knows of them."""
        if not self._cluster.drain(DRAIN_S, hurry=True):
            _log.warning("events that waited are lost", extra={"action": "drain"})

    def report(self, request: BindRequest, outcomes: list[Outcome]) -> None:
        """Tell the leader."""
        self._binds.report(request.epoch, self._worker.name, outcomes)


_GONE = Status(Code.ERROR, ("the pod is gone",))


def _wants_pods(framework: Framework) -> bool:
    """Whether a plugin of the binding cycle besides PreBind has to see the pods."""
    if framework.extenders is not None and framework.extenders.bind_timeout_s:
        return True
    only_default = all(getattr(plugin, "binds_through_cluster", False) for plugin in framework.at("bind"))
    return not only_default or bool(framework.at("postBind"))


def _pre_bind_word(framework: Framework) -> set[str] | None:
    """The plugins that PreBind has something to do for only where the cycle has left them word; None where there are
    others."""
    plugins = framework.at("preBind")
    if not all(getattr(plugin, "pre_bind_needs_shared", False) for plugin in plugins):
        return None
    return {plugin.name for plugin in plugins}


def _measure(profile: str, outcomes: list[Outcome], seconds: float) -> None:
    """One call has bound them all: each took its share."""
    for outcome in outcomes:
        status = "Success" if outcome.verdict == BindVerdict.BOUND.value else "Error"
        collect.extension_point("Bind", status, profile, seconds / len(outcomes))


def _outcome(item: BindItem, verdict: str, message: str, plugin: str = "") -> Outcome:
    return Outcome(item.key, item.uid, item.node, verdict, message, item.attempt, plugin)


def _reservation(item: BindItem) -> tuple[PodKey, PodUid, NodeName, int]:
    return item.key, item.uid, item.node, item.attempt


def _lost(item: BindItem) -> Outcome:
    return _outcome(item, BindVerdict.RESERVATION_LOST.value, "its reservation does not stand")


def _rejected(item: BindItem, point: str, status: Status) -> Outcome:
    message = status.message
    if status.code is Code.ERROR and status.plugin:
        message = binding_failure(point, status.plugin, message)
    return _outcome(item, REJECTED, message, status.plugin)


worker = WorkerApp("binder", BINDERS)
app = worker.celery
opening.import_client(opening.from_environment())  # before the pool forks, so that the first bind need not wait for it
_binders: list[Binder] = []


def _ended(**_: object) -> None:
    """A process of the pool ends."""
    for binder in _binders:
        binder.end()


worker_process_shutdown.connect(_ended)


def bind(payload: bytes) -> None:
    """Task: bind reserved pods and report; drops a request of a leader that no longer leads."""
    request = messages.decode(payload, BindRequest)
    log.about(epoch=request.epoch)
    if not _binders:
        _binders.append(Binder(worker))
    began_ns = time.time_ns()
    try:
        outcomes = _binders[0].run(request)
    except StaleEpoch as error:
        _log.info("bind request dropped", extra={"action": "drop", "pods": len(request.pods), "reason": str(error)})
        return
    if request.traces:
        worker.traces.bound(request.traces, [item.uid for item in request.pods], outcomes, began_ns, time.time_ns())
    for verdict, count in Counter(outcome.verdict for outcome in outcomes).items():
        BOUND.labels(verdict).inc(count)
    _binders[0].report(request, outcomes)


worker.task(BIND, bind)
