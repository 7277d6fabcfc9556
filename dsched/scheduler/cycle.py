"""The scheduling cycle for a batch: pods in queue order and the snapshot in, decisions out. No I/O.

Each pod is decided on what its predecessors have left: it is assumed in the snapshot before the next one is looked at,
so that a batch gives the decisions that one pod at a time would give.

Source: pkg/scheduler/schedule_one.go ``schedulingCycle``.
"""

from collections.abc import Mapping, Sequence
from typing import overload

import numpy as np
from msgspec.structs import replace

from dsched.engine import with_extenders as extending
from dsched.engine.diagnosis import diagnose
from dsched.engine.evaluation import Evaluation
from dsched.engine.evaluation_cache import EvaluationCache
from dsched.engine.failed_attempt import FailedAttempt
from dsched.engine.findings import Findings
from dsched.engine.select import Choice, Selector
from dsched.engine.with_extenders import EvaluationWithExtenders
from dsched.framework.cycle_state import CycleState
from dsched.framework.extender import Extending
from dsched.framework.interface import Code, Status
from dsched.framework.long_search import NotYet
from dsched.framework.plugin_timeout import WATCH
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.validation import PluginFailure
from dsched.model.meta import NO_NODE, NodeName
from dsched.scheduler.decision import (
    Candidate,
    Decision,
    GroupCandidate,
    GroupDecision,
    candidates,
    turned_away,
)
from dsched.scheduler.group_attempt import Member
from dsched.scheduler.group_trials import Trial
from dsched.scheduler.observer import Observer
from dsched.scheduler.plugin_breaker import PluginBreaker, dangerous, overrun
from dsched.scheduler.pod_group_cycle import PodGroupCycle
from dsched.scheduler.ports import Assumptions
from dsched.scheduler.waiting_pods import WaitingPod, WaitingPods

ON_A_NODE = "pod {uid}({key}) is in the cache, so can't be assumed"
"""What comes of a deferred resize that fits. Upstream's DeferredPodScheduling has a Permit for this case, to which its
cache does not let it come: the attempt ends in this error, and the next one begins after a pause.

Source: backend/cache/cache.go ``AssumePod``."""


