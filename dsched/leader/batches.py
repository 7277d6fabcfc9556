"""One batch after the other, so that neither the leader nor Redis stands still: see docs/architecture.md, The cycle.

Killed between `decide` and `finish`: Redis has reserved the batch or not, and popped the next one or not. What is
reserved is adopted by the next leader, what is in flight goes back to active.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dsched import log
from dsched.leader.binders.tracker import BindTracker
from dsched.leader.commit import Begun, Commit
from dsched.leader.parts import LeaderMemory, StoredState
from dsched.metrics import BATCH_DURATION, BATCH_SIZE, collect
from dsched.scheduler.observer import Observer
from dsched.scheduler.ports import Popped, QueueName
from dsched.scheduler.queue import QueuedGroup, QueuedPod
from dsched.scheduler.quota.picking import Picking
from dsched.state import pauses
from dsched.state.pieces import LIGHT_AT_MOST

CYCLE_S = 0.05
"""A batch is kept so small that it takes about this long: a late pod of high priority waits for two at most."""
LARGEST_BATCH = LIGHT_AT_MOST
SMALL_BATCH, BUSY_CYCLE_S = 64, 0.2
"""So few pods may take this long: on a busy machine even small batches take long, and smaller ones only cost more."""

ASK_AGAIN_S = 1.0
"""How often Redis is asked for pods where the leader knows of none."""


@dataclass(slots=True)
class _Ahead:
    """A batch that Redis pops while the one before is not finished; ``popped`` comes with the answer."""

    name: str
    number: int = 0
    popped: Sequence[Popped] = ()


@dataclass(slots=True)
class _Open:
    """A batch that is not finished; ``took_s`` leaves out what the leader does in between."""

    name: str
    pods: int
    begun: Begun | None
    took_s: float


class Batches:
    """The batches of one epoch.

    Attributes:
        size: of the next batch, unless it is a pod alone.
    """

    def __init__(
        self,
        state: StoredState,
        memory: LeaderMemory,
        picking: Picking | None,
        *,
        commit: Commit,
        binding: BindTracker,
        observer: Observer,
        size: int,
    ) -> None:
        self.size = size
        self._epoch, self._queue, self._line = state.epoch, state.queue, state.line
        self._store = state.store
        self._clock, self._pending, self._waiting = memory.clock, memory.pending, memory.waiting
        self._picking = picking
        self._commit = commit
        self._binding = binding
        self._observer = observer
        self._number = 0
        self._open: _Open | None = None
        self._ahead: _Ahead | None = None
        self._full = False
        """Whether the last batch was as large as it was to be, so that more pods are likely to wait."""
        self._alone = False
        """Whether the last one was a pod alone, because processes were lost with it."""
        self._ending = False
        self._popped_at = -math.inf

    @property
    def begun(self) -> bool:
        """Whether there is a batch to be finished: its pods are in flight, and assumed, and not reserved yet."""
        return self._open is not None

    def decide(self) -> bool:
        """Decide a batch and have Redis reserve it; it is finished at once unless the next one is popped as well.
        Returns False when there was nothing to decide, or the binders have enough to do."""
        started = self._clock.monotonic()
        name, popped = self._pop(started)
        if not popped:
            return False
        BATCH_SIZE.observe(len(popped))
        log.about(epoch=self._epoch, batch=name)
        self._observer.popped(name, popped)
        begun = self._commit.begin(popped)
        # After `begin`, on the same line: Redis has reserved this batch before it pops the next one.
        if begun is None or not begun.leaves_some:
            self._pop_ahead(len(popped))
        log.about(epoch=self._epoch)
        self._open = _Open(name, len(popped), begun, self._clock.monotonic() - started)
        if self._ahead is None:
            self.finish()
        return True

    def finish(self) -> None:
        """Act on what Redis has reserved of the batch that was decided, if there is one."""
        batch, self._open = self._open, None
        if batch is None:
            return
        started = self._clock.monotonic()
        log.about(epoch=self._epoch, batch=batch.name)
        if batch.begun is not None:
            self._commit.finish(batch.begun)
        self._observer.finished()
        log.about(epoch=self._epoch)
        took_s = batch.took_s + self._clock.monotonic() - started
        BATCH_DURATION.observe(took_s)
        self._resize(batch.pods, took_s)

    def end(self) -> None:
        """Finish, and decide what is in flight: pods in flight under a leader that is gone count as lost with it."""
        self._ending = True
        self.finish()
        if self._ahead is not None:
            self.decide()
        self._commit.end()
        self._line.settle()

    def _pop(self, now: float) -> tuple[str, Sequence[Popped]]:
        """A batch: the one that was popped ahead, else another one, unless the binders have enough to do."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            self._line.settle(ahead.number)
            if ahead.popped:
                return ahead.name, ahead.popped
        if self._ending or self._binding.is_full(len(self._waiting)):
            return "", ()
        if self._nobody(now):
            self._full = False
            return "", ()
        name, size = self._next()
        self._popped_at = now
        if self._picking is not None and self._picking.any_active():
            popped = self._pick(self._picking, name, size)
        else:
            popped = self._queue.pop(name, size, self._clock.now_ms(), from_backoff=True)
        self._came(popped, size)
        return name, popped

    def _nobody(self, now: float) -> bool:
        """Whether the leader knows of nobody who could be popped, once it has heard what has become of all moves. Redis
        is asked now and then all the same: it is what counts."""
        if self._pending.any_poppable or now - self._popped_at >= ASK_AGAIN_S:
            return False
        self._line.settle()
        return not self._pending.any_poppable

    def _pick(self, picking: Picking, name: str, size: int) -> Sequence[Popped]:
        """Pods whose turn it is; where profiles are paused, of the others."""
        while picked := self._turns(picking, size):
            popped = self._queue.take(name, [_member(pod) for pod in picked], self._clock.now_ms())
            self._left_over(picking, picked, popped)
            if popped or self._queue.paused <= picking.paused:
                return popped
        return ()

    def _turns(self, picking: Picking, size: int) -> list[QueuedPod]:
        if self._queue.paused:  # it may be over by now
            self._queue.paused = frozenset(pauses.profiles(self._store))
        picking.paused = self._queue.paused
        return picking.pick(size)

    def _left_over(self, picking: Picking, picked: Sequence[QueuedPod], popped: Sequence[Popped]) -> None:
        """Those that Redis has not popped stand where they stood."""
        keys = {each.key for each in popped}
        for pod in picked:
            if pod.key not in keys:
                picking.moved(pod, self._pending.members(pod.pod_group.key) if isinstance(pod, QueuedGroup) else ())

    def _pop_ahead(self, pods: int) -> None:
        """Have Redis pop the next batch after it has reserved this one, of so many pods, if as many are likely to wait.
        Whom processes are lost with is decided alone, so nobody is in flight beside it."""
        if not self._full or self._alone or self._ending or self._pending.suspects():
            return
        if self._binding.is_full(len(self._waiting), pods):
            return
        name, size = self._next()
        picking, picked = self._picking, []
        if picking is not None and not (picked := self._turns(picking, size)):
            return
        self._ahead = ahead = _Ahead(name)

        def answered(popped: Sequence[Popped]) -> None:
            ahead.popped = popped
            if picking is not None:
                self._left_over(picking, picked, popped)
            self._came(popped, size)

        if picking is not None:
            members = [_member(pod) for pod in picked]
            ahead.number = self._queue.take_ahead(name, members, self._clock.now_ms(), answered)
            return
        ahead.number = self._queue.pop_ahead(name, size, self._clock.now_ms(), from_backoff=True, then=answered)

    def _next(self) -> tuple[str, int]:
        """Name and size."""
        self._number += 1
        self._alone = self._pending.suspects()
        return f"{self._epoch}-{self._number}", 1 if self._alone else self.size

    def _came(self, popped: Sequence[Popped], size: int) -> None:
        for pod in self._pending.popped(popped):
            if isinstance(pod, QueuedGroup):
                pods = len(self._pending.members(pod.pod_group.key))
                collect.incoming_group(QueueName.ACTIVE, collect.POP_FROM_BACKOFF, pods, moved=True)
            else:
                collect.incoming(QueueName.ACTIVE, collect.POP_FROM_BACKOFF)
        self._full = len(popped) == size

    def _resize(self, pods: int, took_s: float) -> None:
        if took_s > (CYCLE_S if pods > SMALL_BATCH else BUSY_CYCLE_S) and pods > 1:
            self.size = max(1, pods // 2)
        elif pods == self.size and took_s < CYCLE_S / 2:
            self.size = min(2 * self.size, LARGEST_BATCH)


def _member(pod: QueuedPod) -> str:
    """How the active queue has it."""
    return f"{pod.turn} {pod.key}"
