"""One run: churn, faults, mending, settling, and the judges."""

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import redis

from tests.acceptance import checker
from tests.faults import judge, queued
from tests.faults.arena import Arena, Standing, pending, refused
from tests.faults.churn import Churn
from tests.faults.history import ADDED, BOUND, DELETED, Entry
from tests.faults.scenario import STANDALONE, Run, Scenario
from tests.faults.standalone import NotNow

SAMPLE_S = 0.1
QUIET_LOOKS = 3
LOOK_S = 0.1
AWAY = (redis.RedisError, OSError)
UNFORESEEN = "an error was logged with a traceback"


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        breaches: of invariants; empty is what everybody hopes for.
        gaps_ms: milliseconds without a decision, by what happened.
        settled_s: from the end of the faults until everything was settled.
    """

    scenario: int
    seed: int
    arena: str
    breaches: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    pods: int = 0
    binds: int = 0
    evicted: int = 0
    gaps_ms: dict[str, list[int]] = field(default_factory=dict)
    settled_s: float = 0.0
    took_s: float = 0.0


class Sampler:
    """Looks at epoch and attempts all the time: neither may ever go back."""

    def __init__(self, arena: Arena, *, divided: bool) -> None:
        """
        Args:
            divided: whether there are queues, none of which may ever have more than its limit.
        """
        self._arena = arena
        self._divided = divided
        self._exceeded: list[str] = []
        self._epochs: list[tuple[float, int]] = []
        self._attempts: dict[str, list[tuple[float, int]]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, lossy: bool) -> list[str]:
        """What went back."""
        self._stopping.set()
        self._thread.join()
        if lossy:
            return self._exceeded[:5]
        wrong = self._exceeded[:5] + judge.gone_back(self._epochs, "I5 the epoch went back")
        for uid, samples in self._attempts.items():
            wrong += judge.gone_back(samples, f"I4 attempts of {uid} went back")
        return wrong

    def _run(self) -> None:
        while not self._stopping.wait(SAMPLE_S):
            try:
                now = time.monotonic()
                self._epochs.append((now, self._arena.epoch()))
                if self._divided:
                    self._exceeded += queued.exceeded_in_redis(self._arena)
                for uid, attempts in self._arena.attempts().items():
                    self._attempts.setdefault(uid, []).append((now, attempts))
            except (*AWAY, ValueError):
                continue  # Redis is away, or is just exchanged for another one


def run(scenario: Scenario, seed: int, arena: Arena) -> Outcome:
    """Run a scenario once, in an arena that is healthy and empty."""
    began = time.monotonic()
    rng = random.Random(f"{scenario.number}-{seed}")
    arena.runs += 1
    arena.history.forget()
    said = {"said": queued.said} if scenario.divided else {}
    churn = Churn(arena, random.Random(f"churn-{scenario.number}-{seed}"), f"s{scenario.number}-{seed}", **said)
    this = Run(arena, churn, rng, seed)
    outcome = Outcome(scenario.number, seed, arena.kind)
    said_before = Counter(arena.system.tracebacks())
    sampler = Sampler(arena, divided=scenario.divided)
    sampler.start()
    try:
        if scenario.divided:
            queued.put(arena, limited=True)
        churn.start()
        scenario.inject(this)
    finally:
        mend(arena)
        _again(churn.stop, scenario.goal_s)
    mended = time.monotonic()
    if scenario.divided:
        _again(lambda: queued.put(arena, limited=False), scenario.goal_s)
    unsettled = settle(arena, churn, scenario.goal_s)
    outcome.settled_s = round(time.monotonic() - mended, 2)
    breaches = [*this.breaches, *unsettled, *sampler.stop(lossy=this.lossy)]
    breaches += [f"{UNFORESEEN}: {each}" for each in Counter(arena.system.tracebacks()) - said_before]
    if not unsettled:
        breaches += scenario.after(this)
        breaches += check(arena, churn, outcome, this.deaf_s, queued.judged if scenario.divided else list)
    if scenario.divided:
        breaches += queued.exceeded(arena.history.entries(), mended)
    tolerated = (*scenario.tolerates, *this.tolerates)
    outcome.breaches = [each for each in breaches if not each.startswith(tolerated)]
    outcome.notes, outcome.faults = this.notes, dict(this.faults)
    outcome.gaps_ms = gaps(this)
    outcome.took_s = round(time.monotonic() - began, 2)
    return outcome


def mend(arena: Arena) -> None:
    """No faults any more."""
    arena.proxy.heal()
    arena.go_on()


def _again(change: Callable[[], None], deadline_s: float) -> None:
    """Make a change; it may have to wait until the cluster takes changes again."""
    until = time.monotonic() + deadline_s
    while True:
        try:
            change()
            return
        except NotNow:
            if time.monotonic() > until:
                raise
            time.sleep(LOOK_S)


def settle(arena: Arena, churn: Churn, deadline_s: float) -> list[str]:
    """Wait until there is nothing left to be done; what is still moving when the time is up is a breach of I9."""
    until = time.monotonic() + deadline_s
    quiet, seen = 0, "nothing could be read"
    while quiet < QUIET_LOOKS:
        if time.monotonic() > until:
            return [f"I9 not settled {deadline_s:g} s after the last fault: {seen}"]
        time.sleep(LOOK_S)
        try:
            standing = arena.standing()
            at_rest, seen = _at_rest(arena, churn, standing)
            quiet = quiet + 1 if at_rest else 0
        except (*AWAY, NotNow) as error:
            quiet, seen = 0, repr(error)
    return []


def _at_rest(arena: Arena, churn: Churn, standing: Standing) -> tuple[bool, str]:
    collected = churn.collect()
    waiting = pending(arena.objects("Pod"))
    gated = sum(bool(pod["spec"].get("schedulingGates")) for pod in waiting)
    said = sum(refused(pod) for pod in waiting if not pod["spec"].get("schedulingGates"))
    seen = f"{standing}, {len(waiting)} pods pending, {gated} of them gated, {said} say why they fit nowhere"
    counts = (standing.unschedulable, standing.gated) == (len(waiting) - gated, gated) and said == len(waiting) - gated
    rest = not any(standing.moving.values()) and standing.led
    return not collected and rest and counts and arena.caught_up(standing), seen


def check(
    arena: Arena, churn: Churn, outcome: Outcome, deaf_s: float, judged: Callable[[list[Any]], list[Any]]
) -> list[str]:
    """All judges about a settled system.

    Args:
        judged: of the pods those that the checker knows everything of.
    """
    entries, pods, nodes = arena.history.entries(), arena.objects("Pod"), arena.objects("Node")
    verdict = judge.Judge(churn.deleted, ordered=arena.kind == STANDALONE, deaf_s=deaf_s).judge(entries)
    outcome.pods, outcome.binds, outcome.evicted = verdict.created, verdict.binds, verdict.evicted
    found = list(verdict.breaches)
    problems = checker.check(nodes, judged(pods)).problems
    found += [f"I3 {each}" for each in problems if not _said_earlier(each, len(nodes), entries)]
    found += _same(arena, pods)
    scheduled = _scheduled(entries, pods, by_uid=arena.kind != STANDALONE)
    found += judge.told_twice(arena.scheduled_events(), exactly=arena.kind == STANDALONE, bound=scheduled)
    return found + arena.fsck()


def _said_earlier(problem: str, nodes: int, entries: list[Entry]) -> bool:
    """Whether all that is wrong with a pod's reason is that it speaks of as many nodes as there were a while ago: that
    a node has gone is no reason to try a pod again, so its reason stays."""
    told = re.search(r"its reason is not of the form expected: 0/(\d+) nodes are available: ", problem)
    there, counts = set[str](), set[int]()
    for entry in entries:
        if entry.kind == "Node":
            (there.discard if entry.change == DELETED else there.add)(entry.key)
            counts.add(len(there))
    return told is not None and int(told[1]) != nodes and int(told[1]) in counts


def _scheduled(entries: list[Entry], pods: list[Any], *, by_uid: bool) -> list[str]:
    """Pods that are there and were bound in this history, by what their events go by."""
    bound = {each.uid for each in entries if each.change == BOUND and each.object is None}
    names = {pod["metadata"]["uid"]: f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in pods}
    return [uid if by_uid else names[uid] for uid in bound & names.keys()]


def _same(arena: Arena, pods: list[Any]) -> list[str]:
    """The history and the cluster say the same; else one of them cannot be believed."""
    listed = {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in pods}
    with arena.history.lock:
        history = arena.history
        replayed = {
            pod["metadata"]["uid"]: history.bound.get(pod["metadata"]["uid"], "") for pod in history.pods.values()
        }
    differing = sorted(uid for uid in listed.keys() | replayed.keys() if listed.get(uid) != replayed.get(uid))
    return [f"I4 {uid}: {replayed.get(uid)} by the history, {listed.get(uid)} in the cluster" for uid in differing[:5]]


def gaps(this: Run) -> dict[str, list[int]]:
    """Milliseconds from each moment that is measured until a pod created later was bound."""
    found: dict[str, list[int]] = {}
    entries = this.arena.history.entries()
    for what, since in this.since:
        created = {each.uid for each in entries if each.change == ADDED and each.kind == "Pod" and each.at > since}
        first = next((each.at for each in entries if each.change == BOUND and each.uid in created), None)
        if first is not None:
            found.setdefault(what, []).append(round((first - since) * 1000))
    return found


def clear(arena: Arena, deadline_s: float = 60.0) -> list[str]:
    """Delete all pods and nodes, and see that the system comes back to rest (I11): what is left of them."""
    until = time.monotonic() + deadline_s
    left: Counter[str] = Counter()
    while time.monotonic() < until:
        try:
            for kind, held in (("Pod", arena.history.pods), ("Node", arena.history.nodes)):
                with arena.history.lock:
                    keys = list(held)
                arena.delete(kind, *keys)
            standing = arena.standing()
            left = Counter({name: count for name, count in arena.families().items() if name in EMPTY})
            if not left and arena.caught_up(standing) and standing.led:
                return []
        except (*AWAY, NotNow):
            pass
        time.sleep(LOOK_S)
    return [f"I11 left over when all pods and nodes were gone: {dict(left)}"]


EMPTY = frozenset(
    [
        *("pod", "node", "reservations", "cluster:nodes"),
        *("queue:active", "queue:backoff", "queue:unschedulable", "queue:gated", "queue:inflight", "queue:waiting"),
        *("cluster:pods", "cluster:pods:state", "cluster:pods:status"),
    ]
)
"""Families of keys of which nothing may be left when there are no objects."""
