"""Contents of Redis that dsched did not write: any key, of any type, with anything in it, while a leader leads."""

import contextlib
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import msgpack

from dsched.cli.commands import status
from dsched.clock import Clock
from dsched.errors import DschedError
from dsched.fsck.inspection import inspect
from dsched.leader.term import UPKEEP_EVERY_S
from dsched.model.meta import PodKey
from dsched.state import (
    attempt_history,
    counts,
    keys,
    leader_config,
    leaders,
    lease,
    pauses,
    phases,
    position,
    standings,
    versions,
    workers,
)
from dsched.state.client import Store, WrongType
from dsched.state.keys import Key
from dsched.state.places import ALL as PLACES
from dsched.state.places import Places
from tests.attacks.attack import Stand, attack
from tests.integration.leader import rig as rigs
from tests.integration.leader.rig import Led, Rig
from tests.manifests import node_manifest, pod_manifest

MOST_STARTS = 4
"""A leader may have to start over so often before it goes on: what it meets in one takeover is cleared for the next."""

WORDS: tuple[Callable[[random.Random], bytes], ...] = (
    lambda rng: b"",
    lambda rng: b"x y z",
    lambda rng: rng.randbytes(rng.randrange(1, 60)),
    lambda rng: msgpack.packb({"a": [1, 2, {"b": None}]})[: rng.randrange(1, 8)],
    lambda rng: b'{"epoch": "',
    lambda rng: str(rng.choice([-1, -(2**63), 2**63, 2**64, 10**400, 1.5, float("nan")])).encode(),
    lambda rng: b"\xff\xfe " * 4,
    lambda rng: b"a" * 100_000,
    lambda rng: b" ".join(b"%d" % rng.randrange(10) for _ in range(rng.randrange(1, 9))),
)


class StartsOver(AssertionError):
    """A leader does nothing else."""


class Leading:
    """A leader as the process has it: it starts over after every error that it raises on purpose."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.led: Led | None = None

    def settle(self) -> None:
        """Until it is at rest."""
        met: list[str] = []
        for _ in range(MOST_STARTS):
            try:
                if self.led is None:
                    self.led = self.rig.elect()
                    self.led.term.upkeep.begin()
                    self.led.take_over()
                self._turns(self.led)
                return
            except DschedError as error:  # what Leader goes on after; anything else is a crash
                if isinstance(error, WrongType) and self.led is not None:
                    with contextlib.suppress(WrongType):
                        self.led.term.upkeep.clear()
                met.append(repr(error))
                self.led = None
        raise StartsOver(f"the leader starts over for ever: {met}")

    def _turns(self, led: Led) -> None:
        for _ in range(6):
            led.turns()
            for request in led.dispatcher.binds:
                self.rig.binder.work(request)
            led.dispatcher.binds.clear()
            self.rig.clock.advance(UPKEEP_EVERY_S)


def stepped(stand: Stand) -> None:
    """Have leaders send no messages until the stand ends, see `tests.integration.leader.rig`."""
    for name, stands_in in (("Dispatcher", rigs.RecordingDispatcher), ("BindSender", rigs.SteppedCourier)):
        stand.afterwards(partial(setattr, rigs.term_module, name, getattr(rigs.term_module, name)))
        setattr(rigs.term_module, name, stands_in)


def _garble(store: Store, rng: random.Random, key: Key) -> str:
    """Write something else there; what, for a failing run."""
    name = store.key(key.name)
    if key.name.endswith(":"):
        there = store.names(key.name)
        name = rng.choice(there).decode() if there else name + "default/pod-0"
    word = rng.choice(WORDS)(rng)
    how = rng.choice(["type", "value", "value"])
    if how == "type":
        store.redis.delete(name)
        kind = rng.choice([each for each in ("string", "list", "hash", "zset", "stream", "set") if each != key.type])
        _write(store, name, kind, word, rng)
    else:
        kind = key.type
        with contextlib.suppress(WrongType):  # nobody has met what was written there before
            _write(store, name, kind, word, rng)
    return f"{name} {how} {kind} {word[:60]!r}"


def _write(store: Store, name: str, kind: str, word: bytes, rng: random.Random) -> None:
    redis = store.redis
    if kind == "string":
        redis.set(name, word)
    elif kind == "list":
        redis.rpush(name, word)
    elif kind == "set":
        redis.sadd(name, word)
    elif kind == "zset":
        redis.zadd(name, {word: rng.choice([0, -1e300, 1e18, float("inf")])})
    elif kind == "hash":
        fields = redis.hkeys(name)
        field = rng.choice([*fields, rng.choice(WORDS)(rng)])
        if rng.random() < 0.2 and fields:
            redis.hdel(name, field)
        else:
            redis.hset(name, field, word)
    else:
        redis.xadd(name, {rng.choice([b"deltas", b"outcomes", b"x"]): word})


def _look(store: Store, clock: Clock) -> None:
    """Everything that people and metrics read: an error on purpose is an answer, anything else is a crash."""
    places = Places(store)
    readers: list[Callable[[], Any]] = [
        lambda: standings.moment(store),
        lambda: lease.holder(store),
        lambda: leaders.read(store),
        lambda: leaders.asked(store),
        lambda: workers.read(store),
        lambda: leader_config.read(store),
        lambda: phases.read(store),
        lambda: pauses.read(store),
        lambda: versions.newest(store),
        lambda: counts.read(store),
        lambda: status.read(store),
        lambda: position.find(store, PodKey("default/nowhere")),
        lambda: attempt_history.read(store, PodKey("default/nowhere")),
        places.counts,
        lambda: inspect(store, clock, pause_s=0.0),
        *(lambda place=place: list(places.pods(place)) for place in PLACES),
    ]
    for read in readers:
        with contextlib.suppress(DschedError):
            read()


@attack(
    "any key of the scheduler's state replaced or garbled while a leader leads, or before it does",
    sees="the leader tells which key it was, clears it, and goes on; new pods are bound, no pod is bound twice",
)
def any_key(stand: Stand) -> None:
    stepped(stand)
    store = stand.store()
    rig = Rig(store, stand.folder)
    leading = Leading(rig)
    rig.apply(*(node_manifest(f"node-{number}") for number in range(3)))
    rig.apply(pod_manifest("default/nowhere", nodeSelector={"no": "such-node"}))
    written: list[str] = []
    for number in range(stand.rounds):
        leading.settle()
        pod = f"default/pod-{number}"
        rig.apply(pod_manifest(pod))
        if stand.rng.random() < 0.5 and leading.led is not None:  # reserved, not bound yet
            with contextlib.suppress(DschedError):
                leading.led.turn()
        written.append(_garble(store, stand.rng, stand.rng.choice(keys.ALL)))
        print(number, written[-1])
        _look(store, rig.clock)
        if stand.rng.random() < 0.3:
            leading.led = None
        leading.settle()
        assert rig.node_of(pod), f"{pod} is not bound after {written[-1]}"
    bound = [key for key, _, _ in rig.binds()]
    assert len(bound) == len(set(bound)), "a pod was bound twice"
    _look(store, rig.clock)
