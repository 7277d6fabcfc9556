"""What another division of the cluster comes to: how long pods wait by queue, and what queues use over time."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain

from dsched.framework.table import PODS
from dsched.model.meta import PodKey

NO_QUEUE = ""
"""Stands for the pods of no queue."""
STEPS = 100
"""Into so many equal stretches the time of a recording is divided."""


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a pod waited for its node, ms.

    Attributes:
        queue: `NO_QUEUE` for none.
        over: whether it got one; else it was deleted before, or waits still and has waited so long.
        waits: it waits still.
    """

    pod: PodKey
    queue: str
    ms: int
    over: bool
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """What a pod of a queue took up on its node, from when to when, ms since the epoch.

    Attributes:
        claims: those that it used, by key, with what each counts: of pods that run together once for their queue.
    """

    queue: str
    amounts: Mapping[str, int]
    began_ms: int
    ended_ms: int
    claims: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Waited:
    """How long the pods of a queue and of those below it waited.

    Attributes:
        pods: how many came.
        median_ms, p95_ms: half, and 95 of 100, waited no longer; None where no pod came. Who has no node in the end
            counts with what it has waited until then.
        waiting: how many wait in the end.
        reclaimed: how many pods other queues took back.
    """

    pods: int
    median_ms: int | None
    p95_ms: int | None
    waiting: int
    reclaimed: int


@dataclass(frozen=True, slots=True)
class Used:
    """What a queue used of a resource, CPU in milli-units: in the mean, in the end, and in each stretch of time."""

    mean: float
    end: int
    over_time: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class DividedResource:
    """A resource of a queue.

    Attributes:
        guaranteed, limit, fair_share: as the queues say that were tried out; what is due in the end. None for a limit
            that there is not.
    """

    resource: str
    guaranteed: int
    limit: int | None
    fair_share: int
    recorded: Used
    replayed: Used


@dataclass(frozen=True, slots=True)
class DividedQueue:
    """A queue, with those below it.

    Attributes:
        name: empty for the pods of no queue.
        parent: empty at the top.
        known: whether it is among the queues that were tried out; pods of others cannot run.
    """

    name: str
    parent: str
    known: bool
    recorded: Waited
    replayed: Waited
    resources: tuple[DividedResource, ...]


@dataclass(frozen=True, slots=True)
class PodWaits:
    """A pod; None where it never came to be placed there."""

    pod: PodKey
    queue: str
    recorded: Wait | None
    replayed: Wait | None


@dataclass(frozen=True, slots=True)
class Division:
    """What it came to.

    Attributes:
        began_ms, ended_ms: the time that was recorded, since the epoch.
        beginnings: how often a leader told everything.
        recorded_evicted, replayed_evicted: pods that were evicted.
        came_again: of the latter, those in whose place others came.
        queues: parents before their children; pods of no queue last.
        pods: by name.
    """

    began_ms: int
    ended_ms: int
    beginnings: int
    recorded_evicted: int
    replayed_evicted: int
    came_again: int
    queues: tuple[DividedQueue, ...] = ()
    pods: tuple[PodWaits, ...] = ()

    @property
    def step_ms(self) -> float:
        """How long a stretch is."""
        return max(1, self.ended_ms - self.began_ms) / STEPS


class Side:
    """What happened, as recorded or as replayed: how long pods of queues waited, and what they used."""

    def __init__(self) -> None:
        self._waits: dict[str, list[Wait]] = {}
        self._runs: dict[str, list[Run]] = {}

    @property
    def waits(self) -> Iterator[Wait]:
        """Of all pods."""
        return chain.from_iterable(self._waits.values())

    @property
    def queues(self) -> AbstractSet[str]:
        """Those of which pods waited or ran."""
        return self._waits.keys() | self._runs.keys()

    def waited(self, wait: Wait) -> None:
        """A pod waits no more, or it is over."""
        self._waits.setdefault(wait.queue, []).append(wait)

    def ran(self, run: Run) -> None:
        """A pod runs no more, or it is over."""
        self._runs.setdefault(run.queue, []).append(run)

    def resources(self, queues: Iterable[str]) -> set[str]:
        """Of what pods of these queues took up, but for their number."""
        taken = (amounts for name in queues for _, _, amounts in self._taken(name))
        return {resource for amounts in taken for resource, amount in amounts.items() if amount and resource != PODS}

    def waits_of(self, queues: Iterable[str], reclaimed: int) -> Waited:
        """How long pods of these queues waited."""
        waits = [wait for name in queues for wait in self._waits.get(name, ())]
        spans = sorted(wait.ms for wait in waits)
        waiting = sum(wait.waits for wait in waits)
        return Waited(len(waits), quantile(spans, 0.5), quantile(spans, 0.95), waiting, reclaimed)

    def use_of(self, resource: str, queues: Iterable[str], began_ms: int, ended_ms: int) -> Used:
        """What pods of these queues used."""
        runs = [
            (run_began_ms, run_ended_ms, amount)
            for name in queues
            for run_began_ms, run_ended_ms, amounts in self._taken(name)
            if (amount := amounts.get(resource, 0))
        ]
        steps = over_time(runs, began_ms, ended_ms)
        end = sum(amount for _, run_ended_ms, amount in runs if run_ended_ms > ended_ms)
        return Used(round(sum(steps) / len(steps), 3), end, steps)

    def _taken(self, queue: str) -> Iterator[tuple[int, int, Mapping[str, int]]]:
        """From when to when pods of a queue took up how much: each for itself, and each claim while any of them used
        it."""
        using: dict[str, list[Run]] = {}
        for run in self._runs.get(queue, ()):
            yield run.began_ms, run.ended_ms, run.amounts
            for claim in run.claims:
                using.setdefault(claim, []).append(run)
        for claim, runs in using.items():
            runs.sort(key=lambda run: run.began_ms)
            counted = runs[0].claims[claim]
            began_ms, ended_ms = runs[0].began_ms, runs[0].ended_ms
            for run in runs:
                if run.began_ms > ended_ms:
                    yield began_ms, ended_ms, counted
                    began_ms = run.began_ms
                ended_ms = max(ended_ms, run.ended_ms)
            yield began_ms, ended_ms, counted


def quantile(ordered: Sequence[int], part: float) -> int | None:
    """The first of ascending numbers that so large a part of them does not exceed (nearest rank); None of none."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else None


def over_time(runs: Iterable[tuple[int, int, int]], began_ms: int, ended_ms: int) -> tuple[float, ...]:
    """What runs use together, in the mean of each of `STEPS` stretches of time.

    Args:
        runs: from when to when, and how much.
    """
    step_ms = max(1, ended_ms - began_ms) / STEPS
    more = [0.0] * (STEPS + 1)
    """By how much the use of a stretch differs from what the one before ended with."""
    within = [0.0] * (STEPS + 1)
    """How much of what begins or ends within a stretch counts in it."""
    for run_began_ms, run_ended_ms, amount in runs:
        for at_ms, change in ((run_began_ms, amount), (run_ended_ms, -amount)):
            position = max(at_ms - began_ms, 0) / step_ms
            if position < STEPS:
                step = int(position)
                within[step] += change * (step + 1 - position)
                more[step + 1] += change
    found, used = [], 0.0
    for step in range(STEPS):
        used += more[step]
        found.append(round(used + within[step], 3))
    return tuple(found)
