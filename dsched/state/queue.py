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

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgpack
import msgspec

from dsched.model import raw
from dsched.model.meta import PodKey, PodUid
from dsched.scheduler.ports import Move, Popped, QueueName, Record
from dsched.state import keys, pieces
from dsched.state.client import Store, Value
from dsched.state.pieces import cut, packed
from dsched.state.scripts import Script
from dsched.state.walk import HELD, Walk


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
        self.paused: frozenset[str] = frozenset()
        """Profiles that were paused when pods were taken last (`take`)."""

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

    def settle(self) -> None:
        """Wait for what was sent ahead."""
        self._store.settle()

    def _about_to_move(self, moves: Sequence[Move]) -> None:
        if self._passed is not None and any(_before(move, self._passed) for move in moves):
            self._passed = None
        self._overtaken = self._overtaken or any(move.target is QueueName.ACTIVE for move in moves)

    def pop(self, batch: str, count: int, now_ms: int, *, from_backoff: bool) -> list[Popped]:
        """Move up to ``count`` pods from the head of the active queue to in flight. When it is empty and
        ``from_backoff``, pods in backoff (not after errors) are popped early, as upstream's SchedulerPopFromBackoffQ.
        Pods of profiles that are paused (`dsched.state.pauses`) are passed over; where there are many of them, fewer
        than ``count`` may come although more wait, never none.

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

    def take(self, batch: str, members: Sequence[str], now_ms: int) -> list[Popped]:
        """As `pop`, but these members of the active queue, ``PLACE NS/NAME``, in this order, as many as one script may
        be given; those that are not there, or whose profiles are paused, are left out.

        Raises:
            StaleEpoch: another leader has taken over; nothing was popped.
        """
        taken: list[Popped] = []
        self._store.settle(self.take_ahead(batch, members, now_ms, taken.extend))
        return taken

    def take_ahead(self, batch: str, members: Sequence[str], now_ms: int, then: Callable[[list[Popped]], None]) -> int:
        """As `take`, but without waiting for Redis (`Script.ahead`)."""
        wanted = packed(tuple(members[: pieces.LIGHT_AT_MOST]))
        args: list[Value] = [self._epoch, batch, pieces.LIGHT_AT_MOST, now_ms, 0, packed(()), wanted]
        return self._pop.ahead(_POP_KEYS, args, lambda reply: then(self._taken(reply)))

    def _taken(self, reply: Sequence[Any]) -> list[Popped]:
        signature, _, _, _, *flat = reply
        self.paused = frozenset(raw.text(signature).split("\n")) - {""}
        self._passed = None
        return _pods(flat)

    def _pop_args(self, batch: str, count: int, now_ms: int, from_backoff: bool) -> list[Value]:
        self._overtaken = False
        return [
            self._epoch,
            batch,
            min(count, pieces.LIGHT_AT_MOST),
            now_ms,
            int(from_backoff),
            packed(self._passed or ()),
            packed(()),
        ]

    def _popped(self, reply: Sequence[Any]) -> list[Popped]:
        signature, score, member, more, *flat = reply
        self._more = bool(more)
        known = signature and not self._overtaken
        self._passed = (raw.text(signature), raw.text(score), raw.text(member)) if known else None
        return _pods(flat)

    def flush_backoff(self, now_ms: int) -> list[PodKey]:
        """Move pods whose backoff is over to the active queue; returns them."""
        self._passed, self._overtaken = None, True
        moved: list[PodKey] = []
        while True:
            piece = self._flush(_KEYS, [self._epoch, now_ms, pieces.AT_MOST])
            moved += [PodKey(raw.text(key)) for key in piece]
            if len(piece) < pieces.AT_MOST:
                return moved

    def remove(self, pods: Sequence[tuple[PodKey, PodUid]]) -> list[QueueName]:
        """Forget pods that are no longer pending; returns where each stood."""
        stood: list[QueueName] = []
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

    def mark_intake(
        self,
        version: int,
        schedulers: Iterable[str],
        cluster: str = "standalone",
        held_back: int = 0,
        *,
        settled: bool = False,
    ) -> None:
        """Note up to which version of which kind of cluster the pods of these scheduler names have been taken in, how
        many active ones stay so because limits of queues hold them back, and whether nothing else is left to try, which
        holds until a pod is popped or a reservation released; without waiting for Redis (`Script.ahead`)."""
        said: list[str | int] = [self._epoch, version, " ".join(schedulers), cluster, held_back, int(settled)]
        self._mark.ahead(_MARK_KEYS, said)


def _pods(flat: Sequence[Any]) -> list[Popped]:
    return [
        Popped(PodKey(raw.text(flat[at])), PodUid(raw.text(flat[at + 1])), int(flat[at + 2]))
        for at in range(0, len(flat), 3)
    ]


def _place(text: str) -> QueueName:
    """NOWHERE where somebody else has written what is no place."""
    return QueueName(text) if text in _PLACES else QueueName.NOWHERE


_PLACES = frozenset(QueueName)


def _before(move: Move, passed: tuple[str, str, str]) -> bool:
    """Whether a move puts a pod where the next pop would not look."""
    _, score, member = passed
    return move.target is QueueName.ACTIVE and (move.score, f"{move.place} {move.key}") <= (float(score), member)


_KEYS = keys.names(*keys.QUEUES)
_MARK_KEYS = keys.names(keys.EPOCH, keys.INTAKE)
_POP_KEYS = keys.names(keys.EPOCH, keys.ACTIVE, keys.BACKOFF, keys.INFLIGHT, keys.POD, keys.PAUSED, keys.INTAKE)


Records = Walk[tuple[str, dict[str, str]]]
"""Key and fields of records on their way."""


def read_records(store: Store, begun: Records | None = None) -> Iterator[Record]:
    """Every pending pod's record, once; needs no epoch, changes nothing.

    Args:
        begun: the same by `records_ahead`, of which something may have been read already.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    seen: set[str] = set()
    for key, fields in begun or records_ahead(store, HELD):
        if key not in seen:
            seen.add(key)
            yield Record(PodKey(key), fields)


HELD_AHEAD = 1000
"""Pieces of records that are read while the leader makes something else of a million pods: 120 MB at most, given back
before what becomes of them takes up as much."""


def records_ahead(store: Store, held: int = HELD_AHEAD) -> Records:
    """Key and fields of every record; one may come twice."""
    return Walk(store, scan_records, lambda reply: _records(reply[1]), held)


def scan_records(store: Store, cursor: bytes, then: Callable[[Any], None]) -> None:
    """Have a piece of the records read (`dsched.state.walk`)."""
    pattern = store.pattern(keys.POD.name)
    Script(store, "queue_scan").ahead([keys.POD.name], [cursor, pattern, pieces.LIGHT_AT_MOST], then)


_decoder = msgspec.msgpack.Decoder(list[tuple[str, list[str]]])


def _records(piece: bytes) -> Sequence[tuple[str, dict[str, str]]]:
    try:
        found = _decoder.decode(piece)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # somebody else has written what is no text
        read = msgpack.unpackb(piece, raw=True)
        found = [(raw.text(key), [raw.text(each) for each in flat]) for key, flat in read]
    return [(key, dict(zip(each, each, strict=True))) for key, flat in found for each in (iter(flat),)]
