"""Evaluations kept per class of pods, so that equal pods are evaluated once and then only kept up to date."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from dsched.framework.evaluate import Evaluation
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot

KEPT_CELLS = 50_000_000
"""Classes times nodes that are kept at most; a cell is some 100 bytes with the default plugins."""
FEWEST_KEPT = 64

JudgeAll = Callable[[Sequence[Evaluation]], None]
"""Fills open evaluations, in this process or by way of evaluators; equal results either way."""


class Classes:
    """Evaluations of one snapshot by profile and class."""

    def __init__(self, snapshot: Snapshot, judge_all: JudgeAll) -> None:
        self._snapshot = snapshot
        self._judge_all = judge_all
        self._kept: OrderedDict[tuple[str, bytes], Evaluation] = OrderedDict()

    def prepare(self, pods: Sequence[tuple[Framework, PodInfo]]) -> None:
        """Evaluate the classes that a batch will ask for, all in one go."""
        fresh: dict[tuple[str, bytes], Evaluation] = {}
        for framework, pod in pods:
            key = (framework.profile_name, pod.class_key)
            if framework.cacheable and key not in fresh and not self._usable(key):
                fresh[key] = Evaluation(framework, pod, self._snapshot, shared=True)
        self._judge_all([evaluation for evaluation in fresh.values() if evaluation.open])
        for key, evaluation in fresh.items():
            self._keep(key, evaluation)

    def evaluation(self, framework: Framework, pod: PodInfo, own: bool = False) -> Evaluation:
        """What the plugins say of this pod now.

        Args:
            own: of this very pod, which need not make room for itself; else of the pods of its class that were promised
                no node.
        """
        key = (framework.profile_name, pod.class_key)
        shared = framework.cacheable and not own
        if shared and self._usable(key):
            self._kept.move_to_end(key)
            return self._kept[key]
        evaluation = Evaluation(framework, pod, self._snapshot, shared)
        if evaluation.open:
            self._judge_all([evaluation])
        if shared:
            self._keep(key, evaluation)
        return evaluation

    def _usable(self, key: tuple[str, bytes]) -> bool:
        kept = self._kept.get(key)
        return kept is not None and kept.refresh()

    def _keep(self, key: tuple[str, bytes], evaluation: Evaluation) -> None:
        self._kept[key] = evaluation
        self._kept.move_to_end(key)
        most = max(FEWEST_KEPT, KEPT_CELLS // max(len(self._snapshot.table), 1))
        while len(self._kept) > most:
            self._kept.popitem(last=False)
