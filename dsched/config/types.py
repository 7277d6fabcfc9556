"""The completed configuration, as the rest of dsched reads it.

Defaults named here are kube-scheduler's unless said otherwise.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import dsched
from dsched.config import feature_gates
from dsched.config.feature_gates import Features

EVERY_NODE = 100


@dataclass(frozen=True, slots=True)
class PluginRef:
    """A plugin at an extension point."""

    name: str
    weight: int = 0
    """What its normalised score is multiplied with; 0 at every extension point but ``score`` and ``placementScore``."""


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource that takes part in a score."""

    name: str
    weight: int
    """1 to 100."""


@dataclass(frozen=True, slots=True)
class ShapePoint:
    """A point of the function from utilization (0 to 100) to score (0 to 10)."""

    utilization: int
    score: int


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """How NodeResourcesFit scores."""

    type: str
    """``LeastAllocated`` (default), ``MostAllocated`` or ``RequestedToCapacityRatio``."""
    resources: tuple[ResourceSpec, ...]
    """Default: cpu and memory, weight 1 each."""
    shape: tuple[ShapePoint, ...] = ()
    """Points in order of rising utilization; read by ``RequestedToCapacityRatio`` only."""


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    """How many nodes preemption looks at: the larger of the two."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    """How long devices are looked for on one node, and waited for before a pod is bound."""

    filter_timeout_seconds: float = 10.0
    binding_timeout_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    """Arguments of InterPodAffinity."""

    hard_pod_affinity_weight: int = 1
    """Score of a required affinity term of a running pod that the incoming pod meets; 0 to 100."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Leave running pods' preferences out, unless the incoming pod has some itself."""


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    """Arguments of NodeAffinity."""

    added_affinity: Mapping[str, Any] | None = None
    """A NodeAffinity as in a pod's spec, which every pod has to meet as well."""


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs:
    """Arguments of NodeResourcesBalancedAllocation."""

    resources: tuple[ResourceSpec, ...]
    """Default: cpu and memory. Weights are always 1."""


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs:
    """Arguments of NodeResourcesFit."""

    ignored_resources: tuple[str, ...]
    """Extended resources the filter does not look at; those that extenders manage alone replace the file's list."""
    ignored_resource_groups: tuple[str, ...]
    """Domains (``example.com``) of extended resources the filter does not look at."""
    scoring_strategy: ScoringStrategy


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    """Arguments of PodTopologySpread."""

    default_constraints: tuple[Mapping[str, Any], ...] = ()
    """For pods without constraints: as in a pod's spec, without a selector."""
    defaulting_type: str = "System"
    """``System``: kube-scheduler's built-in constraints; ``List``: ``default_constraints``."""


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    """Arguments of VolumeBinding."""

    bind_timeout_seconds: int = 600
    """How long PreBind waits for volumes; 0 does not wait."""
    shape: tuple[ShapePoint, ...] = ()
    """Score by used share of the storage; only with the feature StorageCapacityScoring."""


InTreeArgs = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)
PluginArgs = InTreeArgs | Mapping[str, Any]
"""A record for in-tree plugins that take arguments; for any other plugin what the file says."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A scheduling profile: the rules for the pods of one ``spec.schedulerName``."""

    scheduler_name: str
    percentage_of_nodes_to_score: int | None
    """Overrides the configuration's; None: it does not."""
    plugins: Mapping[str, tuple[PluginRef, ...]]
    """Every extension point (names as in the file) to its plugins in running order."""
    args: Mapping[str, PluginArgs]
    """By plugin name, defaults filled in."""
    features: Features = feature_gates.UNSAID
    """The version that is emulated, and what is on."""

    def effective_percentage(self, config: "SchedulerConfiguration") -> int:
        """Percentage of nodes after which the search for feasible ones may stop; 0 is kube-scheduler's adaptive one.

        Where neither the profile nor the configuration sets it, dsched looks at every node: 100.
        """
        for percentage in (self.percentage_of_nodes_to_score, config.percentage_of_nodes_to_score):
            if percentage is not None:
                return percentage
        return EVERY_NODE


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Taken and checked; dsched's lease is in Redis, see ``dsched leader --lease``."""

    leader_elect: bool
    lease_duration_seconds: float
    renew_deadline_seconds: float
    retry_period_seconds: float
    resource_lock: str
    resource_name: str
    resource_namespace: str


