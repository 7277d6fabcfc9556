"""The node log on a real Redis: replicas that join at any moment have the leader's table, whatever happened to it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.clock import ManualClock
from dsched.errors import CannotEvaluate, StaleEpoch
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from dsched.scheduler.cache import Cache
from dsched.state.node_log import SINCE_S, VERSIONS_BITS, NodeLog, Replica, incarnation
from dsched.state.usage import Usage
from tests.builders import make_node, make_pod, make_snapshot
from tests.integration.state.support import take_over
from tests.integration.state.tables import assert_same

VERSIONS = 1 << VERSIONS_BITS

# -- following ---------------------------------------------------------------------------------------------------------


def test_nothing_is_noted_before_the_first_replica_is_wanted(store, epoch):
    cache = Cache(Usage(store, epoch), NodeLog(store, epoch))
    cache.set_node(make_node("n1"))
    assert not cache.log.following
    assert store.redis.exists(store.key("nodes:log")) == 0
    version = cache.log.publish(cache.snapshot)
    assert cache.log.following
    assert_same(Replica(store), version, cache.snapshot)


def test_each_change_is_written_once(store, epoch):
    cache = Cache(Usage(store, epoch), NodeLog(store, epoch))
    cache.log.publish(cache.snapshot)
    cache.set_node(make_node("n1"))
    version = cache.log.publish(cache.snapshot)
    length = store.redis.xlen(store.key("nodes:log"))
    cache.set_node(make_node("n1"))
    assert cache.log.publish(cache.snapshot) == version
    assert store.redis.xlen(store.key("nodes:log")) == length


def test_a_replica_follows_every_kind_of_change(store, epoch):
    cache = Cache(Usage(store, epoch), NodeLog(store, epoch))
    one, other = PodInfo(make_pod("ns/one", cpu=1, ports=[80])), PodInfo(make_pod("ns/other", memory="1Gi"))
    replica = Replica(store)
    changes = [
        lambda: cache.set_node(make_node("n1", labels={"zone": "a"})),
        lambda: cache.set_node(make_node("n2", taints=["a=b:NoSchedule"], images={"nginx": 7})),
        lambda: cache.assume(one, NodeName("n1")),
        lambda: cache.add_pod(other, NodeName("n1")),
        lambda: cache.set_node(make_node("n1", cpu="2", labels={"zone": "b"})),
        lambda: cache.forget(one.uid, released=False),
        lambda: cache.assume(one, NodeName("n2")),
        lambda: cache.confirm(one.uid),
        lambda: cache.remove_node(NodeName("n1")),
        lambda: cache.set_node(make_node("n1")),
        lambda: cache.add_pod(PodInfo(make_pod("ns/other", memory="2Gi")), NodeName("n2")),
        lambda: cache.remove_pod(one.uid),
        lambda: cache.put("Service", "ns/s", {"metadata": {"name": "s"}, "spec": {"selector": {"app": "web"}}}),
        lambda: cache.put("Service", "ns/s", {"metadata": {"name": "s"}}),
        lambda: cache.drop("Service", "ns/s"),
    ]
    before = cache.log.publish(cache.snapshot)
    for change in changes:
        change()
        version = cache.log.publish(cache.snapshot)
        assert_same(replica, version, cache.snapshot)
        assert version == before + (change is not changes[7])
        before = version


def test_a_replica_stops_at_the_version_that_it_is_asked_for_and_may_go_back(store, epoch):
    cache = Cache(Usage(store, epoch), NodeLog(store, epoch))
    versions = []
    for number in range(3):
        cache.set_node(make_node(f"n{number}"))
        versions.append(cache.log.publish(cache.snapshot))
    replica = Replica(store)
    for wanted in (1, 0, 2, 0, 0):
        replica.catch_up(versions[wanted])
        assert replica.snapshot.table.names == [f"n{number}" for number in range(wanted + 1)]


def test_a_version_that_is_not_there_yet_is_an_error_and_no_harm(store, epoch):
    cache = Cache(Usage(store, epoch), NodeLog(store, epoch))
    replica = Replica(store)
    with pytest.raises(CannotEvaluate, match="ends at version 0, version 1 was asked for"):
        replica.catch_up(1)
    cache.set_node(make_node("n1"))
    version = cache.log.publish(cache.snapshot)
    with pytest.raises(CannotEvaluate, match=f"ends at version {version}, version {version + 1} was asked for"):
        replica.catch_up(version + 1)
    assert_same(replica, version, cache.snapshot)


def test_a_large_table_is_written_and_read_in_parts(monkeypatch, store, epoch):
    monkeypatch.setattr("dsched.state.node_log.CHUNK", 2)
    monkeypatch.setattr("dsched.state.node_log.READ_AT_ONCE", 2)
    snapshot = make_snapshot(
        [make_node(f"n{number}") for number in range(9)], [make_pod(node="n3"), make_pod(node="x")]
    )
    assert_same(Replica(store), NodeLog(store, epoch).publish(snapshot), snapshot)


def test_a_log_that_has_grown_long_begins_anew_and_drops_what_came_before(monkeypatch, store, epoch):
    monkeypatch.setattr("dsched.state.node_log.SMALLEST_REWRITE_BYTES", 1000)
    cache = Cache(Usage(store, epoch), NodeLog(store, epoch))
    cache.set_node(make_node("n1"))
    ahead = Replica(store)
    lengths, versions = [], []
    for number in range(60):
        cache.put("Service", "ns/s", {"number": number})
        versions.append(cache.log.publish(cache.snapshot))
        lengths.append(store.redis.xlen(store.key("nodes:log")))
        assert_same(ahead, versions[-1], cache.snapshot)
    assert max(lengths) < 60
    assert lengths != sorted(lengths)
    assert_same(Replica(store), versions[-1], cache.snapshot)
    with pytest.raises(CannotEvaluate):
        Replica(store).catch_up(versions[0])


def test_a_log_that_does_not_begin_with_a_whole_table_is_refused(store, epoch):
    cache = Cache(Usage(store, epoch), NodeLog(store, epoch))
    cache.log.publish(cache.snapshot)
    cache.set_node(make_node("n1"))
    version = cache.log.publish(cache.snapshot)
    store.redis.xtrim(store.key("nodes:log"), maxlen=1, approximate=False)
    with pytest.raises(CannotEvaluate, match=f"does not begin with a whole table but with {version}-0"):
        Replica(store).catch_up(version)


# -- new leaders -------------------------------------------------------------------------------------------------------


def test_a_new_leader_goes_on_counting_and_replicas_take_its_table(store, epoch):
    before = Cache(Usage(store, epoch), NodeLog(store, epoch))
    before.set_node(make_node("n1"))
    replica = Replica(store)
    first = before.log.publish(before.snapshot)
    assert_same(replica, first, before.snapshot)
    after_epoch = take_over(store)
    after = Cache(Usage(store, after_epoch), NodeLog(store, after_epoch))
    after.set_node(make_node("n2"))
    second = after.log.publish(after.snapshot)
    assert second > first
    before.set_node(make_node("n3"))
    with pytest.raises(StaleEpoch):
        before.log.publish(before.snapshot)
    assert_same(replica, second, after.snapshot)


def test_a_leader_killed_while_it_wrote_the_whole_table_leaves_no_half_of_it(monkeypatch, store, epoch):
    monkeypatch.setattr("dsched.state.node_log.CHUNK", 1)
    log, calls = NodeLog(store, epoch), []

    def killed(*args, **kwargs):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(append(*args, **kwargs))

    append, log._append = log._append, killed
    with pytest.raises(KeyboardInterrupt):
        log.publish(make_snapshot([make_node("n1"), make_node("n2"), make_node("n3")]))
    snapshot = make_snapshot([make_node("n4")])
    version = NodeLog(store, take_over(store)).publish(snapshot)
    assert_same(Replica(store), version, snapshot)


@pytest.mark.parametrize("lost", [1, 2, 3, 5])
@pytest.mark.parametrize("changes", range(1, 8))
def test_a_replica_that_is_ahead_of_a_log_that_was_lost_does_not_mix_the_two(store, epoch, lost, changes):
    """Redis came back without its last writes, or empty: the new leader's log is as long again some time."""
    before = Cache(Usage(store, epoch), NodeLog(store, epoch))
    for number in range(4):
        before.set_node(make_node(f"before{number}"))
        version = before.log.publish(before.snapshot)
    replica = Replica(store)
    assert_same(replica, version, before.snapshot)
    entries = store.redis.xrange(store.key("nodes:log"))
    assert len(entries) == 5
    store.redis.delete(store.key("nodes:log"))
    for entry, fields in entries[: 5 - lost]:
        store.redis.xadd(store.key("nodes:log"), fields, id=entry)

    epoch = take_over(store)
    after = Cache(Usage(store, epoch), NodeLog(store, epoch))
    for number in range(changes):
        after.set_node(make_node(f"after{number}"))
        version = after.log.publish(after.snapshot)
    assert_same(replica, version, after.snapshot)


