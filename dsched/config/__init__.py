"""Reads ``kubescheduler.config.k8s.io/v1`` KubeSchedulerConfiguration exactly as kube-scheduler does, from v1.34 on.

`feature_gates` says which version is emulated. A text goes through `text` (JSON or YAML), `decode` (strict, by the
tables of `schema`), `defaults` (with `plugins`, the default plugins), `validation` and `profiles` (which plugins run
where), and comes out as the records of `types`.

No I/O: the caller reads the file. Imports nothing of dsched but ``dsched.errors``.
"""

from dsched.config.feature_gates import Features
from dsched.config.load import completed, completed_document, default, load, shown
from dsched.config.schema import EXTENSION_POINTS, extension_points
from dsched.config.types import (
    ClientConnection,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    Extender,
    ExtenderTls,
    InterPodAffinityArgs,
    LeaderElection,
    ManagedResource,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PluginRef,
    PodTopologySpreadArgs,
    Profile,
    ResourceSpec,
    SchedulerConfiguration,
    ScoringStrategy,
    ShapePoint,
    VolumeBindingArgs,
)

__all__ = [
    "EXTENSION_POINTS",
    "ClientConnection",
    "DefaultPreemptionArgs",
    "DynamicResourcesArgs",
    "Extender",
    "ExtenderTls",
    "Features",
    "InterPodAffinityArgs",
    "LeaderElection",
    "ManagedResource",
    "NodeAffinityArgs",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFitArgs",
    "PluginArgs",
    "PluginRef",
    "PodTopologySpreadArgs",
    "Profile",
    "ResourceSpec",
    "SchedulerConfiguration",
    "ScoringStrategy",
    "ShapePoint",
    "VolumeBindingArgs",
    "completed",
    "completed_document",
    "default",
    "extension_points",
    "load",
    "shown",
]
