"""A whole leader over a real Redis, driven step by step: no threads, no Celery, and a clock that stands still."""

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dsched import config
from dsched.clock import ManualClock
from dsched.cluster.interface import Binding, BindVerdict
from dsched.cluster.standalone import keys as cluster_keys
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.cluster.standalone.objects import Objects
from dsched.config.feature_gates import DEFAULT
from dsched.errors import StaleEpoch
from dsched.framework.interface import Registry
from dsched.leader import term as term_module
from dsched.leader.binders.sender import BindSender, Errand, Job
from dsched.leader.evaluators.router import Mode
from dsched.leader.settings import Settings
from dsched.leader.sources import Answered, Heard, Letter, Silence
from dsched.leader.term import LeaderTerm
from dsched.manifests import kinds
from dsched.model import messages
from dsched.model.messages import BindItem, BindRequest
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.plugins import profiles, registry
from dsched.state import keys
from dsched.state.client import Store
from dsched.state.lease import Lease
from dsched.state.queue import read_records
from dsched.state.reservations import read_reservations
from dsched.state.results import Binds, Outcome, Result
from dsched.state.usage import read_usage, read_versions
from dsched.tracing import Tracing
from tests.manifests import Json, loaded

LONG_MS = 3_600_000


class RecordingDispatcher:
    """Keeps the messages that a leader sends to workers."""

    def __init__(self, store: Store) -> None:
        self.binds: list[BindRequest] = []
        self.refused: list[bool] = []
        self.pings: list[str] = []

    def bind(self, request: BindRequest, *, refused: bool = False) -> None:
        self.binds.append(request)
        self.refused.append(refused)

    def bind_encoded(self, payload: bytes, config: str, *, refused: bool) -> None:
        self.bind(messages.decode(payload, BindRequest), refused=refused)

    def ping(self, workers: Sequence[str], expires_s: float) -> None:
        self.pings += workers

    def forget(self, worker: str) -> None:
        pass

    def close(self) -> None:
        pass


class SteppedCourier(BindSender):
    """Sends at once."""

    def bind(self, request: BindRequest, *, refused: bool = False) -> None:
        self._send(Job(messages.encode(request), request.config, len(request.pods), refused))

    def run(self, errand: Errand) -> None:
        self._run(errand)


class SteppedBinder:
    """Does what a binder does, a step a call, so that a test can stop in between."""

    def __init__(self, store: Store, cluster: StandaloneCluster, name: str = "binder") -> None:
        self._binds = Binds(store)
        self._cluster = cluster
        self._name = name

    def begin(self, request: BindRequest) -> list[BindItem]:
        """The pods whose reservations stand; they are marked as binding."""
        jobs = [(item.key, item.uid, item.node, item.attempt) for item in request.pods]
        standing = self._binds.begin(request.epoch, jobs)
        return [item for item, stands in zip(request.pods, standing, strict=True) if stands]

    def bind(self, request: BindRequest, items: Sequence[BindItem]) -> list[Outcome]:
        """Bind them in the cluster."""
        found = self._cluster.bind([Binding(item.key, item.uid, item.node, request.epoch) for item in items])
        return [
            self.outcome(item, outcome.verdict, outcome.message) for item, outcome in zip(items, found, strict=True)
        ]

    def outcome(self, item: BindItem, verdict: BindVerdict | str, message: str = "") -> Outcome:
        """What became of one pod."""
        text = verdict.value if isinstance(verdict, BindVerdict) else verdict
        return Outcome(item.key, item.uid, item.node, text, message, item.attempt)

    def report(self, request: BindRequest, outcomes: Sequence[Outcome]) -> None:
        """Tell the leader."""
        self._binds.report(request.epoch, self._name, outcomes)

    def work(self, request: BindRequest) -> list[Outcome]:
        """All of it; a request of an old leader is dropped."""
        try:
            standing = self.begin(request)
        except StaleEpoch:
            return []
        lost = [item for item in request.pods if item not in standing]
        outcomes = [self.outcome(item, BindVerdict.RESERVATION_LOST) for item in lost]
        outcomes += self.bind(request, standing) if standing else []
        self.report(request, outcomes)
        return outcomes

    def says(self, request: BindRequest, verdict: BindVerdict | str, message: str = "") -> None:
        """Report one verdict for every pod, whatever really became of them."""
        self.report(request, [self.outcome(item, verdict, message) for item in request.pods])


class SteppedSources(Silence):
    """What has come in, read when the loop asks for it."""

    def __init__(self, led: "Led") -> None:
        self._led = led

    def letters(self, timeout_s: float) -> list[Letter]:
        return [*self._led.changes(), *self._led.answers()]


