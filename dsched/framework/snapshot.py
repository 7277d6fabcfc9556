"""The cluster as one scheduling attempt sees it: the node table and the objects beside it."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from dsched.framework.nominations import Nominations
from dsched.framework.pod_groups import PodGroups
from dsched.framework.table import NodeTable
from dsched.model.meta import from_builtins
from dsched.model.pod_groups import POD_GROUP, GroupKey, PodGroup

_REMEMBERED = 4096
"""So many changes of objects of a kind are remembered."""


class Snapshot:
    """The node table and the other objects (by kind, then by key) that plugins look things up in.

    There is one per process; it is brought up to date between attempts, never during one.
    """

    def __init__(self, table: NodeTable | None = None) -> None:
        self.table = table or NodeTable()
        self._others: dict[str, dict[str, Mapping[str, Any]]] = {}
        self._others_version = 0
        self._kind_versions: dict[str, int] = {}
        self._changed_keys: dict[str, deque[str]] = {}
        self.nominations = Nominations()
        self.pod_groups = PodGroups()

    def clear(self) -> None:
        """Forget everything; references to this snapshot stay good."""
        self.table = NodeTable()
        for kind in self._others:
            self._changed(kind, "")
        self._changed_keys = {}
        self._others = {}
        self.pod_groups.objects.clear()

    def others(self, kind: str) -> Mapping[str, Mapping[str, Any]]:
        """Objects of a kind other than Pod and Node, by ``namespace/name`` or ``name``."""
        return self._others.get(kind, {})

    @property
    def version(self) -> int:
        """Grows with every change of anything in here."""
        return self.table.version + self._others_version + self.nominations.version

    @property
    def others_version(self) -> int:
        """Grows with every change of an object that is neither pod nor node."""
        return self._others_version

    def version_of(self, kind: str) -> int:
        """Grows with every change of an object of this kind, which is neither Pod nor Node."""
        return self._kind_versions.get(kind, 0)

    def changed_since(self, kind: str, version: int) -> Collection[str] | None:
        """Keys of the objects of a kind that came, changed or went since `version_of` said this; None where that is not
        known any more."""
        changes, known = self.version_of(kind) - version, self._changed_keys.get(kind, ())
        return set(islice(reversed(known), changes)) if changes <= len(known) else None

    def every_other(self) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Kind, key and object of all that are neither pods nor nodes."""
        for kind, objects in self._others.items():
            for key, value in objects.items():
                yield kind, key, value

    def put(self, kind: str, key: str, value: Mapping[str, Any]) -> None:
        """Take in an object."""
        self._others.setdefault(kind, {})[key] = value
        if kind == POD_GROUP:
            self.pod_groups.objects[GroupKey(key)] = from_builtins(value, PodGroup)
        self._changed(kind, key)

    def drop(self, kind: str, key: str) -> None:
        """Forget an object."""
        self._others.get(kind, {}).pop(key, None)
        if kind == POD_GROUP:
            self.pod_groups.objects.pop(GroupKey(key), None)
        self._changed(kind, key)

    def _changed(self, kind: str, key: str) -> None:
        self._others_version += 1
        self._changed_keys.setdefault(kind, deque(maxlen=_REMEMBERED)).append(key)
        self._kind_versions[kind] = self._kind_versions.get(kind, 0) + 1
