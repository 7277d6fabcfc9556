"""A worker's process that has the leader's configuration, whatever that is."""

from typing import Any


class Agreeing:
    """Takes the place of `workers.leader_config.LeaderConfigFollower` where a test builds the frameworks itself."""

    build: Any = None
    trouble = ""

    def refusal(self, wanted: str, cluster: str) -> str:
        return ""

    def other_cluster(self, cluster: str) -> bool:
        return False
