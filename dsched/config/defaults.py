"""Fills in what a decoded configuration leaves open.

Source: kubernetes v1.37 pkg/scheduler/apis/config/v1/defaults.go; component-base config/v1alpha1/defaults.go for leader
election.
"""

from collections.abc import Callable, Mapping

from dsched.config import plugins, schema
from dsched.config.decode import Wire
from dsched.config.durations import SECOND
from dsched.config.feature_gates import Features

DEFAULT_SCHEDULER_NAME = "default-scheduler"
ADAPTIVE_PERCENTAGE = 0


def apply(config: Wire, features: Features) -> None:
    """Complete a decoded configuration in place.

    ``percentageOfNodesToScore`` stays open, unlike upstream: `records` and `complete` tell an absent one from a zero.

    Source: ``SetDefaults_KubeSchedulerConfiguration``.
    """
    _fill(config, parallelism=16, podInitialBackoffSeconds=1, podMaxBackoffSeconds=10, enableProfiling=True)
    # Contention profiling follows profiling: left open without it, and an open one is off.
    _fill(config, enableContentionProfiling=config["enableProfiling"])
    if not config["profiles"]:
        config["profiles"] = [schema.zero(schema.profile(features.version))]
    if len(config["profiles"]) == 1:
        _fill(config["profiles"][0], schedulerName=DEFAULT_SCHEDULER_NAME)
    for profile in config["profiles"]:
        _profile(profile, features)
    _leader_election(config["leaderElection"])
    _replace_empty(config["clientConnection"], contentType="application/vnd.kubernetes.protobuf", qps=50, burst=100)


def _fill(target: Wire, **values: object) -> None:
    """Set the fields that are absent; an explicit zero stays."""
    target.update({key: value for key, value in values.items() if target[key] is None})


def _replace_empty(target: Wire, **values: object) -> None:
    """Set the fields that are absent, empty or zero."""
    target.update({key: value for key, value in values.items() if not target[key]})


def _leader_election(election: Wire) -> None:
    """Source: defaults.go, and ``RecommendedDefaultLeaderElectionConfiguration``."""
    _fill(election, leaderElect=True)
    _replace_empty(
        election,
        leaseDuration=15 * SECOND,
        renewDeadline=10 * SECOND,
        retryPeriod=2 * SECOND,
        resourceLock="leases",
        resourceNamespace="kube-system",
        resourceName="kube-scheduler",
    )


def _profile(profile: Wire, features: Features) -> None:
    """Merge the plugins, complete the arguments given, and add those of every other plugin that takes any.

    Source: ``setDefaults_KubeSchedulerProfile``.
    """
    known = schema.args(features.version)
    profile["plugins"] = plugins.merged(profile["plugins"], features)
    entries = list(profile["pluginConfig"] or ())
    given = {entry["name"] for entry in entries}
    for name in sorted(plugins.enabled_names(profile["plugins"]) & known.keys() - given):
        entries.append({"name": name, "args": schema.zero(known[name])})
    for entry in entries:
        if entry["name"] in known:
            entry["args"] |= {"apiVersion": schema.API_VERSION, "kind": known[entry["name"]].name}
            _ARGS.get(entry["name"], _nothing)(entry["args"], features)
    profile["pluginConfig"] = entries


def _nothing(args: Wire, features: Features) -> None:
    """There are no defaults."""


def _default_preemption(args: Wire, features: Features) -> None:
    """Source: ``SetDefaults_DefaultPreemptionArgs``."""
    _fill(args, minCandidateNodesPercentage=10, minCandidateNodesAbsolute=100)


def _inter_pod_affinity(args: Wire, features: Features) -> None:
    """Source: ``SetDefaults_InterPodAffinityArgs``."""
    _fill(args, hardPodAffinityWeight=1)


def _volume_binding(args: Wire, features: Features) -> None:
    """Source: ``SetDefaults_VolumeBindingArgs``."""
    _fill(args, bindTimeoutSeconds=600)
    if features.enabled("StorageCapacityScoring"):
        _replace_empty(args, shape=[{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}])


def _dynamic_resources(args: Wire, features: Features) -> None:
    """Source: ``SetDefaults_DynamicResourcesArgs``, feature DRASchedulerFilterTimeout on."""
    _fill(args, filterTimeout=10 * SECOND)
    if features.enabled("DRADeviceBindingConditions"):
        _fill(args, bindingTimeout=600 * SECOND)


def _pod_topology_spread(args: Wire, features: Features) -> None:
    """Source: ``SetDefaults_PodTopologySpreadArgs``."""
    _replace_empty(args, defaultingType="System")


def _balanced_allocation(args: Wire, features: Features) -> None:
    """Source: ``SetDefaults_NodeResourcesBalancedAllocationArgs``."""
    args["resources"] = _resources(args["resources"])


def _node_resources_fit(args: Wire, features: Features) -> None:
    """The strategy as a whole has a default type; one that is given without a type does not.

    Source: ``SetDefaults_NodeResourcesFitArgs``.
    """
    _fill(args, scoringStrategy={"type": "LeastAllocated", "resources": None, "requestedToCapacityRatio": None})
    args["scoringStrategy"]["resources"] = _resources(args["scoringStrategy"]["resources"])


def _resources(resources: list[Wire] | None) -> list[Wire]:
    if not resources:
        return [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    return [{"name": resource["name"], "weight": resource["weight"] or 1} for resource in resources]


_ARGS: Mapping[str, Callable[[Wire, Features], None]] = {
    "DefaultPreemption": _default_preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _node_resources_fit,
    "PodTopologySpread": _pod_topology_spread,
    "VolumeBinding": _volume_binding,
}
