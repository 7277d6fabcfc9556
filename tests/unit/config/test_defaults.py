from typing import Any

import pytest

from dsched import config
from dsched.errors import ConfigError
from tests.unit.config.files import file, with_args


def completed(**fields: Any) -> dict[str, Any]:
    return config.completed(config.load(file(**fields)))


def args(plugin: str, **given: Any) -> dict[str, Any]:
    (profile,) = config.completed(config.load(with_args(plugin, **given)))["profiles"]
    found: dict[str, Any] = next(entry["args"] for entry in profile["pluginConfig"] if entry["name"] == plugin)
    return {key: value for key, value in found.items() if key not in ("apiVersion", "kind")}


def test_no_file():
    loaded = config.default()
    assert (loaded.parallelism, loaded.pod_initial_backoff_seconds, loaded.pod_max_backoff_seconds) == (16, 1, 10)
    assert (loaded.enable_profiling, loaded.enable_contention_profiling) == (True, True)
    assert [profile.scheduler_name for profile in loaded.profiles] == ["default-scheduler"]
    assert loaded.leader_election == config.LeaderElection(True, 15, 10, 2, "leases", "kube-scheduler", "kube-system")
    assert loaded.client_connection == config.ClientConnection("", "", "application/vnd.kubernetes.protobuf", 50, 100)
    assert loaded.extenders == ()


def test_empty_settings_of_leader_election_and_connection_are_absent_ones():
    election = {
        "leaderElect": False,
        "leaseDuration": "0s",
        "renewDeadline": "4s",
        "resourceLock": "",
    }
    assert completed(leaderElection=election)["leaderElection"] == {
        "leaderElect": False,
        "leaseDuration": "15s",
        "renewDeadline": "4s",
        "retryPeriod": "2s",
        "resourceLock": "leases",
        "resourceName": "kube-scheduler",
        "resourceNamespace": "kube-system",
    }
    connection = completed(clientConnection={"qps": 0, "burst": 0, "contentType": ""})["clientConnection"]
    assert (connection["qps"], connection["burst"]) == (50, 100)
    assert completed(clientConnection={"qps": -1, "burst": 7})["clientConnection"]["qps"] == -1
    assert completed(clientConnection={"qps": 2147483648})["clientConnection"]["qps"] == 2147483600  # a float32


def test_contention_profiling_follows_profiling():
    shown = completed(enableProfiling=False)
    assert (shown["enableProfiling"], shown["enableContentionProfiling"]) == (False, False)
    assert completed(enableProfiling=False, enableContentionProfiling=True)["enableContentionProfiling"] is True
    assert completed(enableContentionProfiling=False)["enableContentionProfiling"] is False


def test_only_a_single_profile_gets_a_name():
    assert completed(profiles=[{}])["profiles"][0]["schedulerName"] == "default-scheduler"
    with pytest.raises(ConfigError, match=r"profiles\[1\].schedulerName: Required"):
        completed(profiles=[{"schedulerName": "a"}, {}])


def test_arguments_of_every_plugin_that_a_profile_runs_are_there():
    (profile,) = completed()["profiles"]
    assert [entry["name"] for entry in profile["pluginConfig"]] == [
        "DefaultPreemption",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
        "VolumeBinding",
    ]


def test_arguments_given_come_first_and_in_their_order():
    given = [{"name": "VolumeBinding"}, {"name": "Mine", "args": {"x": 1.5}}, {"name": "Empty"}]
    (profile,) = completed(profiles=[{"pluginConfig": given}])["profiles"]
    assert [entry["name"] for entry in profile["pluginConfig"]][:4] == [
        "VolumeBinding",
        "Mine",
        "Empty",
        "DefaultPreemption",
    ]
    assert [entry["args"] for entry in profile["pluginConfig"]][1:3] == [{"x": 1.5}, None]


CPU_AND_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]


@pytest.mark.parametrize(
    ("plugin", "given", "expected"),
    [
        ("DefaultPreemption", {}, {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100}),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0},
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 100},
        ),
        ("DynamicResources", {}, {"filterTimeout": "10s"}),
        ("DynamicResources", {"filterTimeout": "0s"}, {"filterTimeout": "0s"}),
        ("InterPodAffinity", {}, {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False}),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 0},
            {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": False},
        ),
        ("NodeAffinity", {}, {}),
        ("NodeAffinity", {"addedAffinity": {}}, {"addedAffinity": {}}),
        (
            "NodeAffinity",
            {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}},
            {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": None}}},
        ),
        ("NodeResourcesBalancedAllocation", {"resources": []}, {"resources": CPU_AND_MEMORY}),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "x"}, {"name": "y", "weight": 0}]},
            {"resources": [{"name": "x", "weight": 1}, {"name": "y", "weight": 1}]},
        ),
        ("NodeResourcesFit", {}, {"scoringStrategy": {"type": "LeastAllocated", "resources": CPU_AND_MEMORY}}),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "x", "weight": 0}]}},
            {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "x", "weight": 1}]}},
        ),
        ("PodTopologySpread", {}, {"defaultingType": "System"}),
        ("PodTopologySpread", {"defaultingType": "", "defaultConstraints": []}, {"defaultingType": "System"}),
        ("VolumeBinding", {}, {"bindTimeoutSeconds": 600}),
        ("VolumeBinding", {"bindTimeoutSeconds": 0}, {"bindTimeoutSeconds": 0}),
    ],
)
def test_arguments(plugin: str, given: dict[str, Any], expected: dict[str, Any]):
    assert args(plugin, **given) == expected


def test_a_percentage_that_nothing_set_is_every_node_and_shows_as_upstreams_default():
    profiles = [{"schedulerName": "a"}, {"schedulerName": "b", "percentageOfNodesToScore": 30}]
    loaded = config.load(file(profiles=profiles))
    assert loaded.percentage_of_nodes_to_score is None
    assert [profile.effective_percentage(loaded) for profile in loaded.profiles] == [100, 30]
    assert config.completed(loaded)["percentageOfNodesToScore"] == 0


@pytest.mark.parametrize(("whole", "own", "effective"), [(0, None, 0), (50, None, 50), (50, 0, 0), (None, 0, 0)])
def test_a_profiles_percentage_goes_first_and_zero_is_adaptive(whole: int | None, own: int | None, effective: int):
    loaded = config.load(file(percentageOfNodesToScore=whole, profiles=[{"percentageOfNodesToScore": own}]))
    assert loaded.profiles[0].effective_percentage(loaded) == effective
