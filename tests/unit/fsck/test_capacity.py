"""Overfull nodes, and whose doing that is; ``node:NAME`` against the objects; more than 64 bits hold. Nodes have
4 cores (4000m) and room for 110 pods, pods take 1000m unless told otherwise."""

import pytest

from dsched.fsck import capacity
from dsched.fsck.profiles import Checked, Profiles
from dsched.fsck.view import SeenDevices
from dsched.model.meta import PodUid
from dsched.state.devices import Ledger
from tests.unit.fsck.seeing import VERSION, a_node, a_pod, noted, reservation, standing, told, view

ANY = Profiles()
EMPTY = {"version": "3", "object": "1", "allocatable.cpu": "4000", "allocatable.pods": "110"}
LARGEST = 2**63 - 1


def check(seen, profiles=ANY):
    return list(capacity.check(seen, profiles))


def bound(name, cpu=1000, **how):
    return a_pod(f"shop/{name}", node="n1", cpu=cpu, **how)


def test_a_full_node_is_not_overfull():
    # 3000m + 1000m = 4000m
    seen = view(bound("a", 3000), a_pod("shop/b"), nodes=[a_node()], reservations=[reservation(key="shop/b")])
    assert check(seen) == []


def test_pods_placed_beyond_what_a_node_has():
    # 3000m + 1500m = 4500m
    seen = view(bound("a", 3000, ago_s=60), bound("b", 1500, ago_s=30), nodes=[a_node()])
    assert told(check(seen)) == [
        "I3 n1: its pods (2 bound, 0 reserved) request 4500m of cpu, 4000m are allocatable; "
        "shop/b was placed without room for it"
    ]


def test_reserved_pods_count():
    held = [reservation(key="shop/b")]
    seen = view(bound("a", 3000), a_pod("shop/b", cpu=1500), nodes=[a_node()], reservations=held)
    assert told(check(seen)) == [
        "I3 n1: its pods (1 bound, 1 reserved) request 4500m of cpu, 4000m are allocatable; "
        "shop/b was placed without room for it"
    ]


def test_a_bound_pod_whose_reservation_still_stands_counts_once():
    seen = view(
        bound("a", 3000),
        nodes=[a_node()],
        standings={"shop/a": standing("reserved", key="shop/a")},
        reservations=[reservation(key="shop/a")],
    )
    assert check(seen) == []


def test_finished_pods_take_up_nothing():
    assert check(view(bound("a", 3000), bound("b", 3000, finished=True), nodes=[a_node()])) == []


@pytest.mark.parametrize(
    ("allocatable", "what"),
    [({"pods": 1}, "2 of pods, 1 are allocatable"), ({"nvidia.com/gpu": 2}, "4 of nvidia.com/gpu, 2 are allocatable")],
)
def test_pod_count_and_extended_resources(allocatable, what):
    seen = view(
        bound("a", gpus=2), bound("b", gpus=2, ago_s=5), nodes=[a_node(**({"nvidia.com/gpu": 9} | allocatable))]
    )
    assert told(check(seen)) == [
        f"I3 n1: its pods (2 bound, 0 reserved) request {what}; shop/b was placed without room for it"
    ]


def test_pods_that_manifests_put_there_are_noted():
    seen = view(bound("a", 3000), bound("b", 1500, by_manifest=True, ago_s=5), nodes=[a_node()])
    assert told(check(seen)) == []
    assert noted(check(seen)) == [
        "I3 n1: its pods (2 bound, 0 reserved) request 4500m of cpu, 4000m are allocatable; "
        "by what manifests say or the profile leaves out, not by the scheduler"
    ]


@pytest.mark.parametrize(("earlier_s", "blamed"), [(60, True), (11, True), (9, False)])
def test_a_pod_placed_onto_what_a_manifest_had_put_there_well_before(earlier_s, blamed):
    filler = bound("a", 4500, by_manifest=True, ago_s=30 + earlier_s, version=20)
    found = check(view(filler, bound("b", 100, ago_s=30), nodes=[a_node()]))
    assert (len(told(found)), len(noted(found))) == ((1, 0) if blamed else (0, 1))


def test_a_pod_that_requests_nothing_scarce_may_join_an_overfull_node():
    filler = bound("a", 4500, by_manifest=True, ago_s=600, version=20)
    assert told(check(view(filler, bound("b", 0, ago_s=30), nodes=[a_node()]))) == []


