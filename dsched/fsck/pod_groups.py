"""I1 of pod groups, and I13: gangs are placed whole.

A pod group stands in the queue as long as pods stand beside it, a pod beside its group only while that stands in the
queue. Between two steps of a leader that takes over that need not be so; then the leader has not yet taken everything
in, or nobody leads.

That some pods of a gang have nodes and too few of them is no breach by itself, for everything that makes it so is
allowed once the gang was placed: pods are deleted, evicted, fail to be bound, and its ``minCount`` changes. Of a gang
that was never said to be placed (condition ``PodGroupInitiallyScheduled``) it is worth knowing.
"""

from collections.abc import Iterator

from dsched.fsck.findings import Finding, Invariant, Kind, of_pod
from dsched.fsck.view import SeenGroup, View
from dsched.model.meta import PodKey
from dsched.scheduler.ports import QueueName, group_of
from dsched.state.standings import Standing

_I1, _I13 = Invariant.ONE_PLACE, Invariant.GANGS
_NEVER = frozenset({QueueName.UNSCHEDULABLE, QueueName.RESERVED, QueueName.WAITING, QueueName.GROUP})


def check(view: View) -> Iterator[Finding]:
    """What breaks them."""
    beside: set[str] = set()
    entities: dict[str, tuple[PodKey, Standing]] = {}
    for key, standing in view.standings.items():
        if group := group_of(key):
            entities[group] = key, standing
        elif standing.record.get("queue") == QueueName.GROUP:
            beside.add(standing.record.get("group", ""))
    for group, (key, standing) in entities.items():
        if standing.record:
            yield from _entity(view, key, group, standing, alone=group not in beside)
    for key, standing in view.standings.items():
        if standing.record.get("queue") == QueueName.GROUP and not group_of(key):
            yield from _beside(view, key, standing, entities)
    if view.leads and view.at_rest:
        for seen in (view.objects.groups or {}).values():
            yield from _gang(view, seen)


def _entity(view: View, key: PodKey, group: str, standing: Standing, *, alone: bool) -> Iterator[Finding]:
    """The group is there, stands where groups do, and has pods beside it."""
    uid, queue = standing.record.get("uid", ""), standing.record.get("queue", "")
    if queue in _NEVER:
        yield of_pod(_I1, key, "group's place", f"is a pod group, and its record says {queue}, where only pods stand")
    seen = None if view.objects.groups is None else view.objects.groups.get(group)
    if view.objects.groups is not None and view.has_cluster and (Kind.GROUP, group) not in view.objects.broken:
        if seen is None:
            what = "has a record, and there is no such pod group"
            yield of_pod(_I1, key, f"no group {uid}", what, view.version)
        elif seen.uid != uid:
            what = f"has a record of uid {uid or 'nothing'}, the pod group has uid {seen.uid}"
            yield of_pod(_I1, key, f"no group {uid}", what, view.version)
    if view.leads and alone and queue != QueueName.INFLIGHT:
        rule = f"alone {uid} {standing.record.get('queued_us', '')} {view.epoch}"
        yield of_pod(_I1, key, rule, f"stands in {queue or 'nothing'}, and no pod stands beside it", view.version)


def _beside(
    view: View, key: PodKey, standing: Standing, entities: dict[str, tuple[PodKey, Standing]]
) -> Iterator[Finding]:
    """A pod stands beside its own group, which stands in the queue."""
    record = standing.record
    uid, group, place = record.get("uid", ""), record.get("group", ""), record.get("place", "")
    if group != place:
        what = f"stands beside pod group {place or 'nothing'}, its record says {group or 'nothing'}"
        yield of_pod(_I1, key, f"which group {uid}", what)
        return
    pod = view.objects.pods.get(key)
    if pod is not None and pod.uid == uid and pod.group != group:
        what = f"stands beside pod group {group}, it is of {pod.group or 'none'}"
        yield of_pod(_I1, key, f"whose group {uid}", what, view.version)
    if view.leads and not (group in entities and entities[group][1].record):
        what = f"stands beside pod group {group}, which is not in the queue"
        yield of_pod(_I1, key, f"no entity {uid} {record.get('queued_us', '')} {view.epoch}", what, view.version)


def _gang(view: View, group: SeenGroup) -> Iterator[Finding]:
    """Of a gang that was never said to be placed, no pod has a node, or enough have one."""
    pods = view.grouped.get(group.key, ())
    placed = [pod for pod in pods if pod.node or pod.uid in view.reservations]
    if group.scheduled or len(placed) >= group.min_count:
        return
    if any(pod.scheduled or not pod.node for pod in placed):
        what = (
            f"{len(placed)} of its pods have nodes, fewer than its minCount {group.min_count}: others were deleted or "
            "not bound since, or they were not placed together"
        )
        yield Finding(_I13, Kind.GROUP, group.key, f"torn {group.uid}", what, view.version, breach=False)