@dataclass(frozen=True, slots=True)
class ClientConnection:
    """How to talk to the API server."""

    kubeconfig: str
    """Used where neither ``--kubeconfig`` nor ``DSCHED_KUBECONFIG`` names one."""
    accept_content_types: str
    """Not used."""
    content_type: str
    """Not used."""
    qps: float
    """How many events are sent in a second; negative is no limit."""
    burst: int
    """Checked, not used."""


@dataclass(frozen=True, slots=True)
class ManagedResource:
    """An extended resource that an extender manages."""

    name: str
    ignored_by_scheduler: bool


@dataclass(frozen=True, slots=True)
class ExtenderTls:
    """TLS towards an extender; data (base64 of PEM) goes before files."""

    insecure: bool
    server_name: str
    cert_file: str
    key_file: str
    ca_file: str
    cert_data: str
    key_data: str
    ca_data: str


@dataclass(frozen=True, slots=True)
class Extender:
    """A webhook that filters, scores, preempts or binds; an empty verb means it does not."""

    url_prefix: str
    filter_verb: str
    preempt_verb: str
    prioritize_verb: str
    bind_verb: str
    weight: int
    enable_https: bool
    tls: ExtenderTls | None
    http_timeout_seconds: float
    """Default 5 seconds."""
    node_cache_capable: bool
    managed_resources: tuple[ManagedResource, ...]
    ignorable: bool
    """Its failures do not fail the pod."""


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """A whole configuration: read from a file, completed with defaults, validated, its profiles built."""

    parallelism: int
    """Checked, not used: evaluators are processes."""
    leader_election: LeaderElection
    client_connection: ClientConnection
    enable_profiling: bool
    """Not used."""
    enable_contention_profiling: bool
    """Not used."""
    percentage_of_nodes_to_score: int | None
    """None: the file does not set it, and dsched looks at every node; 0: kube-scheduler's adaptive percentage.

    This is the one default that differs from kube-scheduler's, which is 0.
    """
    pod_initial_backoff_seconds: int
    pod_max_backoff_seconds: int
    profiles: tuple[Profile, ...]
    extenders: tuple[Extender, ...]
    """In calling order: those whose failure can be ignored come last."""
    delay_cache_until_active: bool
    """Not used."""
    document: str
    """The completed configuration as v1 JSON text, see `dsched.config.completed`."""
    features: Features = feature_gates.UNSAID
    """The version that is emulated, and what is on; no part of the file."""
    code: str = ""
    """What tells the code of the plugins that are used and do not come with dsched; empty where there are none."""
    hash: str = field(init=False, repr=False, compare=False)
    """Twelve hex digits that are equal for configurations that mean the same and are carried out by the same code, in
    any process on any machine."""

    def __post_init__(self) -> None:
        whole = f"{self.carried_out_by} {self.features} {self.percentage_of_nodes_to_score} {self.document}"
        object.__setattr__(self, "hash", hashlib.sha256(whole.encode()).hexdigest()[:12])

    def enables(self, plugin: str) -> bool:
        """Whether a profile has the plugin, at whichever extension point."""
        points = (refs for profile in self.profiles for refs in profile.plugins.values())
        return any(ref.name == plugin for refs in points for ref in refs)

    def profile(self, name: str) -> Profile | None:
        """The profile for a ``spec.schedulerName``; None when such pods are another scheduler's."""
        return next((profile for profile in self.profiles if profile.scheduler_name == name), None)

    @property
    def carried_out_by(self) -> str:
        """Whose code it is that carries the configuration out, for people: dsched and the plugins of others."""
        return f"dsched {dsched.__version__}{self.code and ', '}{self.code}"