def test_a_pod_that_a_manifest_changed_later_may_have_been_smaller():
    resized = bound("a", 4500, by_manifest=True, ago_s=600, version=90)
    assert told(check(view(resized, bound("b", 100, ago_s=30, version=50), nodes=[a_node()]))) == []
    scheduled = bound("a", 4500, ago_s=600, version=90, applied=90)
    assert told(check(view(scheduled, bound("b", 100, ago_s=30, version=50), nodes=[a_node()]))) == []


@pytest.mark.parametrize(("changed", "blamed"), [(40, True), (60, False)])
def test_a_node_that_shrank_after_its_pods_were_bound(changed, blamed):
    seen = view(bound("a", 3000), bound("b", 1500, version=50), nodes=[a_node(version=changed)])
    assert bool(told(check(seen))) == blamed
    assert bool(noted(check(seen))) != blamed


def test_a_pod_placed_on_a_node_that_had_shrunk_below_what_was_there():
    # a alone takes 5000m of what used to be more; b came when there were 4000m
    seen = view(bound("a", 5000, version=20), bound("b", 100, ago_s=5, version=50), nodes=[a_node(version=40)])
    assert [line.rpartition("; ")[2] for line in told(check(seen))] == ["shop/b was placed without room for it"]


@pytest.mark.parametrize(("checked", "blamed"), [(Checked(), True), (Checked(fit=False), False)])
def test_a_profile_without_the_fit_filter_may_overfill(checked, blamed):
    seen = view(bound("a", 3000), bound("b", 1500), nodes=[a_node()])
    assert bool(told(check(seen, Profiles({"default-scheduler": checked})))) == blamed


def test_bound_to_a_node_that_is_gone():
    assert noted(check(view(bound("a"), bound("b")))) == ["I3 n1: pods are bound to it (2), and there is no such node"]


# -- host ports --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ("0.0.0.0:80", "0.0.0.0:80", True),
        ("0.0.0.0:80", "10.0.0.1:80", True),
        ("10.0.0.2:80", "10.0.0.1:80", False),
        ("0.0.0.0:80", "0.0.0.0:81", False),
    ],
)
def test_host_ports(one, other, clash):
    seen = view(bound("a", ports=[one], ago_s=9), bound("b", ports=[other], ago_s=5), nodes=[a_node()])
    assert told(check(seen)) == (["I3 n1: shop/a and shop/b both take host port 80/TCP"] if clash else [])


def test_a_pod_may_name_a_port_twice():
    assert check(view(bound("a", ports=["0.0.0.0:80", "10.0.0.1:80"]), nodes=[a_node()])) == []


@pytest.mark.parametrize(("manifest_ago_s", "blamed"), [(5, False), (60, True)])
def test_a_port_that_a_manifest_takes(manifest_ago_s, blamed):
    taken = bound("a", ports=["0.0.0.0:80"], by_manifest=True, ago_s=manifest_ago_s, version=20)
    found = check(view(taken, bound("b", ports=["0.0.0.0:80"], ago_s=30), nodes=[a_node()]))
    assert (len(told(found)), len(noted(found))) == ((1, 0) if blamed else (0, 1))


def test_a_profile_without_node_ports_may_share_them():
    seen = view(bound("a", ports=["0.0.0.0:80"]), bound("b", ports=["0.0.0.0:80"]), nodes=[a_node()])
    assert told(check(seen, Profiles({"default-scheduler": Checked(ports=False)}))) == []


GPU = "nvidia.com/gpu"


def test_devices_stand_for_what_a_node_has_nothing_of():
    by_status = bound("a", gpus=1)._replace(by_devices=frozenset({GPU}))
    held = {PodUid("uid-b"): {"uid-b": {"gpu.example.com/n1/gpu-0": 1}}}
    reserved = {"reservations": [reservation(key="shop/b")], "devices": SeenDevices({}, Ledger(held, {}, {}))}
    both = (by_status, a_pod("shop/b", gpus=1))
    assert check(view(*both, nodes=[a_node()], **reserved)) == []
    others = view(*both, bound("c", gpus=1), nodes=[a_node()], **reserved)
    assert told(check(others)) == [
        "I3 n1: its pods (1 bound, 0 reserved) request 1 of nvidia.com/gpu, 0 are allocatable; "
        "shop/c was placed without room for it"
    ]


