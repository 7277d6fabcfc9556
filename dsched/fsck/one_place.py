"""I1: every pending pod of ours stands in exactly one place, which its record names, and nothing else stands anywhere.

Who is expected to have a place: a pod that is neither bound nor finished nor being deleted and whose scheduler is one
of ours, as soon as the leader has taken it in; a bound one, too, while a resize of it is deferred and resizes preempt.
Other bound pods are left to `bound_once`, whom a pod group is of to `pod_groups`.
"""

from collections.abc import Iterator

from dsched.fsck.findings import Finding, Invariant, of_pod
from dsched.fsck.view import SeenPod, View
from dsched.model.meta import PodKey, PodUid
from dsched.scheduler.ports import QueueName, group_of
from dsched.state.standings import Standing

_I1 = Invariant.ONE_PLACE
_HELD = (QueueName.RESERVED, QueueName.WAITING)


def check(view: View) -> Iterator[Finding]:
    """What breaks it."""
    for key, standing in view.standings.items():
        pod = view.objects.pods.get(key)
        if standing.record:
            yield from _recorded(view, key, standing)
            if not group_of(key):
                yield from _owned(view, key, standing, pod)
        elif (standing.members or standing.inflight) and (pod is None or not pod.node):
            yield of_pod(_I1, key, "no record", f"stands in {_joined(places(standing))} and has no record")
    for pod in view.objects.pods.values():
        if view.ours(pod) and not _known(view, pod):
            what = "has a deferred resize" if pod.node else "is pending"
            yield of_pod(_I1, pod.key, f"nowhere {pod.uid}", f"{what} and stands nowhere", pod.version)


def places(standing: Standing) -> list[QueueName]:
    """The queues that a pod has entries in, each once."""
    found = {member.place for member in standing.members}
    return [place for place in QueueName if place in found or (place is QueueName.INFLIGHT and standing.inflight)]


def _recorded(view: View, key: PodKey, standing: Standing) -> Iterator[Finding]:
    """The record agrees with the entries and the reservation."""
    named = standing.record.get("queue", "")
    reservation = view.reservations.get(PodUid(standing.record.get("uid", "")))
    held = None if reservation is None else _place_of(reservation.state)
    found = [place for place in QueueName if place in places(standing) or place is held]
    if len(found) > 1:
        yield of_pod(_I1, key, "two places", f"stands in {_joined(found)}")
    elif not found:
        yield of_pod(_I1, key, "no place", f"its record says {named or 'nothing'}, but it stands nowhere")
    elif found[0] != named:
        yield of_pod(_I1, key, "wrong place", f"stands in {found[0]}, its record says {named or 'nothing'}")
    elif found[0] is QueueName.WAITING and (held is None or not standing.members):
        lacks = "nothing is reserved for it" if held is None else "is not in that queue"
        yield of_pod(_I1, key, "half waiting", f"its record says waiting, but {lacks}")
    elif found[0] in (QueueName.ACTIVE, QueueName.GROUP):
        yield from _turn(key, standing, found[0])


def _turn(key: PodKey, standing: Standing, place: QueueName) -> Iterator[Finding]:
    """In the active queue, or beside a pod group, it stands once, where its record says."""
    turns = [member.text for member in standing.members if member.place is place]
    wanted = f"{standing.record.get('place', '')} {key}"
    if len(turns) > 1:
        yield of_pod(_I1, key, "two turns", f"stands in {place} {len(turns)} times: {', '.join(sorted(turns))}")
    elif turns != [wanted]:
        yield of_pod(_I1, key, "wrong turn", f"stands in {place} as {turns[0]!r}, its record says {wanted!r}")


def _owned(view: View, key: PodKey, standing: Standing, pod: SeenPod | None) -> Iterator[Finding]:
    """The record is of a pod that is there and waits to be bound."""
    uid = standing.record.get("uid", "")
    if not view.has_cluster or (pod is not None and pod.uid == uid and pod.node):
        return
    if pod is None:
        yield of_pod(_I1, key, f"no pod {uid}", "has a record, and there is no such pod", view.version)
    elif pod.uid != uid:
        what = f"has a record of uid {uid or 'nothing'}, the pod has uid {pod.uid}"
        yield of_pod(_I1, key, f"no pod {uid}", what, view.version)
    elif pod.finished:
        yield of_pod(_I1, key, f"over {uid}", "has finished and has a record still", view.version)


def _known(view: View, pod: SeenPod) -> bool:
    """Whether anything speaks of the pod; what contradicts itself is told by other checks."""
    standing = view.standings.get(pod.key, Standing())
    return bool(standing.record or standing.members or standing.inflight) or pod.uid in view.reservations


def _place_of(state: str) -> QueueName:
    return QueueName.WAITING if state == QueueName.WAITING else QueueName.RESERVED


def _joined(found: list[QueueName]) -> str:
    return " and in ".join(found)