def test_leaders_with_clocks_behind_do_not_count_alike_after_the_same_entry(store, epoch):
    """What each but the last of them wrote may be lost in a fail-over, and evaluators may have read it."""
    cache = Cache(Usage(store, epoch), NodeLog(store, epoch))
    cache.log.publish(cache.snapshot)
    begun = [NodeLog(store, epoch, ManualClock(SINCE_S * 1000)).version for _ in range(4)]
    assert min(begun) > cache.log.version
    assert len(set(begun)) > 1


def test_an_entry_of_another_form_is_refused_and_what_was_read_before_it_is_kept(store, epoch):
    cache = Cache(Usage(store, epoch), NodeLog(store, epoch))
    cache.set_node(make_node("n1"))
    good = cache.log.publish(cache.snapshot)
    newer = msgspec.msgpack.encode([["a-kind-of-change-from-the-future", 1]])
    fields = {"epoch": epoch, "first": 0, "deltas": newer}
    store.redis.xadd(store.key("nodes:log"), fields, id=f"{good + 1}-0")
    replica = Replica(store)
    with pytest.raises(CannotEvaluate, match=f"entry {good + 1}-0 of the node log cannot be read"):
        replica.catch_up(good + 1)
    assert_same(replica, good, cache.snapshot)


@pytest.mark.parametrize("changes", range(1, 8))
def test_a_replica_that_outlived_everything_in_redis_does_not_mix_two_histories(store, epoch, changes):
    """Redis came back empty and every leader was started anew: epochs begin with 1 again."""
    before = Cache(Usage(store, epoch), NodeLog(store, epoch))
    for number in range(4):
        before.set_node(make_node(f"before{number}"))
        version = before.log.publish(before.snapshot)
    replica = Replica(store)
    assert_same(replica, version, before.snapshot)
    store.redis.delete(*store.names(""))

    assert take_over(store) == epoch == 1
    after = Cache(Usage(store, epoch), NodeLog(store, epoch))
    for number in range(changes):
        after.set_node(make_node(f"after{number}"))
        version = after.log.publish(after.snapshot)
    assert_same(replica, version, after.snapshot)


