"""What a command asks of the leader, for only the leader changes scheduling state: a list of requests, an answer each.

A request is taken off the list before it is acted on. A leader that is killed in between leaves it unanswered, and the
command says so when its time is up; asking again does no harm. Requests that nobody takes expire.
"""

import contextlib
import secrets
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from dsched.errors import StateError
from dsched.log import cut, logger
from dsched.model.meta import PodKey
from dsched.model.reading import decoded
from dsched.state import client, keys, lease, replies
from dsched.state.client import Store, WrongType
from dsched.state.scripts import Script

_log = logger(__name__)

KEPT_S = 60
TAKEN_AT_ONCE = 100

_Short = Annotated[str, msgspec.Meta(max_length=100)]

REQUEUE = "requeue"
DROP = "drop"


class Request(msgspec.Struct, frozen=True):
    """
    Attributes:
        id: where the answer goes.
        what: REQUEUE or DROP.
        pods: which pods; empty for all that are unschedulable, with REQUEUE.
        namespace: of these only, None for every one; where no pods are named.
    """

    id: _Short
    what: _Short
    pods: tuple[Annotated[PodKey, msgspec.Meta(max_length=1000)], ...] = ()
    namespace: str | None = None


_read_request = msgspec.json.Decoder(Request).decode


class PodAnswer(msgspec.Struct, frozen=True):
    """What became of one pod: whether it was done, where it stood, and a sentence for people."""

    pod: PodKey
    done: bool
    place: str
    message: str


class Answer(msgspec.Struct, frozen=True):
    """
    Attributes:
        pods: the pods that were named, in their order; none where none was named.
        done: how many it was done for.
        error: why nothing was done, empty where it was.
    """

    pods: tuple[PodAnswer, ...] = ()
    done: int = 0
    error: str = ""


def ask(store: Store, what: str, timeout_s: float, pods: Sequence[PodKey] = (), namespace: str | None = None) -> Answer:
    """Ask the leader, and wait for its answer.

    Raises:
        StateError: nobody leads, the leader did not answer in time, or it refused.
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        held = lease.holder(store)
        if held is None:
            raise StateError("nobody leads, so nobody can do it; dsched status shows what runs")
        request = Request(secrets.token_hex(8), what, tuple(pods), namespace)
        encoded = msgspec.json.encode(request)
        name = store.key(keys.REQUESTS.name)
        pipe: Any = store.redis.pipeline(transaction=True)
        pipe.rpush(name, encoded)
        pipe.expire(name, KEPT_S)
        pipe.execute()
        reply = replies.take(store, request.id, timeout_s)
        if reply is None:
            taken_back = store.redis.lrem(name, 1, encoded)
            how = "did not look at it, and it was withdrawn" if taken_back else "took it and has not answered"
            raise StateError(f"the leader ({held[0]}) {how} within {timeout_s:g}s; ask again")
    try:
        answer = decoded(msgspec.json.Decoder(Answer).decode, reply)
    except msgspec.DecodeError as error:
        raise StateError(f"the answer cannot be read, and is none of the leader's: {cut(str(error))}") from error
    if answer.error:
        raise StateError(answer.error)
    return answer


class Requests:
    """The leader's side, under one epoch."""

    def __init__(self, store: Store, epoch: int) -> None:
        self._store = store
        self._epoch = epoch
        self._take = Script(store, "requests_take")

    def take(self) -> list[Request]:
        """What is asked, oldest first; what cannot be read is dropped with a line in the log.

        Raises:
            StaleEpoch: another leader has taken over; nothing was taken.
        """
        found = []
        for text in self._take(keys.names(keys.EPOCH, keys.REQUESTS), [self._epoch, TAKEN_AT_ONCE]):
            try:
                found.append(decoded(_read_request, text))
            except msgspec.DecodeError as error:
                _log.warning("request cannot be read", extra={"action": "request", "error": cut(str(error))})
        return found

    def answer(self, request: Request, answer: Answer) -> None:
        """Tell whoever asked; in vain where somebody else has put something there."""
        with contextlib.suppress(WrongType):
            replies.push(self._store, request.id, msgspec.json.encode(answer))
