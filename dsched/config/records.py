"""Completed dicts to the records of `types`."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from dsched.config import complete, types
from dsched.config.decode import Wire
from dsched.config.durations import SECOND
from dsched.config.feature_gates import Features
from dsched.config.profiles import Points

_DEFAULT_EXTENDER_TIMEOUT_SECONDS = 5.0


def configuration(config: Wire, points: Sequence[Points], features: Features) -> types.SchedulerConfiguration:
    """The record of a completed configuration and the plugins of its profiles, one `Points` each."""
    extenders = [_extender(extender) for extender in config["extenders"] or ()]
    ignored = tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    pairs = zip(config["profiles"], points, strict=True)
    return types.SchedulerConfiguration(
        parallelism=config["parallelism"],
        leader_election=_leader_election(config["leaderElection"]),
        client_connection=_client_connection(config["clientConnection"]),
        enable_profiling=config["enableProfiling"],
        enable_contention_profiling=config["enableContentionProfiling"],
        percentage_of_nodes_to_score=config["percentageOfNodesToScore"],
        pod_initial_backoff_seconds=config["podInitialBackoffSeconds"],
        pod_max_backoff_seconds=config["podMaxBackoffSeconds"],
        profiles=tuple(_profile(profile, plugins, ignored, features) for profile, plugins in pairs),
        extenders=tuple(sorted(extenders, key=lambda extender: extender.ignorable)),
        delay_cache_until_active=config["delayCacheUntilActive"],
        document=json.dumps(complete.document(config, features.version), sort_keys=True, separators=(",", ":")),
        features=features,
    )


def _profile(profile: Wire, plugins: Points, ignored: tuple[str, ...], features: Features) -> types.Profile:
    args = {entry["name"]: _args(entry["name"], entry["args"]) for entry in profile["pluginConfig"]}
    return types.Profile(
        scheduler_name=profile["schedulerName"],
        percentage_of_nodes_to_score=profile["percentageOfNodesToScore"],
        plugins=MappingProxyType(plugins),
        args=MappingProxyType({name: _ignoring(value, ignored) for name, value in args.items()}),
        features=features,
    )


def _ignoring(args: types.PluginArgs, ignored: tuple[str, ...]) -> types.PluginArgs:
    """Resources that extenders manage alone take the place of the ignored ones of the file.

    Source: kubernetes v1.34 pkg/scheduler/scheduler.go ``buildExtenders``.
    """
    if ignored and isinstance(args, types.NodeResourcesFitArgs):
        return replace(args, ignored_resources=ignored)
    return args


def _args(plugin: str, args: Any) -> types.PluginArgs:
    if plugin in _ARGS:
        return _ARGS[plugin](args)
    return args if isinstance(args, dict) else {} if args is None else {"args": args}


def _default_preemption(args: Wire) -> types.DefaultPreemptionArgs:
    return types.DefaultPreemptionArgs(args["minCandidateNodesPercentage"], args["minCandidateNodesAbsolute"])


def _dynamic_resources(args: Wire) -> types.DynamicResourcesArgs:
    binding = args.get("bindingTimeout") or 600 * SECOND  # before v1.36 there is none
    return types.DynamicResourcesArgs(args["filterTimeout"] / SECOND, binding / SECOND)


def _inter_pod_affinity(args: Wire) -> types.InterPodAffinityArgs:
    return types.InterPodAffinityArgs(args["hardPodAffinityWeight"], args["ignorePreferredTermsOfExistingPods"])


def _node_affinity(args: Wire) -> types.NodeAffinityArgs:
    return types.NodeAffinityArgs(complete.args("NodeAffinity", args).get("addedAffinity"))


def _balanced_allocation(args: Wire) -> types.NodeResourcesBalancedAllocationArgs:
    return types.NodeResourcesBalancedAllocationArgs(_resources(args["resources"]))


def _node_resources_fit(args: Wire) -> types.NodeResourcesFitArgs:
    strategy = args["scoringStrategy"]
    shape = (strategy["requestedToCapacityRatio"] or {}).get("shape") or ()
    return types.NodeResourcesFitArgs(
        ignored_resources=tuple(args["ignoredResources"] or ()),
        ignored_resource_groups=tuple(args["ignoredResourceGroups"] or ()),
        scoring_strategy=types.ScoringStrategy(
            type=strategy["type"],
            resources=_resources(strategy["resources"]),
            shape=_shape(shape),
        ),
    )


def _pod_topology_spread(args: Wire) -> types.PodTopologySpreadArgs:
    constraints = complete.args("PodTopologySpread", args).get("defaultConstraints", ())
    return types.PodTopologySpreadArgs(tuple(constraints), args["defaultingType"])


def _volume_binding(args: Wire) -> types.VolumeBindingArgs:
    return types.VolumeBindingArgs(args["bindTimeoutSeconds"], _shape(args["shape"]))


_ARGS: Mapping[str, Callable[[Wire], types.InTreeArgs]] = {
    "DefaultPreemption": _default_preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _node_resources_fit,
    "PodTopologySpread": _pod_topology_spread,
    "VolumeBinding": _volume_binding,
}


def _shape(points: Sequence[Wire] | None) -> tuple[types.ShapePoint, ...]:
    return tuple(types.ShapePoint(point["utilization"], point["score"]) for point in points or ())


def _resources(resources: Sequence[Wire]) -> tuple[types.ResourceSpec, ...]:
    return tuple(types.ResourceSpec(resource["name"], resource["weight"]) for resource in resources)


def _leader_election(election: Wire) -> types.LeaderElection:
    return types.LeaderElection(
        leader_elect=election["leaderElect"],
        lease_duration_seconds=election["leaseDuration"] / SECOND,
        renew_deadline_seconds=election["renewDeadline"] / SECOND,
        retry_period_seconds=election["retryPeriod"] / SECOND,
        resource_lock=election["resourceLock"],
        resource_name=election["resourceName"],
        resource_namespace=election["resourceNamespace"],
    )


def _client_connection(connection: Wire) -> types.ClientConnection:
    return types.ClientConnection(
        kubeconfig=connection["kubeconfig"],
        accept_content_types=connection["acceptContentTypes"],
        content_type=connection["contentType"],
        qps=connection["qps"],
        burst=connection["burst"],
    )


def _extender(extender: Wire) -> types.Extender:
    """Source: kubernetes v1.34 pkg/scheduler/extender.go ``NewHTTPExtender`` for the timeout."""
    managed = extender["managedResources"] or ()
    return types.Extender(
        url_prefix=extender["urlPrefix"],
        filter_verb=extender["filterVerb"],
        preempt_verb=extender["preemptVerb"],
        prioritize_verb=extender["prioritizeVerb"],
        bind_verb=extender["bindVerb"],
        weight=extender["weight"],
        enable_https=extender["enableHTTPS"],
        tls=None if extender["tlsConfig"] is None else _tls(extender["tlsConfig"]),
        http_timeout_seconds=extender["httpTimeout"] / SECOND or _DEFAULT_EXTENDER_TIMEOUT_SECONDS,
        node_cache_capable=extender["nodeCacheCapable"],
        managed_resources=tuple(types.ManagedResource(item["name"], item["ignoredByScheduler"]) for item in managed),
        ignorable=extender["ignorable"],
    )


def _tls(tls: Wire) -> types.ExtenderTls:
    return types.ExtenderTls(
        insecure=tls["insecure"],
        server_name=tls["serverName"],
        cert_file=tls["certFile"],
        key_file=tls["keyFile"],
        ca_file=tls["caFile"],
        cert_data=tls["certData"],
        key_data=tls["keyData"],
        ca_data=tls["caData"],
    )
