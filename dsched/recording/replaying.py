"""A recording run again: the leader's cycle decides what the recorded leader decided, on what it saw.

What came from outside (nodes, objects, pods that came and went, binds that failed) happens as recorded. What follows
from decisions follows from the replay's own. With the configuration and the seed of the recording both are the same,
and so is every decision. From the first other decision on, the two clusters part:

- a pod that has a node here is not tried again, whatever was recorded;
- a pod that has none here is tried again when something happens that may help it, as its plugins say (`OwnQueue`);
- a pod that was evicted then and is not here stays; one that is evicted here alone is gone before the next batch;
- a bind that failed then fails here only on the same node.
"""

from collections.abc import Callable, Sequence
from typing import Any

from dsched.clock import ManualClock
from dsched.config import SchedulerConfiguration
from dsched.engine.select import Selector
from dsched.framework.cycle_state import CycleState
from dsched.framework.events import RESOURCES
from dsched.framework.interface import Action, ClusterEvent, Registry, Resource
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.model import tape
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.model.pod import Pod
from dsched.recording.own_queue import OwnQueue
from dsched.recording.units import Batch, units
from dsched.recording.world import Fate, Recorded
from dsched.scheduler.decision import Candidate, Decision, GroupDecision, told_by_pod
from dsched.scheduler.memory import Memory
from dsched.scheduler.nominations import Nomination, released
from dsched.scheduler.ports import QueueName, Record
from dsched.scheduler.queue import Backoff, QueuedPod
from dsched.scheduler.waiting_pods import WaitingPod
from dsched.simulation.offline_cycle import OfflineCycle

Compared = Callable[[Decision | None, tape.Choice, bool], None]
"""Is told of each recorded decision: the replay's (None where the pod was not tried), the recorded one, and whether
both are the same."""

_Held = tuple[CycleState, Framework | None, NodeName]
"""There is no framework for a pod of a profile that only the recorded leader had."""


