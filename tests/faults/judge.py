"""Judges a history: every bind against the cluster as it was, every deletion against who asked for it.

It reads what `tests.faults.history` has recorded and nothing else, and shares no code with dsched. What a pod requests
and which nodes it may go to is read by `tests.acceptance.checker`, written for the same purpose.

A scheduler decides before it binds, and the cluster may change between the two. So a bind is held against each state
that its node had since the pod was created (`LATE_S` at most): one of them has to allow it. What *dsched* placed counts
in full at the moment of the bind: reservations are there so that this holds however late a bind comes. What others
placed, or made larger, in that time is left out.

An API server tells of nodes and of pods on watches of their own, in no order among each other: there, whoever hears of
a pod may for a moment (`HEARD_S`) still have a node as it was before.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.acceptance import checker
from tests.faults.history import ADDED, BOUND, DELETED, LOST, MODIFIED, Entry

Json = Mapping[str, Any]

LATE_S = 30.0
"""How long a decision may have been on its way: longer than any process is kept stopped."""
HEARD_S = 2.0
"""How long it may take a busy leader to hear of a change: that a pod for which it evicts others is gone, or bound."""
OURS = ("default-scheduler", "dsched")


@dataclass
class _Pod:
    """A pod as it is at a moment of the replay."""

    key: str
    uid: str
    object: Json
    added: float
    node: str = ""
    placed: float = 0.0
    foreign: bool = False
    changed: float = 0.0

    @property
    def ours(self) -> bool:
        return not self.foreign and self.object["spec"].get("schedulerName", OURS[0]) in OURS

    @property
    def queue(self) -> str:
        """Empty where it is of none."""
        return str(self.object["metadata"].get("labels", {}).get("dsched.io/queue", ""))


@dataclass
class _Node:
    """All states a node has had: since when, and the object; None while it was not there."""

    states: list[tuple[float, Json | None]] = field(default_factory=list)

    @property
    def now(self) -> Json | None:
        return self.states[-1][1]

    def between(self, start: float, end: float) -> list[Json]:
        """The states in which it was at some time between the two."""
        found = []
        for (since, state), (until, _) in zip(self.states, [*self.states[1:], (end, None)], strict=True):
            if state is not None and until >= start and since <= end:
                found.append(state)
        return found


@dataclass
class Verdict:
    """What a history comes to.

    Attributes:
        breaches: what must not happen, each with its invariant.
        binds: how many times the scheduler bound a pod.
        created: how many pods there were.
        evicted: pods that were deleted to make room.
    """

    breaches: list[str] = field(default_factory=list)
    binds: int = 0
    created: int = 0
    evicted: int = 0


class Judge:
    """Replays a history.

    Args:
        deleted: uids of the pods whose deletion the user, or somebody on the user's behalf, has asked for.
        ordered: the cluster tells everything in one order, and refuses binds to nodes that are not there (standalone
            does, an API server does neither).
        deaf_s: for so long the scheduler could hear nothing: a decision may be older by that.
    """

    def __init__(self, deleted: Iterable[str], *, ordered: bool, deaf_s: float = 0.0) -> None:
        self._asked = frozenset(deleted)
        self._ordered = ordered
        self._late_s = LATE_S + deaf_s
        self._pods: dict[str, _Pod] = {}
        self._nodes: dict[str, _Node] = {}
        self._ever: set[str] = set()
        self._left: list[tuple[float, int, str]] = []
        self.verdict = Verdict()

    def judge(self, entries: Iterable[Entry]) -> Verdict:
        """The verdict."""
        for entry in entries:
            if entry.change == LOST:
                continue
            (self._node if entry.kind == "Node" else self._pod)(entry)
        return self.verdict

    def _breach(self, text: str) -> None:
        self.verdict.breaches.append(text)

    def _node(self, entry: Entry) -> None:
        node = self._nodes.setdefault(entry.key, _Node())
        node.states.append((entry.at, None if entry.change == DELETED else entry.object))

    def _pod(self, entry: Entry) -> None:
        if entry.change == ADDED and entry.object is not None:
            self.verdict.created += 1
            if entry.key in self._pods:
                self._breach(f"I2 {entry.key}: created while there was one of that name")
            made = _Pod(entry.key, entry.uid, entry.object, entry.at, entry.node, entry.at, bool(entry.node))
            made.changed = entry.at
            self._pods[entry.key] = made
        elif entry.change == MODIFIED and entry.object is not None:
            self._modified(entry)
        elif entry.change == DELETED:
            self._deleted(entry)
        elif entry.change == BOUND:
            self._bound(entry)

    def _modified(self, entry: Entry) -> None:
        pod = self._pods.get(entry.key)
        if pod is None or pod.uid != entry.uid or entry.object is None:
            self._breach(f"I2 {entry.key}: changed, and there is no such pod")
            return
        if checker.requests(pod.object) != checker.requests(entry.object):
            pod.changed = entry.at
        pod.object = entry.object

    def _deleted(self, entry: Entry) -> None:
        pod = self._pods.pop(entry.key, None)
        if pod is None or pod.uid != entry.uid:
            self._breach(f"I2 {entry.key} {entry.uid}: deleted, and there was no such pod")
            return
        if entry.uid not in self._asked:
            self.verdict.evicted += 1
            self._evicted(entry, pod)
        if not pod.node:
            self._left.append((entry.at, _priority(pod), pod.queue))

    def _evicted(self, entry: Entry, pod: _Pod) -> None:
        """Nobody else has asked for it, so it must have been a victim: of lower priority than somebody who waits, or
        did a moment ago, or of another queue than one who does. It need not be bound: who was just given a place may
        have to give it up, as in kube-scheduler."""
        priority = _priority(pod)
        waiting = [
            (_priority(each), each.queue)
            for each in self._pods.values()
            if not each.node and not each.object["spec"].get("schedulingGates")
        ]
        waiting += [(of, queue) for left, of, queue in self._left if left >= entry.at - HEARD_S]
        if not any(each > priority or _takes_back(queue, pod.queue) for each, queue in waiting):
            highest = max((each for each, _ in waiting), default=None)
            self._breach(f"I4 {entry.key}: evicted (priority {priority}) for nobody: who waits has at most {highest}")

    def _bound(self, entry: Entry) -> None:
        self.verdict.binds += 1
        pod = self._pods.get(entry.key)
        if pod is None or pod.uid != entry.uid:
            self._breach(f"I2 {entry.key} {entry.uid}: bound to {entry.node}, and there is no such pod")
            return
        if entry.uid in self._ever:
            self._breach(f"I2 {entry.key} {entry.uid}: bound more than once, now to {entry.node}")
        if pod.node:
            self._breach(f"I2 {entry.key}: bound to {entry.node} while it was bound to {pod.node}")
        if pod.object["metadata"].get("deletionTimestamp"):
            self._breach(f"I2 {entry.key}: bound while it was being deleted")
        if pod.object["spec"].get("schedulingGates"):
            self._breach(f"I2 {entry.key}: bound although it is gated")
        self._ever.add(entry.uid)
        if not pod.node:
            self._left.append((entry.at, _priority(pod), pod.queue))
        pod.node, pod.placed = entry.node, entry.at
        if pod.ours:
            self._placed(entry, pod)

    def _placed(self, entry: Entry, pod: _Pod) -> None:
        """Whether the node was one for the pod, and had room for it."""
        since = max(pod.added - (0 if self._ordered else HEARD_S), entry.at - self._late_s)
        node = self._nodes.get(entry.node, _Node([(0.0, None)]))
        if self._ordered and node.now is None:
            self._breach(f"I3 {entry.key}: bound to {entry.node}, which is not there")
            return
        states = [checker.Node(state) for state in node.between(since, entry.at)]
        if not states:
            self._breach(f"I3 {entry.key}: bound to {entry.node}, which was not there since the pod was")
            return
        reasons = [state.refuses(pod.object) for state in states]
        if all(reasons):
            self._breach(f"I3 {entry.key}: bound to {entry.node} against its {reasons[-1]}")
        over = [self._over(state, since, pod) for state in states]
        if all(over):
            told = "; ".join(over[-1])
            self._breach(f"I3 {entry.node}: {told} once {entry.key} was bound to it")

    def _over(self, node: checker.Node, since: float, placed: _Pod) -> list[str]:
        """What is taken twice of what the pod wants."""
        for pod in self._pods.values():
            here = pod.node == node.name and pod.object.get("status", {}).get("phase") not in checker.ENDED
            if here and (pod.ours or pod.placed < since) and (pod.changed < since or pod.changed <= pod.placed):
                node.put(pod.object)
        wanted = {name for name, amount in checker.requests(placed.object).items() if amount}
        ports = {f"host port {port}" for port in checker.host_ports(placed.object)}
        return [each for each in node.over() if each.startswith(tuple(f"{one} " for one in wanted | ports))]


def told_twice(events: Mapping[str, int], *, exactly: bool, bound: Iterable[str]) -> list[str]:
    """Pods that were told other than once that they were scheduled, by what their events go by.

    Args:
        exactly: once, not at most once.
    """
    wrong = [f"I2 {name}: told {count} times that it was scheduled" for name, count in events.items() if count > 1]
    if exactly:
        wrong += [f"I2 {name}: bound, and not told so" for name in bound if not events.get(name)]
    return wrong


def gone_back(samples: Iterable[tuple[float, int]], what: str) -> list[str]:
    """Where a number that only grows has become smaller."""
    wrong, highest = [], 0
    for _, value in samples:
        if value < highest:
            wrong.append(f"{what}: {highest}, then {value}")
        highest = max(highest, value)
    return wrong


def _takes_back(queue: str, other: str) -> bool:
    """Whether a pod of one queue may take back what one of another has."""
    return bool(queue and other) and queue != other


def _priority(pod: _Pod) -> int:
    return int(pod.object["spec"].get("priority") or 0)
