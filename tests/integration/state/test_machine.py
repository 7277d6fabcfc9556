"""Anything that leaders, binders and the cluster may do, in any order, with every invariant looked at after each step.

Leaders are killed at any point and wake up again, calls are made twice, binds come late, pods die and come back under
their name. The model (`model.py`) says what must come of it.
"""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from dsched.manifests import kinds
from dsched.model.meta import PodKey, PodUid
from dsched.scheduler.ports import Popped, QueueName
from tests.integration.state.leadership import Leadership, move
from tests.integration.state.machine import System
from tests.integration.state.model import ModelNode, ModelPod
from tests.manifests import node_manifest, pod_manifest

NODES = st.sampled_from(["n1", "n2", "n3"])
NAMES = st.sampled_from([f"p{number}" for number in range(6)])
CPUS = st.integers(1, 20).map(lambda number: 100 * number)
PORTS = st.sampled_from([0, 0, 0, 80])
LATER = st.integers(0, 3000)
REQUEUED = st.sampled_from([QueueName.ACTIVE, QueueName.BACKOFF, QueueName.UNSCHEDULABLE])


class StateRoom(System):
    """Steps in any order."""

    @initialize(
        nodes=st.lists(
            st.tuples(NODES, st.sampled_from([1000, 4000, 8000]), st.integers(1, 4)), min_size=2, max_size=4
        ),
        pods=st.lists(st.tuples(NAMES, CPUS, PORTS), min_size=2, max_size=6),
        count=st.integers(0, 6),
    )
    def begin(self, nodes: list, pods: list, count: int) -> None:
        """Somewhere in the midst of work."""
        self.lead()
        for node in nodes:
            self.set_node(*node)
        for name, cpu, port in pods:
            self.add_pod(name, cpu, port, 0, False)
        if count:
            self.pop(count, False)

    # -- pods ----------------------------------------------------------------------------------------------------------

    @rule(
        name=NAMES,
        cpu=CPUS,
        port=PORTS,
        priority=st.sampled_from([0, 0, -1, 2**31 - 1]),
        gated=st.sampled_from([False, False, True]),
    )
    def add_pod(self, name: str, cpu: int, port: int, priority: int, gated: bool) -> None:
        key = PodKey(f"ns/{name}")
        if self.model.named(key) is not None:
            return
        self.created += 1
        pod = ModelPod(key, PodUid(f"uid-{self.created}"), cpu, port, -priority, f"{self.created:06}", gated)
        gates = [{"name": "gate"}] if gated else []
        self.apply(pod_manifest(key, uid=pod.uid, schedulingGates=gates))
        place = QueueName.GATED if gated else QueueName.ACTIVE
        taken_in = move(pod, QueueName.NOWHERE, place, self.model.now_ms)
        assert self.leader.queue.move([taken_in, taken_in]) == [1]
        self.model.taken_in(pod, place)

    @precondition(lambda self: sum(pod.alive for pod in self.model.pods.values()) > 2)
    @rule(data=st.data(), heard=st.booleans())
    def delete_pod(self, data: st.DataObject, heard: bool) -> None:
        pod = self.pick(data, [pod for pod in self.model.pods.values() if pod.alive])
        assert self.applier.delete(kinds.POD, [pod.key]) == [True]
        pod.alive = False
        if heard:
            self.leader.hear_gone(self.model, pod)

    @precondition(lambda self: self.unheard())
    @rule(data=st.data())
    def hear_that_a_pod_is_gone(self, data: st.DataObject) -> None:
        self.leader.hear_gone(self.model, self.pick(data, self.unheard()))

    # -- the queue -----------------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 4), from_backoff=st.booleans())
    def pop(self, count: int, from_backoff: bool) -> None:
        wanted = self.model.next_popped(count, from_backoff)
        found = self.leader.queue.pop("batch", count, self.model.now_ms, from_backoff=from_backoff)
        self.model.popped(wanted)
        assert found == [Popped(pod.key, pod.uid, pod.attempts) for pod in wanted]

    @precondition(lambda self: self.pods_in(QueueName.INFLIGHT))
    @rule(data=st.data(), to=REQUEUED, later=LATER, error=st.booleans())
    def requeue(self, data: st.DataObject, to: QueueName, later: int, error: bool) -> None:
        self.moved(self.pick(data, self.pods_in(QueueName.INFLIGHT)), to, later, error)

    @precondition(lambda self: self.pods_in(QueueName.UNSCHEDULABLE))
    @rule(data=st.data(), to=st.sampled_from([QueueName.ACTIVE, QueueName.BACKOFF]), later=LATER)
    def hint(self, data: st.DataObject, to: QueueName, later: int) -> None:
        self.moved(self.pick(data, self.pods_in(QueueName.UNSCHEDULABLE)), to, later)

    @precondition(lambda self: any(pod.alive for pod in self.pods_in(QueueName.GATED)))
    @rule(data=st.data())
    def remove_gate(self, data: st.DataObject) -> None:
        pod = self.pick(data, [pod for pod in self.pods_in(QueueName.GATED) if pod.alive])
        self.apply(pod_manifest(pod.key, uid=pod.uid))
        pod.gated = False
        self.moved(pod, QueueName.ACTIVE, 0)

    @precondition(lambda self: self.pods_in(QueueName.BACKOFF))
    @rule(ms=LATER)
    def time_passes(self, ms: int) -> None:
        self.clock.advance(ms / 1000)
        self.model.now_ms += ms
        due = [pod for pod in self.pods_in(QueueName.BACKOFF) if pod.score <= self.model.now_ms]
        assert self.leader.queue.flush_backoff(self.model.now_ms) == [pod.key for pod in due]
        for pod in due:
            self.model.put(pod, QueueName.ACTIVE, 0)

    # -- reservations and binds ----------------------------------------------------------------------------------------

    @precondition(lambda self: self.pods_in(QueueName.INFLIGHT))
    @rule(
        data=st.data(),
        view=st.sampled_from(["fresh", "fresh", "old", "other object"]),
        waits=st.sampled_from([False, False, True]),
    )
    def reserve(self, data: st.DataObject, view: str, waits: bool) -> None:
        pods = self.pods_in(QueueName.INFLIGHT)
        if data.draw(st.integers(0, 4), label="odd") == 0:
            pods = [pod for pod in self.model.pods.values() if pod.place]
        pods.sort(key=lambda pod: pod.uid)
        chosen = data.draw(st.lists(st.sampled_from(pods), min_size=1, max_size=4, unique=True), label="pods")
        nodes = NODES if not self.model.nodes else st.sampled_from(sorted(self.model.nodes)) | NODES
        self.ask(view, [(pod, data.draw(nodes, label="node")) for pod in chosen], waits)

    @rule(count=st.integers(1, 6), waits=st.sampled_from([False, False, False, True]))
    def cycle(self, count: int, waits: bool) -> None:
        """What a leader does most of the time: a batch from the queue onto nodes that it fits on."""
        self.pop(count, True)
        pods, nodes = self.pods_in(QueueName.INFLIGHT), sorted(self.model.nodes)
        for number, node in enumerate(nodes):
            self.ask("fresh", [(pod, node) for pod in pods[number :: len(nodes)]], waits)

    @precondition(lambda self: self.model.held)
    @rule(data=st.data())
    def allow(self, data: st.DataObject) -> None:
        pod = self.pick_held(data)
        wanted = self.model.allowed(pod)
        assert self.leader.held.allow([(pod.key, pod.uid), (pod.key, pod.uid)]) == [wanted, False]

    @precondition(lambda self: self.model.held)
    @rule(data=st.data())
    def pause(self, data: st.DataObject) -> None:
        """PreBind was not ready."""
        pod = self.pick_held(data)
        self.model.marked(pod, "binding", "reserved")
        self.leader.held.pause_ahead([pod.uid])

    @precondition(lambda self: self.model.held)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """Somebody else needs the room, before a binder has begun."""
        pod = self.pick_held(data)
        wanted = self.model.marked(pod, "reserved", "cancelled")
        assert self.leader.held.cancel([pod.uid, pod.uid]) == [wanted, False]

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), times=st.integers(1, 2), begin=st.booleans())
    def bind(self, data: st.DataObject, times: int, begin: bool) -> None:
        """A bind job, at once or late, once or twice, from a binder that asked before or one that was held up."""
        pod, node, epoch, attempt = data.draw(st.sampled_from(self.jobs) | st.just(self.jobs[-1]), label="job")
        for _ in range(times):
            if begin and not self.begins(pod, node, epoch, attempt):
                return
            self.bound(pod, node, epoch)

    @precondition(lambda self: self.model.held)
    @rule()
    def bind_what_is_reserved(self) -> None:
        """What binders do most of the time."""
        for uid, held in list(self.model.held.items()):
            if self.begins(self.model.pods[uid], held.node, held.epoch, held.attempt):
                self.bound(self.model.pods[uid], held.node, held.epoch)

    @precondition(lambda self: self.unread())
    @rule(acknowledged=st.booleans())
    def read_results(self, acknowledged: bool) -> None:
        """A leader killed before it acknowledged leaves them to be read again."""
        results = self.leader.results.read(self.last_result, 0.001)
        for outcome in (outcome for result in results for outcome in result.outcomes):
            pod = self.model.pods[outcome.uid]
            if outcome.verdict == "bound" and self.model.held.get(pod.uid) and pod.bound == outcome.node:
                self.confirm(pod)
        if acknowledged and results:
            self.leader.results.ack(results)
            self.last_result = results[-1].entry

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def hear_that_a_pod_is_bound(self, data: st.DataObject) -> None:
        """Also one whose reservation has long ended."""
        pod = self.pick_held(data)
        held = self.model.held.get(pod.uid)
        if held is None or pod.bound == held.node:
            self.confirm(pod)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), to=REQUEUED, later=LATER, node=NODES)
    def release(self, data: st.DataObject, to: QueueName, later: int, node: str) -> None:
        """Also one whose reservation has long ended."""
        pod = self.pick_held(data)
        held = self.model.held.get(pod.uid)
        if held is not None:
            node = held.node
            if pod.bound == node:
                return
        score = self.model.now_ms + later
        wanted = self.model.released(pod, to, score)
        assert self.leader.release(pod, node, to, score) == wanted
        assert not self.leader.release(pod, node, to, score)
        if wanted:
            pod.error = False

    # -- nodes ---------------------------------------------------------------------------------------------------------

    @rule(name=NODES, cpu=st.sampled_from([1000, 4000, 8000]), pods=st.integers(1, 4))
    def set_node(self, name: str, cpu: int, pods: int) -> None:
        self.apply(node_manifest(name, cpu=f"{cpu}m", pods=str(pods)))
        self.model.nodes[name] = ModelNode(cpu, pods)
        self.leader.set_node(name, self.model.nodes[name])

    @precondition(lambda self: len(self.model.nodes) > 1)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model.nodes)), label="node")
        self.applier.delete(kinds.NODE, [name])
        del self.model.nodes[name]
        self.leader.remove_node(name)

    # -- leaders -------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.model.held or self.pods_in(QueueName.INFLIGHT) or self.unheard())
    @rule(killed_after=st.none() | st.integers(0, 6))
    def take_over(self, killed_after: int | None) -> None:
        """The leader is killed; the next one, too, while it takes over, or not."""
        for steps in ([] if killed_after is None else [killed_after]) + [None]:
            self.former = [*self.former[-3:], self.leader]
            self.leader = Leadership(self.store)
            assert self.leader.epoch > self.model.epoch
            self.model.epoch = self.leader.epoch
            for step in self.leader.taking_over(self.model)[:steps]:
                step()
        for uid, held in self.model.held.items():
            self.jobs.append((self.model.pods[uid], held.node, held.epoch, held.attempt))
        self.last_result = "0"

    @precondition(lambda self: self.former)
    @rule(data=st.data(), node=NODES)
    def former_leader_wakes_up(self, data: st.DataObject, node: str) -> None:
        leader = data.draw(st.sampled_from(self.former), label="leader")
        acts = leader.acts(self.pick(data, list(self.model.pods.values())), node, self.model.now_ms)
        self.refused(acts[data.draw(st.sampled_from(sorted(acts)), label="act")])


@pytest.mark.timeout(900)
def test_the_state_room_keeps_every_invariant(redis_server):
    class Machine(StateRoom):
        server = redis_server

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=100,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        ),
    )
