"""What pods of one class are told of nodes, kept up to date node by node.

Devices that are taken or given back concern the nodes that reach their pool; all others are told what they were told
before. Only the chosen node is searched for the very devices.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go ``Filter``, ``computeScore``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dsched.framework.interface import Code, Status, unresolvable, unschedulable
from dsched.framework.table import NodeTable
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.model.resource_claims import AllocatedDevice, ResourceClaim
from dsched.plugins.dynamic_resources import extended_resources
from dsched.plugins.dynamic_resources.allocation.allocated import SupposedState
from dsched.plugins.dynamic_resources.allocation.allocator import Allocator, CountOnNode, Steps
from dsched.plugins.dynamic_resources.allocation.best_fit import BEST
from dsched.plugins.dynamic_resources.allocation.failures import AllocationError, AllocationTimeout, InvalidPools
from dsched.plugins.dynamic_resources.allocation.search import Expired, never
from dsched.plugins.dynamic_resources.device_search import ATTEMPT_S, ENDED, Answer, Answers, Depends, DeviceSearch
from dsched.plugins.dynamic_resources.extended_resources import Asked, Extended
from dsched.plugins.dynamic_resources.held_claims import HeldClaim
from dsched.plugins.dynamic_resources.inventory import Inventory

NOT_ALLOCATED = unresolvable("cannot allocate all claims")
NOT_YET_ALLOCATED = unschedulable(*NOT_ALLOCATED.reasons)
"""It could be otherwise if pods of lower priority were gone (gate ``DschedDevicePreemption``)."""
NOT_AVAILABLE = unresolvable("resourceclaim not available on the node")
NO_SUCH_RESOURCE = unresolvable("cannot fit resource")
EARLIER_CLAIM = unresolvable("cannot schedule extended resource claim")
INVALID_POOLS = unresolvable(str(InvalidPools()))
NOT_SEARCHED = Status(Code.ERROR, ("no devices were searched for",))
"""Of a node that another filter rejects, where a search would take long."""
_FIXED = (
    NOT_ALLOCATED,
    NOT_YET_ALLOCATED,
    NOT_AVAILABLE,
    NO_SUCH_RESOURCE,
    EARLIER_CLAIM,
    INVALID_POOLS,
)
_MOST_ALTERNATIVES = 8
"""A request has so many at most; the first of them scores as much (``FirstAvailableDeviceRequestMaxSize``)."""


class Wish:
    """What a pod asks for.

    Attributes:
        pod: the pod.
        claims: those it names that have no devices yet.
        held: those that have.
        extended: extended resources that may be devices; None where none may.
        earlier: the claim of its extended resources is one that an earlier attempt made.
    """

    def __init__(
        self,
        pod: Pod,
        claims: Sequence[ResourceClaim],
        held: Sequence[HeldClaim],
        extended: Asked | None,
        earlier: bool,
    ) -> None:
        self.pod = pod
        self.claims = tuple(claims)
        self.held = tuple(held)
        self.extended = extended
        self.earlier = earlier

    @property
    def names_claims(self) -> bool:
        """Whether it names any claim."""
        return bool(self.claims or self.held)

    @property
    def needed(self) -> int:
        """How many claims devices are to be found for, that of extended resources included."""
        return len(self.claims) + (self.extended is not None)

    @property
    def scores(self) -> bool:
        """Whether nodes may differ in how much they are liked."""
        return any(request.first_available for claim in self.claims for request in claim.spec.devices.requests)


class _Later(Exception):
    """A node is not searched now: it would take too long."""


class Limits:
    """How long things may take.

    Attributes:
        now: seconds on a clock.
        begin: starts the time that one node may take.
        given_up: whether a claim's devices should be taken away again.
        late: the status of a node on which a search took too long.
    """

    def __init__(
        self,
        now: Callable[[], float],
        begin: Callable[[], Expired],
        given_up: Callable[[ResourceClaim], bool],
        late: Callable[[NodeName], Status],
    ) -> None:
        self.now = now
        self.begin = begin
        self.given_up = given_up
        self.late = late


class Otherwise(NamedTuple):
    """What is supposed of devices.

    Attributes:
        gone: uids of pods that are gone, and have given back what nobody else uses.
        taken: devices that are in use beside those that are.
    """

    gone: frozenset[str] = frozenset()
    taken: tuple[AllocatedDevice, ...] = ()


class Judgement:
    """What the pods of a class are told.

    Attributes:
        search: what has to be found before the pod that was asked about can be told; None where all is known.
    """

    def __init__(self, wish: Wish, inventory: Inventory, limits: Limits) -> None:
        self.wish = wish
        self._inventory = inventory
        self._limits = limits
        self._allocators: dict[tuple[str, ...], Allocator | None] = {}
        self._extended: dict[tuple[str, ...], Extended] = {}
        self._given_up: tuple[bool, ...] = ()
        self._statuses: list[Status] = list(_FIXED)
        self._codes = np.zeros(0, dtype=np.int32)
        self._points: dict[int, int] = {}
        self._counts: dict[int, CountOnNode | None] = {}
        """How to count on the rows whose devices have changed."""
        self._at: tuple[object, ...] = ()
        self._allocated_at = 0
        self._delegated_at: tuple[object, ...] = ()
        self._delegated_on: dict[int, tuple[str, ...]] = {}
        self.search: DeviceSearch | None = None
        self._running: DeviceSearch | None = None
        self._answers = Answers()
        self._unknown: set[int] = set()
        self._late: dict[int, float] = {}
        """Rows on which the time was over, and when they were told so."""
        self._passing: set[Status] = set()
        """Statuses that no row has for long: they are about the class, and forgotten with the last row."""

    @property
    def erroneous(self) -> bool:
        """Whether a node was told what names the claims of the very pod."""
        return len(self._statuses) > len(_FIXED) + len(self._passing)

    def version(self) -> tuple[object, ...]:
        """As long as this is equal, and no object of the cluster changes, every node is told the same."""
        inventory = self._inventory
        return inventory.index.version, inventory.allocated.version, self._now_given_up()

    def begin(self) -> None:
        """An attempt, which may ask several times: where the time was over in the last one is searched again."""
        if self._late:
            since = self._limits.now() - ATTEMPT_S
            again = [row for row, told in self._late.items() if told <= since]
            self._unknown.update(again)
            for row in again:
                del self._late[row]

    def codes(
        self, table: NodeTable, asked: Callable[[], Sequence[int]] | None = None, over: Expired = never
    ) -> tuple[NDArray[np.int32], tuple[Status, ...]]:
        """For each row of the table 0 where the pod may go, or k for the status k - 1. Not to be written to.

        Args:
            asked: the rows of which that has to be known, else `search` says what to wait for; of the others, which
                another filter rejects, it may be `NOT_SEARCHED`.
            over: whether the pod has held up all others for long enough.
        """
        self._refresh(table, over)
        self.search, error = None, 0
        if asked is not None and self._unknown:
            self.search, error = self._searched(table, asked(), over)
        if self._passing and not self._unknown and not self._late:
            self._forget_passing()
        codes = self._codes
        if error:
            codes = np.where(codes == self._number(NOT_SEARCHED), error, codes)
        return codes, tuple(self._statuses)

    def points(self, table: NodeTable, rows: Iterable[int]) -> list[int]:
        """How much some rows are liked for the alternatives that could be had there, where devices are to be had, and
        for how well they fit, where that is asked for.

        Raises:
            AllocationError: as `Allocator.allocate`.
        """
        self._refresh(table)
        return [self._points_of(table, row) for row in rows]

    def allocate(
        self, table: NodeTable, row: int, supposed: Otherwise | None = None
    ) -> tuple[list[dict[str, Any]], Extended | None] | None:
        """The devices for the claims that have none on a node, in order, that of extended resources last; and this one,
        where there is one. None where there are not enough.

        Raises:
            AllocationError, AllocationTimeout, InvalidPools: as `Allocator.allocate`.
        """
        node, delegated = table.nodes[row], self._delegated(table, row)
        allocator = self._allocator(delegated)
        if allocator is None:
            return [], None
        found = self._supposing(allocator, supposed).allocate(node, self._limits.begin(), self._steps(table, row))
        return None if found is None else (found, self._extended.get(delegated))

    def adopt(self, wish: Wish) -> "Judgement":
        """The same for another pod of the class: to find its very devices with."""
        other = Judgement(wish, self._inventory, self._limits)
        other._answers = self._answers
        if wish.extended is None:
            known = self._allocators.get(())
            if known is not None:
                other._allocators[()] = known.alike(wish.claims)
        return other

    def suppose(self, table: NodeTable, row: int, supposed: Otherwise) -> Status | None:
        """What a node would be told if devices were held by others than now."""
        return self._judge(table, row, supposed)

    def unavailable(self, node: Node) -> list[HeldClaim]:
        """The claims whose devices cannot be used on a node, or should be taken away again."""
        return [
            held
            for held, given_up in zip(self.wish.held, self._now_given_up(), strict=True)
            if given_up or not held.reaches(node)
        ]

    # -- keeping it up to date -------------------------------------------------------------------------------------

    def _refresh(self, table: NodeTable, over: Expired = never) -> None:
        inventory, given_up = self._inventory, self._now_given_up()
        at = table, table.layout, table.objects_version, inventory.index.version, given_up
        version = inventory.allocated.version
        if at == self._at and version == self._allocated_at:
            return
        rows = inventory.stale_rows(table, self._allocated_at) if at == self._at else None
        if rows is None:
            self._statuses = list(_FIXED)
            self._codes = np.zeros(len(table), dtype=np.int32)
            self._passing = set()
            self._unknown, self._late = set(), {}
            self._points, self._counts = {}, {}
        counting = rows is not None and not (self._unknown or self._late or self.wish.earlier or self.wish.held)
        self._given_up, self._at, self._allocated_at = given_up, at, version
        for row in range(len(table)) if rows is None else rows:
            self._points.pop(row, None)
            if not (counting and self._recount(table, row)):
                self._tell(table, row, over)

    def _recount(self, table: NodeTable, row: int) -> bool:
        """As `_tell`, in fewer steps, of a row whose devices have changed: where many classes take devices by turns,
        each has to be told of all that the others took. False: there is more to it than to count."""
        if row not in self._counts:
            self._counts[row] = self._count_on(table, row)
        count = self._counts[row]
        fits = None if count is None else count.fits()
        if fits is None or not (fits or self._inventory.consumers is None):
            return False
        self._codes[row] = 0 if fits else self._number(NOT_ALLOCATED)
        return True

    def _count_on(self, table: NodeTable, row: int) -> CountOnNode | None:
        if self._lacks_a_resource(table.nodes[row]):
            return None
        delegated = self._delegated(table, row)
        allocator = self._allocator(delegated) if delegated or self.wish.names_claims else None
        try:
            return None if allocator is None else allocator.count_on(table.nodes[row])
        except AllocationError:  # `_tell` says which
            return None

    def _tell(self, table: NodeTable, row: int, over: Expired) -> bool:
        """Take down what a node is told; whether that is known."""
        try:
            status = self._judge(table, row, over=over)
        except _Later:
            self._unknown.add(row)
            self._passing.add(NOT_SEARCHED)
            self._codes[row] = self._number(NOT_SEARCHED)
            return False
        self._unknown.discard(row)
        self._late.pop(row, None)
        if status is not None and status not in _FIXED and self._is_late(status, table.names[row]):
            self._late[row] = self._limits.now()
            self._passing.add(status)
        self._codes[row] = 0 if status is None else self._number(status)
        return True

    def _searched(self, table: NodeTable, asked: Sequence[int], over: Expired) -> tuple[DeviceSearch | None, int]:
        """What is to be searched for some rows, None where all is known; and the code of an error about one of them,
        which ends the attempt whatever the others are told."""
        left = [row for row in asked if row in self._unknown and not self._tell(table, row, over)]
        if not left:
            return None, 0
        for code in sorted(set(self._codes[list(asked)].tolist()) - {0, self._number(NOT_SEARCHED)}):
            if self._statuses[code - 1].code is Code.ERROR:
                return None, code
        if self._running is None:
            self._running = DeviceSearch(
                table,
                [table.names[row] for row in left],
                lambda row: self._depends(table, row),
                lambda row: self._found_on(table, row),
                self._taken,
            )
        return self._running, 0

    def _forget_passing(self) -> None:
        """What no row is told any more: a status that is no rejection keeps others from being kept."""
        left = [status for status in self._statuses if status not in self._passing]
        numbers = [left.index(status) + 1 if status in left else 0 for status in self._statuses]
        self._codes = np.array([0, *numbers], dtype=np.int32)[self._codes]
        self._statuses, self._passing = left, set()

    def _depends(self, table: NodeTable, row: int) -> Depends:
        """
        Raises:
            AllocationError: something is wrong with a slice.
        """
        delegated = self._delegated(table, row)
        allocator = self._allocator(delegated)
        return Depends.on(table.nodes[row], delegated, allocator) if allocator else Depends({}, (), (), ())

    def _found_on(self, table: NodeTable, row: int) -> tuple[Status | None, Steps]:
        """The search of a row, whatever time it takes below the limit of a node."""
        allocator = self._allocator(self._delegated(table, row))
        if allocator is None:
            return None, {}
        steps: Steps = {}

        def fits(supposing: Allocator, expired: Expired) -> bool:
            nonlocal steps
            found = supposing.found(table.nodes[row], expired)
            steps = {} if found is None else found.steps
            return found is not None

        return self._allocatable(allocator, table, row, None, never, fits), steps

    def _taken(self, found: Mapping[NodeName, Answer]) -> None:
        self._running = None
        self._answers.take(found)

    def _steps(self, table: NodeTable, row: int) -> Steps | None:
        answer = self._answers.of(table.names[row], lambda: self._depends(table, row))
        return None if answer is None else answer.steps

    def _now_given_up(self) -> tuple[bool, ...]:
        return tuple(self._limits.given_up(held.record) for held in self.wish.held)

    def _is_late(self, status: Status, node: NodeName) -> bool:
        return status in (ENDED, self._limits.late(node))

    def _number(self, status: Status) -> int:
        if status not in self._statuses:
            self._statuses.append(status)
        return self._statuses.index(status) + 1

    # -- one node --------------------------------------------------------------------------------------------------

    def _judge(
        self, table: NodeTable, row: int, supposed: Otherwise | None = None, over: Expired = never
    ) -> Status | None:
        """
        Raises:
            _Later: the time that the pod may hold up others is over.
        """
        if self.wish.earlier:
            return EARLIER_CLAIM
        node = table.nodes[row]
        if self._lacks_a_resource(node):
            return NO_SUCH_RESOURCE
        delegated = self._delegated(table, row)
        if not delegated and not self.wish.names_claims:
            return None
        allocator = self._allocator(delegated)
        if allocator is not None:
            refusal = self._allocatable(allocator, table, row, supposed, over)
            if refusal is not None:
                return refusal
        return NOT_AVAILABLE if self.wish.held and self.unavailable(node) else None

    def _lacks_a_resource(self, node: Node) -> bool:
        """Whether a node does not know an extended resource that devices do not meet."""
        asked = self.wish.extended
        return asked is not None and any(name not in node.status.allocatable for name in asked.others)

    def _allocatable(
        self,
        allocator: Allocator,
        table: NodeTable,
        row: int,
        supposed: Otherwise | None,
        over: Expired,
        fits: Callable[[Allocator, Expired], bool] | None = None,
    ) -> Status | None:
        """
        Args:
            fits: searches the node, where no answer is known; else `Allocator.fits` does.

        Raises:
            _Later: the time that the pod may hold up others is over.
        """
        node = table.nodes[row]
        try:
            supposing = self._supposing(allocator, supposed)
            counted = supposing.counted(node)  # most often, and it needs no clock
            if counted:
                return None
            if counted is None:
                if fits is None and supposing is allocator and (answer := self._answer(table, row, over)) is not None:
                    return answer.status
                expired = self._until(over)
                if fits(supposing, expired) if fits is not None else supposing.fits(node, expired):
                    return None
            freed = self._could_be_freed(allocator, table, row, supposed, over)
            return NOT_YET_ALLOCATED if freed else NOT_ALLOCATED
        except AllocationTimeout:
            if over():
                raise _Later from None
            return self._limits.late(node.name)
        except InvalidPools:
            return INVALID_POOLS
        except AllocationError as error:
            return Status(Code.ERROR, (str(error),))

    def _until(self, over: Expired) -> Expired:
        expired = self._limits.begin()
        return expired if over is never else lambda: over() or expired()

    def _answer(self, table: NodeTable, row: int, over: Expired) -> Answer | None:
        """What was found elsewhere, or that it has been outdated too often; None where the node may be searched here.

        Raises:
            _Later: it may not.
        """
        name = table.names[row]
        answer = self._answers.of(name, lambda: self._depends(table, row))
        if answer is not None:
            if answer.status is not None and self._is_late(answer.status, name):
                self._answers.drop(name)
            return answer
        if over is never:
            return None
        if self._answers.is_over(name):
            return Answer(self._depends(table, row), self._limits.late(name), {}, slow=True)
        if self._answers.is_slow(name) or over():
            raise _Later
        return None

    def _supposing(self, allocator: Allocator, supposed: Otherwise | None) -> Allocator:
        if supposed is None or not (supposed.gone or supposed.taken):
            return allocator
        given_back = self._inventory.without(supposed.gone, self._kept)
        return allocator.with_state(SupposedState(self._inventory.allocated, given_back, supposed.taken))

    def _could_be_freed(
        self, allocator: Allocator, table: NodeTable, row: int, supposed: Otherwise | None, over: Expired
    ) -> bool:
        """Whether there would be devices on a node without its pods of lower priority."""
        if self._inventory.consumers is None:
            return False
        priority, now = self.wish.pod.spec.priority, supposed or Otherwise()
        lower = {other.uid for other in table.pods[row].values() if other.priority < priority}
        without = Otherwise(now.gone | lower, now.taken)
        before, after = (self._inventory.without(each.gone, self._kept) for each in (now, without))
        if len(before) == len(after):
            return False
        try:
            return self._supposing(allocator, without).fits(table.nodes[row], self._until(over))
        except (AllocationError, InvalidPools):
            if over():
                raise _Later from None
            return False  # what went well with fewer devices fails with more: evicting pods is no help

    @property
    def _kept(self) -> frozenset[str]:
        """The pod's own claims, which it would go on using."""
        return frozenset(held.record.key for held in self.wish.held)

    def _delegated(self, table: NodeTable, row: int) -> tuple[str, ...]:
        """The extended resources that a node has to meet by devices, having none of them itself."""
        asked = self.wish.extended
        if asked is None:
            return ()
        at = table, table.layout, table.objects_version
        if at != self._delegated_at:
            self._delegated_at, self._delegated_on = at, {}
        found = self._delegated_on.get(row)
        if found is None:
            found = tuple(name for name in asked.backed if not table.allocatable(name)[row])
            self._delegated_on[row] = found
        return found

    def _allocator(self, delegated: tuple[str, ...]) -> Allocator | None:
        """What looks for devices on nodes that have to meet these resources; None where none are wanted."""
        if delegated not in self._allocators:
            self._allocators[delegated] = self._made(delegated)
        return self._allocators[delegated]

    def _made(self, delegated: tuple[str, ...]) -> Allocator | None:
        wish, inventory = self.wish, self._inventory
        claims = [*wish.claims]
        if wish.extended is not None and (delegated or wish.names_claims):
            class_behind = inventory.objects.class_behind
            self._extended[delegated] = extended_resources.claim_for(wish.pod, delegated, class_behind)
            claims.append(self._extended[delegated].claim)
        if not claims:
            return None
        classes = inventory.objects.classes.get
        return Allocator(claims, classes, inventory.index, inventory.allocated, inventory.selectors, inventory.features)

    def _points_of(self, table: NodeTable, row: int) -> int:
        if row not in self._points:
            allocator = self._allocator(self._delegated(table, row))
            begin, steps = self._limits.begin, self._steps(table, row)
            found = None if allocator is None else allocator.found(table.nodes[row], begin(), steps)
            points = 0 if found is None else self._score(found.allocations)
            if self._inventory.features.best_fit:  # alternatives go before the fit
                points = points * (BEST + 1) + (0 if found is None else found.fit)
            self._points[row] = points
        return self._points[row]

    def _score(self, allocations: Sequence[dict[str, Any]]) -> int:
        wish = self.wish
        chosen = [
            (claim, {each["request"] for each in allocation["devices"].get("results", ())})
            for claim, allocation in zip(wish.claims, allocations, strict=False)
        ]
        chosen += [(held.record, {each.request for each in held.allocation.devices.results}) for held in wish.held]
        return sum(
            _MOST_ALTERNATIVES - number
            for claim, names in chosen
            for request in claim.spec.devices.requests
            for number, each in enumerate(request.first_available)
            if f"{request.name}/{each.name}" in names
        )
