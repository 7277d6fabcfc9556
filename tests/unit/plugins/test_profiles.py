"""Which configuration a file comes to, and which extension points a framework runs."""

from pathlib import Path

import pytest

from dsched import config
from dsched.config import Features
from dsched.config.feature_gates import DEFAULT
from dsched.emulation import NOTHING
from dsched.errors import ConfigError
from dsched.plugins import profiles, registry
from tests.unit.framework.frameworks import Handle
from tests.versions import V37, WITH_GROUPS, WITH_TOPOLOGY

POINTS = ("permit", "placementGenerate", "placementScore")


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (V37, [[], [], []]),
        (WITH_GROUPS, [["GangScheduling"], [], ["NodeResourcesFit"]]),
        (
            WITH_TOPOLOGY,
            [["GangScheduling"], ["TopologyPlacementGenerator"], ["NodeResourcesFit", "PodGroupPodsCount"]],
        ),
    ],
)
def test_points_about_pod_groups_are_run_with_their_gate(features: Features, expected: list[list[str]]) -> None:
    (profile,) = config.default(features).profiles
    framework = profiles.framework(profile, registry.intree(), Handle())
    assert [[plugin.name for plugin in framework.at(point)] for point in POINTS] == expected


def test_a_file_is_good_if_it_is_for_any_version(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    shape = "[{utilization: 0, score: 0}, {utilization: 100, score: 10}]"
    args = f"profiles: [{{pluginConfig: [{{name: VolumeBinding, args: {{shape: {shape}}}}}]}}]\n"
    file.write_text(head + args)
    possible = NOTHING.possible(on_kubernetes=True)
    assert possible[0] == DEFAULT
    found = profiles.first_accepted(file, registry.intree(), possible)
    assert found.features.enabled("StorageCapacityScoring")
    file.write_text(head + "percentageOfNodesToScore: 200\n")
    with pytest.raises(ConfigError, match="percentageOfNodesToScore"):
        profiles.first_accepted(file, registry.intree(), possible)
