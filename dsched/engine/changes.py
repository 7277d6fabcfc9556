"""When an evaluation was taken, what its answers depend on, and what has changed since that they depend on."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import NamedTuple

from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Scope
from dsched.framework.pod_info import PodInfo
from dsched.framework.runtime import Framework
from dsched.framework.snapshot import Snapshot
from dsched.framework.validation import PluginFailure


class Changes(NamedTuple):
    """What has changed and can be judged again.

    Attributes:
        rows: table rows whose node, pods or promises did, each once.
        objects: whether node objects did.
        moved: plugins that skipped the pod and might not do so again, and those that look at the whole cluster and may
            answer otherwise.
    """

    rows: Sequence[int]
    objects: bool
    moved: Collection[str]


UNCHANGED = Changes((), False, ())
"""Nothing at all has changed."""


class Bearings:
    """The bearings of one evaluation."""

    def __init__(self, framework: Framework, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> None:
        self._framework = framework
        self._state = state
        self._pod = pod
        self._snapshot = snapshot
        self._table = snapshot.table
        self._layout = self._table.layout
        self._reach = Scope.NODE
        self._scored = False
        self._skips: Mapping[str, Hashable] = {}
        self._answers: Mapping[str, Hashable] = {}
        self._found: _Found | None = None
        self._compared: tuple[_Found, Collection[str]] | None = None
        """What `_moved` said of the plugins' answers."""
        self.take()

    def stand_for(self, pod: PodInfo) -> None:
        """Ask the plugins about this pod of the class from now on."""
        if pod is not self._pod:
            self._pod, self._found = pod, None

    def take(self) -> None:
        """The answers hold for the snapshot as it is now."""
        self.take_rows()
        self._taken = self._position
        self._version = self._snapshot.version
        self._objects_version = self._table.objects_version
        self._others_version = self._snapshot.others_version
        self._nominations_version = self._snapshot.nominations.version

    def take_rows(self) -> None:
        """What is said of each node by itself holds for the table as it is now."""
        self._position = self._table.position

    def depend(self, scored: bool) -> None:
        """Note what the answers depend on, and under what circumstances plugins skipped the pod.

        Args:
            scored: whether nodes were scored.
        Raises:
            PluginFailure: a plugin failed to say.
        """
        self._scored = scored
        self._reach = self._framework.reach(self._state, scored)
        self._found = None
        self.depend_on_same()

    def depend_on_same(self) -> None:
        """Note it anew where the same plugins skip the pod as before.

        Raises:
            PluginFailure: a plugin failed to say.
        """
        found = self._now()
        self._skips, self._answers, self._compared = found.skips, found.answers, None

    @property
    def moved_rows(self) -> bool:
        """Whether nodes came or went, so that rows mean other nodes."""
        return self._layout != self._table.layout

    @property
    def unchanged(self) -> bool:
        """Whether nothing at all has changed."""
        return self._snapshot.version == self._version

    @property
    def one_pod_moved(self) -> bool:
        """Whether nothing has changed but one row, and no promise."""
        return self._table.position == self._position + 1 and self._nothing_else

    @property
    def one_pod_moved_since_taken(self) -> bool:
        """Whether this is all that has changed since `take`."""
        return self._table.position == self._taken + 1 and self._nothing_else

    @property
    def _nothing_else(self) -> bool:
        return (
            self._snapshot.others_version == self._others_version
            and self._snapshot.nominations.version == self._nominations_version
        )

    def only_pods_moved(self) -> Sequence[int] | None:
        """The table rows where pods came or went since, where no node object changed and no node is or was promised to
        anybody; else None."""
        nominations, table = self._snapshot.nominations, self._table
        if nominations or nominations.version != self._nominations_version or self.moved_rows:
            return None
        if table.objects_version != self._objects_version:
            return None
        return table.changed_since(self._position)

    def changes(self) -> Changes | None:
        """What has changed; None where that touches more than can be judged again."""
        nominations, index = self._snapshot.nominations, self._table.index
        rows = self._table.changed_since(self._position)
        promised = nominations.changed_since(self._nominations_version)
        objects = self._table.objects_version != self._objects_version
        if rows is None or promised is None or (objects and self._reach is Scope.NODES):
            return None
        moved = self._moved()
        others = self._snapshot.others_version != self._others_version
        wide = self._reach is Scope.CLUSTER or bool(moved)
        if moved is None or self._reach is Scope.ANYTHING or (wide and objects):
            return None
        if wide and others and not self._framework.versions_have_objects({*self._answers, *moved}):
            return None
        if promised:
            rows = list(dict.fromkeys([*rows, *(index[name] for name in promised if name in index)]))
        return Changes(rows, objects, moved)

    def moved_by_one(self) -> Collection[str] | None:
        """`Changes.moved`, where `one_pod_moved`; None where that touches more than can be judged again."""
        return None if self._reach is Scope.ANYTHING else self._moved()

    def _moved(self) -> Collection[str] | None:
        """None when a plugin fails to say, which the new evaluation tells."""
        try:
            found = self._now()
        except PluginFailure:
            return None
        if not found.answers and found.skips == self._skips:
            return ()
        if self._compared is not None and self._compared[0] is found:
            return self._compared[1]
        moved = {name for name, version in found.skips.items() if version != self._skips.get(name)}
        answers = found.answers.items()
        moved |= {name for name, version in answers if version is None or version != self._answers.get(name)}
        self._compared = found, moved
        return moved

    def _now(self) -> "_Found":
        """What the plugins say at present, asked once for each version of the snapshot, or of the terms in it where
        that is as good.

        Raises:
            PluginFailure: a plugin failed to say.
        """
        found, snapshot = self._found, self._snapshot
        if found is None or found.version != (snapshot.terms_version if found.lasts else snapshot.version):
            framework, state, pod = self._framework, self._state, self._pod
            skips = framework.skips(state, pod, snapshot)
            answers = framework.answers(state, pod, snapshot, self._scored)
            lasts = not answers and framework.skips_last(skips, snapshot)
            version = snapshot.terms_version if lasts else snapshot.version
            found = self._found = _Found(version, lasts, skips, answers)
        return found


class _Found(NamedTuple):
    """What `Framework.skips` and `Framework.answers` said of a version of the snapshot.

    Attributes:
        lasts: whether ``version`` is the snapshot's `terms_version`.
    """

    version: int
    lasts: bool
    skips: Mapping[str, Hashable]
    answers: Mapping[str, Hashable]
