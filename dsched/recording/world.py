"""The cluster as it was: a recording applied to the letter, nothing decided."""

from dataclasses import dataclass, field

from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeTable
from dsched.model import tape
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.model.pod import Pod


@dataclass(slots=True)
class Fate:
    """What became of a pod that was tried.

    Attributes:
        node: where it was placed, ``""`` for nowhere.
        message: why nowhere.
        evicted: it had a node and had to go for a pod of higher priority.
        gone: it was deleted or has ended; ``node`` is where it was.
    """

    key: PodKey
    node: NodeName = NO_NODE
    message: str = ""
    evicted: bool = False
    gone: bool = False

    def found(self, node: NodeName) -> None:
        """It is there, bound by somebody else where the leader had no place for it."""
        self.node, self.message, self.gone = node, "", False


@dataclass(slots=True)
class Recorded:
    """What the recorded leader had in memory, as far as the lines go that were applied.

    Attributes:
        table: nodes and the pods on them.
        pending: pods that have to be placed, or are not known to be bound.
        placed: pods that decisions placed, to their nodes; no longer there once they have lost it.
        bound: of these, pods that are known to be bound and still pending.
        victims: pods that decisions have condemned.
        fates: of every pod that was tried.
    """

    table: NodeTable = field(default_factory=NodeTable)
    pending: dict[PodUid, Pod] = field(default_factory=dict)
    placed: dict[PodUid, NodeName] = field(default_factory=dict)
    bound: set[PodUid] = field(default_factory=set)
    victims: set[PodUid] = field(default_factory=set)
    fates: dict[PodUid, Fate] = field(default_factory=dict)

    def apply(self, line: tape.Line) -> None:
        """Make what a line says so."""
        match line:
            case tape.NodeIs(node=node):
                self.table.set_node(node)
            case tape.NodeGone(name=name):
                self.table.remove_node(name)
            case tape.PodOn(node=home, pod=pod) | tape.Reserved(node=home, pod=pod):
                self.table.add_pod(PodInfo(pod), home)
                if isinstance(line, tape.Reserved):
                    self.placed[pod.uid] = home
                elif pod.uid in self.fates:
                    self.fates[pod.uid].found(home)
            case tape.PodOff(uid=uid):
                self._off(uid)
            case tape.Released(uid=uid):
                self.table.remove_pod(uid)
                self.placed.pop(uid, None)
                if uid in self.fates:
                    self.fates[uid].node = NO_NODE
            case tape.Pending(pod=pod):
                self.pending[pod.uid] = pod
            case tape.Bound(uid=uid):
                self.bound.add(uid)
            case tape.NoLongerPending(uid=uid):
                pod_was = self.pending.pop(uid, None)
                stays = pod_was is not None and bool(pod_was.node_name)  # a resize is over
                if uid not in self.bound and uid in self.fates and not stays:
                    self.fates[uid].gone = True
                self.bound.discard(uid)
            case tape.Decided(choices=choices):
                for choice in choices:
                    self._decided(choice)
            case _:
                pass

    def _off(self, uid: PodUid) -> None:
        node, info = self.table.node_of(uid), self.table.remove_pod(uid)
        self.placed.pop(uid, None)
        if info is not None and node is not None and uid in self.victims:
            self.fates.setdefault(uid, Fate(info.key, node)).evicted = True
        if uid in self.fates:
            self.fates[uid].gone = True
        self.victims.discard(uid)

    def _decided(self, choice: tape.Choice) -> None:
        pod = self.pending.get(choice.uid)
        if pod is None:
            return
        self.victims.update(choice.victims)
        self.fates[pod.uid] = Fate(pod.key, choice.node, choice.message)
        if choice.node:
            self.placed[pod.uid] = choice.node
            self.table.add_pod(PodInfo(pod), choice.node)
