"""Assumptions: pods count where they are assumed, in the leader's cache over Redis as in memory alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.framework.pod_info import PodInfo
from dsched.framework.table import amounts
from dsched.model.meta import NodeName, PodUid
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.scheduler.cache import Cache
from dsched.scheduler.memory import Memory
from dsched.scheduler.ports import Assumptions
from dsched.state.node_log import NodeLog, Replica
from dsched.state.usage import Usage, read_usage
from tests.builders import make_node, make_pod
from tests.integration.state.nodes_and_pods import NODE_NAMES, NODES, POD_NAMES, PODS
from tests.integration.state.support import system, take_over
from tests.integration.state.tables import assert_same, seen
from tests.redis_server import RedisServer


class InMemory:
    """Nodes come and go as in a simulation."""

    def __init__(self) -> None:
        self.state: Assumptions = Memory()

    def set_node(self, node: Node) -> None:
        self.state.snapshot.table.set_node(node)

    def remove_node(self, name: NodeName) -> None:
        if name in self.state.snapshot.table.index:
            self.state.snapshot.table.remove_node(name)


class InRedis:
    """Nodes come and go as the leader hears of them; reservations are charged as the script would."""

    def __init__(self, store: Any) -> None:
        epoch = take_over(store)
        self._store = store
        self.cache = Cache(Usage(store, epoch), NodeLog(store, epoch))
        self.state: Assumptions = self.cache

    def set_node(self, node: Node) -> None:
        self.cache.set_node(node)

    def remove_node(self, name: NodeName) -> None:
        self.cache.remove_node(name)

    def check(self) -> None:
        """What is written beside the table is what the table says."""
        self.cache.usage.flush()
        snapshot = self.cache.snapshot
        assert_same(Replica(self._store), self.cache.log.publish(snapshot), snapshot)
        for info in snapshot.table.infos(range(len(snapshot.table))):
            fields = read_usage(self._store, info.name)
            found = {name.partition(".")[2]: int(text) for name, text in fields.items() if name.startswith("allocat")}
            assert {name: amount for name, amount in found.items() if amount} == {
                name: amount for name, amount in info.allocatable.items() if amount
            }


@contextmanager
def kept_by(how: str, server: RedisServer) -> Iterator[InMemory | InRedis]:
    if how == "memory":
        yield InMemory()
        return
    with system(server) as store:
        yield InRedis(store)


@pytest.fixture(params=["memory", "redis"])
def kept(request: pytest.FixtureRequest, redis_server: RedisServer) -> Iterator[InMemory | InRedis]:
    with kept_by(request.param, redis_server) as found:
        yield found


def counted(kept: InMemory | InRedis, name: str = "n1") -> int:
    table = kept.state.snapshot.table
    return int(table.pod_count[table.index[NodeName(name)]])


def test_an_assumed_pod_counts_until_it_is_forgotten(kept: InMemory | InRedis) -> None:
    kept.set_node(make_node("n1", cpu=4))
    pod = PodInfo(make_pod("ns/web", cpu=3))
    kept.state.assume(pod, NodeName("n1"))
    table = kept.state.snapshot.table
    assert (table.node_of(pod.uid), counted(kept)) == ("n1", 1)
    assert table.requested("cpu").tolist() == [amounts(pod)["cpu"]]
    kept.state.forget(pod.uid, released=True)
    assert (table.node_of(pod.uid), counted(kept), table.requested("cpu").tolist()) == (None, 0, [0])


def test_forgetting_again_or_somebody_unknown_does_nothing(kept: InMemory | InRedis) -> None:
    kept.set_node(make_node("n1"))
    pods = [PodInfo(make_pod(f"ns/{name}")) for name in "ab"]
    for pod in pods:
        kept.state.assume(pod, NodeName("n1"))
    for uid in (pods[0].uid, pods[0].uid, PodUid("nobody")):
        kept.state.forget(uid, released=False)
    assert (counted(kept), kept.state.snapshot.table.node_of(pods[1].uid)) == (1, "n1")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), NODES),
        st.tuples(st.just("set"), NODES),
        st.tuples(st.just("gone"), NODE_NAMES),
        st.tuples(st.just("assume"), PODS, NODE_NAMES),
        st.tuples(st.just("assume"), PODS, NODE_NAMES),
        st.tuples(st.just("forget"), POD_NAMES, st.booleans()),
    ),
    max_size=40,
)


def step(kept: InMemory | InRedis, what: str, *given_: Any) -> None:
    """No pod is assumed twice; pods may be assumed on a node that is not there any more."""
    if what == "set":
        kept.set_node(given_[0])
    elif what == "gone":
        kept.remove_node(NodeName(given_[0]))
    elif what == "forget":
        kept.state.forget(PodUid(f"uid-{given_[0]}"), released=given_[1])
    else:
        pod: Pod = given_[0]
        if kept.state.snapshot.table.node_of(pod.uid) is None:
            kept.state.assume(PodInfo(pod), NodeName(given_[1]))


@settings(max_examples=80, deadline=None)
@given(steps=STEPS)
def test_any_sequence_gives_the_same_table(redis_server: RedisServer, steps: list[Any]) -> None:
    memory = InMemory()
    with kept_by("redis", redis_server) as redis:
        assert isinstance(redis, InRedis)
        for what, *given_ in steps:
            for kept in (memory, redis):
                step(kept, what, *given_)
            assert seen(memory.state.snapshot) == seen(redis.state.snapshot)
        redis.check()
