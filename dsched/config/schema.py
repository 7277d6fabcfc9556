"""Shapes of the ``kubescheduler.config.k8s.io/v1`` types, as tables.

A decoded object is a dict with every field of its struct: what the file leaves out has Go's zero value (``""``, ``0``,
``False``, ``None`` for pointers, lists and maps). That way defaults and validation see what upstream sees, an explicit
zero included.

What later versions of Kubernetes added is there from these versions on: see `extension_points` and `args`.

Source: kube-scheduler config/v1/types.go and types_pluginargs.go, component-base config/v1alpha1/types.go, and of
core/v1/types.go what plugin arguments hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from dsched.config.feature_gates import Version

GROUP = "kubescheduler.config.k8s.io"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "KubeSchedulerConfiguration"


@dataclass(frozen=True)
class Basic:
    """A string, bool, number, duration (nanoseconds) or base64 text; ``zero`` is what an absent field holds."""

    name: str
    zero: str | bool | int | float


@dataclass(frozen=True)
class Raw:
    """Anything, kept as plain Python values."""


@dataclass(frozen=True)
class Pointer:
    """Something that may be absent: ``None`` then."""

    item: "Type"


@dataclass(frozen=True)
class ListOf:
    """A list; ``None`` when absent, which is not the same as empty."""

    item: "Type"


@dataclass(frozen=True)
class MapOf:
    """An object with free keys; ``None`` when absent."""

    item: "Type"


@dataclass(frozen=True)
class Field:
    """A field of a struct; ``always`` means that it is written even when it holds its zero value."""

    type: "Type"
    always: bool = False


@dataclass(frozen=True)
class Struct:
    """An object with known fields, by their JSON names."""

    name: str
    fields: Mapping[str, Field]


Type = Basic | Raw | Pointer | ListOf | MapOf | Struct

STRING = Basic("string", "")
BOOL = Basic("bool", False)
INT32 = Basic("int32", 0)
INT64 = Basic("int64", 0)
FLOAT32 = Basic("float32", 0)
DURATION = Basic("duration", 0)
BYTES = Basic("[]byte", "")
RAW = Raw()


def _struct(name: str, always: Mapping[str, Type] | None = None, /, **omitempty: Type) -> Struct:
    fields = {key: Field(kind, always=True) for key, kind in (always or {}).items()}
    return Struct(name, fields | {key: Field(kind) for key, kind in omitempty.items()})


def _args(name: str, always: Mapping[str, Type] | None = None, /, **omitempty: Type) -> Struct:
    return _struct(name, {"apiVersion": STRING, "kind": STRING, **(always or {})}, **omitempty)


EXTENSION_POINTS = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)
"""Names of the extension points about pods, as the configuration spells them, in its order."""

_GROUP_POINTS = (("placementGenerate", 36), ("placementScore", 36), ("podGroupPostFilter", 37))
"""Those about pod groups, and the minor version that they came with; they are run with the gate GenericWorkload."""

MULTI_POINT = "multiPoint"

_LABEL_REQUIREMENT = _struct("LabelSelectorRequirement", {"key": STRING, "operator": STRING}, values=ListOf(STRING))
_LABEL_SELECTOR = _struct("LabelSelector", matchLabels=MapOf(STRING), matchExpressions=ListOf(_LABEL_REQUIREMENT))
_NODE_REQUIREMENT = _struct("NodeSelectorRequirement", {"key": STRING, "operator": STRING}, values=ListOf(STRING))
_NODE_TERM = _struct(
    "NodeSelectorTerm", matchExpressions=ListOf(_NODE_REQUIREMENT), matchFields=ListOf(_NODE_REQUIREMENT)
)
_NODE_SELECTOR = _struct("NodeSelector", {"nodeSelectorTerms": ListOf(_NODE_TERM)})
_PREFERRED_TERM = _struct("PreferredSchedulingTerm", {"weight": INT32, "preference": _NODE_TERM})
_NODE_AFFINITY = _struct(
    "NodeAffinity",
    requiredDuringSchedulingIgnoredDuringExecution=Pointer(_NODE_SELECTOR),
    preferredDuringSchedulingIgnoredDuringExecution=ListOf(_PREFERRED_TERM),
)
_SPREAD_CONSTRAINT = _struct(
    "TopologySpreadConstraint",
    {"maxSkew": INT32, "topologyKey": STRING, "whenUnsatisfiable": STRING},
    labelSelector=Pointer(_LABEL_SELECTOR),
    minDomains=Pointer(INT32),
    nodeAffinityPolicy=Pointer(STRING),
    nodeTaintsPolicy=Pointer(STRING),
    matchLabelKeys=ListOf(STRING),
)

_RESOURCE = _struct("ResourceSpec", {"name": STRING}, weight=INT64)
_SHAPE_POINT = _struct("UtilizationShapePoint", {"utilization": INT32, "score": INT32})
_RATIO = _struct("RequestedToCapacityRatioParam", shape=ListOf(_SHAPE_POINT))
_STRATEGY = _struct(
    "ScoringStrategy", type=STRING, resources=ListOf(_RESOURCE), requestedToCapacityRatio=Pointer(_RATIO)
)

_ARGS: Mapping[str, Struct] = {
    "DefaultPreemption": _args(
        "DefaultPreemptionArgs", minCandidateNodesPercentage=Pointer(INT32), minCandidateNodesAbsolute=Pointer(INT32)
    ),
    "DynamicResources": _args(
        "DynamicResourcesArgs", {"filterTimeout": Pointer(DURATION)}, bindingTimeout=Pointer(DURATION)
    ),
    "InterPodAffinity": _args(
        "InterPodAffinityArgs", {"ignorePreferredTermsOfExistingPods": BOOL}, hardPodAffinityWeight=Pointer(INT32)
    ),
    "NodeAffinity": _args("NodeAffinityArgs", addedAffinity=Pointer(_NODE_AFFINITY)),
    "NodeResourcesBalancedAllocation": _args("NodeResourcesBalancedAllocationArgs", resources=ListOf(_RESOURCE)),
    "NodeResourcesFit": _args(
        "NodeResourcesFitArgs",
        ignoredResources=ListOf(STRING),
        ignoredResourceGroups=ListOf(STRING),
        scoringStrategy=Pointer(_STRATEGY),
    ),
    "PodTopologySpread": _args(
        "PodTopologySpreadArgs", defaultConstraints=ListOf(_SPREAD_CONSTRAINT), defaultingType=STRING
    ),
    "VolumeBinding": _args("VolumeBindingArgs", bindTimeoutSeconds=Pointer(INT64), shape=ListOf(_SHAPE_POINT)),
}
_LATER_ARGS: Mapping[tuple[str, str], int] = {("DynamicResources", "bindingTimeout"): 35}
"""Fields of arguments, and the minor version that they came with."""

_PLUGIN = _struct("Plugin", {"name": STRING}, weight=Pointer(INT32))
_PLUGIN_SET = _struct("PluginSet", enabled=ListOf(_PLUGIN), disabled=ListOf(_PLUGIN))
_PLUGIN_CONFIG = _struct("PluginConfig", {"name": STRING, "args": RAW})
_TLS = _struct(
    "ExtenderTLSConfig",
    insecure=BOOL,
    serverName=STRING,
    certFile=STRING,
    keyFile=STRING,
    caFile=STRING,
    certData=BYTES,
    keyData=BYTES,
    caData=BYTES,
)
_MANAGED_RESOURCE = _struct("ExtenderManagedResource", {"name": STRING}, ignoredByScheduler=BOOL)
_EXTENDER = _struct(
    "Extender",
    {"urlPrefix": STRING, "httpTimeout": DURATION},
    filterVerb=STRING,
    preemptVerb=STRING,
    prioritizeVerb=STRING,
    weight=INT64,
    bindVerb=STRING,
    enableHTTPS=BOOL,
    tlsConfig=Pointer(_TLS),
    nodeCacheCapable=BOOL,
    managedResources=ListOf(_MANAGED_RESOURCE),
    ignorable=BOOL,
)
_LEADER_ELECTION = _struct(
    "LeaderElectionConfiguration",
    {
        "leaderElect": Pointer(BOOL),
        "leaseDuration": DURATION,
        "renewDeadline": DURATION,
        "retryPeriod": DURATION,
        "resourceLock": STRING,
        "resourceName": STRING,
        "resourceNamespace": STRING,
    },
)
_CLIENT_CONNECTION = _struct(
    "ClientConnectionConfiguration",
    {"kubeconfig": STRING, "acceptContentTypes": STRING, "contentType": STRING, "qps": FLOAT32, "burst": INT32},
)


def extension_points(version: Version) -> tuple[str, ...]:
    """Names of all extension points that a version's configuration has, in its order."""
    return EXTENSION_POINTS + tuple(point for point, minor in _GROUP_POINTS if version >= (1, minor))


