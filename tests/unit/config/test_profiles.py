"""Which plugins run where; cases as in upstream's TestNewFrameworkMultiPointExpansion."""

import pytest

from dsched import config
from dsched.config.feature_gates import OLDEST
from dsched.config.plugins import intree
from tests.unit.config.files import file, names, plugin_sets, refusal, with_plugins

KNOWN = {
    **intree(OLDEST),
    "Mine": frozenset({"filter", "score"}),
    "OtherSort": frozenset({"queueSort"}),
}


def order(point: str, **points: object) -> list[str]:
    return names(config.load(with_plugins(**points), plugins=KNOWN), point)


def test_default_order_at_every_extension_point():
    loaded = config.default()
    assert {point: names(loaded, point) for point in config.EXTENSION_POINTS} == {
        "preEnqueue": ["SchedulingGates", "DefaultPreemption"],
        "queueSort": ["PrioritySort"],
        "preFilter": [
            "NodeAffinity",
            "NodePorts",
            "NodeResourcesFit",
            "VolumeRestrictions",
            "NodeVolumeLimits",
            "VolumeBinding",
            "VolumeZone",
            "PodTopologySpread",
            "InterPodAffinity",
        ],
        "filter": [
            "NodeUnschedulable",
            "NodeName",
            "TaintToleration",
            "NodeAffinity",
            "NodePorts",
            "NodeResourcesFit",
            "VolumeRestrictions",
            "NodeVolumeLimits",
            "VolumeBinding",
            "VolumeZone",
            "PodTopologySpread",
            "InterPodAffinity",
        ],
        "postFilter": ["DefaultPreemption"],
        "preScore": [
            "TaintToleration",
            "NodeAffinity",
            "NodeResourcesFit",
            "VolumeBinding",
            "PodTopologySpread",
            "InterPodAffinity",
            "NodeResourcesBalancedAllocation",
        ],
        "score": [
            "TaintToleration",
            "NodeAffinity",
            "NodeResourcesFit",
            "VolumeBinding",
            "PodTopologySpread",
            "InterPodAffinity",
            "NodeResourcesBalancedAllocation",
            "ImageLocality",
        ],
        "reserve": ["VolumeBinding"],
        "permit": [],
        "preBind": ["VolumeBinding"],
        "bind": ["DefaultBinder"],
        "postBind": [],
    }


def test_a_plugin_of_multi_point_runs_where_it_serves():
    assert order("filter", multiPoint={"enabled": ["Mine"]})[-1] == "Mine"
    assert order("score", multiPoint={"enabled": ["Mine"]})[-1] == "Mine"
    assert "Mine" not in order("bind", multiPoint={"enabled": ["Mine"]})


def test_plugins_named_at_the_extension_point_that_multi_point_has_too_come_first_then_multi_point_then_the_rest():
    found = order("score", score={"enabled": ["Mine", "ImageLocality", "NodeAffinity"]})
    assert (found[:3], found[-1]) == (["ImageLocality", "NodeAffinity", "TaintToleration"], "Mine")


def test_disabled_at_the_extension_point_keeps_multi_point_out():
    assert order("score", score={"disabled": ["*"], "enabled": ["ImageLocality"]}) == ["ImageLocality"]
    assert "NodeAffinity" not in order("score", score={"disabled": ["NodeAffinity"]})
    assert "NodeAffinity" in order("filter", score={"disabled": ["NodeAffinity"]})


def test_a_plugin_both_enabled_and_disabled_at_an_extension_point_runs_last():
    both = {"enabled": ["NodeAffinity"], "disabled": ["NodeAffinity"]}
    assert order("score", score=both)[-1] == "NodeAffinity"


def test_weights():
    text = with_plugins(
        multiPoint={"enabled": [("ImageLocality", 4), ("NodeAffinity", 0), ("Mine", -2)]},
        score={"enabled": [("TaintToleration", 7), ("NodeResourcesFit", 0)]},
    )
    (profile,) = config.load(text, plugins=KNOWN).profiles
    weights = {ref.name: ref.weight for ref in profile.plugins["score"]}
    assert weights == {
        "TaintToleration": 7,
        "NodeResourcesFit": 1,  # zero at score stands for one, and multiPoint is not asked again
        "NodeAffinity": 1,
        "ImageLocality": 4,
        "Mine": -2,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "NodeResourcesBalancedAllocation": 1,
    }
    assert {ref.weight for ref in profile.plugins["filter"]} == {0}


