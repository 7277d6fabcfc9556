from typing import Any

from dsched.framework.interface import Scope, Status, unresolvable


class TeamNodes:
    """Nodes that name a team in a label take pods of that team only."""

    name = "TeamNodes"
    filter_scope = Scope.NODE  # the answer depends on the pod's class and the node object, on nothing else

    def __init__(self, args: Any, handle: Any) -> None:
        self.label = (args or {}).get("label", "example.com/team")

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        team = node.node.metadata.labels.get(self.label)
        if team is None or pod.pod.metadata.labels.get(self.label) == team:
            return None  # Success
        return unresolvable(f"node(s) belong to team {team}")
