"""What if pods were added to a node or taken off it? For nominated pods and for preemption.

A trial changes the table and the plugins' state for the sake of argument and puts everything back when it ends, the
order of the node's pods included.
"""

from collections.abc import Sequence
from types import TracebackType

import numpy as np

from dsched.engine.judge import Columns, row_rejections, run_filters
from dsched.framework.cycle_state import CycleState
from dsched.framework.pod_info import PodInfo
from dsched.framework.runners import FilterRunner
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.framework.status import Scope, Status
from dsched.framework.table import NodeInfo
from dsched.model.meta import PodUid


class DryRun:
    """One pod on one node, while it is used as a context manager."""

    def __init__(
        self,
        framework: Framework,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        row: int,
        unsettled: Sequence[FilterRunner] | None = None,
    ) -> None:
        """
        Args:
            unsettled: the filters to ask, the others being known to let the node through; None is all of them.
        """
        self._framework = framework
        self._state = state.fork()
        self._pod = pod
        self._snapshot = snapshot
        self._table = snapshot.table
        self._row = row
        self._asked = framework.filters if unsettled is None else unsettled
        self._before = list(self._table.pods[row].values())
        self._mark = self._table.mark
        self._followed = framework.follows_pods(state)

    def __enter__(self) -> "DryRun":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._table.restore(self._row, self._before, self._mark)

    @property
    def node(self) -> NodeInfo:
        """The node as the trial has it."""
        return self._table.info(self._row)

    def add(self, other: PodInfo, row: int | None = None) -> None:
        """Put a pod on the node.

        Args:
            row: of another node, to which it is put in the eyes of the plugins alone; the table has it there all along.
        Raises:
            PluginFailure: a plugin's AddPod failed.
        """
        row = self._row if row is None else row
        if row == self._row:
            self._table.add_pod(other, self._table.names[row])
        if self._followed:
            self._framework.run_add_pod(self._state, self._pod, other, self._table.info(row))

    def remove(self, other: PodInfo, row: int | None = None) -> None:
        """Take a pod off the node.

        Args:
            row: of another node, as `add` has it.
        Raises:
            PluginFailure: a plugin's RemovePod failed.
        """
        row = self._row if row is None else row
        if row == self._row:
            self._table.remove_pod(other.uid)
        if self._followed:
            self._framework.run_remove_pod(self._state, self._pod, other, self._table.info(row))

    def filter(self) -> Columns:
        """What the filters say of the node as it is in the trial.

        Raises:
            PluginFailure: a filter failed.
        """
        rows = np.array([self._row], dtype=np.intp)
        return run_filters(self._asked, self._state, self._pod, self._table, rows)

    def _rejections(self) -> dict[str, Status]:
        """What `filter` says, without arrays: the filters that reject the node, in running order."""
        return row_rejections(self._asked, self._state, self._pod, self._table, self._row)

    def status(self) -> Status | None:
        """Why the pod does not fit, None when it does; it has to fit with the pods that were promised the node, and
        without them.

        Source: runtime/framework.go ``RunFilterPluginsWithNominatedPods``.

        Raises:
            PluginFailure: a plugin failed.
        """
        beside = filter_beside_nominated(
            self._framework, self._state, self._pod, self._snapshot, self._row, self._pod.uid, self._asked
        )
        rejections = beside or self._rejections()
        return next((status.by(plugin) for plugin, status in rejections.items()), None)


def filter_beside_nominated(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    row: int,
    uid: PodUid,
    unsettled: Sequence[FilterRunner] | None,
) -> dict[str, Status]:
    """By filter that rejects a node when the pods that were promised it are there, in running order; empty as well when
    there are none that ``pod`` has to respect.

    Args:
        uid: of the pod that need not make room for itself.
        unsettled: as a `DryRun` has it.
    Raises:
        PluginFailure: a plugin failed.
    """
    promised = snapshot.nominations.ahead_of(uid, pod.priority, snapshot.table.names[row])
    if not promised:
        return {}
    asked = framework.filters if unsettled is None else unsettled
    nowhere = all(snapshot.table.node_of(other.uid) is None for other in promised)
    if nowhere and _by_sums(framework, state, asked):
        with snapshot.table.supposing_on(row, there=promised):
            return row_rejections(asked, state, pod, snapshot.table, row)
    with DryRun(framework, state, pod, snapshot, row, asked) as crowded:
        for other in promised:
            crowded.add(other)
        return crowded._rejections()


def rejection_by_sums(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    snapshot: Snapshot,
    row: int,
    gone: Sequence[PodInfo],
    unsettled: Sequence[FilterRunner] | None,
) -> Status | None:
    """Why the pod does not fit on a node even if some of its pods were gone, as a `DryRun` would find; None where it
    fits, or where that takes a trial.

    Raises:
        PluginFailure: a plugin failed.
    """
    asked = framework.filters if unsettled is None else unsettled
    table = snapshot.table
    if not _by_sums(framework, state, asked) or snapshot.nominations.ahead_of(pod.uid, pod.priority, table.names[row]):
        return None
    with table.supposing_on(row, gone=gone):
        rejections = row_rejections(asked, state, pod, table, row)
    return next((status.by(plugin) for plugin, status in rejections.items()), None)


def _by_sums(framework: Framework, state: CycleState, asked: Sequence[FilterRunner]) -> bool:
    """Whether sums tell what a trial comes to, without what it takes."""
    return all(runner.scope is Scope.SUMS for runner in asked) and not framework.follows_pods(state)
