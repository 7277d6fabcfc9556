"""Calls every script through the Python that calls it, on a Redis that only writes down what it is asked."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.scheduler.ports import Move, QueueName
from dsched.state import misfits
from dsched.state.attempt_history import UNSCHEDULABLE, Attempt, AttemptHistory
from dsched.state.client import Store
from dsched.state.devices import Devices
from dsched.state.leader_config import LeaderConfig, publish
from dsched.state.lease import Lease
from dsched.state.node_log import NodeLog
from dsched.state.queue import Queue, scan_records
from dsched.state.recording import RecordingStream
from dsched.state.requests import Requests
from dsched.state.reservations import Request, Reservations
from dsched.state.results import Binds, Result, Results
from dsched.state.standings import Asked, Lookout
from dsched.state.usage import Usage
from tests.builders import make_snapshot

EPOCH = 7
ATTEMPT = Attempt(1, 0, EPOCH, PodUid("uid-web"), "default-scheduler", UNSCHEDULABLE, 3)
KEY, UID, NODE = PodKey("shop/web"), PodUid("uid-web"), NodeName("n1")
_NUMBERS = {"explained_keep": 0, "log_append": 1, "reservation_adopt": 0, "tape_append": 1}
_REPLIES: dict[str, Any] = {
    "lease_acquire": [EPOCH, 3000, 0],
    "queue_look": [b"7", [[], None, [], []]],
    "queue_recover": [0, 0],
    "reservation_drop": [b"0"],
    "queue_pop": [b"", b"", b"", b""],
    **_NUMBERS,
}


@dataclass
class Call:
    """One call as it would reach Redis."""

    script: str
    keys: Sequence[str]
    args: Sequence[Any]


@dataclass
class WritingDown:
    """Takes the place of the Redis client."""

    calls: list[Call] = field(default_factory=list)

    def register_script(self, source: str) -> Callable[..., Any]:
        name = source.removeprefix("-- ").partition(":")[0]

        def script(keys: Sequence[str], args: Sequence[Any]) -> Any:
            self.calls.append(Call(name, keys, args))
            return _REPLIES.get(name, [])

        return script

    def hscan_iter(self, name: str, count: int) -> Iterator[tuple[bytes, bytes]]:
        """Of what pods hold of devices, one is there that nobody reserved."""
        return iter([(b"uid-gone", b"{}")] if name.endswith(":devices") else [])

    def xrevrange(self, name: str, count: int) -> list[Any]:
        return []


def _move(source: QueueName, target: QueueName) -> Move:
    return Move(KEY, UID, source, target, 0, "turn", 0, {"message": "m"})


def _log(store: Store) -> None:
    NodeLog(store, EPOCH).publish(make_snapshot())


def _lease(store: Store) -> Lease:
    lease = Lease(store, "me", 1000)
    lease.epoch = EPOCH
    return lease


def _usage(store: Store) -> None:
    usage = Usage(store, EPOCH)
    usage.set(NODE, {"cpu": 1})
    usage.flush()


CALLERS: dict[str, Callable[[Store], object]] = {
    "bind_begin": lambda store: Binds(store).begin(EPOCH, [(KEY, UID, NODE, 1)]),
    "config_publish": lambda store: publish(store, LeaderConfig(EPOCH, "3f2a", "standalone")),
    "devices_release": lambda store: Devices(store, EPOCH).release([(UID, "uid-claim")]),
    "devices_write": lambda store: Devices(store, EPOCH).recount([]),
    "intake_mark": lambda store: Queue(store, EPOCH).mark_intake(1, ["default-scheduler"]),
    "keys_drop": lambda store: misfits.drop(store, EPOCH, misfits.SINGLE),
    "lease_acquire": lambda store: _lease(store).acquire(),
    "lease_release": lambda store: _lease(store).release(),
    "lease_renew": lambda store: _lease(store).renew(),
    "log_append": _log,
    "nodes_write": _usage,
    "queue_flush": lambda store: Queue(store, EPOCH).flush_backoff(0),
    "queue_look": lambda store: Lookout(store).look([Asked(KEY)]),
    "queue_move": lambda store: Queue(store, EPOCH).move([_move(QueueName.NOWHERE, QueueName.ACTIVE)]),
    "queue_pop": lambda store: Queue(store, EPOCH).pop("1", 1, 0, from_backoff=True),
    "explained_keep": lambda store: AttemptHistory(store, EPOCH).keep([(KEY, ATTEMPT)], 0),
    "requests_take": lambda store: Requests(store, EPOCH).take(),
    "queue_recover": lambda store: Queue(store, EPOCH).recover(),
    "queue_remove": lambda store: Queue(store, EPOCH).remove([(KEY, UID)]),
    "queue_scan": lambda store: scan_records(store, b"0", lambda reply: None),
    "reservation_drop": lambda store: Reservations(store, EPOCH).drop_unreadable(),
    "reservation_adopt": lambda store: Reservations(store, EPOCH).adopt([UID]),
    "reservation_allow": lambda store: Reservations(store, EPOCH).allow([(KEY, UID)]),
    "reservation_confirm": lambda store: Reservations(store, EPOCH).confirm([(KEY, UID)]),
    "reservation_mark": lambda store: Reservations(store, EPOCH).cancel([UID]),
    "reservation_release": lambda store: Reservations(store, EPOCH).release(
        [(_move(QueueName.RESERVED, QueueName.ACTIVE), NODE, {"cpu": 1})]
    ),
    "reserve": lambda store: Reservations(store, EPOCH).reserve([Request(KEY, UID, NODE, 1, 1, {"cpu": 1}, False)], 0),
    "tape_append": lambda store: RecordingStream(store, EPOCH).append("0f0f", 1, b"{}"),
    "results_ack": lambda store: Results(store, EPOCH).ack([Result("1-0", EPOCH, "binder", ())]),
}
"""The method that calls a script, by script. A script without one is missing here, or nobody needs it."""