class Cycle:
    """Decides batches."""

    def __init__(
        self,
        frameworks: Mapping[str, Framework],
        percentages: Mapping[str, int],
        cache: Assumptions,
        classes: EvaluationCache,
        selector: Selector,
        waiting: WaitingPods,
        breaker: PluginBreaker,
        observer: Observer,
    ) -> None:
        """
        Args:
            percentages: of nodes that are to be found feasible, by scheduler name.
            classes: of pods, over the snapshot of ``cache``.
        """
        self._frameworks = frameworks
        self._percentages = percentages
        self._cache = cache
        self._selector = selector
        self._waiting = waiting
        self._classes = classes
        self._breaker = breaker
        self._observer = observer
        self._groups = PodGroupCycle(frameworks, cache, self._attempt, self.permit, classes, percentages, waiting)

    @overload
    def decide(self, batch: Sequence[Candidate]) -> Sequence[Decision]: ...

    @overload
    def decide(
        self, batch: Sequence[Candidate | GroupCandidate], *, until_some_are_left: bool = False
    ) -> Sequence[Decision | GroupDecision]: ...

    def decide(
        self, batch: Sequence[Candidate | GroupCandidate], *, until_some_are_left: bool = False
    ) -> Sequence[Decision | GroupDecision]:
        """Decide pods and pod groups in order.

        Args:
            until_some_are_left: end with the first group that leaves some of its pods, whose turn comes before those of
                the others.
        """
        pods = candidates(batch)
        self._observer.before_decide(pods)
        asked = [(framework, pod.info) for pod in pods if (framework := self._framework(pod)) is not None]
        failed: dict[tuple[str, bytes], Status] = {}
        # Classes that evaluators are asked about go in one request: its round trip is paid once.
        for evaluation in self._classes.prepare([each for each in asked if self._held(*each) is None]):
            if evaluation.failure is not None and dangerous(evaluation.failure):
                failed[evaluation.framework.profile_name, evaluation.pod.class_key] = evaluation.failure
                self._met(evaluation.framework, evaluation.pod, evaluation.failure)
        decided: list[Decision | GroupDecision] = []
        not_yet: dict[tuple[str, bytes], Status] = {}
        for each in batch:
            if isinstance(each, GroupCandidate):
                found = self._groups.decide(each)
                decided.append(found)
                if until_some_are_left and found.leaves_some:
                    break
                continue
            framework = self._frameworks[each.info.pod.spec.scheduler_name]
            key = (framework.profile_name, each.info.class_key)
            decision = self._attempt(framework, each, failed.pop(key, None) or not_yet.get(key))
            if decision.not_yet and decision.error is not None:
                not_yet[key] = decision.error
            decided.append(decision)
        ended = [each for each in decided if isinstance(each, GroupDecision) or not each.not_yet]
        self._observer.decided(ended)
        return decided

    def trials(self, entry: GroupCandidate) -> Sequence[Trial] | Status:
        """What would become of a pod group in each of its placements by itself; see `PodGroupCycle.trials`."""
        return self._groups.trials(entry)

    def invalid(self, entry: GroupCandidate) -> str:
        """Why the pods of a group do not belong together; empty where they do."""
        return self._groups.invalid(entry)

    def _framework(self, candidate: Candidate) -> Framework | None:
        """None of a pod group's pod whose profile there is not, which its group is told."""
        return self._frameworks.get(candidate.info.pod.spec.scheduler_name)

    def _attempt(
        self, framework: Framework, candidate: Candidate, error: Status | None = None, member: Member | None = None
    ) -> Decision:
        """Decide a pod unless that is dangerous.

        Args:
            error: a dangerous failure that was met already.
        """
        error = error or self._held(framework, candidate.info)
        if error is not None:
            return Decision(candidate, framework, CycleState(), error=error)
        WATCH.told.clear()
        decision = self._decide(framework, candidate, member)
        self._note(framework, candidate.info, decision.error)
        return decision

    def _held(self, framework: Framework, info: PodInfo) -> Status | None:
        return self._breaker.held(framework.profile_name, info.class_key) if self._breaker.classes else None

    def _met(self, framework: Framework, info: PodInfo, status: Status) -> None:
        self._breaker.met(framework.profile_name, info.class_key, status)

    def _note(self, framework: Framework, info: PodInfo, error: Status | None) -> None:
        """Whether it is dangerous to decide pods of this class again."""
        if error is not None and dangerous(error):
            self._met(framework, info, error)
        elif WATCH.told:  # preemption failed, which is no error of the attempt
            self._met(framework, info, overrun(WATCH.told[0]))
        elif error is None and self._breaker.classes:
            self._breaker.well(framework.profile_name, info.class_key)

    def _decide(self, framework: Framework, candidate: Candidate, member: Member | None) -> Decision:
        info = candidate.info
        among = None if member is None else member.among
        evaluation = self._classes.evaluation(framework, info, among=among)
        extenders = framework.extenders if framework.extenders and framework.extenders.concerned(info) else None
        try:
            promised = self._promised(candidate, evaluation, member)
            # What is kept of the class makes room for promised pods; this one need not make room for itself.
            if self._cache.snapshot.nominations.node_of(info.uid) and (promised is None or extenders is not None):
                evaluation = self._classes.evaluation(framework, info, own=True, among=among)
        except PluginFailure as failure:
            return Decision(candidate, framework, evaluation.state.clone(), error=failure.status)
        # The evaluation is its class's; what Reserve leaves for PreBind is this pod's alone.
        state = evaluation.state.clone()
        if evaluation.failure is not None:
            return Decision(candidate, framework, state, error=evaluation.failure)
        table = self._cache.snapshot.table
        try:
            extended, choice = self._choose(framework, extenders, candidate, evaluation, promised)
        except PluginFailure as failure:  # a sample is normalised anew, or an extender failed
            return Decision(candidate, framework, state, error=failure.status)
        if member is not None and promised is None:
            framework.note_search(state, info, evaluation)
        if member is None or not member.tried:
            self._observer.looked(candidate, extended or evaluation, choice)
        if choice is None and member is not None:  # PostFilter is asked for the group
            diagnosis = diagnose(extended or evaluation, evaluation.nodes)
            nominated = None if evaluation.nodes else NO_NODE
            decision = Decision(candidate, framework, state, diagnosis=diagnosis, nominated=nominated)
        elif choice is None:
            decision = self._unplaced(framework, candidate, state, extended or evaluation)
        else:
            best = tuple(map(table.names.__getitem__, choice.best.tolist()))
            # Looks ahead while the pod is not on its node yet, and takes what it saw only if all went well.
            evaluation.before_placing(choice.row)
            decision = self._placed(framework, candidate, state, table.names[choice.row], best, member)
            if decision.node is not None:
                evaluation.placed(choice.row)
        return decision if extended is None else replace(decision, extended=extended)

    def _choose(
        self,
        framework: Framework,
        extenders: Extending | None,
        candidate: Candidate,
        evaluation: Evaluation,
        promised: int | None,
    ) -> tuple[EvaluationWithExtenders | None, Choice | None]:
        """What extenders said, None where they have no say or were not asked; and the host, None where the pod fits
        nowhere."""
        table, info = self._cache.snapshot.table, candidate.info
        percentage = self._percentages[framework.profile_name]
        if extenders is not None:
            return extending.choose(
                extenders,
                evaluation,
                self._cache.snapshot,
                self._selector,
                info,
                candidate.attempt,
                percentage,
                promised,
            )
        if promised is not None:
            return None, Choice(promised, np.array([promised], dtype=np.intp), examined=1)
        return None, self._selector.choose(evaluation, table, info.uid, candidate.attempt, percentage)

    def _promised(self, candidate: Candidate, evaluation: Evaluation, member: Member | None) -> int | None:
        """The row of the node that the pod was promised, when it fits there: it is taken without looking at others.

        Source: pkg/scheduler/schedule_one.go ``evaluateNominatedNode``.

        Raises:
            PluginFailure: a plugin failed.
        """
        snapshot = self._cache.snapshot
        node = snapshot.nominations.node_of(candidate.info.uid)
        row = None if node is None else snapshot.table.index.get(node)
        if row is None or evaluation.failure is not None:
            return None
        if member is not None and member.among is not None and row not in member.among:
            return None
        if not evaluation.admits(candidate.info, row):
            return None
        return row

    def _placed(
        self,
        framework: Framework,
        candidate: Candidate,
        state: CycleState,
        node: NodeName,
        best: tuple[NodeName, ...],
        member: Member | None,
    ) -> Decision:
        if candidate.info.node_name and self._cache.snapshot.table.node_of(candidate.info.uid):
            error = Status(Code.ERROR, (ON_A_NODE.format(uid=candidate.info.uid, key=candidate.info.key),))
            return Decision(candidate, framework, state, error=error)
        # Before Reserve, as upstream: Reserve, Permit and the next pod of the batch see it there.
        cache = self._cache if member is None else member.cache
        cache.assume(candidate.info, node)
        status = framework.run_reserve(state, candidate.info, node)
        if status is not None:
            cache.forget(candidate.info.uid, released=False)
            return turned_away(framework, candidate, state, status)
        decision = Decision(candidate, framework, state, node, best)
        return self.permit(decision) if member is None else self._no_longer_promised(decision)

    def permit(self, decision: Decision) -> Decision:
        """Ask Permit about a pod that is assumed on its node; it is taken off it where a plugin turns it away."""
        framework, candidate, node = decision.framework, decision.candidate, decision.node or NO_NODE
        if not framework.at("permit"):
            return self._no_longer_promised(decision)
        permit = framework.run_permit(decision.state, candidate.info, node)
        if permit.status is not None:
            framework.run_unreserve(decision.state, candidate.info, node)
            self._cache.forget(candidate.info.uid, released=False)
            return turned_away(framework, candidate, decision.state, permit.status)
        waiting = self._wait(candidate.info, permit.waits)
        return replace(self._no_longer_promised(decision), waiting=waiting)

    def _no_longer_promised(self, decision: Decision) -> Decision:
        """What the pod had been promised is over, for it is on a node."""
        nominations = self._cache.snapshot.nominations
        promised = nominations.node_of(decision.candidate.info.uid)
        if promised is None:
            return decision
        nominations.drop(decision.candidate.info.uid)
        return replace(decision, promised=promised)

    def _wait(self, pod: PodInfo, waits: Mapping[str, float]) -> WaitingPod | None:
        """Known to the plugins at once, so that the permit call of the next pod of the batch can let this one go.

        A pod that nobody holds back joins those that have just been let go: one script lets all of them go, so that a
        leader that is killed leaves all or none of a gang, and none is handed out before each has its reservation.
        """
        if not waits and not any(other.allowed for other in self._waiting):
            return None
        return self._waiting.hold(pod, waits)

    def _unplaced(
        self, framework: Framework, candidate: Candidate, state: CycleState, evaluation: Findings
    ) -> Decision:
        snapshot = self._cache.snapshot
        diagnosis = diagnose(evaluation, len(snapshot.table))
        if not len(snapshot.table):  # nothing is asked, and nothing promised: ``schedulingAlgorithm``
            self._nominate(framework, candidate.info, NO_NODE)
            return Decision(candidate, framework, state, diagnosis=diagnosis, nominated=NO_NODE)
        attempt = FailedAttempt(framework, state, candidate.info, snapshot, evaluation, diagnosis)
        try:
            result = framework.run_post_filter(attempt)
        except NotYet as failure:
            return Decision(candidate, framework, state, error=failure.status)
        except PluginFailure as failure:  # the pod fits nowhere all the same
            diagnosis = diagnosis.after_post_filter(failure.status.message)
            return Decision(candidate, framework, state, diagnosis=diagnosis)
        if result is None:
            return Decision(candidate, framework, state, diagnosis=diagnosis)
        victims, turned_away = self._waiting.preempt(result.victims, framework.profile.features)
        return Decision(
            candidate,
            framework,
            state,
            diagnosis=diagnosis.after_post_filter(result.status.message),
            nominated=result.nominated,
            victims=victims,
            turned_away=turned_away,
            deallocations=result.deallocations,
            deleted_claims=result.deleted_claims,
            displaced=self._nominate(framework, candidate.info, result.nominated),
        )

    def _nominate(self, framework: Framework, pod: PodInfo, node: NodeName | None) -> tuple[PodInfo, ...]:
        """Keep the promise from the next pod of the batch on; returns the pods whose own promises end with it. A
        deferred resize needs no promise: its node counts for it already what it asks for.

        Source: framework/preemption/preemption.go ``prepareCandidate``; schedule_one.go ``handleSchedulingFailure``.
        """
        nominations = self._cache.snapshot.nominations
        if node is None:
            return ()
        nominations.drop(pod.uid)
        if node == NO_NODE:
            return ()
        displaced = nominations.displaced_by(pod, node)
        for other in displaced:
            nominations.drop(other.uid)
        if not framework.defers(pod.pod):
            nominations.set(pod, node)
        return displaced
