"""Each invariant broken on purpose with raw commands: exactly that breach is told, by name."""

import pytest

from dsched.manifests import kinds
from dsched.state import keys
from tests.integration.fsck.states import bound, in_flight, queued, reserved, unschedulable, waiting
from tests.manifests import node_manifest, pod_manifest


def command(*words):
    """A raw command; its first word after the name is a key, ``UID`` stands for the pod's uid."""

    def run(system):
        uid = system.pod("web").uid
        name, key, *rest = (word.replace("UID", uid) if isinstance(word, str) else word for word in words)
        system.store.redis.execute_command(name, system.key(key), *rest)

    return run


def rewritten(key, field, old, new):
    """A field of a hash with a part replaced; ``UID`` stands for the pod's uid."""

    def run(system):
        name, member = system.key(key), field.replace("UID", system.pod("web").uid)
        text = system.store.redis.hget(name, member).decode()
        assert old in text
        system.store.redis.hset(name, member, text.replace(old, new))

    return run


BROKEN = [
    (queued, command("ZADD", "queue:unschedulable", 1, "default/web"), "stands in active and in unschedulable"),
    (queued, command("HSET", "queue:inflight", "default/web", "1 1-1"), "stands in active and in inflight"),
    (queued, command("HSET", "pod:default/web", "queue", "gated"), "stands in active, its record says gated"),
    (queued, command("ZREM", "queue:active", "turn-web default/web"), "its record says active, but it stands nowhere"),
    (
        queued,
        command("ZADD", "queue:active", 1, "late default/web"),
        "stands in active 2 times: late default/web, turn-web default/web",
    ),
    (queued, command("DEL", "pod:default/web"), "stands in active and has no record"),
    (reserved, command("ZADD", "queue:backoff", 1, "default/web"), "stands in backoff and in reserved"),
    (waiting, command("ZREM", "queue:waiting", "default/web"), "its record says waiting, but is not in that queue"),
]


@pytest.mark.parametrize(("state", "harm", "what"), BROKEN)
def test_i1_one_place(system, state, harm, what):
    state(system)
    harm(system)
    assert system.breaches() == [f"I1 default/web: {what}"]


def test_i1_a_pod_that_was_forgotten(system):
    queued(system)
    system.forget("web")
    assert system.breaches() == ["I1 default/web: is pending and stands nowhere"]


def test_i1_the_record_of_a_pod_that_is_gone(system):
    queued(system)
    system.delete(kinds.POD, "default/web")
    assert system.breaches() == ["I1 default/web: has a record, and there is no such pod"]


def test_i1_the_record_of_an_earlier_pod(system):
    queued(system)
    uid = system.pod("web").uid
    system.replace("web")
    assert system.breaches() == [f"I1 default/web: has a record of uid {uid}, the pod has uid {system.pod('web').uid}"]


def test_i2_bound_and_queued(system):
    bound(system)
    system.store.redis.zadd(system.key("queue:backoff"), {"default/web": 1})
    assert system.breaches() == ["I2 default/web: is bound to n1 and stands in backoff"]


def test_i2_bound_here_and_reserved_there(system):
    reserved(system)
    system.bind("web")
    uid = system.pod("web").uid
    rewritten("reservations", uid, " n1 ", " n2 ")(system)
    system.mark()
    lines = system.breaches()
    assert "I2 default/web: is bound to n1 and reserved on n2" in lines
    assert {line[:2] for line in lines} == {"I2"}


def test_i2_scheduled_twice(system):
    bound(system)
    line = system.store.redis.lindex(system.key("cluster:events:default/web"), 0)
    system.store.redis.lpush(system.key("cluster:events:default/web"), line)
    assert system.breaches() == ["I2 default/web: is bound to n1, and its events say 2 times that it was scheduled"]


def test_i3_more_than_a_node_has(system):
    system.apply(node_manifest(cpu="150m"))
    system.apply(pod_manifest("default/a"), pod_manifest("default/b"))
    system.take_in()
    system.pop()
    system.reserve("a")
    # the reservation checks node:n1 at the version it was seen at, so a leader that saw wrong is believed
    system.reserve("b")
    assert system.breaches() == [
        "I3 n1: its pods (0 bound, 2 reserved) request 200m of cpu, 150m are allocatable; "
        "default/b was placed without room for it"
    ]