class Replay:
    """One beginning of a recording, run again.

    Attributes:
        recorded: the cluster as it was.
        memory: the cluster as it would be.
        selector: chooses among equals.
        fates: of every pod that was tried here.
        parted: whether anything was decided otherwise.
        extra: attempts that were not recorded.
    """

    def __init__(
        self,
        configured: SchedulerConfiguration,
        plugins: Registry,
        began: tape.Began,
        seed: int,
        compared: Compared = lambda decision, choice, same: None,
        *,
        tell_best: bool = False,
    ) -> None:
        """
        Args:
            tell_best: whether decisions tell the best set.

        Raises:
            PluginError: a profile's plugins cannot be built.
        """
        self.recorded = Recorded()
        self.memory = Memory()
        self.fates: dict[PodUid, Fate] = {}
        self.parted = False
        self.extra = 0
        self.clock = ManualClock(began.at_ms)
        self._compared = compared
        backoff = Backoff(configured.pod_initial_backoff_seconds * 1000, configured.pod_max_backoff_seconds * 1000)
        self.selector = Selector(seed, tell_best=tell_best)
        self.selector.next_start = began.next_start
        self._made = OfflineCycle(configured, plugins, self.memory, self.selector, self.clock, backoff)
        self._waiting, self._pending, self._frameworks = self._made.waiting, self._made.pending, self._made.frameworks
        self._own = OwnQueue(self._frameworks, self._pending, self.clock)
        self._keys: dict[PodUid, PodKey] = {}
        self._held: dict[PodUid, _Held] = {}
        self._apart: set[PodUid] = set()
        self._spared: set[PodUid] = set()
        self._condemned: dict[PodUid, PodKey] = {}
        self._victims: set[PodUid] = set()

    # -- the recording, line by line -------------------------------------------------------------------------------

    def apply(self, line: tape.Line) -> None:
        """Make what a line says so, here and in what was recorded."""
        table, snapshot = self.memory.snapshot.table, self.memory.snapshot
        match line:
            case tape.NodeIs(node=node):
                row = table.index.get(node.name)
                old = None if row is None else table.nodes[row]
                if table.set_node(node):
                    self._own.happened(_event(Resource.NODE, old, node))
            case tape.NodeGone(name=name):
                self._node_gone(name)
            case tape.ObjectIs(kind=kind, key=key, object=value):
                before = snapshot.others(kind).get(key)
                snapshot.put(kind, key, value)
                self._object(kind, before, value)
            case tape.ObjectGone(kind=kind, key=key):
                before = snapshot.others(kind).get(key)
                snapshot.drop(kind, key)
                self._object(kind, before, None)
            case tape.PodOn(node=home, pod=pod):
                self._on(home, pod)
            case tape.Reserved():
                self._reserved(line)
            case tape.PodOff(uid=uid):
                if uid not in self._spared:
                    self._gone(uid)
            case tape.Pending():
                self._came(line)
            case tape.Moved(uid=uid, place=QueueName.RESERVED):
                self._let_go(uid)
            case tape.Moved(uid=uid, place=place):
                queued = self._queued(uid)
                if queued is not None and (not self.parted or queued.place is QueueName.NOWHERE):
                    self._pending.placed(queued, QueueName(place))
            case tape.Bound(uid=uid):
                self._bound(uid)
            case tape.NoLongerPending(uid=uid):
                self._no_longer_pending(uid)
            case tape.Released(uid=uid):
                self._released(uid)
            case tape.Promised(uid=uid, node=promised):
                queued = self._queued(uid)
                if queued is not None and uid not in self._apart:
                    snapshot.nominations.set(queued.info, promised)
                    queued.preempting.told(promised, self.clock.now_ms())
            case tape.PromiseEnded(uid=uid):
                if uid not in self._apart:
                    snapshot.nominations.drop(uid)
                    self._end_promise(self._queued(uid))
            case tape.Decided():
                self._decide(line)
            case tape.Ready():
                self._ready()
            case _:
                pass
        self.recorded.apply(line)

    def finish(self) -> None:
        """Nothing more was recorded: try whom anything has helped, until nothing changes any more.

        Time stands still meanwhile, so a pod that Permit turns away again and again is left as it is in the end
        (`dsched.simulation.turned_away`).
        """
        while self.parted:
            self._between_batches()
            due = self._own.due(at_once=True)
            if not due:
                return
            self._try(due)

    # -- what came from outside ------------------------------------------------------------------------------------

    def _node_gone(self, name: NodeName) -> None:
        table = self.memory.snapshot.table
        row = table.index.get(name)
        if row is None:
            return
        old = table.nodes[row]
        table.remove_node(name)
        for uid in [uid for uid in self._apart if table.node_of(uid) == name]:
            self._give_back(uid)
        self._own.happened(ClusterEvent(Resource.NODE, Action.DELETE, old=old))

    def _object(self, kind: str, old: Any, new: Any) -> None:
        resource = RESOURCES.get(kind)
        if resource is not None:
            self._own.happened(_event(resource, old, new))

    def _on(self, home: NodeName, pod: Pod) -> None:
        """Bound by somebody else, or changed; a pod that decisions have placed stays where the replay has it."""
        if pod.uid in self._spared:
            return
        table = self.memory.snapshot.table
        old = table.pod(pod.uid)
        if pod.uid in self._apart:
            here = table.node_of(pod.uid)
            if here is None:
                self._changed_without_place(pod)
                return
            home = here
        table.add_pod(PodInfo(pod), home)
        if pod.uid in self.fates:
            self.fates[pod.uid].found(home)
        self._own.happened(_event(Resource.ASSIGNED_POD, None if old is None else old.pod, pod))

    def _came(self, line: tape.Pending) -> None:
        pod, uid = line.pod, line.pod.uid
        self._keys[uid] = pod.key
        framework = self._frameworks.get(pod.spec.scheduler_name)
        queued = self._queued(uid)
        if framework is None:
            return
        if queued is not None:
            self._changed(queued, pod, framework)
            return
        here = self.memory.snapshot.table.node_of(uid)
        if here is not None and uid in self._apart:
            self._on(here, pod.on(here))
            return
        order, turn = framework.sort_key(pod, line.queued_us)
        fields = {
            "uid": uid,
            "queue": line.place,
            "queued_us": str(line.queued_us),
            "attempts": str(line.attempts),
            "plugins": " ".join(line.rejected_by),
            "order": str(order),
            "place": turn,
        }
        self._pending.restore(PodInfo(pod), Record(pod.key, fields))
        self._own.happened(ClusterEvent(Resource.PENDING_POD, Action.ADD, new=pod))

    def _changed(self, queued: QueuedPod, pod: Pod, framework: Framework) -> None:
        old = queued.info.pod
        self._pending.replace(queued, PodInfo(pod), framework)
        self._own.happened(ClusterEvent(Resource.PENDING_POD, Action.UPDATE, old, pod))
        event = ClusterEvent(Resource.POD, Action.UPDATE, old, pod)
        if self._own.open and queued.place is QueueName.UNSCHEDULABLE:
            self._own.wake_if(event, queued)

    def _changed_without_place(self, pod: Pod) -> None:
        """A pod that was bound then, and has no place here, has changed."""
        queued, framework = self._queued(pod.uid), self._frameworks.get(pod.spec.scheduler_name)
        if queued is not None and framework is not None:
            self._changed(queued, pod.on(NO_NODE), framework)

    def _reserved(self, line: tape.Reserved) -> None:
        """At the beginning: what plugins had assumed for it is made up for in `_ready`."""
        info = PodInfo(line.pod)
        self.memory.assume(info, line.node)
        framework = self._frameworks.get(line.pod.spec.scheduler_name)
        self._held[info.uid] = (CycleState(), framework, line.node)
        if framework is not None and line.holding is not None:
            self._waiting.again(WaitingPod(info, line.since_ms, dict(line.holding)))

    def _ready(self) -> None:
        for uid, (state, framework, node) in self._held.items():
            info = self.memory.snapshot.table.pod(uid)
            if framework is not None and info is not None:
                framework.run_reserve(state, info, node)

    def _let_go(self, uid: PodUid) -> None:
        """Nobody holds the pod back any more; from now on no plugin can turn it away."""
        queued = self._queued(uid)
        if queued is not None and uid not in self._apart:
            self._waiting.drop(uid)
            self._pending.placed(queued, QueueName.RESERVED)

    def _bound(self, uid: PodUid) -> None:
        if uid in self._held and uid not in self._apart:
            self._waiting.drop(uid)
            self._take_root(uid)

    def _no_longer_pending(self, uid: PodUid) -> None:
        pod = self.recorded.pending.get(uid)
        if pod is not None and pod.node_name:  # a resize is over, the pod stays
            self._drop_pending(uid)
        elif uid not in self.recorded.bound:
            if uid not in self._spared:
                self._gone(uid)
        elif uid not in self._apart:
            self._drop_pending(uid)

    def _released(self, uid: PodUid) -> None:
        held = self._held.get(uid)
        if held is not None and held[2] == self.recorded.placed.get(uid) and uid not in self._spared:
            self._waiting.drop(uid)
            self._give_back(uid)

    def _gone(self, uid: PodUid) -> None:
        """The pod was deleted or has ended."""
        nominations, table = self.memory.snapshot.nominations, self.memory.snapshot.table
        if uid in self._held:
            self._unreserve(uid)
        self._waiting.drop(uid)
        node, info = table.node_of(uid), table.pod(uid)
        if info is not None and node is not None:
            table.remove_pod(uid)
        self._drop_pending(uid)
        nominations.drop(uid)
        self._condemned.pop(uid, None)
        self._apart.discard(uid)
        if info is not None and node is not None and uid in self._victims:
            self.fates.setdefault(uid, Fate(info.key, node)).evicted = True
            self._victims.discard(uid)
        if uid in self.fates:
            self.fates[uid].gone = True
        if info is not None and node is not None:
            self._own.happened(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, old=info.pod.on(node)))

    def _drop_pending(self, uid: PodUid) -> None:
        self._own.forget(uid)
        queued = self._queued(uid)
        if queued is not None:
            self._pending.drop(queued.key)
            self._end_promise(queued)

    # -- decisions -------------------------------------------------------------------------------------------------

    def _decide(self, line: tape.Decided) -> None:
        self.clock.advance((line.at_ms - self.clock.now_ms()) / 1000)
        if not line.again:
            self._between_batches()
        ahead = [] if line.again else self._own.due()
        recorded: list[QueuedPod] = []
        for choice in line.choices:
            queued = self._queued(choice.uid)
            placed = self.memory.snapshot.table.node_of(choice.uid) is not None
            if queued is None or (placed and not queued.resizes):
                self._not_tried(choice)
            else:
                recorded.append(queued)
        told = Batch.of(line)
        own = [pod for pod in ahead if pod.uid not in told.choices]
        batch = sorted([*own, *recorded], key=lambda pod: (pod.order, pod.turn)) if own else recorded
        self._try(batch, told)

    def _not_tried(self, choice: tape.Choice) -> None:
        """It has a node here, or no profile is for it."""
        pod = self.recorded.pending.get(choice.uid)
        if pod is None:
            return
        if pod.spec.scheduler_name not in self._frameworks:
            self.fates[choice.uid] = Fate(pod.key, message=self._made.unknown(pod.spec.scheduler_name))
        self._part(choice.uid)
        self._condemn(pod.key, (), choice)
        self._compared(None, choice, False)

    def _try(self, pods: Sequence[QueuedPod], batch: Batch | None = None) -> None:
        batch = batch or Batch()
        found = units(self._made, pods, batch)
        candidates = [
            unit.candidate(self._made, [self._popped(pod, batch.choices.get(pod.uid)) for pod in unit.pods])
            for unit in found
        ]
        for unit, decided in zip(found, self._made.decide(candidates), strict=True):
            alike_in_all = all_alike(decided, batch)
            for pod, decision in zip(unit.pods, told_by_pod([decided]), strict=True):
                choice = batch.choices.get(pod.uid)
                same = choice is not None and alike_in_all and alike(decision, choice)
                if not same:
                    self._part(pod.uid)
                if choice is None:
                    self.extra += 1
                else:
                    self._compared(decision, choice, same)
                self._note(pod, decision, choice)

    def _popped(self, pod: QueuedPod, choice: tape.Choice | None) -> Candidate:
        self._own.forget(pod.uid)
        self._pending.placed(pod, QueueName.INFLIGHT)
        if choice is None or pod.uid in self._apart:
            pod.attempts += 1
        else:
            pod.attempts = choice.attempt
            pod.nomination = Nomination.of_fields(choice.preempting) if choice.preempting else None
        pod.first_ms = pod.first_ms or self.clock.now_ms()
        return Candidate(pod.info, pod.attempts)

    def _part(self, uid: PodUid) -> None:
        self._apart.add(uid)
        self.parted = self._own.open = True

    def _note(self, pod: QueuedPod, decision: Decision, choice: tape.Choice | None) -> None:
        """What the decision brings, as `Commit` and `Preemptions` do it."""
        node, info = decision.node, pod.info
        if node is not None:
            self.fates[pod.uid] = Fate(pod.key, node)
            self._held[pod.uid] = (decision.state, decision.framework, node)
            self._pending.placed(pod, QueueName.RESERVED if decision.waiting is None else QueueName.WAITING)
            if pod.uid in self._apart and decision.waiting is None:
                self._take_root(pod.uid)
            self._condemn(info.key, (), choice)
            return
        diagnosis = decision.diagnosis
        self.fates[pod.uid] = Fate(pod.key, message=decision.message)
        self._promise(pod, decision)
        plugins: frozenset[str] = frozenset()
        if diagnosis is not None:
            plugins = diagnosis.unschedulable_plugins | diagnosis.pending_plugins
        self._pending.requeued(pod, decision.framework, plugins)
        self._pending.placed(pod, QueueName.UNSCHEDULABLE)
        self._condemn(info.key, decision.victims, choice)

    def _condemn(self, preemptor: PodKey, chosen: Sequence[PodInfo], choice: tape.Choice | None) -> None:
        """Who is evicted here and was then, goes when it went then."""
        then = frozenset(() if choice is None else choice.victims)
        now = {victim.uid: victim for victim in chosen}
        self._spared |= then - now.keys()
        self._victims |= now.keys()
        for uid, victim in now.items():
            if uid not in then or uid in self._spared:
                self._condemned[uid] = preemptor
                self._keys.setdefault(uid, victim.key)

    def _promise(self, pod: QueuedPod, decision: Decision) -> None:
        """Source: `dsched.leader.preemption.Preemptions.note`."""
        nominations = self.memory.snapshot.nominations
        for displaced in decision.displaced:
            nominations.drop(displaced.uid)
            self._end_promise(self._queued(displaced.uid))
        if decision.error is not None or decision.nominated == NO_NODE:
            nominations.drop(pod.uid)
            self._end_promise(pod)
        elif decision.nominated is not None and not pod.resizes:
            if decision.nominated != pod.promised:
                self._end_promise(pod)
            pod.preempting.promise(decision.nominated, self.clock.now_ms(), evicting=bool(decision.victims))

    def _end_promise(self, pod: QueuedPod | None) -> None:
        """Those may be helped who had to leave the room alone."""
        node = NO_NODE if pod is None else pod.end_promise()
        if pod is not None and node:
            self._own.happened(released(pod.info, node))

    def _take_root(self, uid: PodUid) -> None:
        """The pod is bound."""
        _, _, node = self._held.pop(uid)
        queued, table = self._queued(uid), self.memory.snapshot.table
        if queued is not None and queued.info is not table.pod(uid) and table.node_of(uid) is not None:
            table.add_pod(queued.info, node)  # it has changed while it was reserved
        info = table.pod(uid)
        self._end_promise(queued)
        if uid in self._apart:
            self._drop_pending(uid)
        self._own.turned_away.placed()
        if info is not None:
            self._own.happened(ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, new=info.pod.on(node)))

    def _between_batches(self) -> None:
        """What the loop does between two batches: who was evicted here alone goes, who waited for Permit goes on."""
        for uid, preemptor in list(self._condemned.items()):
            self._evict(uid, preemptor)
        self._condemned.clear()
        allowed, rejected = self._waiting.settled()
        if self.parted:
            self._waiting.expire()
            _, rejected = self._waiting.settled()
        for waiting in allowed:
            self._waiting.drop(waiting.pod.uid)
            if waiting.pod.uid in self._apart and waiting.pod.uid in self._held:
                self._take_root(waiting.pod.uid)
        for waiting in rejected:
            if waiting.pod.uid in self._apart and waiting.pod.uid in self._held:
                self._waiting.drop(waiting.pod.uid)
                self._own.turned_away.add(waiting.pod.uid)
                message = waiting.rejection.message if waiting.rejection is not None else ""
                self._give_back(waiting.pod.uid, message)

    def _evict(self, uid: PodUid, preemptor: PodKey) -> None:
        self._spared.discard(uid)
        table = self.memory.snapshot.table
        node, info = table.node_of(uid), table.pod(uid)
        if node is None or info is None:
            return
        self._gone(uid)
        self._part(uid)
        queued = self._pending.get(preemptor)
        if queued is not None:
            self._own.wake(queued)

    # -- losing a place --------------------------------------------------------------------------------------------

    def _unreserve(self, uid: PodUid) -> None:
        state, framework, node = self._held.pop(uid)
        info = self.memory.snapshot.table.pod(uid)
        if framework is not None and info is not None:
            framework.run_unreserve(state, info, node)

    def _give_back(self, uid: PodUid, message: str = "") -> None:
        """The pod has to be placed again; nobody can where no profile is for it."""
        table = self.memory.snapshot.table
        node, info = table.node_of(uid), table.pod(uid)
        if info is None or node is None:
            return
        if uid in self._held:
            self._unreserve(uid)
        table.remove_pod(uid)
        framework = self._frameworks.get(info.pod.spec.scheduler_name)
        if framework is not None:
            self._requeue(info, framework, message)
        self._own.happened(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, old=info.pod.on(node)))

    def _requeue(self, info: PodInfo, framework: Framework, message: str) -> None:
        queued = self._queued(info.uid)
        if queued is None:
            queued = self._pending.add(info, framework)
        queued.end_promise()
        self._pending.requeued(queued, framework, frozenset())
        self._pending.placed(queued, QueueName.UNSCHEDULABLE)
        if info.uid in self.fates:
            self.fates[info.uid] = Fate(info.key, message=message)
        if info.uid in self._apart:
            self._own.wake(queued)

    def _queued(self, uid: PodUid) -> QueuedPod | None:
        key = self._keys.get(uid)
        pod = None if key is None else self._pending.get(key)
        return pod if pod is not None and pod.uid == uid else None


