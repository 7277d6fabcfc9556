"""Why a pod fits nowhere, in kube-scheduler's words.

Source: pkg/scheduler/framework/types.go ``Diagnosis``, ``FitError.Error``.
"""

from collections import Counter
from dataclasses import dataclass, replace

from dsched.engine.findings import Findings, left_out
from dsched.framework.status import Code, Status

NO_NODES = "no nodes available to schedule pods"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What rejected a pod.

    Attributes:
        nodes: number of all nodes.
        rejection: PreFilter's status, None when nodes were filtered.
        reasons: status of the rejected nodes and how many got it; nodes that PreFilter left out are among them.
        unschedulable_plugins: plugins that rejected the pod or a node, or narrowed the search.
        pending_plugins: those that said Pending.
        post_filter_message: what PostFilter added.
    """

    nodes: int
    rejection: Status | None
    reasons: tuple[tuple[Status, int], ...]
    unschedulable_plugins: frozenset[str]
    pending_plugins: frozenset[str] = frozenset()
    post_filter_message: str = ""

    @staticmethod
    def of_node(status: Status) -> "Diagnosis":
        """One node was chosen, and a plugin then turned the pod away."""
        plugin, nobody = frozenset({status.plugin}), frozenset[str]()
        pending = status.code is Code.PENDING
        return Diagnosis(1, None, ((status, 1),), nobody if pending else plugin, plugin if pending else nobody)

    def after_post_filter(self, message: str) -> "Diagnosis":
        """The same with what PostFilter said."""
        return replace(self, post_filter_message=message)

    @property
    def message(self) -> str:
        """The text of the FitError: ``0/5 nodes are available: 3 Insufficient cpu, …``."""
        if self.nodes == 0:
            return NO_NODES
        text = f"0/{self.nodes} nodes are available:"
        if self.rejection is not None:
            text += f" {self.rejection.message}."
        else:
            histogram: Counter[str] = Counter()
            for status, count in self.reasons:
                for reason in status.reasons:
                    histogram[reason] += count
            if histogram:
                text += " " + ", ".join(sorted(f"{count} {reason}" for reason, count in histogram.items())) + "."
        return f"{text} {self.post_filter_message}" if self.post_filter_message else text


def diagnose(evaluation: Findings, nodes: int) -> Diagnosis:
    """Why the evaluated pod fits nowhere; also right for one that fits somewhere, about the nodes where it does not."""
    rejection = evaluation.rejection
    if rejection is not None:
        plugins = {rejection.plugin, *evaluation.narrowing} - {""}
        return _of([(rejection, nodes)], plugins, nodes, rejection)
    reasons = evaluation.rejections()
    absent = nodes - evaluation.searched
    if evaluation.refused is not None and not evaluation.covers(evaluation.refused[0]):
        reasons.append((evaluation.refused[1], 1))
        absent -= 1
    plugins = {status.plugin for status, _ in reasons} | set(evaluation.narrowing)
    if absent:
        reasons.append((left_out(evaluation), absent))
    return _of(reasons, plugins, nodes, None)


def _of(reasons: list[tuple[Status, int]], plugins: set[str], nodes: int, rejection: Status | None) -> Diagnosis:
    pending = frozenset(status.plugin for status, _ in reasons if status.code is Code.PENDING)
    return Diagnosis(nodes, rejection, tuple(reasons), frozenset(plugins) - pending, pending)
