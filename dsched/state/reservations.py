"""Reservations: pods assumed on nodes until they are bound.

::

    inflight ──reserve──► reserved ──bind_begin──► binding ──confirm──► (bound: no longer pending)
                  └─────► waiting ──allow──► reserved      └─release──► a queue, or forgotten
                             reserved ◄──pause── binding
                             reserved ──cancel──► cancelled ──release──► a queue

A reservation ends in `confirm` or in `release`, once; both look whether it still stands, so they can be repeated. No
timer ends one: an overdue bind is looked up in the cluster first. Who is killed in between leaves the reservation
standing under an older epoch; the next leader adopts it, which makes every bind job of the older epoch void.

With a reservation go the devices that the pod takes (`dsched.state.devices`), in the same script.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from dsched.errors import StateError
from dsched.model import raw
from dsched.model.claim_requests import DeviceCharge
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.scheduler.ports import Amounts, Move, QueueName
from dsched.state import keys, pieces
from dsched.state.client import Store, Value
from dsched.state.pieces import cut, packed
from dsched.state.scripts import Script

_KEYS = keys.names(*keys.QUEUES_AND_RESERVATIONS)
_RELEASE_KEYS = keys.names(*keys.RELEASE)
_RESERVE_KEYS = keys.names(*keys.RESERVE)
_MARK_KEYS = keys.names(keys.EPOCH, keys.RESERVATIONS)


class Request(msgspec.Struct, frozen=True):
    """A pod to be assumed on a node seen at ``version`` (any change) and ``object_version`` (the node object)."""

    key: PodKey
    uid: PodUid
    node: NodeName
    version: int
    object_version: int
    amounts: Amounts
    has_ports: bool
    deadline_ms: int = 0
    """When Permit's wait ends; 0 means that nothing holds it back."""
    devices: Sequence[DeviceCharge] = ()
    """What it takes of devices."""
    group: str = ""
    """Requests of one group that follow one another are carried out together or not at all."""
    queues: Sequence[tuple[str, Amounts]] = ()
    """Queues above it that have limits, each with what counts against these."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation as it stands in Redis; ``state`` is reserved, waiting, binding or cancelled."""

    uid: PodUid
    key: PodKey
    node: NodeName
    epoch: int
    state: str
    attempt: int
    since_ms: int


OK, CHANGED, TAKEN, LIMITED, GONE, TOGETHER = "ok", "changed", "taken", "limited", "gone", "together"


class Reservations:
    """The reservations of one system, changed under one epoch."""

    def __init__(self, store: Store, epoch: int) -> None:
        self._store = store
        self._epoch = epoch
        self._reserve = Script(store, "reserve")
        self._release = Script(store, "reservation_release")
        self._confirm = Script(store, "reservation_confirm")
        self._allow = Script(store, "reservation_allow")
        self._adopt = Script(store, "reservation_adopt")
        self._mark = Script(store, "reservation_mark")
        self._drop = Script(store, "reservation_drop")
        self.released = 0
        """How often reservations were ended without a bind."""

    def reserve(self, requests: Sequence[Request], now_ms: int) -> list[str]:
        """Assume pods on nodes, each on its own or with its group: OK, CHANGED (evaluate it again), TAKEN (another
        reserved pod has its devices; evaluate it again), LIMITED (a queue would exceed its limit; evaluate it again),
        GONE (no longer in flight), or TOGETHER (it would do, another
        one of its group does not). A group is one script, however many pods it has.

        Raises:
            StaleEpoch: another leader has taken over; nothing was reserved.
        """
        verdicts: list[str] = []
        self._store.settle(self.reserve_ahead(requests, now_ms, verdicts.extend))
        return verdicts

    def reserve_ahead(self, requests: Sequence[Request], now_ms: int, then: Callable[[Iterable[str]], None]) -> int:
        """As `reserve`, but without waiting for Redis (`Script.ahead`); ``then`` is given the verdicts, a piece after
        the other."""
        number = 0
        for piece in _pieces(_units(requests)):
            args: list[Value] = [self._epoch, now_ms, packed(piece)]
            number = self._reserve.ahead(_RESERVE_KEYS, args, lambda reply: then(verdict.decode() for verdict in reply))
        return number

    def settle(self, number: int) -> None:
        """Wait for the answer to what was sent ahead under a number.

        Raises:
            StaleEpoch: another leader has taken over.
        """
        self._store.settle(number)

    def release(self, releases: Sequence[tuple[Move, NodeName, Amounts]]) -> list[bool]:
        """End reservations without a bind and make each pod's move (to NOWHERE: forget it); says which stood."""
        self.released += 1
        rows = []
        for move, node, amounts in releases:
            key, uid, _, target, score, place, order, fields = move.packed()
            rows.append([key, uid, node, texts(amounts), target, score, place, order, fields])
        stood: list[bool] = []
        for piece in cut(rows):
            stood += [bool(reply) for reply in self._release(_RELEASE_KEYS, [self._epoch, packed(piece)])]
        return stood

    def confirm(self, pods: Sequence[tuple[PodKey, PodUid]]) -> list[bool]:
        """End reservations whose pods are bound; says which stood."""
        stood: list[bool] = []
        for piece in cut(pods):
            stood += [bool(reply) for reply in self._confirm(_KEYS, [self._epoch, packed(piece)])]
        return stood

    def confirm_ahead(self, pods: Sequence[tuple[PodKey, PodUid]]) -> None:
        """As `confirm`, but without waiting for Redis (`Script.ahead`)."""
        for piece in cut(pods):
            self._confirm.ahead(_KEYS, [self._epoch, packed(piece)])

    def allow(self, pods: Sequence[tuple[PodKey, PodUid]]) -> list[bool]:
        """Permit no longer holds these pods back; says which were waiting."""
        allowed: list[bool] = []
        for piece in cut(pods):
            allowed += [bool(reply) for reply in self._allow(_KEYS, [self._epoch, packed(piece)])]
        return allowed

    def pause_ahead(self, uids: Sequence[PodUid]) -> None:
        """No binder is at work on these pods until they are handed out again. Does not wait for Redis
        (`Script.ahead`)."""
        for piece in cut(uids):
            self._mark.ahead(_MARK_KEYS, [self._epoch, "binding", "reserved", packed(piece)])

    def cancel(self, uids: Sequence[PodUid]) -> list[bool]:
        """These pods are not to be bound any more, and are released next; says of which that is so. Those that a binder
        has begun to bind are left."""
        cancelled: list[bool] = []
        for piece in cut(uids):
            replies = self._mark(_MARK_KEYS, [self._epoch, "reserved", "cancelled", packed(piece)])
            cancelled += [bool(reply) for reply in replies]
        return cancelled

    def adopt(self, uids: Sequence[PodUid]) -> int:
        """Take over reservations of earlier epochs; returns how many stood."""
        return sum(int(self._adopt(_MARK_KEYS, [self._epoch, packed(piece)])) for piece in cut(uids))

    def drop_unreadable(self) -> dict[PodUid, str]:
        """End reservations that somebody has made unreadable; returns their texts. Usage has to be counted anew."""
        dropped: dict[PodUid, str] = {}
        cursor = 0
        while True:
            names = keys.names(keys.EPOCH, keys.RESERVATIONS, keys.DEVICES, keys.DEVICES_USED)
            following, *flat = self._drop(names, [self._epoch, cursor, pieces.LIGHT_AT_MOST])
            found = [raw.text(text) for text in flat]
            dropped |= {PodUid(uid): text for uid, text in zip(found[::2], found[1::2], strict=True)}
            cursor = int(following)
            if cursor == 0:
                return dropped


