"""The scheduling queue: where every pending pod stands.

::

    (new) ──► gated ──gate removed──► active ──pop──► inflight ──reserve──► reserved | waiting  (see reservations)
      └─────────────────────────────────▲  ▲              │ no node
                            backoff over│  └──hint────────┤
                                     backoff ◄──hint── unschedulable

A pod's record ``pod:NS/NAME`` names its one place; each move is one script for a piece of a batch (see
`dsched.state.pieces`). Who is killed between two moves leaves every pod where the last one put it: in flight is put
back by `recover`, the rest goes on from there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import msgspec

from dsched.model.meta import PodKey, PodUid
from dsched.state import keys, pieces, raw
from dsched.state.client import Store, Value
from dsched.state.pieces import cut, packed
from dsched.state.scripts import Script

READ_AT_ONCE = 1000


class Place(StrEnum):
    """Where a pending pod can stand."""

    NOWHERE = ""
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    INFLIGHT = "inflight"
    RESERVED = "reserved"
    WAITING = "waiting"


class Move(msgspec.Struct, frozen=True):
    """A pod's move from one place into another.

    Attributes:
        source: where it has to be for the move to be made; NOWHERE takes in a new pod.
        score: in the target's zset, ms; the order number for ACTIVE.
        place, order: what QueueSort says of it: the text and the number it is sorted by in the active queue.
        fields: what else to write into its record.
    """

    key: PodKey
    uid: PodUid
    source: Place
    target: Place
    score: int
    place: str
    order: int
    fields: Mapping[str, str | int] = msgspec.field(default_factory=dict)

    def packed(self) -> list[object]:
        """In the form that queue_move takes."""
        flat = [item for pair in self.fields.items() for item in pair]
        return [self.key, self.uid, self.source, self.target, self.score, self.place, self.order, flat]


class Popped(msgspec.Struct, frozen=True):
    """A pod on its way through the scheduling cycle; ``attempt`` counts from 1 and never goes back."""

    key: PodKey
    uid: PodUid
    attempt: int


class Queue:
    """The queues of one system, changed under one epoch."""

    def __init__(self, store: Store, epoch: int) -> None:
        self._store = store
        self._epoch = epoch
        self._move = Script(store, "queue_move")
        self._pop = Script(store, "queue_pop")
        self._flush = Script(store, "queue_flush")
        self._remove = Script(store, "queue_remove")
        self._recover = Script(store, "queue_recover")
        self._mark = Script(store, "intake_mark")
        self._passed: tuple[str, str, str] | None = None
        """What was paused at the last pop, and score and member up to where all pods in the active queue were."""
        self._more = False
        """Whether the last pop has left off before it found a pod."""
        self._overtaken = False
        """Whether pods were put into the active queue after the last pop was sent, be it answered or not."""

    def move(self, moves: Sequence[Move]) -> list[int]:
        """Make moves, a piece after the other; returns the positions of those not made because the pod is elsewhere or
        is another one.

        Raises:
            StaleEpoch: another leader has taken over; the pieces before were moved.
        """
        refused: list[int] = []
        if moves:  # nothing to move is no reason to wait for what was sent ahead
            self._store.settle(self.move_ahead(moves, refused.extend))
        return refused

    def move_ahead(self, moves: Sequence[Move], then: Callable[[list[int]], None]) -> int:
        """As `move`, but without waiting for Redis (`Script.ahead`); returns the number of the last piece.

        Args:
            then: is given the positions of those not made, once all pieces are answered.
        """
        sent = 0
        self._about_to_move(moves)
        refused: list[int] = []

        def answered(start: int, reply: Sequence[Any]) -> None:
            refused.extend(start + int(position) for position in reply)
            if start + pieces.AT_MOST >= len(moves):
                then(refused)

        for number, piece in enumerate(cut(moves)):
            args: list[Value] = [self._epoch, packed([move.packed() for move in piece])]
            sent = self._move.ahead(_KEYS, args, partial(answered, number * pieces.AT_MOST))
        return sent

    def _about_to_move(self, moves: Sequence[Move]) -> None:
        if self._passed is not None and any(_before(move, self._passed) for move in moves):
            self._passed = None
        self._overtaken = self._overtaken or any(move.target is Place.ACTIVE for move in moves)

    def pop(self, batch: str, count: int, now_ms: int, *, from_backoff: bool) -> list[Popped]:
        """Move up to ``count`` pods from the head of the active queue to in flight. When it is empty and
        ``from_backoff``, pods in backoff (not after errors) are popped early, as upstream's SchedulerPopFromBackoffQ.
        Pods of profiles that are paused (`dsched.state.control`) are passed over.

        Raises:
            StaleEpoch: another leader has taken over; nothing was popped.
        """
        while True:
            popped = self._popped(self._pop(_POP_KEYS, self._pop_args(batch, count, now_ms, from_backoff)))
            if popped or not self._more:
                return popped

    def pop_ahead(
        self, batch: str, count: int, now_ms: int, *, from_backoff: bool, then: Callable[[list[Popped]], None]
    ) -> int:
        """As `pop`, but without waiting for Redis (`Script.ahead`); ``then`` is given the pods, none where those that
        stand first are paused and there are too many of them for one script: `pop` goes on from there."""
        args = self._pop_args(batch, count, now_ms, from_backoff)
        return self._pop.ahead(_POP_KEYS, args, lambda reply: then(self._popped(reply)))

    def _pop_args(self, batch: str, count: int, now_ms: int, from_backoff: bool) -> list[Value]:
        self._overtaken = False
        return [
            self._epoch,
            batch,
            min(count, pieces.LIGHT_AT_MOST),
            now_ms,
            int(from_backoff),
            packed(self._passed or ()),
        ]

    def _popped(self, reply: Sequence[Any]) -> list[Popped]:
        signature, score, member, more, *flat = reply
        self._more = bool(more)
        known = signature and not self._overtaken
        self._passed = (raw.text(signature), raw.text(score), raw.text(member)) if known else None
        return [
            Popped(PodKey(raw.text(flat[at])), PodUid(raw.text(flat[at + 1])), int(flat[at + 2]))
            for at in range(0, len(flat), 3)
        ]

    def flush_backoff(self, now_ms: int) -> list[PodKey]:
        """Move pods whose backoff is over to the active queue; returns them."""
        self._passed, self._overtaken = None, True
        moved: list[PodKey] = []
        while True:
            piece = self._flush(_KEYS, [self._epoch, now_ms, pieces.AT_MOST])
            moved += [PodKey(raw.text(key)) for key in piece]
            if len(piece) < pieces.AT_MOST:
                return moved

    def remove(self, pods: Sequence[tuple[PodKey, PodUid]]) -> list[Place]:
        """Forget pods that are no longer pending; returns where each stood."""
        stood: list[Place] = []
        for piece in cut(pods):
            stood += [_place(raw.text(place)) for place in self._remove(_KEYS, [self._epoch, packed(piece)])]
        return stood

    def remove_ahead(self, pods: Sequence[tuple[PodKey, PodUid]]) -> None:
        """As `remove`, but without waiting for Redis (`Script.ahead`)."""
        for piece in cut(pods):
            self._remove.ahead(_KEYS, [self._epoch, packed(piece)])

    def recover(self, before: int = 0) -> int:
        """Put what an earlier leader had in flight back to active, a piece after the other; returns how many.

        Args:
            before: the epoch under which this very process led last: it was not lost with a pod.
        """
        recovered, cursor = 0, 0
        while True:
            cursor, found = (
                int(number) for number in self._recover(_KEYS, [self._epoch, before, cursor, pieces.AT_MOST])
            )
            recovered += found
            if cursor == 0:
                return recovered

    def mark_intake(self, version: int, schedulers: Iterable[str], cluster: str = "standalone") -> None:
        """Note up to which version of which kind of cluster the pods of these scheduler names have been taken in;
        without waiting for Redis (`Script.ahead`)."""
        self._mark.ahead(keys.names(keys.EPOCH, keys.INTAKE), [self._epoch, version, " ".join(schedulers), cluster])


def _place(text: str) -> Place:
    """NOWHERE where somebody else has written what is no place."""
    return Place(text) if text in _PLACES else Place.NOWHERE


_PLACES = frozenset(Place)


def _before(move: Move, passed: tuple[str, str, str]) -> bool:
    """Whether a move puts a pod where the next pop would not look."""
    _, score, member = passed
    return move.target is Place.ACTIVE and (move.score, f"{move.place} {move.key}") <= (float(score), member)


_KEYS = keys.names(*keys.QUEUES)
_POP_KEYS = keys.names(keys.EPOCH, keys.ACTIVE, keys.BACKOFF, keys.INFLIGHT, keys.POD, keys.PAUSED)


@dataclass(frozen=True, slots=True)
class Record:
    """What the queue knows of a pending pod, as it is in Redis."""

    key: PodKey
    fields: Mapping[str, str]

    @property
    def uid(self) -> PodUid:
        return PodUid(self.fields.get("uid", ""))

    @property
    def queue(self) -> Place:
        return Place(self.fields.get("queue", ""))

    @property
    def attempts(self) -> int:
        return raw.strictly(self.fields.get("attempts", "0"))

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins that rejected it last."""
        return frozenset(self.fields.get("plugins", "").split())


def read_records(store: Store) -> Iterable[Record]:
    """Every pending pod's record, once; needs no epoch, changes nothing."""
    prefix = store.key(keys.POD.name)
    names = store.names(keys.POD.name)
    for start in range(0, len(names), READ_AT_ONCE):
        yield from _read(store, prefix, names[start : start + READ_AT_ONCE])


def _read(store: Store, prefix: str, names: Sequence[bytes]) -> Iterable[Record]:
    with store.redis.pipeline(transaction=False) as pipeline:
        for name in names:
            pipeline.hgetall(name)
        for name, fields in zip(names, pipeline.execute(), strict=True):
            if fields:
                decoded = {raw.text(field): raw.text(value) for field, value in fields.items()}
                yield Record(PodKey(raw.text(name)[len(prefix) :]), decoded)