class Led:
    """One epoch's leader, after it took over."""

    def __init__(self, rig: "Rig", made: LeaderTerm, epoch: int) -> None:
        self.rig = rig
        self.term: Any = made
        self.epoch = epoch
        self.dispatcher: RecordingDispatcher = made.dispatcher  # type: ignore[assignment]
        self._read = "0"
        self._sent = 0

    def take_over(self) -> None:
        """What comes before the loop."""
        self.term.take_over()
        self.term.sources = SteppedSources(self)

    def hear(self) -> None:
        """Take in what happened in the cluster."""
        self.term.hear(self.changes())
        self.term.state.line.settle()
        self.term.marks.say(self.term.heard)

    def changes(self) -> list[Letter]:
        """What happened in the cluster since the leader last heard of it."""
        found: list[Letter] = []
        events, version = self.rig.cluster.watch(self.term.heard, 0)
        while events:
            found.append(Heard(events, version))
            events, version = self.rig.cluster.watch(version, 0)
        return found

    def settle(self) -> None:
        """Act on what binders have reported."""
        self.term.hear(self.answers())
        self.term.state.line.settle()

    def answers(self) -> list[Letter]:
        """What binders have reported; from now on it counts as read."""
        results = self.unread()
        if not results:
            return []
        self._read = results[-1].entry
        return [Answered(results)]

    def unread(self) -> list[Result]:
        """Results that the leader has not read; it waits for none, because Redis is slow to end a wait."""
        after = self._read if self._read == "0" else f"({self._read}"
        if not self.rig.store.redis.xrange(self.rig.store.key(keys.RESULTS.name), min=after, count=1):
            return []
        found: list[Result] = self.term.state.results.read(self._read, 1.0)
        return found

    def turn(self) -> bool:
        """One turn of the loop, to its end in Redis; False when there was nothing to decide."""
        busy: bool = self.term.turn(0.0)
        self.term.batches.finish()
        self.term.state.line.settle()
        self.term.marks.say(self.term.heard)
        self.term.recording.turned()
        return busy

    def turns(self) -> None:
        """Until there is nothing to decide."""
        for _ in range(200):
            if not self.turn():
                return
        raise AssertionError("the leader does not come to rest")

    def requests(self) -> list[BindRequest]:
        """Bind requests that were handed out since the last call."""
        found = self.dispatcher.binds[self._sent :]
        self._sent = len(self.dispatcher.binds)
        return found

    def run(self, *, agree: bool = True) -> None:
        """To rest: decide, let a binder bind, settle, until nothing comes any more.

        Args:
            agree: False where the test itself has changed node versions behind the leader's back.
        """
        for _ in range(100):  # twenty pods may wait for one that fails each time
            self.turns()
            requests = self.requests()
            if not requests:
                if agree:
                    self.agree()
                return
            for request in requests:
                self.rig.binder.work(request)
        raise AssertionError("the leader hands pods out again and again")

    def agree(self) -> None:
        """Between two turns the leader's memory is what is in Redis and in the cluster."""
        store, table = self.rig.store, self.term.memory.cache.snapshot.table
        usage = self.term.memory.cache.usage
        assert {name: usage.seen(name) for name in table.names} == read_versions(store, table.names)
        records = {record.key: record.fields for record in read_records(store)}
        pending = self.term.memory.pending
        poppable = [pod.key for pod in (*pending, *pending.groups()) if str(pod.place) in ("active", "backoff")]
        assert pending.any_poppable == bool(poppable), poppable
        known = {pod.key: (str(pod.place), pod.turn, str(pod.order)) for pod in (*pending, *pending.groups())}
        assert known == {key: (fields["queue"], fields["place"], fields["order"]) for key, fields in records.items()}
        homes = {found.uid: found.node for found in read_reservations(store)}
        pods = [pod for pod in self.rig.cluster.list().pods if not pod.finished]
        homes |= {pod.uid: pod.node_name for pod in pods if pod.node_name}
        assert {pod.uid: name for name, pod in table.placed()} == homes
        nominations = self.term.memory.cache.snapshot.nominations
        assert not [pod.key for name in nominations.nodes() for pod in nominations.on(name) if pod.uid in homes]
        assert set(self.term.memory.cache._assumed) == {found.uid for found in read_reservations(store)}

    def place(self, key: str) -> str:
        """Where the leader believes that a pod stands; "" when it is not pending."""
        pod = self.term.memory.pending.get(PodKey(key))
        return "" if pod is None else str(pod.place)


