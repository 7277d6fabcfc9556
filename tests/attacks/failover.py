"""Redis goes back in time, as after a fail-over to a replica that lacks the last writes: a leader that has noticed
nothing yet, the next one, binders with old jobs, and evaluators with a table of the time that is gone."""

import contextlib
from collections import Counter

from dsched.errors import CannotEvaluate, DschedError
from dsched.fsck.inspection import inspect
from dsched.model.messages import BindRequest
from dsched.state.client import Store
from dsched.state.node_log import Replica
from tests.attacks.attack import Stand, attack
from tests.attacks.contents import Leading, stepped
from tests.integration.leader.rig import Rig
from tests.integration.state.tables import assert_same
from tests.manifests import node_manifest, pod_manifest

NODES, ROOM = 4, 6
"""Pods that fit on a node."""
LOOKS = 500
"""Turns of a quarter of a second: as long as it takes to compare everything, suspect, and look again."""
Kept = dict[bytes, tuple[bytes, int]]


def _names(store: Store, *, all_of_it: bool) -> list[bytes]:
    """The keys that go back: those of the scheduler alone, as where an API server keeps nodes and pods, or all."""
    return [name for name in store.names("") if all_of_it or not name.startswith(store.key("cluster:").encode())]


def _kept(store: Store, *, all_of_it: bool) -> Kept:
    """What the replica has."""
    names = _names(store, all_of_it=all_of_it)
    return {name: (dumped, max(store.redis.pttl(name), 0)) for name in names if (dumped := store.redis.dump(name))}


def _fail_over(store: Store, kept: Kept, *, all_of_it: bool) -> None:
    """To that replica, in one moment."""
    with store.redis.pipeline() as pipeline:
        for name in _names(store, all_of_it=all_of_it):
            pipeline.delete(name)
        for name, (dumped, left_ms) in kept.items():
            pipeline.restore(name, left_ms, dumped)
        pipeline.execute()


class Walk:
    """A system that somebody uses, a step at a time."""

    def __init__(self, stand: Stand, *, all_of_it: bool) -> None:
        self.rng, self.all_of_it = stand.rng, all_of_it
        self.rig = Rig(stand.store(), stand.folder)
        self.rig.remembers = True
        self.leading = Leading(self.rig)
        self.replica = Replica(self.rig.store)
        self.jobs: list[BindRequest] = []
        self.made = 0
        self.rig.apply(*(node_manifest(f"node-{number}", pods=str(ROOM)) for number in range(NODES)))
        self.leading.settle()

    def step(self) -> None:
        """Something that happens in any second."""
        led = self.leading.led
        with contextlib.suppress(DschedError):
            match self.rng.randrange(8):
                case 0 | 1:
                    if len(self.pods()) < NODES * ROOM:
                        self.made += 1
                        self.rig.apply(pod_manifest(f"default/pod-{self.made}"))
                case 2 if pods := self.pods():
                    self.rig.delete_pod(self.rng.choice(pods))
                case 3 | 4 if led is not None:
                    self.leading.led = None  # unless the turn ends well: a leader starts over
                    led.turn()
                    self.jobs += led.requests()
                    self.leading.led = led
                case 5 if self.jobs:
                    self.rig.binder.work(self.jobs.pop(self.rng.randrange(len(self.jobs))))
                case 6 if led is not None:
                    self.evaluate()
                case 7 if self.rng.random() < 0.2:
                    self.leading.led = None
                    self.leading.settle()

    def pods(self) -> list[str]:
        """Those of the cluster."""
        return sorted(pod.key for pod in self.rig.cluster.list().pods)

    def evaluate(self) -> None:
        """An evaluator follows the table, and has what the leader has, or says that it cannot."""
        assert self.leading.led is not None
        cache = self.leading.led.term.memory.cache
        version = cache.log.publish(cache.snapshot)
        with contextlib.suppress(CannotEvaluate):
            assert_same(self.replica, version, cache.snapshot)

    def rest(self) -> None:
        """Until everything has been compared and nothing is left to do; jobs of before come in late."""
        self.rng.shuffle(self.jobs)
        for _ in range(LOOKS):
            if self.jobs and self.rng.random() < 0.1:
                self.rig.binder.work(self.jobs.pop())
            try:
                if self.leading.led is None:
                    self.leading.settle()
                assert self.leading.led is not None
                self.leading.led.turn()
                for request in self.leading.led.requests():
                    self.rig.binder.work(request)
            except DschedError as error:
                print("starts over:", error)
                self.leading.led = None
            self.rig.clock.advance(0.25)

    def check(self) -> None:
        """Everything holds again."""
        led = self.leading.led
        assert led is not None
        pods = self.rig.cluster.list().pods
        homes = Counter(pod.node_name for pod in pods)
        assert "" not in homes, f"not bound: {[pod.key for pod in pods if not pod.node_name]}"
        assert max(homes.values(), default=0) <= ROOM, f"too many on a node: {homes}"
        if not self.all_of_it:
            bound = Counter(uid for _, uid, _ in self.rig.binds())
            assert max(bound.values(), default=0) <= 1, "a pod was bound twice"
        led.agree()
        self.evaluate()
        version = led.term.memory.cache.log.publish(led.term.memory.cache.snapshot)
        assert_same(self.replica, version, led.term.memory.cache.snapshot)
        breaches = inspect(self.rig.store, self.rig.clock, pause_s=0.0).breaches
        assert not breaches, breaches


def _walked(stand: Stand, *, all_of_it: bool) -> None:
    stepped(stand)
    walk = Walk(stand, all_of_it=all_of_it)
    store, epochs = walk.rig.store, []
    for _ in range(max(1, stand.rounds // 5)):
        for _ in range(walk.rng.randrange(20)):
            walk.step()
        kept = _kept(store, all_of_it=all_of_it)
        for _ in range(walk.rng.randrange(1, 20)):
            walk.step()
        _fail_over(store, kept, all_of_it=all_of_it)
        if walk.rng.random() < 0.3:
            walk.leading.led = None
        for _ in range(walk.rng.randrange(10)):
            walk.step()
        walk.rest()
        walk.check()
        assert walk.leading.led is not None
        epochs.append(walk.leading.led.epoch)
    assert epochs == sorted(epochs), f"the epoch went back: {epochs}"


@attack(
    "Redis fails over to a replica that lacks the last writes, nodes and pods being behind an API server",
    sees="the leader notices, starts over or repairs; each pod is bound once, no node is too full, nothing is lost",
)
def scheduler_goes_back(stand: Stand) -> None:
    _walked(stand, all_of_it=False)


@attack(
    "Redis fails over to a replica that lacks the last writes, and keeps nodes and pods itself",
    sees="objects are as the replica has them, and leader and evaluators agree with them; every pod there is bound",
)
def everything_goes_back(stand: Stand) -> None:
    _walked(stand, all_of_it=True)
