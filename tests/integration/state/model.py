"""What the state room must do, told in plain Python without a look at how it does it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from dsched.model.meta import PodKey, PodUid
from dsched.scheduler.ports import QueueName
from dsched.state.reservations import CHANGED, GONE, OK

RESERVED_PLACES = (QueueName.RESERVED, QueueName.WAITING)


@dataclass(eq=False)
class ModelPod:
    """A pod from its creation on.

    Attributes:
        cpu: millicores; port: a host port, 0 for none.
        alive: it is in the cluster; heard_gone: the leader knows that it is not.
        place: where it stands in the queue; score: its number there.
        bound: the node that the cluster has it on.
    """

    key: PodKey
    uid: PodUid
    cpu: int
    port: int
    order: int
    turn: str
    gated: bool
    alive: bool = True
    heard_gone: bool = False
    place: QueueName = QueueName.NOWHERE
    score: int = 0
    error: bool = False
    attempts: int = 0
    bound: str = ""


@dataclass
class Held:
    """A reservation."""

    node: str
    epoch: int
    state: str
    attempt: int
    since_ms: int


@dataclass
class ModelNode:
    cpu: int
    pods: int


@dataclass
class Model:
    """Everything that is true of one system.

    Attributes:
        counted: bound pods that the leader counts, to their nodes.
    """

    now_ms: int
    epoch: int = 0
    pods: dict[PodUid, ModelPod] = field(default_factory=dict)
    held: dict[PodUid, Held] = field(default_factory=dict)
    counted: dict[PodUid, str] = field(default_factory=dict)
    nodes: dict[str, ModelNode] = field(default_factory=dict)

    # -- reading -------------------------------------------------------------------------------------------------------

    def named(self, key: PodKey) -> ModelPod | None:
        """The pod of that name that is in the cluster."""
        return next((pod for pod in self.pods.values() if pod.key == key and pod.alive), None)

    def standing(self, *places: QueueName) -> list[ModelPod]:
        """Pods in these places, in their order."""
        found = [pod for pod in self.pods.values() if pod.place in places]
        if places == (QueueName.ACTIVE,):
            return sorted(found, key=_turn)
        return sorted(found, key=lambda pod: (pod.score, pod.key))

    def on_node(self, node: str) -> list[ModelPod]:
        """Pods that take up room there."""
        reserved = [self.pods[uid] for uid, held in self.held.items() if held.node == node]
        return reserved + [self.pods[uid] for uid, on in self.counted.items() if on == node]

    def taken(self, node: str) -> dict[str, int]:
        """What they take up, by resource; nothing for what is not taken."""
        pods = self.on_node(node)
        return {"cpu": sum(pod.cpu for pod in pods), "pods": len(pods)} if pods else {}

    def fits(self, pod: ModelPod, node: str) -> bool:
        """Whether there is room for one more."""
        there, pods = self.nodes[node], self.on_node(node)
        return sum(each.cpu for each in pods) + pod.cpu <= there.cpu and len(pods) < there.pods

    def filtered(self, pod: ModelPod, node: str) -> bool:
        """What Filter says: room, and the host port is free."""
        free = not pod.port or all(each.port != pod.port for each in self.on_node(node))
        return node in self.nodes and free and self.fits(pod, node)

    # -- the queue -----------------------------------------------------------------------------------------------------

    def put(self, pod: ModelPod, place: QueueName, score: int) -> None:
        """The pod stands there now."""
        pod.place, pod.score = place, pod.order if place is QueueName.ACTIVE else score

    def taken_in(self, pod: ModelPod, place: QueueName) -> None:
        """A new pod; one of the same name that is gone, and that the leader has not missed yet, leaves its place."""
        for old in self.pods.values():
            if old.key == pod.key and old is not pod:
                old.place = QueueName.NOWHERE
        self.pods[pod.uid] = pod
        self.put(pod, place, self.now_ms)

    def next_popped(self, count: int, from_backoff: bool) -> list[ModelPod]:
        """The pods that the next pop takes, in order."""
        active = self.standing(QueueName.ACTIVE)
        if active or not from_backoff:
            return active[:count]
        backoff = [pod for pod in self.standing(QueueName.BACKOFF) if not pod.error]
        return sorted(backoff, key=lambda pod: (pod.score // 1000, *_turn(pod)))[:count]

    def popped(self, pods: Iterable[ModelPod]) -> None:
        """They are in flight."""
        for pod in pods:
            pod.attempts += 1
            self.put(pod, QueueName.INFLIGHT, 0)

    # -- reservations --------------------------------------------------------------------------------------------------

    def reserve(self, asked: list[tuple[ModelPod, str]], view: str, deadline_ms: int) -> list[str]:
        """Verdicts on a batch, which take effect. ``view`` is how the caller saw the nodes: ``fresh``, ``old`` (other
        things have happened there since), or ``other object`` (the node itself has changed since)."""
        verdicts = []
        surprised: set[str] = set()
        for pod, node in asked:
            if pod.place is not QueueName.INFLIGHT:
                verdict = GONE
            elif node not in self.nodes or view == "other object":
                verdict = CHANGED
            elif view == "fresh" and node not in surprised:
                verdict = OK
            else:
                verdict = OK if not pod.port and self.fits(pod, node) else CHANGED
            if verdict == OK:
                assert self.fits(pod, node), f"I3: no room for {pod.key} on {node}"
                state = "waiting" if deadline_ms else "reserved"
                self.held[pod.uid] = Held(node, self.epoch, state, pod.attempts, self.now_ms)
                self.put(pod, QueueName(state), deadline_ms)
            else:
                surprised.add(node)
            verdicts.append(verdict)
        return verdicts

    def released(self, pod: ModelPod, target: QueueName, score: int) -> bool:
        """A reservation ends without a bind; False when none stands."""
        if self.held.pop(pod.uid, None) is None:
            return False
        if pod.place in RESERVED_PLACES:
            self.put(pod, target, score)
        return True

    def confirmed(self, pod: ModelPod) -> bool:
        """A reservation ends with the pod bound; False when none stands."""
        held = self.held.pop(pod.uid, None)
        if held is None:
            return False
        self.counted[pod.uid] = held.node
        if pod.place in RESERVED_PLACES:
            pod.place = QueueName.NOWHERE
        return True

    def allowed(self, pod: ModelPod) -> bool:
        """Permit no longer holds the pod back; False when it did not."""
        if pod.place is not QueueName.WAITING:
            return False
        self.held[pod.uid].state = "reserved"
        self.put(pod, QueueName.RESERVED, 0)
        return True

    def begins(self, pod: ModelPod, node: str, epoch: int, attempt: int) -> bool:
        """A binder may go on."""
        held = self.held.get(pod.uid)
        if held is None or (held.node, held.epoch, held.attempt) != (node, epoch, attempt):
            return False
        if held.state in ("waiting", "cancelled"):
            return False
        held.state = "binding"
        return True

    def marked(self, pod: ModelPod, before: str, after: str) -> bool:
        """A reservation comes from one state into another; False when it was in none such."""
        held = self.held.get(pod.uid)
        if held is None or held.state != before:
            return False
        held.state = after
        return True

    def bind(self, pod: ModelPod, node: str, epoch: int) -> str:
        """What the cluster says to a bind, which takes effect."""
        held = self.held.get(pod.uid)
        if not pod.alive:
            return "gone"
        if pod.bound:
            return "bound" if pod.bound == node else "conflict"
        if held is None or (held.node, held.epoch) != (node, epoch) or held.state == "cancelled":
            return "reservation-lost"
        if pod.gated or node not in self.nodes:
            return "refused"
        pod.bound = node
        return "bound"

    def adopted(self) -> None:
        """The present leader has taken over all that stands."""
        for held in self.held.values():
            held.epoch = self.epoch
            held.state = "waiting" if held.state == "waiting" else "reserved"

    def recovered(self) -> None:
        """What was in flight is back in the queue."""
        for pod in self.standing(QueueName.INFLIGHT):
            self.put(pod, QueueName.ACTIVE, 0)


def _turn(pod: ModelPod) -> tuple[int, str, str]:
    return pod.order, pod.turn, pod.key