def test_what_a_node_has_some_of_is_counted_whatever_the_status_says():
    by_status = [bound(name, gpus=1)._replace(by_devices=frozenset({GPU})) for name in ("a", "b")]
    (found,) = told(check(view(*by_status, nodes=[a_node(**{GPU: 1})])))
    assert "request 2 of nvidia.com/gpu, 1 are allocatable" in found


def usage_of(*pods, node=None, fields=EMPTY, **more):
    return list(capacity.check_usage(view(*pods, nodes=[node or a_node()], usage={"n1": fields}, **more)))


def test_usage_is_what_bound_and_reserved_pods_request():
    # 1000m + 500m, two pods
    fields = EMPTY | {"used.cpu": "1500", "used.pods": "2"}
    pods = (a_pod("shop/a", node="n1"), a_pod("shop/b", cpu=500))
    assert told(usage_of(*pods, fields=fields, reservations=[reservation(key="shop/b")])) == []


def test_a_resource_that_is_not_named_is_nothing():
    assert told(usage_of(fields=EMPTY | {"used.memory": "0", "allocatable.nvidia.com/gpu": "0"})) == []


def test_usage_that_differs_is_a_breach_of_a_node_that_did_not_change():
    (found,) = usage_of(a_pod("shop/a", node="n1"), fields=EMPTY | {"used.cpu": "900", "used.pods": "1"})
    assert str(found) == "I3 n1: node:n1 counts cpu 900m instead of 1000m"
    assert (found.heard, found.rule) == (VERSION, "used 3")


def test_text_that_is_no_amount():
    assert told(usage_of(fields=EMPTY | {"used.cpu": "much"})) == ["I3 n1: node:n1 counts cpu 'much' instead of 0m"]


def test_allocatable_that_differs_is_a_breach_once_the_leader_has_heard_of_the_node():
    (found,) = usage_of(node=a_node(version=30, memory=5))
    assert str(found) == "I3 n1: node:n1 has allocatable memory 0 instead of 5"
    assert found.heard == 30


def test_a_node_without_usage():
    (found,) = capacity.check_usage(view(nodes=[a_node(version=30)]))
    assert (str(found), found.heard) == ("I3 n1: there is no usage of it in Redis (node:n1)", 30)


def test_usage_without_a_node():
    (found,) = capacity.check_usage(view(usage={"n1": EMPTY}))
    assert (str(found), found.heard) == ("I3 n1: its usage is kept (node:n1), and there is no such node", VERSION)


def test_what_a_reservation_without_its_pod_charges_is_not_known():
    fields = EMPTY | {"used.cpu": "1000", "used.pods": "1"}
    assert told(usage_of(fields=fields, reservations=[reservation()])) == []


def sums(seen):
    return list(capacity.check_sums(seen))


def test_what_64_bits_hold_is_nothing_to_tell_of():
    seen = view(a_pod("shop/a", node="n1", cpu=LARGEST - 1), a_pod("shop/b", node="n1", cpu=1), nodes=[a_node()])
    assert sums(seen) == []


@pytest.mark.parametrize("reserved", [False, True])
def test_the_node_the_resource_and_the_pods_are_named(reserved):
    second = a_pod("shop/b", cpu=1) if reserved else a_pod("shop/b", node="n1", cpu=1)
    held = [reservation(key="shop/b")] if reserved else []
    seen = view(a_pod("shop/a", node="n1", cpu=LARGEST), second, nodes=[a_node()], reservations=held)
    assert noted(sums(seen)) == [
        f"I3 n1: its pods request {LARGEST + 1}m of cpu (shop/a {LARGEST}m, shop/b 1m), more than 64 bits hold; it "
        f"counts as {LARGEST}m, and nothing else that requests cpu is placed there until some of them go"
    ]
    assert told(sums(seen)) == []


def test_of_many_pods_those_that_request_most_are_named():
    pods = [a_pod(f"shop/{name}", node="n1", cpu=LARGEST - at) for at, name in enumerate("abcdefg")]
    (finding,) = sums(view(*pods, nodes=[a_node()]))
    assert f"(shop/a {LARGEST}m, shop/b {LARGEST - 1}m, " in finding.message
    assert "shop/f" not in finding.message
    assert " and 2 more)" in finding.message


def test_pods_of_a_node_that_is_not_there_make_up_no_sum():
    assert sums(view(a_pod("shop/a", node="n1", cpu=LARGEST), a_pod("shop/b", node="n1", cpu=LARGEST))) == []
