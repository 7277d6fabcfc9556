"""What annotations of a PodGroup say about where its pods should be. They are dsched's own, and read with the gate
``DschedGangPlacement``.

::

    dsched.io/required-topology: topology.kubernetes.io/zone
    dsched.io/preferred-topology: example.com/rack,example.com/block
    dsched.io/desired-count: "16"

The rules are in docs/pod-groups.md.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

GATE = "DschedGangPlacement"
REQUIRED = "dsched.io/required-topology"
PREFERRED = "dsched.io/preferred-topology"
DESIRED = "dsched.io/desired-count"
MOST_KEYS = 4
"""Labels in one of the lists at most."""
MOST_PODS = 2**31 - 1


class PlacementWishes(NamedTuple):
    """
    Attributes:
        required: node labels of which all pods of the group get one value each.
        preferred: node labels of which they get one value if they can, the narrowest first.
        desired: how many pods the group is to have in the end; None is as many as there are.
    """

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    desired: int | None = None

    def aim(self, scheduled: int, waiting: int) -> int:
        """For how many more pods there is to be room, with so many on nodes and waiting."""
        return waiting if self.desired is None else max(self.desired - scheduled, waiting)


class Misread(NamedTuple):
    """An annotation that does not say what it should.

    Attributes:
        path: ``metadata.annotations[NAME]``.
    """

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def read(annotations: Mapping[str, str], min_count: int) -> tuple[PlacementWishes, list[Misread]]:
    """What the annotations say, and what is wrong with them.

    Args:
        min_count: so many of the group's pods are placed together.
    """
    wrong: list[Misread] = []
    required, preferred = (_keys(annotations, name, wrong) for name in (REQUIRED, PREFERRED))
    for key in set(required) & set(preferred):
        wrong.append(Misread(_path(PREFERRED), f'"{key}" is in {REQUIRED} as well; name it once'))
    return PlacementWishes(required, preferred, _desired(annotations, min_count, wrong)), wrong


def _path(name: str) -> str:
    return f"metadata.annotations[{name}]"


def _keys(annotations: Mapping[str, str], name: str, wrong: list[Misread]) -> tuple[str, ...]:
    text = annotations.get(name)
    if text is None:
        return ()
    keys = [key.strip() for key in text.split(",")]
    if not all(keys):
        wrong.append(Misread(_path(name), f'"{text}" has an empty entry; list node labels with commas between them'))
    if len(keys) > MOST_KEYS:
        wrong.append(Misread(_path(name), f"has {len(keys)} entries, more than {MOST_KEYS}"))
    wrong += [Misread(_path(name), f'"{key}" is there twice') for key in _twice(keys)]
    return tuple(dict.fromkeys(filter(None, keys)))


def _twice(keys: Iterable[str]) -> list[str]:
    keys = list(filter(None, keys))
    return [key for key in dict.fromkeys(keys) if keys.count(key) > 1]


def _desired(annotations: Mapping[str, str], min_count: int, wrong: list[Misread]) -> int | None:
    text = annotations.get(DESIRED)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_PODS)) and 1 <= int(text) <= MOST_PODS):
        wrong.append(Misread(_path(DESIRED), f'"{text}" is no number from 1 to {MOST_PODS}'))
        return None
    if int(text) < min_count:
        wrong.append(Misread(_path(DESIRED), f"{text} is less than spec.schedulingPolicy.gang.minCount, {min_count}"))
        return None
    return int(text)
