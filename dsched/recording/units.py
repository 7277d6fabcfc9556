"""What of a recorded batch is decided together: pods by themselves, and the pods of a group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dsched.model import tape
from dsched.model.meta import PodUid
from dsched.scheduler.decision import Candidate, GroupCandidate
from dsched.scheduler.ports import QueueName
from dsched.scheduler.queue import QueuedPod
from dsched.simulation.offline_cycle import OfflineCycle

_STANDS = frozenset({QueueName.UNSCHEDULABLE, QueueName.GROUP, QueueName.ACTIVE, QueueName.BACKOFF})


@dataclass(frozen=True, slots=True)
class Batch:
    """What was recorded of a batch.

    Attributes:
        choices: by pod.
        groups: by pod, the group that it was decided with.
    """

    choices: Mapping[PodUid, tape.Choice] = field(default_factory=dict)
    groups: Mapping[PodUid, tape.GroupChoice] = field(default_factory=dict)

    @staticmethod
    def of(line: tape.Decided) -> "Batch":
        """That of a line."""
        groups = {
            choice.uid: group
            for group in line.groups
            for choice in line.choices[group.first : group.first + group.pods]
        }
        return Batch({choice.uid: choice for choice in line.choices}, groups)


@dataclass(slots=True)
class Unit:
    """Pods that are decided together.

    Attributes:
        group: ``namespace/name``; empty for a pod by itself.
    """

    pods: list[QueuedPod]
    group: str = ""

    def candidate(self, made: OfflineCycle, pods: Sequence[Candidate]) -> Candidate | GroupCandidate:
        """What the cycle decides, of these pods as they were popped."""
        group = made.groups.object_of(self.group) if self.group else None
        return pods[0] if group is None else GroupCandidate(group, tuple(pods))


def units(made: OfflineCycle, pods: Sequence[QueuedPod], batch: Batch) -> list[Unit]:
    """Pods in order, those of a group together where its first one is. Pods that were not recorded as decided with
    their group bring the others of it that wait."""
    found: list[Unit] = []
    of_group: dict[str, Unit] = {}
    for pod in pods:
        key = _group_of(made, pod)
        if not key:
            found.append(Unit([pod]))
            continue
        if key not in of_group:
            of_group[key] = Unit([], key)
            found.append(of_group[key])
        of_group[key].pods.append(pod)
    for key, unit in of_group.items():
        if any(pod.uid not in batch.groups for pod in unit.pods):
            _complete(made, unit, key)
    return found


def _complete(made: OfflineCycle, unit: Unit, key: str) -> None:
    there = {pod.uid for pod in unit.pods}
    placed = made.memory.snapshot.table
    unit.pods += [
        pod
        for uid in made.memory.snapshot.pod_groups.pending(key)
        if uid not in there
        and (pod := _pending(made, key, uid)) is not None
        and pod.place in _STANDS
        and placed.node_of(uid) is None
    ]
    unit.pods = made.groups.in_order(unit.pods)


def _pending(made: OfflineCycle, key: str, uid: PodUid) -> QueuedPod | None:
    pod = made.pending.get(made.memory.snapshot.pod_groups.pending(key)[uid].key)
    return pod if pod is not None and pod.uid == uid else None


def _group_of(made: OfflineCycle, pod: QueuedPod) -> str:
    """The group that a pod is decided with; empty where its profile knows none, or the group is not there."""
    key = pod.info.pod.group_key
    return key if key and made.groups.concerns(pod.info.pod) and made.groups.object_of(key) is not None else ""
