"""PodGroupPodsCount: placements in which more pods of the group fit are better.

Source: pkg/scheduler/framework/plugins/podgrouppodscount/podgroup_pods_count.go.
"""

from collections.abc import Sequence
from typing import Any

from dsched.errors import PluginError
from dsched.framework import interface, pod_groups
from dsched.framework.interface import MAX_NODE_SCORE, GroupAssignments
from dsched.framework.snapshot import Snapshot
from dsched.model.pod_groups import PodGroup


class PodGroupPodsCount:
    name = "PodGroupPodsCount"
    placement_score_by_pods = True

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def score_placement(self, group: PodGroup, assignments: GroupAssignments, snapshot: Snapshot) -> int:
        """Pods of the group on nodes, those included that the placement would add."""
        return len(pod_groups.scheduled(snapshot.table, group.key)) + len(assignments.pods)

    def normalize_placements(self, group: PodGroup, scores: Sequence[int]) -> list[int]:
        """In percent of the highest.

        Raises:
            PluginError: none is above 0.
        """
        highest = max(scores)
        if highest == 0:
            raise PluginError("no pods from pod group are assigned to any of the candidate placements")
        return [score * MAX_NODE_SCORE // highest for score in scores]


_role: type[interface.PlacementScorePlugin] = PodGroupPodsCount
_normalizer: type[interface.PlacementNormalizer] = PodGroupPodsCount
