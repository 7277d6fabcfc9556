"""``node:NAME`` against the objects. A node has 4 cores (4000m) and room for 110 pods."""

from dsched.fsck import usage
from tests.unit.fsck.seeing import VERSION, a_node, a_pod, reservation, told, view

EMPTY = {"version": "3", "object": "1", "allocatable.cpu": "4000", "allocatable.pods": "110"}


def check(*pods, node=None, fields=EMPTY, **more):
    return list(usage.check(view(*pods, nodes=[node or a_node()], usage={"n1": fields}, **more)))


def test_usage_is_what_bound_and_reserved_pods_request():
    # 1000m + 500m, two pods
    fields = EMPTY | {"used.cpu": "1500", "used.pods": "2"}
    pods = (a_pod("shop/a", node="n1"), a_pod("shop/b", cpu=500))
    assert told(check(*pods, fields=fields, reservations=[reservation(key="shop/b")])) == []


def test_a_resource_that_is_not_named_is_nothing():
    assert told(check(fields=EMPTY | {"used.memory": "0", "allocatable.nvidia.com/gpu": "0"})) == []


def test_usage_that_differs_is_a_breach_of_a_node_that_did_not_change():
    (found,) = check(a_pod("shop/a", node="n1"), fields=EMPTY | {"used.cpu": "900", "used.pods": "1"})
    assert str(found) == "I3 n1: node:n1 counts cpu 900m instead of 1000m"
    assert (found.heard, found.rule) == (VERSION, "used 3")


def test_text_that_is_no_amount():
    assert told(check(fields=EMPTY | {"used.cpu": "much"})) == ["I3 n1: node:n1 counts cpu 'much' instead of 0m"]


def test_allocatable_that_differs_is_a_breach_once_the_leader_has_heard_of_the_node():
    (found,) = check(node=a_node(version=30, memory=5))
    assert str(found) == "I3 n1: node:n1 has allocatable memory 0 instead of 5"
    assert found.heard == 30


def test_a_node_without_usage():
    (found,) = usage.check(view(nodes=[a_node(version=30)]))
    assert (str(found), found.heard) == ("I3 n1: there is no usage of it in Redis (node:n1)", 30)


def test_usage_without_a_node():
    (found,) = usage.check(view(usage={"n1": EMPTY}))
    assert (str(found), found.heard) == ("I3 n1: its usage is kept (node:n1), and there is no such node", VERSION)


def test_what_a_reservation_without_its_pod_charges_is_not_known():
    fields = EMPTY | {"used.cpu": "1000", "used.pods": "1"}
    assert told(check(fields=fields, reservations=[reservation()])) == []
