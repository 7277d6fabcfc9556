"""Systems with the gang plugin of the examples, and pods that wait for each other at Permit."""

from typing import Any

from tests.faults import sites
from tests.faults.churn import KEPT
from tests.faults.scenario import Run

DEADLINE_S = 5
"""How long members wait for the rest of their gang."""
_CONFIGURATION = sites.HEAD + (
    "profiles:\n"
    "- schedulerName: default-scheduler\n"
    "  plugins: {multiPoint: {enabled: [{name: Gang}]}}\n"
    f"  pluginConfig: [{{name: Gang, args: {{deadlineSeconds: {DEADLINE_S}, zoneLabel: ''}}}}]\n"
)
OPTIONS = ("--config", sites.written("gang.yaml", _CONFIGURATION))
VARIABLES = {"PYTHONPATH": sites.installed("gang", sites.GANG, "Gang = dsched_gang:GangPlugin")}
"""Of a scenario that uses them."""


def pods(run: Run, name: str, size: int, made: int = 0, *, cpu: str = "50m") -> list[dict[str, Any]]:
    """The members of a gang, or so many of them; not created yet."""
    found = []
    for _ in range(made or size):
        pod = run.churn.pod(cpu=cpu, plain=True, priority=100)
        gang = {"example.com/gang": f"{name}-{run.seed}", "example.com/gang-size": str(size)}
        pod["metadata"]["labels"] |= {KEPT: "yes", **gang}
        found.append(pod)
    return found


def key(pod: dict[str, Any]) -> str:
    """As the cluster and the scheduler name it."""
    return f"default/{pod['metadata']['name']}"
