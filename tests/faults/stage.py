"""A node that only a scenario's own pods go to, so that what happens there is the scenario's doing alone."""

from typing import Any

from tests.faults.churn import KEPT
from tests.faults.scenario import Run

NAME = "stage"
_TAINT = {"key": NAME, "value": "yes", "effect": "NoSchedule"}


def put(run: Run, cpu: int) -> None:
    """Create the node."""
    node = run.churn.node(NAME)
    node["spec"], node["metadata"]["labels"] = {"taints": [_TAINT]}, {NAME: "yes"}
    node["status"] = {"allocatable": {"cpu": str(cpu), "memory": f"{2 * cpu}Gi", "pods": "10"}}
    run.arena.put("Node", node)


def pods(run: Run, count: int, cpu: str, priority: int, grace_s: int = 0, **labels: str) -> list[str]:
    """Create pods that go there and nowhere else; their keys. With a grace they leave only when their kubelet says so:
    ``run.arena.delete``."""
    grace = {"terminationGracePeriodSeconds": grace_s} if grace_s else {}
    made: list[Any] = [
        run.churn.pod(
            cpu=cpu,
            plain=True,
            priority=priority,
            nodeSelector={NAME: "yes"},
            tolerations=[{"key": NAME, "operator": "Exists"}],
            **grace,
        )
        for _ in range(count)
    ]
    for pod in made:
        pod["metadata"]["labels"] |= {KEPT: "yes", **labels}
    run.arena.put("Pod", *made)
    return [f"default/{pod['metadata']['name']}" for pod in made]


def clear(run: Run, *keys: str) -> None:
    """Delete the node, and of these pods those that are there."""
    run.churn.delete_pods(*keys)
    run.arena.delete("Node", NAME)
    run.pause(0.1, 0.2)
    run.churn.collect()
