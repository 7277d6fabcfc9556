"""Binders as processes: failures.md 2, 8, 16."""

from collections.abc import Iterator

import msgspec
import pytest

from dsched.leader.dispatch import Dispatcher
from dsched.model.messages import BindRequest
from dsched.state import keys
from tests.integration.leader.rig import Led, Rig
from tests.integration.workers.processes import Workers, wait_until
from tests.manifests import node_manifest, pod_manifest

WEB = "shop/web"


class Handed:
    """A leader that has reserved a pod and keeps the message about it."""

    def __init__(self, rig: Rig) -> None:
        rig.apply(node_manifest("n1"), pod_manifest(WEB))
        self.led: Led = rig.lead()
        self.dispatcher: Dispatcher = self.led.term.dispatcher
        sent: list[BindRequest] = []
        sender = self.led.term.sender
        send, sender.bind = sender.bind, lambda request, refused=False: sent.append(request)
        self.led.turns()
        sender.bind = send
        (self.request,) = sent


@pytest.fixture
def handed(rig: Rig) -> Iterator[Handed]:
    made = Handed(rig)
    yield made
    made.dispatcher.close()


def answers(rig: Rig) -> int:
    length: int = rig.store.redis.xlen(rig.store.key(keys.RESULTS.name))
    return length


def verdicts(led: Led) -> list[tuple[str, str]]:
    return [
        (result.binder.partition("-")[0], outcome.verdict) for result in led.unread() for outcome in result.outcomes
    ]


def test_a_binder_binds_and_says_so(rig: Rig, handed: Handed) -> None:
    handed.dispatcher.bind(handed.request)
    wait_until("the binder has answered", lambda: answers(rig))
    assert verdicts(handed.led) == [("binder", "bound")]
    assert rig.node_of(WEB) == "n1"
    assert rig.events(WEB) == [("Scheduled", 1)]
    handed.led.turns()
    assert (rig.reserved(), rig.record(WEB), answers(rig)) == ({}, {}, 0)


def test_the_same_request_to_two_binders(rig: Rig, handed: Handed) -> None:
    for _ in range(6):
        handed.dispatcher.bind(handed.request)
    wait_until("every message is answered", lambda: answers(rig) == 6)
    assert verdicts(handed.led) == [("binder", "bound")] * 6
    assert [uid for _, uid, _ in rig.binds()].count(rig.uid(WEB)) == 1
    assert rig.events(WEB) == [("Scheduled", 1)]
    handed.led.turns()
    assert (rig.reserved(), rig.used("n1")) == ({}, {"cpu": 100, "pods": 1})


def test_a_request_of_an_old_leader_is_dropped(farm: Workers, rig: Rig, handed: Handed) -> None:
    rig.elect()
    for _ in range(4):
        handed.dispatcher.bind(handed.request)
    wait_until(
        "all are dropped",
        lambda: sum(farm.log(f"binder-{n}").count(f"epoch {handed.led.epoch} is not the present") for n in (1, 2)) == 4,
    )
    assert answers(rig) == 0
    assert rig.node_of(WEB) == ""
    new = rig.lead()
    wait_until("the new leader's request is done", lambda: (new.turns(), rig.node_of(WEB))[1])


@pytest.mark.parametrize("what", ["the pod is gone", "another pod of the name", "another node", "nothing reserved"])
def test_a_reservation_that_does_not_stand(rig: Rig, handed: Handed, what: str) -> None:
    (item,) = handed.request.pods
    request = handed.request
    if what == "the pod is gone":
        rig.delete_pod(WEB)
    elif what == "another pod of the name":
        rig.apply(pod_manifest(WEB, uid="another"))
    elif what == "another node":
        request = msgspec.structs.replace(request, pods=[msgspec.structs.replace(item, node="n2")])
    else:
        rig.store.redis.delete(rig.store.key(keys.RESERVATIONS.name))
    before = len(rig.binds())
    handed.dispatcher.bind(request)
    wait_until("the binder has answered", lambda: answers(rig))
    ((_, verdict),) = verdicts(handed.led)
    if what in ("the pod is gone", "another pod of the name"):
        assert verdict in ("gone", "rejected")  # the leader looks it up in any case
    else:
        assert verdict == "reservation-lost"
    assert len(rig.binds()) == before


@pytest.mark.parametrize("other", [{"profile": "unheard-of"}, {"config": "another"}])
def test_a_binder_with_another_configuration_refuses(rig: Rig, handed: Handed, other: dict[str, str]) -> None:
    handed.dispatcher.bind(msgspec.structs.replace(handed.request, **other))
    wait_until("the binder has answered", lambda: answers(rig))
    assert verdicts(handed.led) == [("binder", "other-configuration")]
    assert (rig.node_of(WEB), rig.reserved()) == ("", {WEB: ("n1", "reserved")})
    # The leader hands it out again, in time to a binder that has the same.
    wait_until("the pod is bound", lambda: (handed.led.turns(), rig.node_of(WEB))[1])
