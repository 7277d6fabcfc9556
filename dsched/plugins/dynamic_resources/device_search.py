"""Searches for devices that would hold up the scheduling cycle: done node by node in a process of their own.

An answer holds as long as what it depends on is the same: what the node can use, and who has devices of it. Upstream
has nothing like it: it searches nodes side by side, and its cycle waits.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgpack

from dsched.framework.status import Code, Status
from dsched.framework.table import NodeTable
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.plugins.dynamic_resources.allocation.allocator import Allocator, Steps
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError
from dsched.plugins.dynamic_resources.allocation.pools import Pool

MOST_S = 0.25
"""How long a pod may hold up all others while devices are searched for it."""
ATTEMPT_S = 0.5
"""So long questions about a pod may follow each other in one attempt; the next attempt comes a second later."""
SLOW_S = 0.05
"""A node where a search has taken longer is not searched in the cycle any more."""
MOST_TIMES = 3
"""After so many searches whose answers were outdated when they came, the time counts as over."""
ENDED = Status(Code.ERROR, ("the process that searched for devices has ended",))


class Depends(NamedTuple):
    """What an answer about a node depends on."""

    labels: Mapping[str, str]
    delegated: tuple[str, ...]
    pools: tuple[Pool, ...]
    versions: tuple[int, ...]

    @staticmethod
    def on(node: Node, delegated: tuple[str, ...], allocator: Allocator) -> "Depends":
        """
        Raises:
            AllocationError: something is wrong with a slice.
        """
        pools = tuple(allocator.index.pools(node))
        versions = tuple(allocator.allocated.version_of(pool.id) for pool in pools)
        return Depends(node.metadata.labels, delegated, pools, versions)

    def same(self, other: "Depends") -> bool:
        """Whether nothing has changed."""
        return (
            self.versions == other.versions
            and len(self.pools) == len(other.pools)
            and all(one is another for one, another in zip(self.pools, other.pools, strict=True))
            and (self.labels, self.delegated) == (other.labels, other.delegated)
        )


class Answer(NamedTuple):
    """What a search has found.

    Attributes:
        status: of the node; None where there are devices.
        steps: to the devices.
        slow: it took long.
    """

    depends: Depends
    status: Status | None
    steps: Steps
    slow: bool


class DeviceSearch:
    """A search on some nodes for the claims of a class of pods.

    Args:
        names: of the nodes.
        depends: what the answer about a table row will depend on.
        search: searches a row; its status, and the steps to devices.
        found: takes the answers by node; after an error there are none about the nodes that come then.
    """

    def __init__(
        self,
        table: NodeTable,
        names: Sequence[NodeName],
        depends: Callable[[int], Depends],
        search: Callable[[int], tuple[Status | None, Steps]],
        found: Callable[[Mapping[NodeName, Answer]], None],
    ) -> None:
        self._table = table
        self._names = names
        self._depends = depends
        self._search = search
        self._found = found
        self._begun: dict[NodeName, Depends] = {}

    def begin(self) -> None:
        """Note how the nodes are."""
        self._begun = {}
        for name in self._names:
            row = self._table.index.get(name)
            try:
                if row is not None:
                    self._begun[name] = self._depends(row)
            except AllocationError:
                continue  # which the next attempt is told at once

    def work(self) -> bytes:
        """Search, up to the first error: it ends the pod's attempt."""
        found: list[Any] = []
        for name in self._begun:
            began = time.monotonic()
            status, steps = self._search(self._table.index[name])
            slow = time.monotonic() - began > SLOW_S
            said = None if status is None else (int(status.code), status.reasons)
            found.append((name, said, [(*step, list(numbers)) for step, numbers in steps.items()], slow))
            if status is not None and status.code is Code.ERROR:
                break
        packed: bytes = msgpack.packb(found)
        return packed

    def done(self, answer: bytes | None) -> None:
        """Keep the answers."""
        if answer is None:
            first = dict(list(self._begun.items())[:1])
            self._found({name: Answer(depends, ENDED, {}, slow=True) for name, depends in first.items()})
            return
        found: dict[NodeName, Answer] = {}
        for name, said, steps, slow in msgpack.unpackb(answer):
            status = None if said is None else Status(Code(said[0]), tuple(said[1]))
            by_request = {(claim, request): numbers for claim, request, numbers in steps}
            found[NodeName(name)] = Answer(self._begun[NodeName(name)], status, by_request, slow)
        self._found(found)


class Answers:
    """What was found for a class of pods, by node."""

    def __init__(self) -> None:
        self._known: dict[NodeName, Answer] = {}
        self._outdated: dict[NodeName, int] = {}
        self._slow: set[NodeName] = set()

    def take(self, found: Mapping[NodeName, Answer]) -> None:
        """Keep answers."""
        self._known.update(found)
        self._slow |= {name for name, answer in found.items() if answer.slow}

    def is_slow(self, node: NodeName) -> bool:
        """Whether the last search took long there."""
        return node in self._slow

    def of(self, node: NodeName, depends: Callable[[], Depends]) -> Answer | None:
        """The answer about a node, as long as it holds."""
        answer = self._known.get(node)
        if answer is None:
            return None
        if answer.depends.same(depends()):
            self._outdated.pop(node, None)
            return answer
        del self._known[node]
        self._outdated[node] = self._outdated.get(node, 0) + 1
        return None

    def is_over(self, node: NodeName) -> bool:
        """Whether so many answers came too late that no further one is waited for; told once."""
        if self._outdated.get(node, 0) < MOST_TIMES:
            return False
        del self._outdated[node]
        return True

    def drop(self, node: NodeName) -> None:
        """Search the node anew."""
        self._known.pop(node, None)
