"""Nodes whose pods request more than 64 bits hold."""

import pytest

from dsched.fsck import sums
from tests.unit.fsck.seeing import a_node, a_pod, noted, reservation, told, view

LARGEST = 2**63 - 1


def check(seen):
    return list(sums.check(seen))


def test_what_64_bits_hold_is_nothing_to_tell_of():
    seen = view(a_pod("shop/a", node="n1", cpu=LARGEST - 1), a_pod("shop/b", node="n1", cpu=1), nodes=[a_node()])
    assert check(seen) == []


@pytest.mark.parametrize("reserved", [False, True])
def test_the_node_the_resource_and_the_pods_are_named(reserved):
    second = a_pod("shop/b", cpu=1) if reserved else a_pod("shop/b", node="n1", cpu=1)
    held = [reservation(key="shop/b")] if reserved else []
    seen = view(a_pod("shop/a", node="n1", cpu=LARGEST), second, nodes=[a_node()], reservations=held)
    assert noted(check(seen)) == [
        f"I3 n1: its pods request {LARGEST + 1}m of cpu (shop/a {LARGEST}m, shop/b 1m), more than 64 bits hold; it "
        f"counts as {LARGEST}m, and nothing else that requests cpu is placed there until some of them go"
    ]
    assert told(check(seen)) == []


def test_of_many_pods_those_that_request_most_are_named():
    pods = [a_pod(f"shop/{name}", node="n1", cpu=LARGEST - at) for at, name in enumerate("abcdefg")]
    (finding,) = check(view(*pods, nodes=[a_node()]))
    assert f"(shop/a {LARGEST}m, shop/b {LARGEST - 1}m, " in finding.message
    assert "shop/f" not in finding.message
    assert " and 2 more)" in finding.message


def test_pods_of_a_node_that_is_not_there_make_up_no_sum():
    assert check(view(a_pod("shop/a", node="n1", cpu=LARGEST), a_pod("shop/b", node="n1", cpu=LARGEST))) == []
