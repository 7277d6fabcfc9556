"""Objects of a snapshot, decoded: each once, until it changes.

Objects of a snapshot are replaced, never changed in place, so that an object that is the same one as before needs no
second look.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from weakref import ref

from dsched.framework.snapshot import Snapshot

View = TypeVar("View")

_SPARE = 64
"""So many views of objects that are gone are kept at least before they are looked for."""


class Views(Generic[View]):
    """The objects of one kind, each as a view that is made once."""

    def __init__(self, snapshot: Snapshot, kind: str, make: Callable[[Mapping[str, Any]], View]) -> None:
        self._snapshot = ref(snapshot)
        self._kind = kind
        self._make = make
        self._made: dict[str, tuple[Mapping[str, Any], View]] = {}
        self._every: list[View] = []
        self._every_at = -1

    @property
    def version(self) -> int:
        """Grows with every change of an object of the kind."""
        snapshot = self._snapshot()
        return 0 if snapshot is None else snapshot.version_of(self._kind)

    def get(self, key: str) -> View | None:
        """The object with this key, None where there is none."""
        raw = self._objects.get(key)
        return None if raw is None else self._view(key, raw)

    def every(self) -> Sequence[View]:
        """All of them, in the snapshot's order."""
        if self._every_at != self.version:
            self._every = [self._view(key, raw) for key, raw in self._objects.items()]
            self._every_at = self.version
        return self._every

    @property
    def _objects(self) -> Mapping[str, Mapping[str, Any]]:
        snapshot = self._snapshot()
        return {} if snapshot is None else snapshot.others(self._kind)

    def _view(self, key: str, raw: Mapping[str, Any]) -> View:
        made = self._made.get(key)
        if made is not None and made[0] is raw:
            return made[1]
        view = self._make(raw)
        self._made[key] = (raw, view)
        objects = self._objects
        if len(self._made) > 2 * len(objects) + _SPARE:
            self._made = {key: made for key, made in self._made.items() if key in objects}
        return view
