"""What was used last is kept, so much of it and no more."""

from collections import OrderedDict
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LRU(OrderedDict[Key, Value]):
    """A dict in which the entry goes first that was set or used longest ago; looking one up is not using it.

    Attributes:
        most: how many entries there are at most.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: Key, value: Value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self.most:
            self.popitem(last=False)

    def used(self, key: Key) -> Value | None:
        """The value of a key, which has been used now; None where there is none."""
        value = self.get(key)
        if value is not None:
            self.move_to_end(key)
        return value
