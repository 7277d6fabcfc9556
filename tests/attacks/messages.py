"""Messages that are none of dsched's, in the queues of real workers."""

import base64
import json
import os
import pickle
import random
import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from dsched.leader.dispatch import Dispatcher
from dsched.model import messages
from dsched.model.messages import BIND, BINDERS, EVALUATE, EVALUATORS, PING, BindItem, BindRequest, EvaluateShard
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.state import workers
from dsched.state.broker import own_queue, queue_keys
from tests.attacks.attack import Stand, attack
from tests.builders import make_pod
from tests.integration.workers.processes import Workers, wait_until

NAMES = ("evaluator-1", "binder-1")
STEPS = [key.removeprefix(queue_keys("", "")[0]) for key in queue_keys("", "")]
"""What is appended to a queue's name for each priority."""
SPY = "evaluator-spy"
"""A queue that nobody reads: whatever comes there, a worker has sent."""
BESIDE = ("unacked", "unacked_index", "unacked_mutex", "_kombu.binding.evaluators", "_kombu.binding.C.dq2")
"""What Celery keeps beside its queues, or would."""
OURS = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
OTHER_TASK = {"task": PING, "args": [b""], "kwargs": {}, "options": {"queue": SPY}, "subtask_type": None}
TASKS = [PING, EVALUATE, BIND, "", "celery.map", "celery.group", "celery.chunks", "celery.backend_cleanup", "os.system"]
ODD = [None, True, -1, 1.5, 10**400, "", "x" * 100_000, "\udcff", [], {}, [[]], {"a": {}}, "99999-99-99", [1], "\x00"]


class Farm:
    """A worker of each kind.

    Attributes:
        workers: the processes.
        queues: every queue that they take from, without the priority.
    """

    def __init__(self, stand: Stand) -> None:
        self.store = stand.store()
        self._prefix = self.store.key("celery:")
        for beside in (EVALUATORS, BINDERS, *BESIDE):
            self.store.redis.set(self.key(beside), "x")
        self.workers = Workers(self.store, stand.folder, evaluators=1)
        stand.afterwards(self.workers.stop)
        self.workers.start(*NAMES)
        self.store.redis.delete(*map(self.key, BESIDE))
        self._hosts = [worker.name for worker in workers.read(self.store)]
        self.queues = [EVALUATORS, BINDERS, *map(own_queue, self._hosts)]
        self._take_one()  # before, they may not have forked yet
        self._processes = self._running()

    def key(self, queue: str) -> str:
        """The Redis key of a queue."""
        return self._prefix + queue

    def emptied(self) -> None:
        """Wait until the workers have taken everything."""
        keys = [self.key(queue) + step for queue in self.queues for step in STEPS]
        wait_until("the queues are empty", lambda: not self.store.redis.exists(*keys))

    def unharmed(self) -> None:
        """The very same processes take a right message, all others are gone, and nothing was sent to anybody."""
        self.emptied()
        self._take_one()
        self.emptied()
        assert self._running() == self._processes, "a process was lost"
        for left in ("unacked", "unacked_index", SPY, *(SPY + step for step in STEPS)):
            assert not self.store.redis.exists(self.key(left)), left
        for name in NAMES:
            assert "Traceback" not in self.workers.log(name)

    def _take_one(self) -> None:
        """Each takes a right message."""
        self.store.redis.delete(self.store.key("workers"))
        dispatcher = Dispatcher(self.store)
        dispatcher.ping(self._hosts, expires_s=60)
        dispatcher.close()
        wait_until("they take a right message", lambda: {*self.workers.known()} == {*NAMES})

    def _running(self) -> dict[str, tuple[int, list[int]]]:
        return {name: (self.workers[name].pid, self.workers[name].children()) for name in NAMES}


@attack(
    "messages that are none of dsched's in every queue: any content type, encoding, envelope, body and callback; and "
    "what is no list where a queue should be",
    sees="`message refused` in the worker's log and in dsched_messages_refused_total; the worker goes on",
)
def that_no_worker_sent(stand: Stand) -> None:
    farm = Farm(stand)
    put = 0
    for queue in farm.queues:
        farm.store.redis.set(farm.key(queue) + stand.rng.choice(STEPS), "no list")
    farm.unharmed()
    for queue in farm.queues:
        farm.store.redis.lpush(farm.key(queue), json.dumps(_ours("os.system", b"x")))
    for raw in known():
        put += _put(stand.rng, farm, raw)
    farm.unharmed()
    for _ in range(stand.rounds * 20):
        put += _put(stand.rng, farm, envelope(stand.rng, farm.store))
    farm.unharmed()
    assert put
    for name in NAMES:
        assert "no list, where the queue should be" in farm.workers.log(name)
        log = farm.workers.log(name)
        assert "is carried out here" in log or "untold" in log, log[-2000:]  # of a crowd not all is told


def _put(rng: random.Random, farm: Farm, raw: bytes) -> int:
    return int(farm.store.redis.lpush(farm.key(rng.choice(farm.queues)) + rng.choice(STEPS), raw))


