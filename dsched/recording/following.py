"""A recording followed to the letter: every recorded attempt is decided anew, and then what was recorded counts.

So each decision is taken on what the recorded leader saw, whatever was decided here before. Who wants to know what else
would have been decided asks at the moment at which the cluster stands as it did then.
"""

from collections.abc import Callable, Sequence

from dsched.config import SchedulerConfiguration
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Registry
from dsched.framework.pod_info import PodInfo
from dsched.model import tape
from dsched.model.meta import NO_NODE, NodeName
from dsched.recording.replaying import Replay, alike
from dsched.recording.units import Batch, Unit, units
from dsched.scheduler.decision import Candidate, Decision, GroupCandidate, told_by_pod
from dsched.scheduler.memory import Memory
from dsched.scheduler.queue import QueuedPod
from dsched.scheduler.waiting_pods import WaitingPods

Decided = Callable[[Candidate, Decision, tape.Choice], None]
"""Is told of an attempt, what was decided here and what was recorded. Where these are not alike, the decision has been
taken back, and the recorded one does not count yet."""


class Following(Replay):
    """One beginning of a recording, decided again attempt by attempt; see the module.

    Attributes:
        deciding: what the present attempt is about: a pod, or a group.
        started_at: where the search of the present attempt began, where some of the nodes are looked at.
    """

    def __init__(
        self,
        configured: SchedulerConfiguration,
        plugins: Registry,
        began: tape.Began,
        decided: Decided,
        seed: int,
    ) -> None:
        """
        Raises:
            PluginError: a profile's plugins cannot be built.
        """
        super().__init__(configured, plugins, began, seed, tell_best=True)
        self.started_at = 0
        self.deciding: Candidate | GroupCandidate | None = None
        self._decided = decided

    def _try(self, pods: Sequence[QueuedPod], batch: Batch | None = None) -> None:
        batch = batch or Batch()
        for unit in units(self._made, pods, batch):
            self._try_unit(unit, batch)

    def _try_unit(self, unit: Unit, batch: Batch) -> None:
        nominations, choices = self.memory.snapshot.nominations, batch.choices
        stood = [(pod, pod.place, pod.attempts) for pod in unit.pods if pod.uid not in choices]
        candidate = unit.candidate(self._made, [self._popped(pod, choices.get(pod.uid)) for pod in unit.pods])
        self.deciding, self.started_at = candidate, self.selector.next_start
        promised = {pod.uid: nominations.node_of(pod.uid) for pod in unit.pods}
        (decided,) = self._made.decide([candidate])
        decisions = told_by_pod([decided])
        told = [
            (pod, each, choices[pod.uid]) for pod, each in zip(unit.pods, decisions, strict=True) if pod.uid in choices
        ]
        same = not stood and all(alike(decision, choice) for _, decision, choice in told)
        if not same:
            for decision in reversed(decisions):
                take_back(self.memory, self._waiting, decision, promised[decision.candidate.info.uid])
        for pod, place, attempts in stood:  # nothing was recorded of them, so nothing has become of them
            self._pending.placed(pod, place)
            pod.attempts = attempts
        for _, decision, choice in told:
            self._decided(decision.candidate, decision, choice)
        for pod, decision, choice in told:
            self._note(pod, decision if same else self._recorded_one(decision, choice), choice)

    def _not_tried(self, choice: tape.Choice) -> None:
        """No profile is for it, or it has a node by what was recorded."""

    def _recorded_one(self, decision: Decision, choice: tape.Choice) -> Decision:
        """Have what was recorded instead of what was decided."""
        info, framework = decision.candidate.info, decision.framework
        nominations, table = self.memory.snapshot.nominations, self.memory.snapshot.table
        if choice.node:
            self.memory.assume(info, choice.node)
            state = decision.state.clone()
            framework.run_reserve(state, info, choice.node)
            promised = nominations.node_of(info.uid)
            nominations.drop(info.uid)
            return Decision(decision.candidate, framework, state, choice.node, promised=promised)
        displaced: tuple[PodInfo, ...] = ()
        if choice.failed or choice.nominated == NO_NODE:
            nominations.drop(info.uid)
        elif choice.nominated is not None:
            displaced = nominations.displaced_by(info, choice.nominated)
            for other in displaced:
                nominations.drop(other.uid)
            nominations.set(info, choice.nominated)
        victims = tuple(victim for uid in choice.victims if (victim := table.pod(uid)) is not None)
        return Decision(
            decision.candidate,
            framework,
            CycleState(),
            nominated=NO_NODE if choice.failed else choice.nominated,
            victims=victims,
            displaced=displaced,
        )


def take_back(memory: Memory, waiting: WaitingPods, decision: Decision, promised: NodeName | None) -> None:
    """Undo what the cycle did with a decision: the pod is not assumed, nothing is reserved, promises are as before.

    Args:
        promised: the node that the pod had been promised before it was decided.
    """
    info, nominations = decision.candidate.info, memory.snapshot.nominations
    if decision.node is not None:
        waiting.drop(info.uid)
        decision.framework.run_unreserve(decision.state, info, decision.node)
        memory.forget(info.uid, released=False)
    elif decision.nominated:
        nominations.drop(info.uid)
        for displaced in decision.displaced:
            nominations.set(displaced, decision.nominated)
    if promised is not None and nominations.node_of(info.uid) != promised:
        nominations.set(info, promised)
