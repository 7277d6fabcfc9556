"""The ground that the state machine of `test_machine.py` stands on: one system with its model, and what is always true.

Each step that the code takes is taken by the model, too, and both have to say the same.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

from dsched.clock import ManualClock
from dsched.cluster.interface import Binding
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.errors import StaleEpoch
from dsched.manifests import kinds
from dsched.model.meta import NodeName
from dsched.scheduler.ports import QueueName
from dsched.state import client
from dsched.state.reservations import OK
from dsched.state.results import Binds, Outcome
from tests.integration.state.leadership import Leadership, move
from tests.integration.state.model import Held, Model, ModelPod
from tests.integration.state.observed import Observed
from tests.integration.state.support import NOW_MS, dump
from tests.manifests import loaded
from tests.redis_server import RedisServer

DATABASE = 9
"""Of this machine alone: emptied before each run, so that everything in it is its own."""


class System(RuleBasedStateMachine):
    """One system from its first leader to its last pod."""

    server: RedisServer

    def lead(self) -> None:
        self.store = client.connect(self.server.url.removesuffix("/0") + f"/{DATABASE}", "machine")
        self.store.redis.flushdb()
        self.clock = ManualClock(NOW_MS)
        self.cluster = StandaloneCluster(self.store, self.clock)
        self.applier = Applier(self.store, self.clock)
        self.binds = Binds(self.store)
        self.model = Model(NOW_MS)
        self.leader = Leadership(self.store)
        self.model.epoch = self.leader.epoch
        self.former: list[Leadership] = []
        self.jobs: list[tuple[ModelPod, str, int, int]] = []
        self.last_result = "0"
        self.created = 0

    def teardown(self) -> None:
        if hasattr(self, "store"):
            try:
                self.come_to_rest()
            finally:
                self.store.close()

    # -- what is there -------------------------------------------------------------------------------------------------

    def pick(self, data: st.DataObject, pods: list[ModelPod]) -> ModelPod:
        return data.draw(st.sampled_from(sorted(pods, key=lambda pod: pod.uid)), label="pod")

    def pick_held(self, data: st.DataObject) -> ModelPod:
        """Mostly a pod with a reservation."""
        held = [self.model.pods[uid] for uid in self.model.held]
        odd = not held or data.draw(st.integers(0, 4), label="odd") == 0
        return self.pick(data, list(self.model.pods.values()) if odd else held)

    def pods_in(self, *places: QueueName) -> list[ModelPod]:
        return self.model.standing(*places)

    def unheard(self) -> list[ModelPod]:
        return [pod for pod in self.model.pods.values() if not pod.alive and not pod.heard_gone]

    # -- what leaders, binders and the cluster do ----------------------------------------------------------------------

    def apply(self, manifest: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.applier.apply(loaded(Path(folder), manifest))

    def moved(self, pod: ModelPod, target: QueueName, later: int, error: bool = False) -> None:
        """Once it is made; again, and from where the pod is not, it is refused."""
        score = self.model.now_ms + later
        asked = move(pod, pod.place, target, score, error=int(error))
        wrong = move(
            pod, QueueName.INFLIGHT if pod.place is not QueueName.INFLIGHT else QueueName.GATED, QueueName.GATED, 0
        )
        assert self.leader.queue.move([wrong, asked, asked]) == [0, 2]
        self.model.put(pod, target, score)
        pod.error = error

    def ask(self, view: str, asked: list[tuple[ModelPod, str]], waits: bool) -> None:
        if view == "fresh":
            asked = self.filtered(asked)
        deadline_ms = self.model.now_ms + 1000 if waits else 0
        wanted = self.model.reserve(asked, view, deadline_ms)
        assert self.leader.reserve(asked, view, self.model.now_ms, deadline_ms) == wanted
        granted = [each for each, verdict in zip(asked, wanted, strict=True) if verdict == OK]
        assert set(self.leader.reserve(granted, view, self.model.now_ms, deadline_ms)) <= {"gone"}
        self.jobs += [(pod, node, self.model.epoch, pod.attempts) for pod, node in granted]

    def filtered(self, asked: list[tuple[ModelPod, str]]) -> list[tuple[ModelPod, str]]:
        """Those that Filter lets pass on the nodes as the earlier ones of the batch will leave them."""
        trial = Model(
            self.model.now_ms, 0, self.model.pods, dict(self.model.held), self.model.counted, self.model.nodes
        )
        passed = []
        for pod, node in asked:
            if trial.filtered(pod, node):
                passed.append((pod, node))
                if pod.uid not in trial.held:
                    trial.held[pod.uid] = Held(node, 0, "reserved", 0, 0)
        return passed

    def begins(self, pod: ModelPod, node: str, epoch: int, attempt: int) -> bool:
        job = [(pod.key, pod.uid, NodeName(node), attempt)]
        if epoch != self.model.epoch:
            self.refused(lambda: self.binds.begin(epoch, job))
            return False
        wanted = self.model.begins(pod, node, epoch, attempt)
        assert self.binds.begin(epoch, job) == [wanted]
        return wanted

    def bound(self, pod: ModelPod, node: str, epoch: int) -> None:
        wanted = self.model.bind(pod, node, epoch)
        (outcome,) = self.cluster.bind([Binding(pod.key, pod.uid, NodeName(node), epoch)])
        assert outcome.verdict.value == wanted
        self.binds.report(epoch, "binder", [Outcome(pod.key, pod.uid, NodeName(node), wanted, "", pod.attempts)])

    def confirm(self, pod: ModelPod) -> None:
        wanted = self.model.confirmed(pod)
        assert self.leader.confirm(pod) == wanted
        assert not self.leader.confirm(pod)

    def refused(self, act: Callable[[], Any]) -> None:
        before = dump(self.store)
        try:
            done = act()
        except StaleEpoch:
            assert dump(self.store) == before
        else:
            raise AssertionError(f"I5: a leader that no longer leads was not refused: {done}")

    def unread(self) -> bool:
        """Whether there are results that this leader has not seen; asking the code waits until there are."""
        after = "-" if self.last_result == "0" else f"({self.last_result}"
        return bool(self.store.redis.xrange(self.store.key("bind:results"), min=after, count=1))

    # -- always --------------------------------------------------------------------------------------------------------

    @invariant()
    def everything_is_as_it_must_be(self) -> None:
        observed = Observed(self.store)
        observed.check(self.model)
        self.check_memory(observed)

    def check_memory(self, observed: Observed) -> None:
        """The leader's table and its versions are those in Redis."""
        table = self.leader.cache.snapshot.table
        assert sorted(table.names) == sorted(self.model.nodes)
        for each in table.infos(range(len(table))):
            taken = {name: amount for name, amount in each.requested.items() if amount}
            assert taken == self.model.taken(each.name)
            seen, fields = self.leader.cache.usage.seen(each.name), observed.nodes[each.name]
            assert (seen.version, seen.object_version) == (int(fields["version"]), int(fields["object"]))

    def come_to_rest(self) -> None:
        """I11: when all is done, nothing is left but what is kept for ever."""
        for pod in [pod for pod in self.model.pods.values() if pod.alive]:
            self.applier.delete(kinds.POD, [pod.key])
            pod.alive = False
        for pod in self.unheard():
            self.leader.hear_gone(self.model, pod)
        for name in sorted(self.model.nodes):
            self.applier.delete(kinds.NODE, [name])
            self.leader.remove_node(name)
        self.last_result = "0"
        while self.unread():
            self.leader.results.ack(self.leader.results.read("0", 0.001))
        left = {name for name in Observed(self.store).keys if not name.startswith("cluster:")}
        assert left <= {"leader", "leader:epoch", "bind:results"}
