"""The leader is killed while it places pod groups, or a binder while it binds their pods."""

from typing import Any

from tests.faults import harm, points, waits
from tests.faults.churn import KEPT, wait_for
from tests.faults.harm import LeaderKill, Point
from tests.faults.proxy import When
from tests.faults.scenario import Run, Scenario
from tests.manifests import group_manifest

GROUPS = 3
SIZE = 5
PRIORITY = 100
POINTS = (
    Point("before groups are popped", points.POP, When.REQUEST),
    Point("after groups were popped", points.POP, When.REPLY),
    Point("before the reservations", points.RESERVE, When.REQUEST),
    Point("after the reservations", points.RESERVE, When.REPLY),
    Point("before some are bound", points.HAND_OUT, When.REPLY),
    Point("after some were bound", points.CONFIRM, When.REPLY),
)


def inject(run: Run) -> None:
    """Groups that fit, one of which too few pods are there, and one too large for any node."""
    run.pause(0.2, 0.6)
    fit = [_group(run, f"g{number}", SIZE) for number in range(GROUPS)]
    early, large = _group(run, "early", SIZE - 2), _group(run, "large", SIZE, cpu="90")
    groups = (*fit, early, large)
    run.churn.pausing.set()  # it would delete nodes with pods of groups on them, which are not placed again then
    run.pause(0.3, 0.5)
    number = run.seed % (len(POINTS) + 1)
    kill = LeaderKill(run, POINTS[number]) if number < len(POINTS) else None
    try:
        for pods in groups:
            run.arena.put("Pod", *pods)
            run.pause(0.0, 0.1)
        if kill is not None:
            kill.wait(30)
            kill.wait_for_next()
        else:
            harm.send(run, "binder")
        keys = [_key(pod) for pods in fit for pod in pods]
        whole = wait_for(lambda: len(waits.bound(run, keys)) == len(keys), 90)
        counts = [len(waits.bound(run, [_key(pod) for pod in pods])) for pods in fit]
        run.require(whole, f"I13 groups of {SIZE} that fit: {counts} pods bound")
        for name, pods in (("with too few pods", early), ("that does not fit", large)):
            run.require(not waits.bound(run, [_key(pod) for pod in pods]), f"I13 pods of a group {name} were bound")
    finally:
        run.churn.pausing.clear()
        run.churn.delete_pods(*[_key(pod) for pods in groups for pod in pods])
        run.arena.delete("PodGroup", *{f"default/{_name(pod)}" for pods in groups for pod in pods})


def _group(run: Run, name: str, made: int, cpu: str = "50m") -> list[dict[str, Any]]:
    """Create a group, of which all or none are to be placed; so many of its pods, which are not created yet."""
    group = f"{name}-{run.seed}"
    manifest = group_manifest(f"default/{group}", min_count=SIZE, priority=PRIORITY)
    # Read with the gate DschedGangPlacement alone.
    manifest["metadata"]["annotations"] = {"dsched.io/preferred-topology": "zone"}
    run.arena.put("PodGroup", manifest)
    of = {"schedulingGroup": {"podGroupName": group}}
    found = [run.churn.pod(cpu=cpu, plain=True, priority=PRIORITY, **of) for _ in range(made)]
    for pod in found:
        pod["metadata"]["labels"] |= {KEPT: "yes"}
    return found


def _key(pod: dict[str, Any]) -> str:
    return f"default/{pod['metadata']['name']}"


def _name(pod: dict[str, Any]) -> str:
    return str(pod["spec"]["schedulingGroup"]["podGroupName"])


SCENARIO = Scenario(
    26,
    "The leader is killed while it places pod groups, or a binder while it binds their pods",
    "A group is placed whole, by the next leader where need be, or not at all",
    inject,
    options=("--feature-gates", "GenericWorkload=true"),
    goal_s=90.0,
)
