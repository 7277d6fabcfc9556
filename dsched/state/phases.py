"""What the leader tells about its own time: by phase, and how long attempts took. For people and benchmarks alone;
nothing is decided by it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from dsched.model import raw
from dsched.state import client, keys
from dsched.state.client import Store

_COUNT, _SECONDS, _PHASE, _ATTEMPTS, _BOUNDS = "written", "attempt-seconds", "phase:", "attempts:", "bounds"


@dataclass(frozen=True, slots=True)
class Written:
    """What the leader has written last; all of it counts from the start of its process.

    Attributes:
        written: how many times it has written.
        seconds: by phase.
        bounds: upper bounds of the buckets of attempts, seconds; the last bucket has none.
        attempts: by result, how many fell into each bucket.
        attempt_seconds: of all attempts together.
    """

    written: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    bounds: Sequence[float] = ()
    attempts: Mapping[str, Sequence[int]] = field(default_factory=dict)
    attempt_seconds: float = 0.0


def write(store: Store, told: Written) -> None:
    """Write it. Fields are numbers and lists of numbers, separated by blanks."""
    fields: dict[str, str] = {_COUNT: str(told.written), _SECONDS: f"{told.attempt_seconds:.6f}"}
    fields[_BOUNDS] = " ".join(map(str, told.bounds))
    fields |= {_PHASE + name: f"{seconds:.6f}" for name, seconds in told.seconds.items()}
    fields |= {_ATTEMPTS + result: " ".join(map(str, counts)) for result, counts in told.attempts.items()}
    name = store.key(keys.PHASES.name)
    if store.line is None:
        store.redis.hset(name, mapping=fields)
    else:
        store.line.say("HSET", name, *chain.from_iterable(fields.items()))


def read(store: Store) -> Written:
    """What stands there; nothing where no leader has written.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    with client.reachable(store):
        found = store.redis.hgetall(store.key(keys.PHASES.name))
    fields = {raw.text(name): raw.text(value) for name, value in found.items()}
    return Written(
        raw.whole(fields.get(_COUNT)),
        {name.removeprefix(_PHASE): raw.real(value) for name, value in fields.items() if name.startswith(_PHASE)},
        tuple(map(raw.real, fields.get(_BOUNDS, "").split())),
        {
            name.removeprefix(_ATTEMPTS): tuple(map(raw.whole, value.split()))
            for name, value in fields.items()
            if name.startswith(_ATTEMPTS)
        },
        raw.real(fields.get(_SECONDS, "")),
    )
