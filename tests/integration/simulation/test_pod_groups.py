"""A simulation of pod groups comes to what a leader comes to."""

from pathlib import Path
from typing import Any

from dsched import config
from dsched.framework.interface import Registry
from dsched.plugins import registry
from dsched.simulation.from_manifests import given
from dsched.simulation.placing import simulate
from tests.integration.leader.conftest import rig
from tests.integration.leader.rig import Rig
from tests.manifests import group_manifest, loaded, node_manifest, pod_manifest
from tests.unit.scheduler.grouped import features

__all__ = ["rig"]

RACK = "example.com/rack"
PLUGINS: Registry = registry.intree()


def members(group: str, count: int, cpu: str, priority: int) -> list[dict[str, Any]]:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    of_group: dict[str, Any] = {"schedulingGroup": {"podGroupName": group}, "priority": priority}
    return [
        pod_manifest(f"default/{group}-{number}", uid=f"{group}-{number}", containers=containers, **of_group)
        for number in range(count)
    ]


def test_a_leader_and_a_simulation_of_the_same_groups_agree(rig: Rig, tmp_path: Path) -> None:
    """One gang fits in one rack only, one is elastic and gets what is left, one is too large, one waits for pods."""
    rig.configuration = config.default(features(topology=True))
    racks = {"a": 1, "b": 2, "c": 1}
    topology = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
    objects = [
        *(node_manifest(f"{rack}{n}", labels={RACK: rack}) for rack, size in racks.items() for n in range(size)),
        group_manifest("default/first", 4, priority=9, **topology),
        group_manifest("default/elastic", 1, priority=5),
        group_manifest("default/large", 9, priority=3),
        group_manifest("default/few", 3),
        *members("first", 4, "2", 9),
        *members("elastic", 6, "2", 5),
        *members("large", 9, "1", 3),
        *members("few", 2, "1", 0),
    ]
    simulated = simulate(rig.configuration, PLUGINS, given(loaded(tmp_path, *objects), 0), 0)
    rig.apply(*objects)
    rig.lead().run()
    led = {pod.key: rig.node_of(pod.key) or "" for pod in simulated.pods}
    assert {pod.key: bool(pod.node) for pod in simulated.pods} == {key: bool(node) for key, node in led.items()}
    assert {led[f"default/first-{n}"] for n in range(4)} == {"b0", "b1"}
    assert {pod.node for pod in simulated.pods if pod.key.startswith("default/first-")} == {"b0", "b1"}
    assert [(group.key, group.ending, group.placed) for group in simulated.groups] == [
        ("default/first", "scheduled", 4),
        ("default/elastic", "unschedulable", 4),
        ("default/large", "unschedulable", 0),
        ("default/few", "gated", 0),
    ]