def all_alike(decided: Decision | GroupDecision, batch: Batch) -> bool:
    """Whether the same was said of a group as was recorded, and of the same pods; of a pod by itself, True."""
    if not isinstance(decided, GroupDecision):
        return True
    told = [batch.groups.get(each.candidate.info.uid) for each in decided.decisions]
    group = told[0]
    return (
        group is not None
        and all(each is group for each in told)
        and (group.pods, group.end, group.message) == (len(told), decided.end, decided.message)
    )


def alike(decision: Decision, choice: tape.Choice) -> bool:
    """Whether a decision is what was recorded: the same node, or none for the same reason, and the same preemption."""
    if decision.node is not None or choice.node:
        return decision.node == choice.node
    return (
        decision.message == choice.message
        and (decision.error is not None) == choice.failed
        and decision.nominated == choice.nominated
        and _same_victims(decision, choice)
    )


def does_the_same(decision: Decision, choice: tape.Choice) -> bool:
    """Whether a decision does what was recorded, whatever is told of it."""
    if decision.node is not None or choice.node:
        return decision.node == choice.node
    return (decision.nominated or NO_NODE) == (choice.nominated or NO_NODE) and _same_victims(decision, choice)


def _same_victims(decision: Decision, choice: tape.Choice) -> bool:
    return {victim.uid for victim in decision.victims} == set(choice.victims)


def _event(resource: Resource, old: Any, new: Any) -> ClusterEvent:
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
    return ClusterEvent(resource, action, old, new)