def test_i3_a_host_port_taken_twice(system):
    containers = [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    system.cluster_with("a", containers=containers)
    system.schedule("a")
    system.apply(pod_manifest("default/b", containers=containers))
    system.take_in()
    system.schedule("b")
    assert system.breaches() == ["I3 n1: default/a and default/b both take host port 80/TCP"]


def test_i3_what_manifests_do_is_noted(system):
    system.apply(node_manifest(cpu="150m"))
    for name in ("a", "b"):
        system.apply(pod_manifest(f"default/{name}", nodeName="n1"))
    system.take_in()
    report = system.inspect()
    assert [str(note) for note in report.notes] == [
        "I3 n1: its pods (2 bound, 0 reserved) request 200m of cpu, 150m are allocatable; "
        "by what manifests say or the profile leaves out, not by the scheduler"
    ]
    assert report.breaches == []


@pytest.mark.parametrize(
    ("harm", "what"),
    [
        (command("HINCRBY", "node:n1", "used.cpu", 50), "node:n1 counts cpu 150m instead of 100m"),
        (command("HSET", "node:n1", "allocatable.pods", 5), "node:n1 has allocatable pods 5 instead of 110"),
        (command("DEL", "node:n1"), "there is no usage of it in Redis (node:n1)"),
    ],
)
def test_i3_usage(system, harm, what):
    bound(system)
    harm(system)
    assert system.breaches() == [f"I3 n1: {what}"]


def test_i3_usage_of_a_node_that_is_gone(system):
    queued(system)
    system.delete(kinds.NODE, "n1")
    assert system.breaches() == ["I3 n1: its usage is kept (node:n1), and there is no such node"]


@pytest.mark.parametrize(
    ("state", "harm", "what"),
    [
        (
            unschedulable,
            command("HSET", "pod:default/web", "attempts", 0),
            "has been tried, and its record counts 0 attempts",
        ),
        (
            reserved,
            command("HSET", "pod:default/web", "attempts", 5),
            "was reserved at attempt 1, its record counts 5",
        ),
        (
            unschedulable,
            command("HSET", "pod:default/web", "first_ms", 2 * 10**12),
            "its first attempt (2000000000000 ms) is later than its latest (1700000000000 ms)",
        ),
        (in_flight, lambda system: system.lead(), "is in flight under epoch 1, and epoch 2 leads"),
    ],
)
def test_i4_nothing_lost(system, state, harm, what):
    state(system)
    harm(system)
    assert system.breaches() == [f"I4 default/web: {what}"]


@pytest.mark.parametrize(
    ("state", "harm", "what"),
    [
        (
            in_flight,
            command("HSET", "queue:inflight", "default/web", "9 9-1"),
            "default/web: is in flight under epoch 9, the present one is 1",
        ),
        (
            reserved,
            rewritten("reservations", "UID", " 1 reserved", " 9 reserved"),
            "default/web: is reserved under epoch 9, the present one is 1",
        ),
        (
            queued,
            command("SET", "leader", "somebody 7"),
            "leader: somebody leads under epoch 7, the present one is 1",
        ),
    ],
)
def test_i5_fencing(system, state, harm, what):
    state(system)
    harm(system)
    assert system.breaches() == [f"I5 {what}"]


def test_i6_a_reservation_whose_pod_is_gone(system):
    reserved(system)
    uid = system.pod("web").uid
    system.store.redis.delete(system.key("pod:default/web"))
    system.delete(kinds.POD, "default/web")
    assert system.breaches() == [f"I6 default/web: n1 is reserved for uid {uid}, and there is no such pod"]


def test_i6_a_reservation_whose_pod_is_bound(system):
    reserved(system)
    system.bind("web")
    system.mark()
    uid = system.pod("web").uid
    assert system.breaches() == [f"I6 default/web: n1 is reserved for uid {uid}, which is bound there already"]


def test_i6_a_reservation_whose_node_is_gone(system):
    reserved(system)
    system.usage.gone("n1")
    system.usage.flush()
    system.delete(kinds.NODE, "n1")
    assert system.breaches() == ["I6 default/web: is reserved on n1, and there is no such node"]


def test_i6_a_reservation_without_a_record(system):
    reserved(system)
    system.store.redis.delete(system.key("pod:default/web"))
    uid = system.pod("web").uid
    assert system.breaches() == [f"I6 default/web: n1 is reserved for uid {uid}, which has no record"]


def test_i6_a_reservation_that_a_new_leader_did_not_adopt(system):
    reserved(system)
    system.lead()
    assert system.breaches() == ["I6 default/web: is reserved under epoch 1, and epoch 2 leads"]


def test_i6_an_old_reservation_at_rest(system):
    reserved(system)
    system.clock.advance(120)
    assert system.breaches() == ["I6 default/web: has been reserved on n1 for 120 s while there was nothing to decide"]


def test_i6_a_reservation_that_cannot_be_read(system):
    queued(system)
    system.store.redis.hset(system.key(keys.RESERVATIONS.name), "uid-x", "garbage")
    assert system.breaches() == [
        "I6 uid-x: its reservation is 'garbage', not 'NS/NAME NODE EPOCH STATE ATTEMPT SINCE_MS'"
    ]
