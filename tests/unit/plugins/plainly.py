"""What kube-scheduler says about neighbours, worked out node by node and pod by pod, with nothing kept and no arrays.

Each class answers as its plugin does: ``filtered`` is a reason a node ("" where the pod passes) or None for Skip,
``scored`` a score of 0..100 a node (for the nodes given) or None for Skip.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsched.model import node_selectors, selectors, tolerations
from dsched.model.node import Node
from dsched.model.pod import Pod, PodAffinityTerm, TopologySpreadConstraint
from dsched.model.selectors import Selector
from dsched.plugins.inter_pod_affinity import plugin
from dsched.plugins.pod_topology_spread import plugin as pod_topology_spread
from tests.unit.plugins.neighbours import HOST, ZONE, Cluster

Pair = tuple[str, str]


@dataclass
class Terms:
    """InterPodAffinity."""

    cluster: Cluster
    pod: Pod
    hard_weight: int = 1
    only_own: bool = False

    def filtered(self) -> list[str] | None:
        near, apart = _required(self.pod, True), _required(self.pod, False)
        here = self.pod.metadata
        repelling: Counter[Pair] = Counter()
        meeting: Counter[Pair] = Counter()
        meant: Counter[Pair] = Counter()
        for node in self.cluster.nodes:
            for other in self.cluster.on(node):
                repelling.update(_pairs(node, (one for one in _required(other, False) if self._meant(other, one))))
                if near and all(self._means(one, other) for one in near):
                    meeting.update(_pairs(node, near))
                meant.update(_pairs(node, (one for one in apart if self._means(one, other))))
        if not (repelling or near or apart):
            return None
        first = not meeting and all(self._means(one, self.pod) for one in near)
        assert here.namespace
        return [self._reason(node, near, apart, meeting, meant, repelling, first) for node in self.cluster.nodes]

    def _reason(
        self,
        node: Node,
        near: Sequence[PodAffinityTerm],
        apart: Sequence[PodAffinityTerm],
        meeting: Counter[Pair],
        meant: Counter[Pair],
        repelling: Counter[Pair],
        first: bool,
    ) -> str:
        labels = node.metadata.labels
        if any(one.topology_key not in labels for one in near):
            return plugin.ERR_REASON_AFFINITY
        if not first and any(meeting[pair] <= 0 for pair in _pairs(node, near)):
            return plugin.ERR_REASON_AFFINITY
        if any(meant[pair] > 0 for pair in _pairs(node, apart)):
            return plugin.ERR_REASON_ANTI_AFFINITY
        if any(repelling[pair] > 0 for pair in labels.items()):
            return plugin.ERR_REASON_EXISTING
        return ""

    def scored(self, nodes: Sequence[Node]) -> list[int] | None:
        own = _preferred(self.pod)
        if self.only_own and not own:
            return None
        weights: dict[Pair, int] = {}

        def add(node: Node, one: PodAffinityTerm, weight: int) -> None:
            for pair in _pairs(node, [one]):
                weights[pair] = weights.get(pair, 0) + weight

        for node in self.cluster.nodes:
            for other in self.cluster.on(node):
                theirs = _preferred(other)
                if self.hard_weight:
                    theirs = [*theirs, *((self.hard_weight, one) for one in _required(other, True))]
                for weight, one in own:
                    if self._means(one, other):
                        add(node, one, weight)
                for weight, one in theirs:
                    if self._meant(other, one):
                        add(node, one, weight)
        if not weights:
            return None
        raw = [sum(weights.get(pair, 0) for pair in node.metadata.labels.items()) for node in nodes]
        least, most = min(raw), max(raw)
        return [int(100.0 * ((each - least) / (most - least))) if most > least else 0 for each in raw]

    def _means(self, one: PodAffinityTerm, other: Pod) -> bool:
        """Whether a term of the incoming pod means another pod."""
        chosen = set(_named(one, self.pod))
        wanted = selectors.label_selector(one.namespace_selector)
        chosen |= {name for name in self.cluster.others.get("Namespace", {}) if wanted.matches(self._labels(name))}
        there = other.metadata.namespace in chosen or wanted.matches({})
        return there and _selects(one, self.pod).matches(other.metadata.labels)

    def _meant(self, other: Pod, one: PodAffinityTerm) -> bool:
        """Whether a term of a running pod means the incoming one."""
        mine = self.pod.metadata
        wanted = selectors.label_selector(one.namespace_selector)
        there = mine.namespace in _named(one, other) or wanted.matches(self._labels(mine.namespace))
        return there and _selects(one, other).matches(mine.labels)

    def _labels(self, namespace: str) -> Mapping[str, str]:
        known: Any = self.cluster.others.get("Namespace", {}).get(namespace)
        return known["metadata"]["labels"] if known else {}


def _required(pod: Pod, near: bool) -> Sequence[PodAffinityTerm]:
    side = _side(pod, near)
    return side.required_during_scheduling_ignored_during_execution if side else []


def _preferred(pod: Pod) -> list[tuple[int, PodAffinityTerm]]:
    found = []
    for near, sign in ((True, 1), (False, -1)):
        side = _side(pod, near)
        for one in side.preferred_during_scheduling_ignored_during_execution if side else []:
            found.append((sign * one.weight, one.pod_affinity_term))
    return found


def _side(pod: Pod, near: bool) -> Any:
    own = pod.spec.affinity
    return None if own is None else own.pod_affinity if near else own.pod_anti_affinity


def _named(one: PodAffinityTerm, owner: Pod) -> Sequence[str]:
    if one.namespaces or one.namespace_selector is not None:
        return one.namespaces
    return [owner.metadata.namespace]


def _selects(one: PodAffinityTerm, owner: Pod) -> Selector:
    chosen = selectors.label_selector(one.label_selector)
    labels = owner.metadata.labels
    same = {key: labels[key] for key in one.match_label_keys if key in labels}
    other = {key: labels[key] for key in one.mismatch_label_keys if key in labels}
    unlike = (selectors.Requirement(key, selectors.NOT_IN, frozenset({value})) for key, value in other.items())
    return Selector((*chosen.requirements, *selectors.labels_equal(same).requirements, *unlike), chosen.nothing)


def _pairs(node: Node, terms: Iterable[PodAffinityTerm]) -> list[Pair]:
    labels = node.metadata.labels
    return [(one.topology_key, labels[one.topology_key]) for one in terms if one.topology_key in labels]


@dataclass
class Spreading:
    """PodTopologySpread; ``defaults`` None are the system's."""

    cluster: Cluster
    pod: Pod
    defaults: Sequence[TopologySpreadConstraint] | None = None

    def filtered(self) -> list[str] | None:
        hard = self._constraints("DoNotSchedule")
        if not hard:
            return None
        counts: list[dict[str, int]] = [{} for _ in hard]
        for node in self.cluster.nodes:
            labels = node.metadata.labels
            if all(one.topology_key in labels for one, _ in hard):
                for count, (one, chosen) in zip(counts, hard, strict=True):
                    if self._eligible(one, node):
                        value = labels[one.topology_key]
                        count[value] = count.get(value, 0) + self._matching(node, chosen)
        return [self._reason(node, hard, counts) for node in self.cluster.nodes]

    def _reason(
        self, node: Node, hard: Sequence[tuple[TopologySpreadConstraint, Selector]], counts: Sequence[dict[str, int]]
    ) -> str:
        for (one, chosen), count in zip(hard, counts, strict=True):
            value = node.metadata.labels.get(one.topology_key)
            if value is None:
                return pod_topology_spread.ERR_REASON_LABEL
            fewest = 0 if len(count) < (one.min_domains or 1) else min(count.values())
            itself = chosen.matches(self.pod.metadata.labels)
            if count.get(value, 0) + itself - fewest > one.max_skew:
                return pod_topology_spread.ERR_REASON_CONSTRAINTS
        return ""

    def scored(self, nodes: Sequence[Node]) -> list[int] | None:
        soft = self._constraints("ScheduleAnyway")
        if not soft:
            return None
        every = bool(self.pod.spec.topology_spread_constraints) or self.defaults is not None

        def complete(node: Node) -> bool:
            return not every or all(one.topology_key in node.metadata.labels for one, _ in soft)

        candidates = [node for node in nodes if complete(node)]
        raw: list[float] = [0.0] * len(candidates)
        for one, chosen in soft:
            key = one.topology_key
            values = {node.metadata.labels.get(key, "") for node in candidates}
            weight = math.log((len(candidates) if key == HOST else len(values)) + 2)
            counts: Counter[str] = Counter()
            for node in self.cluster.nodes:
                if complete(node) and self._eligible(one, node):
                    counts[node.metadata.labels.get(key, "")] += self._matching(node, chosen)
            for number, node in enumerate(candidates):
                if key in node.metadata.labels:
                    pods = self._matching(node, chosen) if key == HOST else counts[node.metadata.labels[key]]
                    raw[number] += pods * weight + (one.max_skew - 1)
        return self._normalized(nodes, candidates, [math.floor(each + 0.5) for each in raw])

    @staticmethod
    def _normalized(nodes: Sequence[Node], candidates: Sequence[Node], raw: Sequence[int]) -> list[int]:
        if not raw or max(raw) == 0:
            return [100 if node in candidates else 0 for node in nodes]
        score = {
            node.name: 100 * (max(raw) + min(raw) - each) // max(raw)
            for node, each in zip(candidates, raw, strict=True)
        }
        return [score.get(node.name, 0) for node in nodes]

    def _constraints(self, action: str) -> list[tuple[TopologySpreadConstraint, Selector]]:
        own = self.pod.spec.topology_spread_constraints
        labels = self.pod.metadata.labels
        if own:
            found = []
            for one in own:
                chosen = selectors.label_selector(one.label_selector)
                same = selectors.labels_equal({key: labels[key] for key in one.match_label_keys if key in labels})
                found.append((one, Selector((*chosen.requirements, *same.requirements), chosen.nothing)))
            return [(one, chosen) for one, chosen in found if one.when_unsatisfiable == action]
        defaults = self.defaults
        if defaults is None:
            defaults = [
                TopologySpreadConstraint(3, HOST, "ScheduleAnyway"),
                TopologySpreadConstraint(5, ZONE, "ScheduleAnyway"),
            ]
        merged: dict[str, str] = {}
        for key, service in self.cluster.others.get("Service", {}).items():
            wanted = service["spec"].get("selector")
            mine = key.startswith(f"{self.pod.metadata.namespace}/")
            if mine and wanted is not None and wanted.items() <= labels.items():
                merged |= wanted
        chosen = selectors.labels_equal(merged)
        return [(one, chosen) for one in defaults if merged and one.when_unsatisfiable == action]

    def _eligible(self, one: TopologySpreadConstraint, node: Node) -> bool:
        pod, labels = self.pod, node.metadata.labels
        if one.node_affinity_policy != "Ignore" and not node_selectors.required(pod.spec).matches(labels, node.name):
            return False
        return one.node_taints_policy != "Honor" or (
            tolerations.first_untolerated(node.spec.taints, pod.spec.tolerations) is None
        )

    def _matching(self, node: Node, chosen: Selector) -> int:
        if chosen.everything:
            return 0
        mine = self.pod.metadata.namespace
        return sum(
            other.metadata.namespace == mine and not other.deleting and chosen.matches(other.metadata.labels)
            for other in self.cluster.on(node)
        )
