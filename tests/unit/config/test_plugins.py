"""Merging into the default plugins; cases as in upstream's TestMergePlugins."""

from typing import Any

from dsched import config
from dsched.config import feature_gates
from dsched.config.feature_gates import OLDEST
from tests.unit.config.files import names, with_plugins


def multi_point(**sets: Any) -> list[tuple[str, int]]:
    (profile,) = config.completed(config.load(with_plugins(multiPoint=sets)))["profiles"]
    return [(plugin["name"], plugin["weight"]) for plugin in profile["plugins"]["multiPoint"]["enabled"]]


DEFAULT = multi_point()


def test_the_default_plugins():
    assert DEFAULT == [
        ("SchedulingGates", 0),
        ("PrioritySort", 0),
        ("NodeUnschedulable", 0),
        ("NodeName", 0),
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodePorts", 0),
        ("NodeResourcesFit", 1),
        ("VolumeRestrictions", 0),
        ("NodeVolumeLimits", 0),
        ("VolumeBinding", 0),
        ("VolumeZone", 0),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DefaultPreemption", 0),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
        ("DefaultBinder", 0),
    ]


def test_a_default_plugin_that_is_enabled_anew_keeps_its_place():
    assert multi_point(enabled=[("NodeAffinity", 9)]) == [
        (name, 9 if name == "NodeAffinity" else weight) for name, weight in DEFAULT
    ]


def test_one_that_is_enabled_without_weight_loses_the_default_one():
    assert ("NodeAffinity", 0) in multi_point(enabled=["NodeAffinity"])


def test_disabling_applies_to_the_defaults_only():
    enabled = multi_point(disabled=["NodeAffinity", "Unheard"], enabled=[("NodeAffinity", 5)])
    assert enabled == [plugin for plugin in DEFAULT if plugin[0] != "NodeAffinity"] + [("NodeAffinity", 5)]


def test_disabling_all_leaves_what_is_enabled():
    kept = ["PrioritySort", "DefaultBinder"]
    assert multi_point(disabled=["*"], enabled=kept) == [("PrioritySort", 0), ("DefaultBinder", 0)]


def test_dynamic_resources_is_a_default_of_1_34_unless_its_gate_is_off():
    """A default of every later version, which lock the gate."""
    on, off = (feature_gates.features(OLDEST, {"DynamicResourceAllocation": on}) for on in (True, False))
    found = names(config.default(on), "filter")
    place = found.index("DynamicResources")
    assert found[place - 1] == "InterPodAffinity"
    assert found[:place] + found[place + 1 :] == names(config.default(off), "filter")


def test_disabled_plugins_are_shown_without_weights():
    (profile,) = config.completed(config.load(with_plugins(score={"disabled": [("ImageLocality", 7)]})))["profiles"]
    assert profile["plugins"]["score"] == {"disabled": [{"name": "ImageLocality", "weight": 0}]}
    assert profile["plugins"]["bind"] == {}
