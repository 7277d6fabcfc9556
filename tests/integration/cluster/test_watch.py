"""The watch log: order, going on from where one was, and noticing what was lost."""

import threading

import pytest

from dsched.cluster.interface import Change, SchedulingStatus
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.errors import WatchExpired
from dsched.manifests import kinds
from tests.manifests import loaded, node_manifest, other_manifest, pod_manifest


def told(events):
    return [(event.version, event.change, event.kind, event.key) for event in events]


def test_changes_come_in_order_and_are_numbered_without_gaps(cluster, apply, reserve):
    apply(node_manifest(), other_manifest("Namespace", "v1", "shop"), pod_manifest())
    binding = reserve()
    cluster.report([SchedulingStatus(binding.key, binding.uid, "Unschedulable", "no")])
    cluster.bind([binding])
    apply(pod_manifest(labels={"a": "b"}))
    cluster.delete_pods([(binding.key, binding.uid)], "Preempted", "by a better one")
    events, version = cluster.watch(0, 0)
    assert told(events) == [
        (1, Change.ADDED, "Namespace", "shop"),
        (2, Change.ADDED, "Node", "n1"),
        (3, Change.ADDED, "Pod", "default/web"),
        (4, Change.STATUS, "Pod", "default/web"),
        (5, Change.BOUND, "Pod", "default/web"),
        (6, Change.MODIFIED, "Pod", "default/web"),
        (7, Change.DELETED, "Pod", "default/web"),
    ]
    assert version == 7
    assert {event.uid for event in events[2:]} == {binding.uid}
    assert cluster.watch(version, 0) == ([], 7)
    assert cluster.watch(4, 0) == (events[4:], 7)


def test_a_changed_pod_comes_with_its_node_or_what_was_written_about_it(cluster, apply, reserve):
    apply(node_manifest(), pod_manifest("default/a"), pod_manifest("default/b"))
    bound, pending = reserve("default/a"), reserve("default/b")
    cluster.bind([bound])
    cluster.report([SchedulingStatus(pending.key, pending.uid, "Unschedulable", "no", "n1")])
    version = cluster.newest_version()
    apply(pod_manifest("default/a", labels={"x": ""}), pod_manifest("default/b", labels={"x": ""}))
    (first, second), _ = cluster.watch(version, 0)
    assert first.object.node_name == "n1"
    assert (second.object.node_name, second.object.status.nominated_node_name) == ("", "n1")
    assert [each.message for each in second.object.status.conditions] == ["no"]


def test_waiting_ends_with_the_first_change(store, connect, cluster, apply, tmp_path):
    version = cluster.list().version
    other = Applier(connect(store.name))
    manifests = loaded(tmp_path, node_manifest())
    timer = threading.Timer(0.2, lambda: other.apply(manifests))
    timer.start()
    events, _ = cluster.watch(version, 60)
    timer.join()
    assert told(events) == [(1, Change.ADDED, "Node", "n1")]


def test_less_than_a_millisecond_is_waited_no_longer_than_that(cluster, apply):
    apply(node_manifest())
    assert cluster.watch(1, 0.0001) == ([], 1)


def test_a_change_right_after_waiting_ended_is_read_at_once(cluster, apply, monkeypatch):
    """Redis answers that nothing came, then the change comes, then Redis answers how far the cluster is."""
    apply(node_manifest())
    read, waits = cluster._log._after, []

    def late(version, wait_s):
        waits.append(wait_s)
        if len(waits) > 1:
            return read(version, wait_s)
        apply(node_manifest("n2"))
        _, history, newest = read(version, 0.0)
        return [], history, newest

    monkeypatch.setattr(cluster._log, "_after", late)
    events, version = cluster.watch(1, 3.0)
    assert told(events) == [(2, Change.ADDED, "Node", "n2")]
    assert (version, waits) == (2, [3.0, 0.0])


def test_waiting_ends_when_nothing_changes(cluster, apply):
    apply(node_manifest())
    assert cluster.watch(1, 0.05) == ([], 1)


def test_a_listing_says_from_where_to_watch(cluster, apply):
    apply(node_manifest(), pod_manifest(), other_manifest("PriorityClass", "scheduling.k8s.io/v1", "high", value=5))
    listing = cluster.list()
    assert listing.version == 3
    assert [pod.key for pod in listing.pods] == ["default/web"]
    assert [node.name for node in listing.nodes] == ["n1"]
    assert [each["metadata"]["name"] for each in listing.others["PriorityClass"]] == ["high"]
    assert set(listing.others) == {kind.name for kind in kinds.ALL} - {"Pod", "Node"}
    assert cluster.watch(listing.version, 0) == ([], 3)


def test_listed_pods_come_in_the_order_in_which_they_were_applied(cluster, apply):
    keys = [f"default/p{number}" for number in (*range(600, 0, -1), *range(601, 1200))]
    apply(*(pod_manifest(key) for key in keys))
    assert [pod.key for pod in cluster.list().pods] == keys


def test_a_watch_from_before_the_log_expires(store, clock, tmp_path):
    short = Applier(store, clock, log_length=100)
    short.apply(loaded(tmp_path, *(node_manifest(f"n{number}") for number in range(500))))
    cluster = StandaloneCluster(store, clock)
    with pytest.raises(WatchExpired, match="begins at"):
        cluster.watch(0, 0)
    events, _ = cluster.watch(490, 0)
    assert len(events) == 10


def test_a_log_that_lacks_an_entry_expires_watches(store, cluster, apply):
    apply(*(node_manifest(f"n{number}") for number in range(5)))
    assert store.redis.xdel(store.key("cluster:log"), "3-0") == 1
    with pytest.raises(WatchExpired, match="missing"):
        cluster.watch(0, 0)
    events, version = cluster.watch(3, 0)
    assert (len(events), version) == (2, 5)


def test_a_lost_log_expires_watches(store, cluster, apply):
    apply(node_manifest())
    store.redis.delete(store.key("cluster:log"))
    with pytest.raises(WatchExpired):
        cluster.watch(0, 0)


def test_a_flush_expires_watches_even_when_new_numbers_have_caught_up(store, cluster, apply):
    apply(node_manifest("n1"))
    version = cluster.list().version
    for key in store.redis.scan_iter(store.key("*")):
        store.redis.delete(key)
    with pytest.raises(WatchExpired):
        cluster.watch(version, 0)
    apply(node_manifest("n1"), node_manifest("n2"))
    with pytest.raises(WatchExpired, match="begin anew"):
        cluster.watch(version, 0)
    assert [node.name for node in cluster.list().nodes] == ["n1", "n2"]
    assert cluster.watch(2, 0) == ([], 2)
