"""What plugins write once per scheduling attempt and read many times."""

from typing import Any, TypeVar

State = TypeVar("State")


class CycleState:
    """Scratch space of one scheduling attempt, shared by the plugins.

    Attributes:
        shared: values that travel with the pod to the binder, where PreBind, Bind and PostBind run: plain data that
            msgpack can carry, by plugin name.
        skip_filter: plugins whose PreFilter said Skip; their Filter does not run.
        skip_score: plugins whose PreScore said Skip; their Score does not run.
    """

    __slots__ = ("_values", "shared", "skip_filter", "skip_score")

    def __init__(self, shared: dict[str, Any] | None = None) -> None:
        self._values: dict[type, object] = {}
        self.shared: dict[str, Any] = shared or {}
        self.skip_filter: set[str] = set()
        self.skip_score: set[str] = set()

    def clone(self) -> "CycleState":
        """A copy for one pod of a class; the values themselves are shared."""
        copy = CycleState(dict(self.shared))
        copy._values = dict(self._values)
        copy.skip_filter = set(self.skip_filter)
        copy.skip_score = set(self.skip_score)
        return copy

    def fork(self) -> "CycleState":
        """A copy for the sake of argument: values that AddPod and RemovePod change (they have a ``clone`` method) are
        copied too."""
        copy = self.clone()
        for kind, value in self._values.items():
            clone = getattr(value, "clone", None)
            if clone is not None:
                copy._values[kind] = clone()
        return copy

    def write(self, value: object) -> None:
        """Keep a value; there is one of each class, so a plugin defines a class of its own for what it keeps."""
        self._values[type(value)] = value

    def read(self, kind: type[State]) -> State | None:
        """The value of this class, None when nothing was written."""
        value = self._values.get(kind)
        return value if isinstance(value, kind) else None
