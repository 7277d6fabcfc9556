"""Any changes of the leader's cache: replicas that join at any moment have its table, and Redis has its sums."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.engine.partitions import part_of
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import amounts
from dsched.model.meta import NodeName, PodUid
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.scheduler.cache import Cache
from dsched.state import keys
from dsched.state.client import Store
from dsched.state.node_log import NodeLog, Replica
from dsched.state.usage import Usage, read_usage
from tests.integration.state.nodes_and_pods import NODE_NAMES, NODES, POD_NAMES, PODS
from tests.integration.state.support import system, take_over
from tests.integration.state.tables import KINDS, assert_same, recounted, seen
from tests.redis_server import RedisServer

SHARDS = st.none() | st.frozensets(NODE_NAMES.map(part_of))
"""Parts of the table, and the whole of it."""
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), NODES),
        st.tuples(st.just("set"), NODES),
        st.tuples(st.just("gone"), NODE_NAMES),
        st.tuples(st.just("assume"), PODS, NODE_NAMES),
        st.tuples(st.just("confirm"), POD_NAMES),
        st.tuples(st.just("forget"), POD_NAMES),
        st.tuples(st.just("bound"), PODS, NODE_NAMES),
        st.tuples(st.just("off"), POD_NAMES),
        st.tuples(st.just("put"), st.sampled_from(KINDS), st.sampled_from("ab"), st.integers()),
        st.tuples(st.just("drop"), st.sampled_from(KINDS), st.sampled_from("ab")),
        st.tuples(st.just("publish")),
        st.tuples(st.just("join")),
        st.tuples(st.just("catch up"), st.integers(0, 9)),
        st.tuples(st.just("catch up"), st.integers(0, 9)),
        st.tuples(st.just("hold"), st.integers(0, 9), SHARDS),
        st.tuples(st.just("new leader"), st.booleans()),
    ),
    min_size=10,
    max_size=60,
)


class Leading:
    """A leader's cache that any step can be tried on; reservations are charged as the script would."""

    def __init__(self, store: Store) -> None:
        epoch = take_over(store)
        self.cache = Cache(Usage(store, epoch), NodeLog(store, epoch))

    def step(self, what: str, *given) -> None:
        getattr(self, what)(*given)

    def set(self, node: Node) -> None:
        self.cache.set_node(node)

    def gone(self, name: NodeName) -> None:
        self.cache.remove_node(name)

    def assume(self, pod: Pod, node: NodeName) -> None:
        if self.cache.snapshot.table.node_of(pod.uid) is None:
            self.cache.assume(PodInfo(pod), node)
            self.cache.usage.add(node, amounts(PodInfo(pod)))

    def confirm(self, name: str) -> None:
        self.cache.confirm(PodUid(f"uid-{name}"))

    def forget(self, name: str) -> None:
        uid = PodUid(f"uid-{name}")
        node, pod = self.cache.assumed_on(uid), self.cache.snapshot.table.pod(uid)
        self.cache.forget(uid, released=False)
        if node is not None and pod is not None:
            self.cache.usage.subtract(node, amounts(pod))

    def bound(self, pod: Pod, node: NodeName) -> None:
        if self.cache.assumed_on(pod.uid) is None:
            self.cache.add_pod(PodInfo(pod), node)

    def off(self, name: str) -> None:
        if self.cache.assumed_on(PodUid(f"uid-{name}")) is None:
            self.cache.remove_pod(PodUid(f"uid-{name}"))

    def put(self, kind: str, key: str, number: int) -> None:
        self.cache.put(kind, key, {"metadata": {"name": key}, "number": str(number)})

    def drop(self, kind: str, key: str) -> None:
        self.cache.drop(kind, key)


@contextmanager
def small_sizes() -> Iterator[None]:
    """So small that a few steps write the whole table anew, in several parts."""
    with (
        patch("dsched.state.node_log.SMALLEST_REWRITE_BYTES", 300),
        patch("dsched.state.node_log.CHUNK", 3),
        patch("dsched.state.node_log.READ_AT_ONCE", 2),
    ):
        yield


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_every_replica_has_the_leaders_table_after_any_sequence(redis_server: RedisServer, steps):
    with system(redis_server) as store, small_sizes():
        leader, replicas = Leading(store), [Replica(store)]
        held: list[frozenset[int] | None] = [None]
        for what, *given_ in steps:
            if what == "join":
                replicas.append(Replica(store))
                held.append(None)
            elif what == "hold":
                held[given_[0] % len(held)] = given_[1]
            elif what == "catch up":
                number = given_[0] % len(replicas)
                version = leader.cache.log.publish(leader.cache.snapshot)
                assert_same(replicas[number], version, leader.cache.snapshot, held[number])
            elif what == "new leader":
                leader = Leading(store)
                if given_[0]:
                    store.redis.delete(store.key(keys.NODES_LOG.name))
                    leader.cache.log = NodeLog(store, take_over(store))
            elif what == "publish":
                leader.cache.log.publish(leader.cache.snapshot)
            else:
                leader.step(what, *given_)
        snapshot = leader.cache.snapshot
        version = leader.cache.log.publish(snapshot)
        wanted = seen(snapshot)
        sums = recounted(snapshot.table)
        assert {name: wanted[name] for name in sums} == sums
        for replica, parts in zip([*replicas, Replica(store)], [*held, None], strict=True):
            assert_same(replica, version, snapshot, parts)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_node_usage_is_what_the_leaders_table_says_after_any_sequence(redis_server: RedisServer, steps):
    with system(redis_server) as store:
        leader = Leading(store)
        for what, *given_ in steps:
            if what not in ("join", "hold", "catch up", "new leader", "publish"):
                leader.step(what, *given_)
        leader.cache.usage.flush()
        for info in leader.cache.snapshot.table.infos(range(len(leader.cache.snapshot.table))):
            fields = read_usage(store, info.name)
            for kind, amounts_ in (("allocatable", info.allocatable), ("used", info.requested)):
                found = {name.partition(".")[2]: int(value) for name, value in fields.items() if name.startswith(kind)}
                assert {name: value for name, value in found.items() if value} == {
                    name: value for name, value in amounts_.items() if value
                }