def known() -> Iterator[bytes]:
    """What has ended a worker once, or nearly."""
    yield json.dumps(_ours(PING, b"x") | {"content-type": "application/data", "body": "text"}).encode()
    yield json.dumps(_ours(PING, b"x") | {"content-type": "application/text", "content-encoding": "utf-8"}).encode()
    yield from (b"", b"null", b"[]", b'"x"', b"{", b"\xff\xfe", b"[" * 100_000, b'{"properties":{}}', b"1e999")
    yield b'{"x":' * 50_000 + b"1" + b"}" * 50_000
    bomb = base64.b64encode(zlib.compress(bytes(50_000_000))).decode()
    compressed = _ours(PING, b"x")
    compressed["headers"]["compression"] = "application/x-gzip"
    yield json.dumps(compressed | {"body": bomb}).encode()
    deep = base64.b64encode(b"\x93\x91\xc4\x01x" + b"\x91" * 100_000).decode()
    yield json.dumps(_ours(PING, b"") | {"body": deep}).encode()
    evil = base64.b64encode(pickle.dumps(os.getpid)).decode()
    yield json.dumps(_ours(PING, b"") | {"content-type": "application/x-python-serialize", "body": evil}).encode()
    yield json.dumps(
        {"task": PING, "id": "1", "args": [""], "kwargs": {}, "callbacks": [OTHER_TASK | {"args": []}]}
    ).encode()


def envelope(rng: random.Random, store: Any) -> bytes:
    """A message of ours in which something is not as it should be."""
    made = _ours(rng.choice(TASKS), _payload(rng, store), _embed(rng))
    for _ in range(rng.randrange(4)):
        part = rng.choice([made, made["headers"], made["properties"], made["properties"].get("delivery_info")])
        if not isinstance(part, dict) or not part:
            continue
        name = rng.choice([*part, "compression", "reply_to", "x-death", "stamped_headers", "stamps"])
        if rng.random() < 0.3:
            part.pop(name, None)
        elif name not in ("headers", "properties", "delivery_info"):
            part[name] = rng.choice(ODD)
        if not all(isinstance(made.get(each), dict) for each in ("headers", "properties")):
            break
    if rng.random() < 0.2:
        made[rng.choice(["headers", "properties"])] = rng.choice(ODD)
    if rng.random() < 0.3:
        kinds = ["json", "x-yaml", "x-python-serialize", "data", "text", "x-msgpack", "\x00"]
        made["content-type"] = f"application/{rng.choice(kinds)}"
    if rng.random() < 0.2:
        made["content-encoding"] = rng.choice(["utf-8", "utf-16", "rot13", "zlib", "unicode_escape", "idna", ""])
    raw = json.dumps(made).encode()
    if rng.random() < 0.1:
        at = rng.randrange(len(raw))
        raw = raw[:at] + bytes([rng.randrange(256)]) + raw[at + 1 :]
    return raw


def _ours(task: str, payload: bytes, embed: Any = OURS, body: bytes | None = None) -> dict[str, Any]:
    """What the leader would send."""
    packed = msgspec.msgpack.encode([[payload], {}, embed]) if body is None else body
    return {
        "body": base64.b64encode(packed).decode(),
        "content-encoding": "binary",
        "content-type": "application/x-msgpack",
        "headers": {
            **{"lang": "py", "task": task, "id": "same", "shadow": None, "eta": None, "expires": None, "group": None},
            **{"group_index": None, "retries": 0, "timelimit": [None, None], "root_id": "same", "parent_id": None},
            **{"argsrepr": "", "kwargsrepr": "{}", "origin": "x", "ignore_result": True, "stamped_headers": None},
        },
        "properties": {
            **{"correlation_id": "same", "reply_to": SPY, "delivery_mode": 2, "priority": 0, "body_encoding": "base64"},
            **{"delivery_info": {"exchange": "", "routing_key": SPY}, "delivery_tag": "same"},
        },
    }


def _embed(rng: random.Random) -> Any:
    """What Celery would do once the task is done."""
    if rng.random() < 0.5:
        return OURS
    also = rng.choice([[OTHER_TASK], OTHER_TASK, [[OTHER_TASK]], "x", 1])
    return OURS | {rng.choice(["callbacks", "errbacks", "chain", "chord", "group", "link"]): also}


def _payload(rng: random.Random, store: Any) -> bytes:
    config = next((worker.config for worker in workers.read(store)), "")
    number = rng.choice([0, 1, -1, 2**63 - 1, -(2**63), 2**64 - 1])
    shard = EvaluateShard(
        request=rng.choice(["r", "", "x" * 10_000, "a b\n\x00"]),
        epoch=number,
        table=rng.choice([0, -1, number]),
        config=rng.choice([config, "x"]),
        shard=number,
        parts=rng.choice([[], [0, 5], [-1], [10**6]]),
        rows=rng.choice([0, 3, -1]),
        deadline_ms=2**62,
        pods=rng.choice([[], [("default-scheduler", make_pod("a/b"))], [("x" * 1000, make_pod("a/b"))]]),
        closed=rng.choice([[], [b""], [b"x"], [b"xx"], [b"", b""]]),
        skip=rng.choice([[], [5], [-1]]),
        traces=rng.choice([[], ["x"], ["00-" + "a" * 32 + "-" + "b" * 16 + "-01"]]),
    )
    item = BindItem(PodKey(rng.choice(["a/b", "", "/", "a/b/c"])), PodUid("u"), NodeName("n"), 1, {"x": [[]]})
    bind = BindRequest(epoch=number, config=rng.choice([config, "x"]), profile="default-scheduler", pods=[item, item])
    return rng.choice(
        [
            *(
                messages.encode(shard),
                messages.encode(bind),
                msgspec.msgpack.encode(2**62),
                msgspec.msgpack.encode(number),
            ),
            *(b"", b"\x91" * 100_000, b"\xc1", rng.randbytes(30), messages.encode(shard)[:-5]),
        ]
    )
