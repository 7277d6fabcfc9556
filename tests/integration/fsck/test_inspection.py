"""Inspections of real states: healthy ones are clean at every step, and a system at work, or one that nobody leads, is
not accused."""

import pytest

from dsched.fsck.profiles import Checked, Profiles
from dsched.manifests import kinds
from dsched.scheduler.ports import QueueName
from dsched.state import keys
from tests.integration.fsck.states import FAR_MS, bound, in_flight, queued, reserved
from tests.manifests import node_manifest, pod_manifest


def test_an_empty_redis(system):
    report = system.inspect()
    assert (report.breaches, report.notes, report.open) == ((), (), ())


def test_every_step_from_active_to_bound_is_clean(system):
    system.cluster_with("web")
    assert system.breaches() == []
    system.pop()
    assert system.breaches() == []
    system.reserve("web")
    assert system.breaches() == []
    system.bind("web")
    assert system.breaches() == []
    system.confirm("web")
    assert system.inspect().view.at_rest
    assert system.breaches() == []


@pytest.mark.parametrize("place", [QueueName.ACTIVE, QueueName.BACKOFF, QueueName.UNSCHEDULABLE])
def test_pods_that_were_put_back_are_clean(system, place):
    system.cluster_with("web")
    system.pop()
    system.put("web", place)
    assert system.breaches() == []


def test_gated_and_waiting_pods_are_clean(system):
    system.cluster_with("web", "db")
    system.put("web", QueueName.GATED, source=QueueName.ACTIVE)
    system.pop()
    system.reserve("db", deadline_ms=FAR_MS)
    assert system.breaches() == []
    pod = system.pod("db")
    assert system.reservations.allow([(pod.key, pod.uid)]) == [True]
    assert system.breaches() == []


def test_bound_pods_of_manifests_and_pods_of_other_schedulers_are_clean(system):
    system.apply(node_manifest(), pod_manifest("default/here", nodeName="n1"))
    system.take_in()
    system.apply(pod_manifest("default/theirs", schedulerName="other"))
    system.mark()
    assert system.breaches() == []


def test_a_released_reservation_is_clean(system):
    system.cluster_with("web")
    system.pop()
    system.reserve("web")
    system.release("web", QueueName.BACKOFF)
    assert system.breaches() == []


# -- a system at work, and one that nobody leads -----------------------------------------------------------------------


def test_what_the_leader_has_not_heard_of_stays_open(system):
    system.cluster_with("web", "db")
    heard = system.cluster.newest_version()
    system.delete(kinds.POD, "default/db")
    system.apply(pod_manifest("default/new"))
    system.queue.mark_intake(heard, ["default-scheduler"])
    report = system.inspect()
    assert report.breaches == []
    assert [str(finding) for finding in report.open] == [
        "I1 default/db: has a record, and there is no such pod",
        "I1 default/new: is pending and stands nowhere",
    ]


def test_a_bind_that_the_leader_has_not_heard_of_stays_open(system):
    reserved(system)
    system.bind("web")
    report = system.inspect()
    assert (report.breaches, len(report.open)) == ([], 1)


def test_what_is_put_right_between_the_two_looks_is_no_breach(system):
    in_flight(system)
    system.lead()
    assert system.breaches(meanwhile=system.queue.recover) == []


def test_what_moves_between_the_two_looks_is_no_breach(system):
    queued(system)
    system.apply(pod_manifest("default/new"))

    def taken_in_and_bound():
        system.take_in()
        system.pop()
        for name in ("web", "new"):
            system.reserve(name)
            system.bind(name)
            system.confirm(name)

    assert system.breaches(meanwhile=taken_in_and_bound) == []


def test_a_node_that_changes_between_the_two_looks_is_not_judged(system):
    bound(system)
    system.store.redis.hincrby(system.key("node:n1"), "used.cpu", 50)

    def charged():
        system.store.redis.hincrby(system.key("node:n1"), "version", 1)

    assert system.breaches(meanwhile=charged) == []


def test_a_breach_of_another_pod_of_that_name_is_another_breach(system):
    queued(system)
    system.forget("web")
    assert system.breaches(meanwhile=lambda: system.replace("web")) == []


def test_while_nobody_leads_what_a_dead_leader_left_is_no_breach(system):
    in_flight(system)
    system.apply(pod_manifest("default/new"))
    system.take_in()
    system.pop()
    system.reserve("new")
    system.store.redis.delete(system.key(keys.LEADER.name))
    system.clock.advance(3600)
    report = system.inspect()
    assert (report.breaches, report.notes, report.open) == ((), (), ())


def test_whose_pods_are_ours(system):
    system.cluster_with(nodes=("n1",))
    system.apply(pod_manifest("default/mine", schedulerName="mine"), pod_manifest("default/web"))
    system.mark()
    assert system.breaches() == ["I1 default/web: is pending and stands nowhere"]
    report = system.inspect(profiles=Profiles({"mine": Checked()}))
    assert [str(finding) for finding in report.breaches] == ["I1 default/mine: is pending and stands nowhere"]


def test_where_no_cluster_is_kept_only_places_are_checked(system):
    queued(system)
    for name in ("cluster:version", "cluster:pods", "cluster:pods:state", "cluster:nodes", "cluster:log"):
        system.store.redis.delete(system.key(name))
    assert system.breaches() == []
    system.store.redis.zadd(system.key("queue:gated"), {"default/web": 1})
    assert system.breaches() == ["I1 default/web: stands in active and in gated"]


def test_nothing_is_written(system):
    reserved(system)
    system.store.redis.zadd(system.key("queue:gated"), {"default/web": 1})

    def everything():
        names = sorted(system.store.redis.scan_iter(match="*", count=10_000))
        return {name: system.store.redis.dump(name) for name in names if system.store.name.encode() in name}

    before = everything()
    assert system.breaches() == ["I1 default/web: stands in gated and in reserved"]
    assert everything() == before
