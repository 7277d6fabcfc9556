"""Which extension points a framework runs."""

import pytest

from dsched import config
from dsched.config import Features
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
