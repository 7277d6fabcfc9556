"""Deferred resizes: pods on a node that ask for more than it has room for, for which others may be evicted.

Such a pod stands in the queue although it is on a node. It is decided on there: plugins that ask whether a pod may go
to a node at all have nothing to say about one that is there already.

Source: every ``IsPodResizeDeferred`` of pkg/scheduler/framework/plugins, since v1.37.
"""

GATE = "InPlacePodVerticalScalingSchedulerPreemption"

UNCONCERNED = frozenset(
    {
        "DynamicResources",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeDeclaredFeatures",
        "NodePorts",
        "NodeUnschedulable",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "TaintToleration",
        "VolumeBinding",
        "VolumeRestrictions",
        "VolumeZone",
    }
)
"""In-tree plugins that let such a pod pass."""
