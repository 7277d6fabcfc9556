"""What a reader may have seen, told in one line each: a healthy system unless told otherwise."""

from collections.abc import Iterable, Mapping
from typing import Any

from dsched.framework.pod_info import Demand, HostPort
from dsched.fsck.findings import Kind
from dsched.fsck.view import Seen, SeenGroup, SeenNode, SeenPod, Told, View
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.scheduler.ports import QueueName
from dsched.state.reservations import Reservation
from dsched.state.standings import Member, Moment, Standing

NOW_MS = 1_700_000_000_000
EPOCH = 4
VERSION = 100
"""Of the cluster; the leader has taken it in."""


def a_pod(
    key: str = "shop/web",
    *,
    node: str = "",
    cpu: int = 1000,
    gpus: int = 0,
    ports: Iterable[str] = (),
    by_manifest: bool = False,
    ago_s: float = 60,
    version: int = 50,
    applied: int | None = None,
    uid: str = "",
    finished: bool = False,
    deleting: bool = False,
    scheduler: str = "default-scheduler",
    group: str = "",
) -> SeenPod:
    """A pod ``namespace/name`` with the uid ``uid-NAME``; bound ``ago_s`` seconds ago where it has a node. Host ports
    as ``ADDRESS:PORT``, all TCP."""
    if applied is None:
        applied = version if by_manifest or not node else version - 1
    taken = tuple(HostPort(text.split(":")[0], "TCP", int(text.split(":")[1])) for text in ports)
    requests = {"cpu": cpu} | ({"nvidia.com/gpu": gpus} if gpus else {})
    return SeenPod(
        key=PodKey(key),
        uid=PodUid(uid or f"uid-{key.partition('/')[2]}"),
        version=version,
        applied=applied,
        node=NodeName(node),
        by_manifest=by_manifest,
        bound_ms=round(NOW_MS - ago_s * 1000) if node else 0,
        finished=finished,
        deleting=deleting,
        scheduler=scheduler,
        demand=Demand(requests, cpu, 0, taken),
        group=group,
    )


def a_group(key: str = "shop/gang", *, min_count: int = 2, scheduled: bool = False, uid: str = "") -> SeenGroup:
    """A pod group ``namespace/name`` with the uid ``uid-NAME``."""
    return SeenGroup(key, PodUid(uid or f"uid-{key.partition('/')[2]}"), 40, min_count, scheduled)


def a_node(name: str = "n1", *, version: int = 10, **allocatable: int) -> SeenNode:
    """A node with 4 cores and room for 110 pods."""
    amounts = {"cpu": 4000, "pods": 110, **allocatable}
    return SeenNode(NodeName(name), version, {name.replace("_", "/"): amount for name, amount in amounts.items()})


def standing(
    queue: str = "active", *, key: str = "shop/web", places: Iterable[str] | None = None, **record: Any
) -> Standing:
    """A pod's or a pod group's record, and its entries in the queues: in the one its record names, unless told
    otherwise."""
    fields = {"uid": f"uid-{key.rpartition('/')[2]}", "queue": queue, "place": "turn", "attempts": 1}
    fields |= {"first_ms": NOW_MS - 9000, "last_ms": NOW_MS - 5000, **record}
    entered = [queue] if places is None else list(places)
    zsets = [QueueName(place) for place in entered if place not in (QueueName.INFLIGHT, QueueName.RESERVED)]
    turns = {QueueName.ACTIVE: f"turn {key}", QueueName.GROUP: f"{fields['place']} {key}"}
    members = [Member(place, turns.get(place, key), NOW_MS) for place in zsets]
    inflight = f"{EPOCH} {EPOCH}-1" if QueueName.INFLIGHT in entered else ""
    return Standing({name: str(value) for name, value in fields.items() if value is not None}, members, inflight)


def reservation(
    node: str = "n1",
    *,
    key: str = "shop/web",
    state: str = "reserved",
    epoch: int = EPOCH,
    attempt: int = 1,
    ago_s: float = 0.1,
) -> Reservation:
    """A reservation for a pod made like `a_pod`."""
    uid = PodUid(f"uid-{key.partition('/')[2]}")
    return Reservation(uid, PodKey(key), NodeName(node), epoch, state, attempt, round(NOW_MS - ago_s * 1000))


def view(
    *pods: SeenPod,
    nodes: Iterable[SeenNode] = (),
    groups: Iterable[SeenGroup] | None = None,
    standings: Mapping[str, Standing] | None = None,
    reservations: Iterable[Reservation] = (),
    leader: str = "leader-1",
    lease_epoch: int = EPOCH,
    epoch: int = EPOCH,
    version: int = VERSION,
    idle: bool = True,
    told: Mapping[PodKey, Told] | None = None,
    broken: Mapping[tuple[Kind, str], str] | None = None,
    **more: Any,
) -> View:
    """Everything that was seen; a leader leads and has taken everything in."""
    busy = 0 if idle else 1
    moment = Moment(leader, lease_epoch if leader else 0, epoch, VERSION, None, busy, busy)
    return View(
        moment=moment,
        epoch=epoch,
        objects=Seen(
            version,
            {pod.key: pod for pod in pods},
            {node.name: node for node in nodes},
            None if groups is None else {group.key: group for group in groups},
            told or {},
            broken or {},
        ),
        now_ms=NOW_MS,
        schedulers=frozenset({"default-scheduler"}),
        standings={PodKey(key): value for key, value in (standings or {}).items()},
        reservations={each.uid: each for each in reservations},
        **more,
    )


def told(findings: Iterable[Any]) -> list[str]:
    """Breaches as they are printed."""
    return [str(finding) for finding in findings if finding.breach]


def noted(findings: Iterable[Any]) -> list[str]:
    """Notes as they are printed."""
    return [str(finding) for finding in findings if not finding.breach]