def _row(request: Request) -> list[object]:
    """In the form that reserve takes."""
    return [
        request.key,
        request.uid,
        request.node,
        str(request.version),
        str(request.object_version),
        QueueName.WAITING if request.deadline_ms else QueueName.RESERVED,
        request.deadline_ms,
        texts(request.amounts),
        int(request.has_ports),
        [[each.holder, texts(each.amounts), texts(each.limits)] for each in request.devices],
        [[queue, texts(amounts)] for queue, amounts in request.queues],
    ]


def _units(requests: Sequence[Request]) -> list[list[list[object]]]:
    """The rows, those of a group together."""
    units: list[list[list[object]]] = []
    group = ""
    for request in requests:
        if request.group and request.group == group:
            units[-1].append(_row(request))
        else:
            units.append([_row(request)])
        group = request.group
    return units


def _pieces(units: Sequence[list[list[object]]]) -> Iterator[list[list[list[object]]]]:
    """As `dsched.state.pieces.cut`, but by rows; a unit stays whole."""
    piece: list[list[list[object]]] = []
    rows = 0
    for unit in units:
        if piece and rows + len(unit) > pieces.AT_MOST:
            yield piece
            piece, rows = [], 0
        piece.append(unit)
        rows += len(unit)
    if piece:
        yield piece


def texts(amounts: Amounts) -> dict[str, str]:
    """Amounts as texts: Lua's numbers are exact only up to 2^53."""
    return {resource: str(amount) for resource, amount in amounts.items()}


def read_reservations(store: Store) -> list[Reservation]:
    """Every reservation that stands; needs no epoch, changes nothing.

    Raises:
        StateError: an entry is not one of ours.
    """
    return [parse(PodUid(raw.text(uid)), raw.text(text)) for uid, text in _hash(store).items()]


def _hash(store: Store) -> dict[bytes, bytes]:
    return dict(store.redis.hscan_iter(store.key(keys.RESERVATIONS.name), count=pieces.AT_MOST))


def parse(uid: PodUid, text: str) -> Reservation:
    """A reservation from its text in Redis.

    Raises:
        StateError: it has another form.
    """
    try:
        key, node, epoch, state, attempt, since_ms = text.split(" ")
        counts = [raw.strictly(number) for number in (epoch, attempt, since_ms)]
        return Reservation(uid, PodKey(key), NodeName(node), counts[0], state, counts[1], counts[2])
    except ValueError as error:
        raise StateError(f"reservation {uid}: {text!r} is not 'NS/NAME NODE EPOCH STATE ATTEMPT SINCE_MS'") from error
