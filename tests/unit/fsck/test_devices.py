"""Devices: of one owner each, held with a reservation, given back with their pods."""

import pytest

from dsched.fsck import devices
from dsched.fsck.view import SeenClaim, SeenDevices
from dsched.model.meta import PodKey, PodUid
from dsched.state.devices import Ledger
from tests.unit.fsck.seeing import VERSION, a_pod, reservation, told, view

GPU, OTHER = "gpu.example.com/n1/gpu-0", "gpu.example.com/n1/gpu-1"
WEB = PodUid("uid-web")


def claim(name: str = "c", *given: str, owner: str = "", pods=(), shares=()) -> SeenClaim:
    users = tuple((PodKey(f"shop/{each}"), PodUid(f"uid-{each}")) for each in pods)
    return SeenClaim(f"shop/{name}", f"uid-{name}", owner, given, tuple(shares), users)


def check(*claims, held=None, unreadable=None, used=None, moving=(), **more):
    given = {PodUid(uid): holds for uid, holds in (held or {}).items()}
    counted = {name: str(amount) for name, amount in devices.devices.sums(given.values()).items()}
    more.setdefault("reservations", [reservation()] if held else [])
    pods = more.pop("there", [a_pod()])
    ledger = Ledger(given, unreadable or {}, counted if used is None else used, frozenset(moving))
    seen = view(
        *pods,
        devices=SeenDevices({each.key: each for each in claims}, ledger, seen_to=True),
        **more,
    )
    return list(devices.check(seen))


def test_nothing_to_say():
    assert check() == []
    healthy = [claim("a", GPU, pods=["web"]), claim("b", shares=[OTHER]), claim("c", shares=[OTHER])]
    assert check(*healthy, held={WEB: {"uid-d": {OTHER + "/capacity/memory": 5}}}) == []


def test_two_claims_have_one_device():
    assert told(check(claim("a", GPU), claim("b", GPU, OTHER))) == [
        f"I12 {GPU}: has 2 owners: resourceclaim shop/a, resourceclaim shop/b"
    ]


def test_a_claim_has_what_a_reserved_pod_holds():
    assert told(check(claim("a", GPU), held={WEB: {"uid-b": {GPU: 1}}})) == [
        f"I12 {GPU}: has 2 owners: resourceclaim shop/a, reserved pod uid-web for uid-b"
    ]


@pytest.mark.parametrize("holder", ["uid-a", "uid-web"])
def test_a_claim_and_the_pod_that_holds_its_device_are_one(holder):
    assert check(claim("a", GPU, owner="uid-web"), held={WEB: {holder: {GPU: 1}}}) == []


def test_two_reserved_pods_hold_one_device():
    two = {WEB: {"uid-a": {GPU: 1}}, "uid-api": {"uid-b": {GPU: 1}}}
    (found,) = check(held=two, reservations=[reservation(), reservation(key="shop/api")])
    assert str(found) == f"I12 {GPU}: has 2 owners: reserved pod uid-web for uid-a, reserved pod uid-api for uid-b"
    parts = {uid: {holder: {f"{GPU}/counter/set/memory": 1} for holder in holds} for uid, holds in two.items()}
    assert check(held=parts, reservations=[reservation(), reservation(key="shop/api")]) == []


def test_a_pod_without_a_reservation_holds_devices():
    (found,) = check(held={WEB: {"uid-a": {GPU: 1}}}, reservations=[])
    assert str(found) == f"I12 uid-web: holds {GPU}, and there is no reservation for it"


def test_what_nobody_can_read():
    (found,) = check(unreadable={WEB: "x"})
    assert str(found) == "I12 uid-web: what it holds of devices is 'x', which nobody can read"


@pytest.mark.parametrize(("used", "said"), [({}, "0"), ({GPU: "2"}, "2"), ({GPU: "many"}, "many")])
def test_sums_that_are_wrong(used, said):
    assert told(check(held={WEB: {"uid-a": {GPU: 1}}}, used=used)) == [
        f"I12 {GPU}: devices:used says {said}, and reserved pods hold 1 of it"
    ]


def test_sums_of_what_moved_while_it_was_read_say_nothing():
    assert check(held={WEB: {"uid-a": {GPU: 1}}}, used={}, moving=[GPU]) == []


@pytest.mark.parametrize("there", [[], [a_pod(uid="new")], [a_pod(finished=True)]])
def test_devices_of_a_pod_that_is_gone(there):
    (found,) = check(claim("a", GPU, pods=["web"]), there=there)
    assert str(found) == "I12 shop/web: resourceclaim shop/a has devices for it (uid uid-web), and it is gone"
    assert found.heard == VERSION
    assert check(claim("a", GPU, pods=["web"]), there=there, idle=False) == []
    assert check(claim("a", GPU, pods=["web"]), there=there, leader="") == []
    assert check(claim("a", pods=["web"]), there=there) == []