@pytest.mark.parametrize(
    ("points", "plugin", "what"),
    [
        ({"filter": {"enabled": ["Nope"]}}, "Nope", 'FilterPlugin "Nope" does not exist'),
        ({"multiPoint": {"enabled": ["Nope"]}}, "Nope", 'PreFilterPlugin "Nope" does not exist'),
        ({"score": {"enabled": ["NodeName"]}}, "NodeName", 'plugin "NodeName" does not extend ScorePlugin plugin'),
        ({"filter": {"enabled": ["Mine", "Mine"]}}, "Mine", 'plugin "Mine" already registered as "FilterPlugin"'),
        ({"multiPoint": {"enabled": ["Mine", "Mine"]}}, "Mine", 'plugin "Mine" already registered as "FilterPlugin"'),
        (
            {"multiPoint": {"enabled": ["NodeAffinity", "NodeAffinity"]}},
            "NodeAffinity",
            'plugin "NodeAffinity" already registered as "PreFilterPlugin"',
        ),
        ({"queueSort": {"disabled": ["*"]}}, None, "only one queue sort plugin required"),
        ({"multiPoint": {"enabled": ["OtherSort"]}}, None, "only one queue sort plugin required"),
        ({"bind": {"disabled": ["DefaultBinder"]}}, None, "at least one bind plugin is needed"),
        ({"multiPoint": {"disabled": ["*"]}}, None, "only one queue sort plugin required"),
        # The first extension point in the order of building counts, not the first in the file.
        ({"preEnqueue": {"enabled": ["Nope"]}, "bind": {"enabled": ["Mine"]}}, "Mine", "BindPlugin"),
    ],
)
def test_profiles_that_cannot_be_built(points: dict[str, object], plugin: str | None, what: str):
    error = refusal(with_plugins(**points), plugins=KNOWN)
    assert error is not None
    assert (error.stage, error.profile, error.plugin) == ("profile", "default-scheduler", plugin)
    assert what in str(error)
    assert error.errors[0].startswith("profiles[0].plugins.")


def test_an_unknown_plugin_may_be_disabled_and_configured():
    text = file(
        profiles=[
            {"plugins": plugin_sets(score={"disabled": ["Nope"]}), "pluginConfig": [{"name": "Nope", "args": {"a": 1}}]}
        ]
    )
    assert config.load(text).profiles[0].args["Nope"] == {"a": 1}


def test_profiles_have_to_sort_the_queue_alike():
    other = plugin_sets(multiPoint={"disabled": ["PrioritySort"], "enabled": ["OtherSort"]})
    error = refusal(file(profiles=[{"schedulerName": "a"}, {"schedulerName": "b", "plugins": other}]), plugins=KNOWN)
    assert error is not None
    assert (error.stage, error.profile, error.plugin) == ("profile", "b", "OtherSort")


def test_profiles_have_to_give_the_queue_sort_plugin_the_same_arguments():
    sort_args = [{"name": "PrioritySort", "args": {"x": 1}}]
    error = refusal(file(profiles=[{"schedulerName": "a"}, {"schedulerName": "b", "pluginConfig": sort_args}]))
    assert error is not None
    assert (error.stage, error.profile) == ("profile", "b")
    assert refusal(file(profiles=[{"schedulerName": name, "pluginConfig": sort_args} for name in "ab"])) is None


def test_arguments_of_node_resources_fit_count_when_the_plugin_runs():
    bad = [{"name": "NodeResourcesFit", "args": {"ignoredResourceGroups": ["example.com/foo"]}}]
    error = refusal(file(profiles=[{"schedulerName": "batch", "pluginConfig": bad}]))
    assert error is not None
    assert (error.stage, error.profile, error.plugin) == ("profile", "batch", "NodeResourcesFit")
    assert error.errors[0].startswith("profiles[0].pluginConfig[0].args.ignoredResourceGroups[0]: Invalid value")
    without = plugin_sets(multiPoint={"disabled": ["NodeResourcesFit"]})
    assert refusal(file(profiles=[{"plugins": without, "pluginConfig": bad}])) is None
