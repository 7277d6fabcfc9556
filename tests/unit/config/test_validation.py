from typing import Any

import pytest

from tests.unit.config.files import file, paths, plugin_sets, refusal


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ({"parallelism": 0}, ["parallelism"]),
        ({"percentageOfNodesToScore": 101}, ["percentageOfNodesToScore"]),
        ({"percentageOfNodesToScore": -1}, ["percentageOfNodesToScore"]),
        ({"podInitialBackoffSeconds": 0}, ["podInitialBackoffSeconds"]),
        ({"podInitialBackoffSeconds": 11}, ["podMaxBackoffSeconds"]),
        (
            {"podInitialBackoffSeconds": 0, "podMaxBackoffSeconds": -1},
            ["podInitialBackoffSeconds", "podMaxBackoffSeconds"],
        ),
        ({"clientConnection": {"burst": -1}}, ["clientConnection.burst"]),
        ({"profiles": [{"schedulerName": ""}]}, ["profiles[0].schedulerName"]),
        ({"profiles": [{"percentageOfNodesToScore": 200}]}, ["profiles[0].percentageOfNodesToScore"]),
        ({"profiles": [{}, {}]}, ["profiles[0].schedulerName", *["profiles[1].schedulerName"] * 2]),
        ({"profiles": [{"schedulerName": "a"}] * 3}, ["profiles[1].schedulerName", "profiles[2].schedulerName"]),
    ],
)
def test_settings(fields: dict[str, Any], at: list[str]):
    assert paths(file(**fields)) == ["validation", *at]


@pytest.mark.parametrize(
    ("election", "at"),
    [
        ({"leaseDuration": "10s"}, ["leaseDuration"]),
        ({"leaseDuration": "-1s"}, ["leaseDuration"] * 2),
        ({"renewDeadline": "-1s"}, ["renewDeadline"]),
        ({"retryPeriod": "-1s"}, ["retryPeriod"]),
        ({"resourceLock": "endpoints"}, ["resourceLock"]),
        ({"leaderElect": False, "leaseDuration": "-1s", "resourceLock": "endpoints"}, []),
        ({"renewDeadline": "1s", "retryPeriod": "5s"}, []),
    ],
)
def test_leader_election(election: dict[str, Any], at: list[str]):
    expected = ["validation", *(f"leaderElection.{key}" for key in at)] if at else []
    assert paths(file(leaderElection=election)) == expected


@pytest.mark.parametrize(
    ("extenders", "at"),
    [
        ([{"urlPrefix": "::bad", "prioritizeVerb": "p", "weight": 1, "bindVerb": "b"}], []),
        ([{"weight": -1}], []),
        ([{"prioritizeVerb": "p"}], ["extenders[0].weight"]),
        ([{"bindVerb": "b"}, {}, {"bindVerb": "b"}], ["extenders"]),
        ([{"managedResources": [{"name": "cpu"}]}], ["extenders[0].managedResources[0].name"]),
        ([{"managedResources": [{"name": ""}]}], ["extenders[0].managedResources[0].name"] * 2),
        (
            [{"managedResources": [{"name": "example.com/a"}]}, {"managedResources": [{"name": "example.com/a"}]}],
            ["extenders[1].managedResources[0].name"],
        ),
        (
            [{"managedResources": [{"name": "bad name"}] * 2}],
            ["extenders[0].managedResources[0].name", *["extenders[0].managedResources[1].name"] * 2],
        ),
    ],
)
def test_extenders(extenders: list[dict[str, Any]], at: list[str]):
    assert paths(file(extenders=extenders)) == (["validation", *at] if at else [])


def test_plugins_of_former_versions():
    sets = plugin_sets(filter={"enabled": ["NodeName", "EBSLimits"]}, multiPoint={"enabled": ["GCEPDLimits"]})
    text = file(profiles=[{"plugins": sets, "pluginConfig": [{"name": "CinderLimits"}]}])
    assert paths(text) == ["validation", "profiles[0].pluginConfig[0]", "profiles[0].plugins.filter.enabled[1]"]
    only_multi_point = refusal(file(profiles=[{"plugins": plugin_sets(multiPoint={"enabled": ["GCEPDLimits"]})}]))
    assert only_multi_point is not None
    assert (only_multi_point.stage, only_multi_point.plugin) == ("profile", "GCEPDLimits")


def test_each_plugin_is_configured_once_and_checked_each_time():
    bad = {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": -1}}
    assert paths(file(profiles=[{"pluginConfig": [bad, bad]}])) == [
        "validation",
        "profiles[0].pluginConfig[0].args.bindTimeoutSeconds",
        "profiles[0].pluginConfig[1]",
        "profiles[0].pluginConfig[1].args.bindTimeoutSeconds",
    ]


def profiles(*queue_sorts: dict[str, Any]) -> str:
    return file(
        profiles=[
            {"schedulerName": f"p{position}", "plugins": plugin_sets(queueSort=queue_sort)}
            for position, queue_sort in enumerate(queue_sorts)
        ]
    )


def test_queue_sort_is_the_same_in_all_profiles():
    assert paths(profiles({"enabled": ["PrioritySort"]}, {"enabled": [("PrioritySort", 0)], "disabled": []})) == []
    assert paths(profiles({}, {"disabled": ["*"]}, {})) == ["validation", "profiles[1].plugins.queueSort"]
    assert paths(profiles({"enabled": ["A", "B"]}, {"enabled": ["A"]})) == [
        "validation",
        "profiles[0].plugins.queueSort.Enabled",
        "profiles[1].plugins.queueSort",
    ]


def test_arguments_of_the_queue_sort_plugin_are_the_same_in_all_profiles():
    sets = plugin_sets(queueSort={"enabled": ["PrioritySort"]})
    first = {"schedulerName": "a", "plugins": sets, "pluginConfig": [{"name": "PrioritySort", "args": {"x": 1}}]}
    second = first | {"schedulerName": "b"}
    assert paths(file(profiles=[first, second])) == []
    second = second | {"pluginConfig": [{"name": "PrioritySort", "args": {"x": 2}}]}
    assert paths(file(profiles=[first, second])) == ["validation", "profiles[1].pluginConfig.args"]


def test_errors_are_worded_as_upstream_words_them():
    error = refusal(file(parallelism=-3, leaderElection={"leaseDuration": "10s"}))
    assert error is not None
    assert error.errors == (
        'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
        "parallelism: Invalid value: -3: should be an integer value greater than zero",
    )
