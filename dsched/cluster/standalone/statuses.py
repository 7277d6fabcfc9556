"""Writing what the scheduler says of objects in standalone mode: conditions of pod groups, the status of queues.

An object is written only if it is as it was read, a batch a script; one that was changed meanwhile is looked at again.
Killed between two batches, what was written stays, and is said again with what is said of the object next.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dsched.cluster import pod_groups
from dsched.cluster.interface import GroupStatus
from dsched.cluster.standalone import keys, stored
from dsched.cluster.standalone.objects import Objects, read_object, readable
from dsched.log import logger
from dsched.manifests import kinds
from dsched.state import client, pieces
from dsched.state import keys as state_keys
from dsched.state.client import Store
from dsched.state.scripts import Script

_log = logger(__name__)

ATTEMPTS = 20
"""How often objects that keep changing are looked at again."""

Object = Mapping[str, Any]
Told = Callable[[Object], Object | None]
"""The object with what is said of it; None where it says that already, or is another one."""


class StatusWriter:
    """Writes the status of objects of one kind. Raises RedisUnavailable while Redis does not answer.

    Args:
        log_length: about how many changes a watcher may be behind.
    """

    def __init__(self, store: Store, kind: kinds.Kind, log_length: int) -> None:
        self._store = store
        self._kind = kind
        self._log_length = log_length
        self._objects = Objects(store)
        self._keys = state_keys.names(keys.VERSION, keys.LOG, keys.objects(kind), state_keys.EPOCH)
        self._report = Script(store, "statuses_report", stored.SCRIPTS)

    def report(self, told: Mapping[str, Told], epoch: str) -> None:
        """Write what is said of objects, by key; those that are gone are passed over. One that somebody changes faster
        than it can be looked at is told of in the log, and keeps what was said of it before: the others are written.

        Args:
            epoch: of the leader that reports; ``""`` for everybody else.

        Raises:
            StaleEpoch: another process leads by now.
        """
        waiting = dict(told)
        for _ in range(ATTEMPTS):
            if not waiting:
                return
            changed = self._once(waiting, epoch)
            waiting = {key: say for key, say in waiting.items() if key in changed}
        for key in waiting:
            extra = {"action": "report_status", "kind": self._kind.name, "key": key, "attempts": ATTEMPTS}
            _log.warning("status not written, the object changed all the time", extra=extra)

    def _once(self, told: Mapping[str, Told], epoch: str) -> set[str]:
        """Try once; returns the objects that have changed meanwhile."""
        wanted = [
            _packed(key, after)
            for key, before in self._read(list(told)).items()
            if (after := told[key](before)) is not None
        ]
        changed: set[str] = set()
        for batch in pieces.cut(wanted, lambda packed: len(packed[3])):
            said = pieces.packed([list(each) for each in batch])
            head = stored.head(self._kind)
            with client.reachable(self._store):
                replies = self._report(self._keys, [epoch, self._log_length, self._kind.name, head, said])
            changed |= {key.decode() for key in replies}
        return changed

    def _read(self, wanted: list[str]) -> dict[str, Object]:
        """The objects that are there and can be read."""
        kind = self._kind
        jsons = zip(wanted, self._objects.get_json(kind, wanted), strict=True)
        read = {key: readable(kind.name, key.encode(), read_object, kind, json) for key, json in jsons if json}
        return {key: value for key, value in read.items() if value is not None}


def _packed(key: str, value: Object) -> tuple[str, str, str, bytes]:
    metadata = value["metadata"]
    return key, metadata["resourceVersion"], metadata["uid"], stored.tail(dict(value))


def group_conditions(statuses: Sequence[GroupStatus], now: str) -> dict[str, Told]:
    """What is said of each group, one status after the other.

    Args:
        now: RFC 3339; when conditions changed, if they did.
    """
    of: dict[str, list[GroupStatus]] = {}
    for status in statuses:
        of.setdefault(status.key, []).append(status)
    return {key: partial(_all, said, now) for key, said in of.items()}


def _all(statuses: Sequence[GroupStatus], now: str, group: Object) -> Object | None:
    before = group
    for status in statuses:
        group = pod_groups.told(group, status, now) or group
    return None if group is before else group