class Rig:
    """A system on a real Redis.

    Args:
        monkeypatch: keeps messages to workers from being sent; None for a system with real workers, which need a clock
            that goes.
    """

    def __init__(
        self, store: Store, folder: Path, monkeypatch: Any = None, clock: Any = None, mode: Mode = Mode.LOCAL
    ) -> None:
        self.store = store
        self.clock = clock or ManualClock()
        self.mode = mode
        self.cluster = StandaloneCluster(store, self.clock)
        self.binder = SteppedBinder(store, self.cluster)
        self._applier = Applier(store, self.clock)
        self._objects = Objects(store)
        self._folder = folder
        self.configuration = config.default(DEFAULT)
        self.plugins: Registry = registry.intree()
        self.tracing: Tracing | None = None
        self.decisions: Path | None = None
        self.remembers, self.highest = False, 0
        self._made: list[LeaderTerm] = []
        """Whether leaders know the epochs of those before them whatever Redis has lost."""
        if monkeypatch is not None:
            monkeypatch.setattr(term_module, "Dispatcher", RecordingDispatcher)
            monkeypatch.setattr(term_module, "BindSender", SteppedCourier)

    def configure(self, text: str, *plugins: type[Any]) -> None:
        """Use another configuration from the next leader on, with plugins of the test."""
        self.plugins = {**registry.intree(), **{plugin.name: plugin for plugin in plugins}}
        self.configuration = profiles.parsed(text, "test.yaml", self.plugins, DEFAULT)

    # -- the cluster -----------------------------------------------------------------------------------------------

    def apply(self, *objects: Json) -> None:
        self._applier.apply(loaded(self._folder, *objects))

    def delete_pod(self, key: str) -> None:
        assert self._applier.delete(kinds.POD, [key]) == [True]

    def delete_node(self, name: str) -> None:
        assert self._applier.delete(kinds.NODE, [name]) == [True]

    def bind_foreign(self, key: str, node: str) -> None:
        """Somebody else binds the pod: a reservation that he made himself, gone at once."""
        (pod,) = self.cluster.get_pods([PodKey(key)])
        assert pod is not None
        name, mine = self.store.key(keys.RESERVATIONS.name), self.store.redis.hget
        before = mine(name, pod.uid)
        self.store.redis.hset(name, pod.uid, f"{key} {node} 999 reserved 1 0")
        (outcome,) = self.cluster.bind([Binding(PodKey(key), PodUid(pod.uid), NodeName(node), 999)])
        assert outcome.verdict is BindVerdict.BOUND, outcome
        if before is None:
            self.store.redis.hdel(name, pod.uid)
        else:
            self.store.redis.hset(name, pod.uid, before)

    def node_of(self, key: str) -> str | None:
        """Where a pod is bound, "" when it is not; None when it is not there."""
        (pod,) = self.cluster.get_pods([PodKey(key)])
        return None if pod is None else str(pod.node_name)

    def uid(self, key: str) -> str:
        (pod,) = self.cluster.get_pods([PodKey(key)])
        assert pod is not None
        return str(pod.uid)

    def condition(self, key: str) -> tuple[str, str]:
        """Reason and message of the pod's PodScheduled condition."""
        (pod,) = self.cluster.get_pods([PodKey(key)])
        assert pod is not None
        found = [each for each in pod.status.conditions if each.type == "PodScheduled"]
        return (found[0].reason, found[0].message) if found else ("", "")

    def events(self, key: str) -> list[tuple[str, int]]:
        """Reason and count of a pod's events, oldest first."""
        return [(event.reason, event.count) for event in reversed(self._objects.events(PodKey(key)))]

    def binds(self) -> list[tuple[str, str, str]]:
        """Every bind that the cluster ever accepted: pod, uid, node."""
        entries = self.store.redis.xrange(self.store.key(cluster_keys.LOG.name))
        return [
            (fields[b"key"].decode(), fields[b"uid"].decode(), fields[b"node"].decode())
            for _, fields in entries
            if fields[b"change"] == b"BOUND"
        ]

    # -- the state in Redis ----------------------------------------------------------------------------------------

    def record(self, key: str) -> dict[str, str]:
        """A pending pod's record; empty when there is none."""
        found = {record.key: dict(record.fields) for record in read_records(self.store)}
        return found.get(PodKey(key), {})

    def queue(self, key: str) -> str:
        """Where Redis says that a pod stands."""
        return self.record(key).get("queue", "")

    def reserved(self) -> dict[str, tuple[str, str]]:
        """Pods with a reservation, to node and state."""
        return {found.key: (found.node, found.state) for found in read_reservations(self.store)}

    def used(self, node: str) -> dict[str, int]:
        """What is charged to a node, zeros left out."""
        fields = read_usage(self.store, NodeName(node))
        return {name[5:]: int(text) for name, text in fields.items() if name.startswith("used.") and int(text)}

    def dump(self) -> dict[str, bytes]:
        """Every key of the system with all that is in it."""
        prefix = self.store.key("")
        names = sorted(self.store.redis.scan_iter(match=prefix + "*", count=10_000))
        return {name.decode()[len(prefix) :]: self.store.redis.dump(name) for name in names}

    # -- leaders ---------------------------------------------------------------------------------------------------

    def elect(self) -> Led:
        """A new leader, as if the lease of the present one had run out; it has not taken over yet."""
        self.store.redis.delete(self.store.key(keys.LEADER.name))
        lease = Lease(self.store, f"leader-{uuid.uuid4().hex}", LONG_MS)
        lease._highest = self.highest  # as a process has it that stood by all the time
        assert lease.acquire()
        self.highest = lease.epoch if self.remembers else 0
        settings = Settings(identity=lease.identity, mode=self.mode, decisions=self.decisions)
        given = (settings, self.store, self.cluster, self.configuration, self.plugins, lease.epoch, self.clock)
        made = LeaderTerm(*given, tracing=self.tracing)
        self._made.append(made)
        return Led(self, made, lease.epoch)

    def over(self) -> None:
        """The leaders' processes are gone, and their threads and connections with them."""
        for made in self._made:
            made.sender.close()
            made.dispatcher.close()
            made.state.line.close()

    def lead(self) -> Led:
        """A new leader that has taken over."""
        led = self.elect()
        led.take_over()
        return led
