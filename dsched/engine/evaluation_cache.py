"""Evaluations kept per class of pods, so that equal pods are evaluated once and then only kept up to date."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from dsched.engine.evaluation import Evaluation
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework, PodClass
from dsched.framework.snapshot import Snapshot
from dsched.lru import LRU

KEPT_CELLS = 5_000_000
"""Classes times nodes that are kept at most; a cell is some 100 bytes with the default plugins."""
FEWEST_KEPT = 32
MOST_PLACEMENTS = 1024
"""Evaluations over parts of the nodes, as of one rack, that are kept: these have few rows each."""
MOST_SEEN = 65_536
"""Classes that are known to have been asked for. An evaluation is kept for long from the second time on: pods that are
a class of their own each would fill the memory, and nobody asks for them again."""

_Key = tuple[str, PodClass] | tuple[str, PodClass, bytes]
"""Profile, class, and the rows of the table where these are not all."""

JudgeAll = Callable[[Sequence[Evaluation]], None]
"""Fills open evaluations, in this process or by way of evaluators; equal results either way."""


GatherFirst = Callable[[Sequence[tuple[str, PodInfo]]], bool]
"""Whether to evaluate classes, each given by profile and pod, in one go before their turn comes: it pays where many are
asked about at once elsewhere. In this process it does not, for what is placed before their turn makes them stale."""


class EvaluationCache:
    """Evaluations of one snapshot by profile and class."""

    def __init__(
        self, snapshot: Snapshot, judge_all: JudgeAll, gather_first: GatherFirst = lambda classes: False
    ) -> None:
        self._snapshot = snapshot
        self._judge_all = judge_all
        self._gather_first = gather_first
        self._kept: LRU[_Key, Evaluation] = LRU(FEWEST_KEPT)
        self._once: LRU[_Key, Evaluation] = LRU(FEWEST_KEPT)
        self._placements: LRU[_Key, Evaluation] = LRU(MOST_PLACEMENTS)
        self._seen: LRU[int, None] = LRU(MOST_SEEN)
        self._latest: dict[str, Evaluation] = {}

    def prepare(self, pods: Sequence[tuple[Framework, PodInfo]]) -> Collection[Evaluation]:
        """Evaluate the classes that a batch will ask for, all in one go, where that pays; returns what it evaluated."""
        cacheable = [(framework, pod) for framework, pod in pods if framework.cacheable]
        asked = [(framework.profile_name, pod) for framework, pod in cacheable]
        # Of one profile, more classes pay more: where it does not pay if each pod is one, they need not be told apart.
        if not asked or (len({profile for profile, _ in asked}) == 1 and not self._gather_first(asked)):
            return ()
        wanted: dict[_Key, tuple[Framework, PodInfo]] = {}
        for framework, pod in cacheable:
            wanted.setdefault((framework.profile_name, framework.class_of(pod, self._snapshot)), (framework, pod))
        if not self._pays(wanted):
            return ()
        wanted = {key: asked for key, asked in wanted.items() if self._outdated(key)}
        if not self._pays(wanted):
            return ()
        fresh = {
            key: Evaluation(framework, pod, self._snapshot, shared=True) for key, (framework, pod) in wanted.items()
        }
        self._judge_all([evaluation for evaluation in fresh.values() if evaluation.open])
        for key, evaluation in fresh.items():
            self._keep(key, evaluation, again=True)
        return fresh.values()

    @contextmanager
    def judging_here(self) -> Iterator[None]:
        """In its context all is judged in this process: pods are tried on nodes, of which evaluators do not know."""
        elsewhere, self._judge_all = self._judge_all, _judge_here
        try:
            yield
        finally:
            self._judge_all = elsewhere

    def _pays(self, wanted: Mapping[_Key, tuple[Framework, PodInfo]]) -> bool:
        return bool(wanted) and self._gather_first([(key[0], pod) for key, (_, pod) in wanted.items()])

    def evaluation(
        self, framework: Framework, pod: PodInfo, own: bool = False, among: NDArray[np.intp] | None = None
    ) -> Evaluation:
        """What the plugins say of this pod now.

        Args:
            own: of this very pod, which need not make room for itself; else of the pods of its class that were promised
                no node.
            among: table rows of the only nodes that there are for it, which are judged in this process; None is all.
        """
        key = (framework.profile_name, framework.class_of(pod, self._snapshot))
        if among is not None:
            return self._among(framework, pod, key, own, among)
        shared = framework.cacheable and not own
        kept = self._usable(key, pod) if shared else None
        if kept is not None:
            evaluation = kept
            self._keep(key, kept, again=True)
        else:
            evaluation = Evaluation(framework, pod, self._snapshot, shared)
            latest = self._latest.get(framework.profile_name)
            if shared and latest is not None and evaluation.open:
                evaluation.resemble(latest)
            if evaluation.open:
                self._judge_all([evaluation])
            if shared:
                self._keep(key, evaluation, again=hash(key) in self._seen)
        if shared:
            self._latest[framework.profile_name] = evaluation
        return evaluation

    def _among(self, framework: Framework, pod: PodInfo, key: _Key, own: bool, among: NDArray[np.intp]) -> Evaluation:
        key = (*key[:2], among.tobytes())
        shared = framework.cacheable and not own
        kept = self._usable(key, pod) if shared else None
        if kept is None:
            kept = Evaluation(framework, pod, self._snapshot, shared, among)
            if kept.open:
                kept.judge_here()
        if shared:
            self._placements[key] = kept
        return kept

    def _outdated(self, key: _Key) -> bool:
        """Whether a class has to be evaluated anew, as far as that is plain before its turn; rows that changed are left
        until then, for they would be stale again."""
        kept = self._of(key)
        return kept is None or kept.outdated

    def _usable(self, key: _Key, pod: PodInfo) -> Evaluation | None:
        """What is kept of a class, brought up to date for one of its pods."""
        kept = self._of(key)
        if kept is None:
            return None
        if key[1].passing:  # else it is as true now of the pod that it was made for: no plugin can tell the two apart
            kept.stand_for(pod)
        return kept if kept.refresh() else None

    def _of(self, key: _Key) -> Evaluation | None:
        return self._kept.get(key) or self._once.get(key) or self._placements.get(key)

    def _keep(self, key: _Key, evaluation: Evaluation, again: bool) -> None:
        """
        Args:
            again: it has been asked for before, or will be.
        """
        if again:
            if self._kept.get(key) is evaluation:
                self._kept.move_to_end(key)
                return
            self._once.pop(key, None)
            self._kept.most = max(FEWEST_KEPT, KEPT_CELLS // max(len(self._snapshot.table), 1))
            self._kept[key] = evaluation
        else:
            self._seen[hash(key)] = None
            self._once[key] = evaluation


def _judge_here(evaluations: Sequence[Evaluation]) -> None:
    for evaluation in evaluations:
        evaluation.judge_here()
