"""I6: every reservation is of a pod that still wants it, on a node that is there, and ends.

A reservation under an older epoch belongs to nobody while somebody leads: a new leader adopts all of them first. At
rest none is older than a stated time; one that waits for Permit, no longer past its deadline.
"""

from collections.abc import Iterator

from dsched.fsck.findings import Finding, Invariant, Kind, of_pod
from dsched.fsck.view import View
from dsched.scheduler.ports import QueueName
from dsched.state.reservations import Reservation
from dsched.state.standings import Standing

_I6 = Invariant.RELEASED_ONCE

STATES = ("reserved", "waiting", "binding", "cancelled")


def check(view: View, oldest_ms: int) -> Iterator[Finding]:
    """What breaks it; ``oldest_ms`` is how old a reservation may be at rest."""
    for uid, text in view.unreadable.items():
        what = f"its reservation is {text!r}, not 'NS/NAME NODE EPOCH STATE ATTEMPT SINCE_MS'"
        yield Finding(_I6, Kind.UID, uid, "text", what)
    for reservation in view.reservations.values():
        if view.has_cluster:
            yield from _objects(view, reservation)
        yield from _record(view, reservation)
        yield from _age(view, reservation, oldest_ms)


def _objects(view: View, found: Reservation) -> Iterator[Finding]:
    """Pod and node are there; all of it the leader must have heard of first."""
    pod = view.owner(found.uid, found.key)
    where = f"{found.node} is reserved for uid {found.uid}"
    if pod is None:
        there = view.objects.pods.get(found.key)
        what = "there is no such pod" if there is None else f"the pod has uid {there.uid}"
        yield of_pod(_I6, found.key, f"pod {found.uid}", f"{where}, and {what}", view.version)
    elif pod.node == found.node:
        yield of_pod(_I6, found.key, f"bound {found.uid}", f"{where}, which is bound there already", view.version)
    elif not pod.node and (pod.finished or pod.deleting):
        why = "has finished" if pod.finished else "is being deleted"
        yield of_pod(_I6, found.key, f"over {found.uid}", f"{where}, which {why}", view.version)
    if found.node not in view.objects.nodes:
        what = f"is reserved on {found.node}, and there is no such node"
        yield of_pod(_I6, found.key, f"node {found.node}", what, view.version)


def _record(view: View, found: Reservation) -> Iterator[Finding]:
    """The pod's record agrees, and the reservation is the present leader's."""
    owner = view.owner(found.uid, found.key)
    waits = (owner is not None and not owner.node) or not view.has_cluster
    record = view.standings.get(found.key, Standing()).record
    if found.state not in STATES:
        yield of_pod(_I6, found.key, f"state {found.uid}", f"its reservation is in no known state: {found.state!r}")
    if waits and record.get("uid") != found.uid:
        what = f"{found.node} is reserved for uid {found.uid}, which has no record"
        yield of_pod(_I6, found.key, f"record {found.uid}", what)
    elif waits and record.get("queue") in (QueueName.RESERVED, QueueName.WAITING) and record.get("node") != found.node:
        what = f"is reserved on {found.node}, its record says {record.get('node') or 'nothing'}"
        yield of_pod(_I6, found.key, f"record {found.uid}", what)
    if view.leads and found.epoch < view.epoch:
        what = f"is reserved under epoch {found.epoch}, and epoch {view.epoch} leads"
        yield of_pod(_I6, found.key, f"epoch {view.epoch}", what)


def _age(view: View, found: Reservation, oldest_ms: int) -> Iterator[Finding]:
    if not (view.leads and view.at_rest):
        return
    since_ms, what = found.since_ms, "reserved"
    if found.state == QueueName.WAITING:
        members = view.standings.get(found.key, Standing()).members
        since_ms = max((each.score for each in members if each.place is QueueName.WAITING), default=since_ms)
        what = "past the deadline of Permit"
    age_ms = view.now_ms - since_ms
    if age_ms > oldest_ms:
        told = f"has been {what} on {found.node} for {age_ms // 1000} s while there was nothing to decide"
        yield of_pod(_I6, found.key, f"age {found.uid} {found.since_ms}", told)
