"""Counting and writing against a real Redis: what is announced, written, bound, turned away and deleted."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dsched.bench import depths, usage
from dsched.bench.following import Follower
from dsched.bench.making import Maker
from dsched.bench.usage import BENCHMARK
from dsched.bench.writing import Writer
from dsched.cluster.interface import Binding, SchedulingStatus
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.cluster.standalone.objects import Objects
from dsched.errors import Conflict, DschedError, NotFound
from dsched.manifests import kinds
from dsched.manifests.load import Manifest
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.state.client import Store
from tests.manifests import loaded, node_manifest, pod_manifest

LONG_S = 30.0


@pytest.fixture
def follower(store: Store) -> Iterator[Follower]:
    found = Follower(store)
    found.start()
    yield found
    found.stop()


@pytest.fixture
def writer(store: Store, follower: Follower) -> Writer:
    return Writer(store, follower)


@pytest.fixture
def bind(store: Store) -> Callable[[Manifest], None]:
    """Binds a pod as a binder does."""

    def bind(pod: Manifest) -> None:
        uid = pod.value["metadata"].get("uid") or Objects(store).get(kinds.POD, [pod.key])[0]["metadata"]["uid"]
        store.redis.hset(store.key("reservations"), uid, f"{pod.key} n1 1 binding 1 1700000000000")
        (outcome,) = StandaloneCluster(store).bind([Binding(PodKey(pod.key), PodUid(uid), NodeName("n1"), 1)])
        assert outcome.verdict.value == "bound"

    return bind


def wait(follower: Follower, done: Callable[[], bool]) -> None:
    for _ in range(int(LONG_S / 0.5)):
        if follower.wait(done, 0.5):
            return
    raise AssertionError("not seen")


def test_binds_are_counted_by_namespace_and_labels(
    store: Store, follower: Follower, writer: Writer, bind: Callable[[Manifest], None], tmp_path: Path
) -> None:
    red = pod_manifest("a/red", labels={"colour": "red"})
    manifests = loaded(tmp_path, node_manifest(), red, pod_manifest("a/blue"), pod_manifest("b/red"))
    counter = follower.count(frozenset({"a"}), {"colour": "red"})
    everything = follower.count(frozenset({"a", "b"}), {})
    writer.create(manifests)
    for pod in manifests[1:]:
        bind(pod)

    wait(follower, lambda: follower.bound("a", {}) == 2 and follower.bound("b", {}) == 1)

    assert follower.bound("a", {"colour": "red"}) == 1
    assert (counter.total, everything.total) == (1, 3)
    follower.end(counter)
    assert follower.keys("a", {}) == ["a/red", "a/blue"]


def test_pods_that_fit_nowhere_were_tried_and_gated_ones_are_known(
    store: Store, follower: Follower, writer: Writer, tmp_path: Path
) -> None:
    gated = pod_manifest("a/gated", schedulingGates=[{"name": "example.com/x"}])
    pending = pod_manifest("a/big", uid="b1a5c5d2-3b5b-4a51-9d8c-0a4c2f6d1e11")
    writer.create(loaded(tmp_path, pending, gated, pod_manifest("a/new")))
    StandaloneCluster(store).report(
        [SchedulingStatus(PodKey("a/big"), PodUid(pending["metadata"]["uid"]), "No", "too big")]
    )

    wait(follower, lambda: follower.tried("a", {}) == 2)

    assert follower.bound("a", {}) == 0
    assert follower.gated() == 1


def test_a_deleted_pod_is_no_longer_counted(
    follower: Follower, writer: Writer, bind: Callable[[Manifest], None], tmp_path: Path
) -> None:
    manifests = loaded(tmp_path, node_manifest(), pod_manifest("a/x"), pod_manifest("a/y"))
    writer.create(manifests)
    bind(manifests[1])
    wait(follower, lambda: follower.bound("a", {}) == 1)

    writer.delete_pods(["a/x"])

    wait(follower, lambda: follower.bound("a", {}) == 0)
    assert follower.keys("a", {}) == ["a/y"]
    with pytest.raises(NotFound, match="a/x"):
        writer.delete_pods(["a/x"])


def test_a_pod_that_was_bound_counts_when_it_is_evicted(
    store: Store, follower: Follower, writer: Writer, bind: Callable[[Manifest], None], tmp_path: Path
) -> None:
    manifests = loaded(
        tmp_path, node_manifest(), pod_manifest("a/x", labels={"app": "x"}), pod_manifest("a/y"), pod_manifest("a/z")
    )
    writer.create(manifests)
    for pod in manifests[1:3]:
        bind(pod)
    wait(follower, lambda: follower.bound("a", {}) == 2)
    uids = [each["metadata"]["uid"] for each in Objects(store).get(kinds.POD, ["a/x", "a/z"]) if each]

    cluster = StandaloneCluster(store)
    cluster.lead(1, lambda: True)
    store.redis.set(store.key("leader:epoch"), 1)
    victims = [(PodKey(key), PodUid(uid)) for key, uid in zip(["a/x", "a/z"], uids, strict=True)]
    cluster.delete_pods(victims, "Preempted", "for another")

    wait(follower, lambda: follower.keys("a", {}) == ["a/y"])
    assert follower.bound("a", {}) == 2
    assert follower.bound("a", {"app": "x"}) == 1
    assert follower.tried("a", {}) == 2
    with pytest.raises(NotFound, match="a/x"):
        writer.delete_pods(["a/x"])


def test_a_pod_with_finalizers_is_marked_and_stays(store: Store, writer: Writer, tmp_path: Path) -> None:
    pod = pod_manifest("a/kept")
    pod["metadata"]["finalizers"] = ["example.com/keep"]
    writer.create(loaded(tmp_path, pod))

    writer.delete_pods(["a/kept"])

    (found,) = Objects(store).get(kinds.POD, ["a/kept"])
    assert found is not None
    assert found["metadata"]["deletionTimestamp"]


def test_what_is_there_already_is_not_created_again(writer: Writer, tmp_path: Path) -> None:
    writer.create(loaded(tmp_path, pod_manifest("a/x")))

    with pytest.raises(Conflict, match="a/x"):
        writer.create(loaded(tmp_path, pod_manifest("a/x"), pod_manifest("a/y")))


def test_created_pods_are_stored_as_applied_ones_are(store: Store, writer: Writer, tmp_path: Path) -> None:
    (made,) = Maker(0).pods(None, "a", 1)
    writer.create([made])
    (created,) = Objects(store).get(kinds.POD, [made.key])
    writer.delete_pods([made.key])

    writer.apply([made])

    (applied,) = Objects(store).get(kinds.POD, [made.key])
    assert created is not None
    assert applied is not None
    for each in (created, applied):
        each["metadata"].pop("resourceVersion")
        each["metadata"].pop("creationTimestamp")
    assert created == applied


def test_a_follower_that_cannot_read_on_says_so(
    store: Store, follower: Follower, writer: Writer, tmp_path: Path
) -> None:
    writer.create(loaded(tmp_path, pod_manifest("a/x")))
    wait(follower, lambda: follower.keys("a", {}) == ["a/x"])
    store.redis.delete(store.key("cluster:log"))
    store.redis.incr(store.key("cluster:version"))

    with pytest.raises(DschedError, match="cannot be followed"):
        wait(follower, lambda: False)


def test_usage_is_what_was_taken_in_between(store: Store, tmp_path: Path) -> None:
    before = usage.look(store, tmp_path)
    for _ in range(5):
        store.redis.hset(store.key("x"), "field", "value" * 100)

    taken = usage.look(store, tmp_path).since(before)

    assert taken.redis.commands["hset"] >= 5
    assert taken.redis.bytes_in > 2500
    assert taken.processes[BENCHMARK].peak_bytes > 1_000_000


def test_depths_are_read_by_place(store: Store) -> None:
    store.redis.zadd(store.key("queue:active"), {"a": 1, "b": 2})
    store.redis.hset(store.key("reservations"), "uid", "x")

    found = depths.look(store)

    assert {place: count for place, count in found.items() if count} == {"active": 2, "reservations": 1}
