"""Evaluations kept per class of pods, so that equal pods are evaluated once and then only kept up to date."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from dsched.framework.evaluate import Evaluation
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot

KEPT_CELLS = 5_000_000
"""Classes times nodes that are kept at most; a cell is some 100 bytes with the default plugins."""
FEWEST_KEPT = 32

JudgeAll = Callable[[Sequence[Evaluation]], None]
"""Fills open evaluations, in this process or by way of evaluators; equal results either way."""


GatherFirst = Callable[[Sequence[tuple[str, PodInfo]]], bool]
"""Whether to evaluate classes, each given by profile and pod, in one go before their turn comes: it pays where many are
asked about at once elsewhere. In this process it does not, for what is placed before their turn makes them stale."""


class Classes:
    """Evaluations of one snapshot by profile and class."""

    def __init__(
        self, snapshot: Snapshot, judge_all: JudgeAll, gather_first: GatherFirst = lambda classes: False
    ) -> None:
        self._snapshot = snapshot
        self._judge_all = judge_all
        self._gather_first = gather_first
        self._kept: OrderedDict[tuple[str, bytes], Evaluation] = OrderedDict()

    def prepare(self, pods: Sequence[tuple[Framework, PodInfo]]) -> None:
        """Evaluate the classes that a batch will ask for, all in one go, where that pays."""
        wanted: dict[tuple[str, bytes], tuple[Framework, PodInfo]] = {}
        for framework, pod in pods:
            if framework.cacheable:
                wanted.setdefault((framework.profile_name, pod.class_key), (framework, pod))
        if not self._pays(wanted):
            return
        wanted = {key: asked for key, asked in wanted.items() if not self._usable(key)}
        if not self._pays(wanted):
            return
        fresh = {
            key: Evaluation(framework, pod, self._snapshot, shared=True) for key, (framework, pod) in wanted.items()
        }
        self._judge_all([evaluation for evaluation in fresh.values() if evaluation.open])
        for key, evaluation in fresh.items():
            self._keep(key, evaluation)

    def _pays(self, wanted: Mapping[tuple[str, bytes], tuple[Framework, PodInfo]]) -> bool:
        return bool(wanted) and self._gather_first([(profile, pod) for (profile, _), (_, pod) in wanted.items()])

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