@lru_cache
def args(version: Version) -> Mapping[str, Struct]:
    """Plugin name to its arguments, for every in-tree plugin of a version that takes any."""
    return {plugin: replace(kind, fields=_fields(plugin, kind, version)) for plugin, kind in _ARGS.items()}


def _fields(plugin: str, kind: Struct, version: Version) -> Mapping[str, Field]:
    return {key: field for key, field in kind.fields.items() if version >= (1, _LATER_ARGS.get((plugin, key), 0))}


@lru_cache
def profile(version: Version) -> Struct:
    """A profile."""
    points = dict.fromkeys((*extension_points(version), MULTI_POINT), _PLUGIN_SET)
    return _struct(
        "KubeSchedulerProfile",
        schedulerName=Pointer(STRING),
        percentageOfNodesToScore=Pointer(INT32),
        plugins=Pointer(_struct("Plugins", points)),
        pluginConfig=ListOf(_PLUGIN_CONFIG),
    )


@lru_cache
def configuration(version: Version) -> Struct:
    """A whole configuration."""
    return _struct(
        KIND,
        {
            "apiVersion": STRING,
            "kind": STRING,
            "parallelism": Pointer(INT32),
            "leaderElection": _LEADER_ELECTION,
            "clientConnection": _CLIENT_CONNECTION,
            "enableProfiling": Pointer(BOOL),
            "enableContentionProfiling": Pointer(BOOL),
        },
        percentageOfNodesToScore=Pointer(INT32),
        podInitialBackoffSeconds=Pointer(INT64),
        podMaxBackoffSeconds=Pointer(INT64),
        profiles=ListOf(profile(version)),
        extenders=ListOf(_EXTENDER),
        delayCacheUntilActive=BOOL,
    )


def zero(kind: Type) -> object:
    """What a field of that type holds when nothing set it; a fresh dict for a struct."""
    match kind:
        case Basic():
            return kind.zero
        case Struct():
            return {key: zero(field.type) for key, field in kind.fields.items()}
        case _:
            return None