@given(st.integers(min_value=0, max_value=2**31 - 1), st.integers(min_value=1, max_value=2**20))
def test_a_leader_that_begins_later_counts_beyond_what_an_earlier_one_can_have_written(seconds, later):
    first, second = (incarnation((SINCE_S + each) * 1000) for each in (seconds, seconds + later))
    assert 0 <= first < second < 2**64 - VERSIONS
    # An earlier one would have to make 4096 times a million changes a second.
    assert first + VERSIONS <= second or later == 1


# -- memory ------------------------------------------------------------------------------------------------------------


def test_changes_that_nobody_asks_for_are_not_kept_for_ever(monkeypatch, store, epoch):
    monkeypatch.setattr("dsched.state.node_log.MOST_NOTED", 10)
    cache = Cache(Usage(store, epoch), NodeLog(store, epoch))
    cache.set_node(make_node("n0"))
    replica = Replica(store)
    replica.catch_up(cache.log.publish(cache.snapshot))
    for number in range(100):
        cache.set_node(make_node(f"n{number % 7}", cpu=str(1 + number)))
        assert len(cache.log._pending) <= 10
    assert_same(replica, cache.log.publish(cache.snapshot), cache.snapshot)
    cache.set_node(make_node("n8"))
    assert_same(replica, cache.log.publish(cache.snapshot), cache.snapshot)
