"""What the configuration is in each version."""

import pytest

from dsched import config
from dsched.config import Features, ShapePoint
from dsched.config.feature_gates import UNSAID
from dsched.config.plugins import intree
from dsched.errors import ConfigError
from tests.unit.config.files import file, names, with_args, with_plugins
from tests.versions import V34, V35, V36, V37, WITH_GROUPS, WITH_TOPOLOGY, with_gates

VERSIONS = (V34, V35, V36, V37)


def filters(features: Features) -> list[str]:
    return names(config.default(features), "filter")


def test_node_name_goes_first_since_1_37() -> None:
    assert [filters(features)[:2] for features in (V36, V37)] == [
        ["NodeUnschedulable", "NodeName"],
        ["NodeName", "NodeUnschedulable"],
    ]


def test_node_declared_features_comes_last_with_its_gate() -> None:
    assert [filters(features)[-1] == "NodeDeclaredFeatures" for features in VERSIONS] == [False, False, True, True]
    assert filters(with_gates(V36, NodeDeclaredFeatures=False)) == filters(V35)
    assert filters(with_gates(V35, NodeDeclaredFeatures=True))[-1] == "NodeDeclaredFeatures"


def test_node_name_has_a_pre_filter_since_1_37() -> None:
    found = ["NodeName" in names(config.default(features), "preFilter") for features in VERSIONS]
    assert found == [False, False, False, True]


@pytest.mark.parametrize(
    ("point", "since"), [("placementGenerate", V36), ("placementScore", V36), ("podGroupPostFilter", V37)]
)
def test_points_about_pod_groups_are_known_since(point: str, since: Features) -> None:
    text = with_plugins(**{point: {"disabled": [("*", 0)]}})
    for features in VERSIONS:
        if features.version >= since.version:
            config.load(text, features=features)
        else:
            with pytest.raises(ConfigError, match=f'unknown field "{point}"'):
                config.load(text, features=features)


def test_gangs_come_last_with_their_gate_and_placements_after_them() -> None:
    assert names(config.default(V37), "permit") == []
    for features in (WITH_GROUPS, WITH_TOPOLOGY):
        assert names(config.default(features), "permit") == ["GangScheduling"]
        assert names(config.default(features), "preEnqueue")[-1] == "GangScheduling"
    assert names(config.default(WITH_GROUPS), "placementGenerate") == []
    (profile,) = config.default(WITH_TOPOLOGY).profiles
    assert [ref.name for ref in profile.plugins["placementGenerate"]] == ["TopologyPlacementGenerator"]
    weights = [(ref.name, ref.weight) for ref in profile.plugins["placementScore"]]
    assert weights == [("NodeResourcesFit", 1), ("PodGroupPodsCount", 1)]


def test_placements_are_scored_with_the_weights_of_the_file() -> None:
    text = with_plugins(multiPoint={"enabled": [("PodGroupPodsCount", 3)]}, placementScore={"disabled": ["NodeName"]})
    (profile,) = config.load(text, features=WITH_TOPOLOGY).profiles
    weights = [(ref.name, ref.weight) for ref in profile.plugins["placementScore"]]
    assert weights == [("NodeResourcesFit", 1), ("PodGroupPodsCount", 3)]


def test_one_plugin_generates_placements() -> None:
    text = with_plugins(placementGenerate={"enabled": ["TopologyPlacementGenerator", "Other"]})
    known = {**intree(V37.version), "Other": frozenset({"placementGenerate"})}
    with pytest.raises(ConfigError, match="at most one placement generate plugin is allowed"):
        config.load(text, features=WITH_TOPOLOGY, plugins=known)


def test_shapes_of_volume_binding_need_their_gate() -> None:
    text = with_args("VolumeBinding", shape=[{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}])
    with pytest.raises(ConfigError, match="turn on the feature gate StorageCapacityScoring"):
        config.load(text, features=V36)
    (profile,) = config.load(text, features=V37).profiles
    assert profile.args["VolumeBinding"].shape == (ShapePoint(0, 0), ShapePoint(100, 10))
    (profile,) = config.default(V37).profiles
    assert profile.args["VolumeBinding"].shape == (ShapePoint(0, 10), ShapePoint(100, 0))
    with pytest.raises(ConfigError, match="sorted in increasing order"):
        config.load(with_args("VolumeBinding", shape=[{"utilization": 9}, {"utilization": 1}]), features=V37)


def test_binding_timeout_of_dynamic_resources() -> None:
    text = with_args("DynamicResources", bindingTimeout="5s")
    with pytest.raises(ConfigError, match='unknown field "bindingTimeout"'):
        config.load(text, features=V34)
    with pytest.raises(ConfigError, match="DRADeviceBindingConditions"):
        config.load(text, features=V35)
    config.load(text, features=V36)
    with pytest.raises(ConfigError, match="must be at least 1 second"):
        config.load(with_args("DynamicResources", bindingTimeout="5ms"), features=V36)


def test_a_ratio_of_another_strategy_is_forbidden_since_1_36() -> None:
    ratio = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
    text = with_args("NodeResourcesFit", scoringStrategy={"type": "MostAllocated", "requestedToCapacityRatio": ratio})
    config.load(text, features=V35)
    for features in (V36, V37):
        with pytest.raises(ConfigError) as refusal:
            config.load(text, features=features)
        assert "scoringStrategy.requestedToCapacityRatio: " in refusal.value.errors[0]


def test_the_path_of_a_shape_is_whole_since_1_36() -> None:
    strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": []}}
    paths = []
    for features in (V35, V36):
        with pytest.raises(ConfigError) as refusal:
            config.load(with_args("NodeResourcesFit", scoringStrategy=strategy), features=features)
        paths.append(refusal.value.errors[0].partition(": ")[0].rpartition("args.")[2])
    assert paths == ["scoringStrategy.shape", "scoringStrategy.requestedToCapacityRatio.shape"]


def test_gang_scheduling_reserves_in_1_35_alone() -> None:
    assert ["reserve" in intree(features.version).get("GangScheduling", ()) for features in VERSIONS] == [
        False,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("features", VERSIONS)
def test_no_plugin_follows_weights_below_zero(features: Features) -> None:
    """They are said to overflow."""
    with pytest.raises(ConfigError, match="total score of Score plugins could overflow") as refusal:
        config.load(with_plugins(score={"enabled": [("VolumeBinding", -1)]}), features=features)
    assert (refusal.value.stage, refusal.value.plugin) == ("profile", None)
    first = [("TaintToleration", 3), ("VolumeBinding", -1)]
    config.load(with_plugins(score={"enabled": first}), features=features)


def test_version_and_gates_are_part_of_the_hash() -> None:
    gated = with_gates(V37, StorageCapacityScoring=False)
    hashes = {config.load(file(), features=features).hash for features in (*VERSIONS, gated)}
    assert len(hashes) == 5
    assert config.load(file(), features=UNSAID).hash == config.load(file()).hash
