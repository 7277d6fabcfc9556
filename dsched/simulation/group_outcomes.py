"""What becomes of the pod groups of a simulation, as attempts go by."""

from collections.abc import Mapping

from dsched.framework import pod_groups
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import PodUid
from dsched.model.pod_groups import GroupKey
from dsched.scheduler.decision import GroupDecision
from dsched.simulation.outcome import WITH_NODE, GroupOutcome, PodOutcome

GATED = "gated"
"""Ending of a group that was never tried."""


class GroupOutcomes:
    """The groups that have pods among those that wait."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._pods: dict[str, list[PodUid]] = {}
        self._bound: dict[str, int] = {}
        self._ended: dict[str, tuple[int, str, str]] = {}
        """Attempts, ending and message, in the order of the last attempts."""

    def came(self, info: PodInfo, gated: str) -> None:
        """A pod waits; ``gated`` says why it is held back, if it is."""
        key = info.pod.group_key
        self._pods.setdefault(key, []).append(info.uid)
        self._bound.setdefault(key, len(pod_groups.scheduled(self._snapshot.table, key)))
        self._ended.setdefault(key, (0, GATED, gated))

    def attempted(self, decided: GroupDecision) -> None:
        """A group was decided."""
        key = decided.candidate.group.key
        attempts, _, _ = self._ended.pop(key)
        self._ended[key] = (attempts + 1, str(decided.end), decided.message)

    def outcome(self, pods: Mapping[PodUid, PodOutcome]) -> tuple[GroupOutcome, ...]:
        """What became of all of them.

        Args:
            pods: what became of the pods.
        """
        found = [self._outcome(key, pods) for key in self._ended]
        return tuple(sorted(found, key=lambda group: not group.attempts))

    def _outcome(self, key: str, pods: Mapping[PodUid, PodOutcome]) -> GroupOutcome:
        group = self._snapshot.pod_groups.objects.get(GroupKey(key))
        attempts, ending, message = self._ended[key]
        waited = self._pods[key]
        return GroupOutcome(
            key,
            ending,
            pods=len(waited),
            placed=sum(uid in pods and pods[uid].ending in WITH_NODE for uid in waited),
            bound=self._bound[key],
            wanted=0 if group is None else group.min_count,
            attempts=attempts,
            message=message,
        )
