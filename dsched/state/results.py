"""Bind jobs' way back: binders ask whether reservations stand, and report outcomes on a stream.

The leader acts on an outcome first and drops the entry after, so an outcome may be seen twice and is never lost. An
entry that no leader of its epoch has read is read by the next one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgpack
import msgspec
import redis

from dsched.log import cut, logger
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.model.reading import decoded
from dsched.state import keys, pieces, strays
from dsched.state.client import Store
from dsched.state.pieces import packed
from dsched.state.scripts import Script

_BEGIN_KEYS = keys.names(keys.EPOCH, keys.RESERVATIONS)
_ACK_KEYS = keys.names(keys.EPOCH, keys.RESULTS)

_log = logger(__name__)

READ_AT_ONCE = 100
LONGEST_MESSAGE = 4096
"""Characters that are kept of why a bind failed."""
_Name = Annotated[str, msgspec.Meta(max_length=1000)]
_read_rows = msgspec.msgpack.Decoder(list[tuple[_Name, _Name, _Name, _Name, str, int, _Name]]).decode

REJECTED = "rejected"
"""Verdict of a bind that a PreBind or Bind plugin failed."""
WAITING = "waiting"
"""Verdict of a bind that PreBind is not ready for yet (a volume is being made): it is asked again soon."""
PROCESS_LOST = "process-lost"
"""Verdict on a pod whose plugin ran when the binder's process was lost; it may be bound or not."""
OTHER_CONFIGURATION = "other-configuration"
"""Verdict of a binder that has another configuration than the leader: nothing was done."""
OTHER_CLUSTER = "other-cluster"
"""Verdict of a binder that was started for another kind of cluster than the leader: nothing was done."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one bind.

    Attributes:
        verdict: a `dsched.cluster.interface.BindVerdict` value, or `REJECTED`, `WAITING`, `PROCESS_LOST`,
            `OTHER_CONFIGURATION`, `OTHER_CLUSTER`.
        plugin: the plugin that failed it, if one did.
    """

    key: PodKey
    uid: PodUid
    node: NodeName
    verdict: str
    message: str
    attempt: int
    plugin: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcomes of one bind job, handed out under ``epoch``."""

    entry: str
    epoch: int
    binder: str
    outcomes: Sequence[Outcome]


class Binds:
    """The binder's side."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._begin = Script(store, "bind_begin")

    def begin(self, epoch: int, pods: Sequence[tuple[PodKey, PodUid, NodeName, int]]) -> list[bool]:
        """Mark the reservations that still stand as binding; says which do.

        Args:
            pods: of each the attempt in which its job was handed out as well: one that waited for long may be void, and
                the pod reserved on that node once more, with other devices.

        Raises:
            StaleEpoch: the job was handed out by a leader that no longer leads.
        """
        standing: list[bool] = []
        for piece in pieces.cut(pods):
            replies = self._begin(_BEGIN_KEYS, [epoch, packed(piece)])
            standing += [bool(reply) for reply in replies]
        return standing

    def report(self, epoch: int, binder: str, outcomes: Sequence[Outcome]) -> None:
        """Tell the leader. Anyone may: an outcome is a statement about the cluster, which the leader can check."""
        rows = [[o.key, o.uid, o.node, o.verdict, o.message, o.attempt, o.plugin] for o in outcomes]
        fields = {"epoch": epoch, "binder": binder, "outcomes": msgpack.packb(rows)}
        self._store.redis.xadd(self._store.key(keys.RESULTS.name), fields)


class Results:
    """The leader's side."""

    def __init__(self, store: Store, epoch: int) -> None:
        self._store = store
        self._epoch = epoch
        self._ack = Script(store, "results_ack")

    def read(self, after: str, timeout_s: float) -> list[Result]:
        """Results after an entry (``0`` for all that are left), waiting up to ``timeout_s`` for the first."""
        name = self._store.key(keys.RESULTS.name)
        try:
            reply = self._store.redis.xread({name: after}, count=READ_AT_ONCE, block=max(1, round(timeout_s * 1000)))
        except redis.ResponseError as error:
            strays.remove(self._store, name, error)
            return []
        return [_result(entry, fields) for _, entries in reply or () for entry, fields in entries]

    def ack(self, results: Sequence[Result]) -> None:
        """Drop results that have been acted on; without waiting for Redis (`Script.ahead`).

        Raises:
            StaleEpoch: another leader has taken over and will read them itself.
        """
        for piece in pieces.cut(results):
            ids = packed([result.entry for result in piece])
            self._ack.ahead(_ACK_KEYS, [self._epoch, ids])


def _result(entry: bytes, fields: dict[bytes, bytes]) -> Result:
    """What cannot be read (a binder of another version wrote it) is handed out empty, so that it is dropped with the
    rest; the pods it was about have no outcome, and the leader looks such pods up."""
    try:
        outcomes = [
            Outcome(PodKey(key), PodUid(uid), NodeName(node), verdict, message[:LONGEST_MESSAGE], attempt, plugin)
            for key, uid, node, verdict, message, attempt, plugin in decoded(_read_rows, fields[b"outcomes"])
        ]
        return Result(entry.decode(), int(fields[b"epoch"]), cut(fields[b"binder"].decode()), outcomes)
    except (ValueError, KeyError, msgspec.DecodeError) as error:
        binder, why = cut(fields.get(b"binder", b"").decode(errors="replace")), cut(repr(error))
        _log.warning(
            "bind result cannot be read, dropped",
            extra={"action": "unreadable_result", "entry": entry.decode(), "binder": binder, "error": why},
        )
        return Result(entry.decode(), 0, binder, ())
