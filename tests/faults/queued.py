"""Scenarios that know nothing of queues, in a cluster that is divided between some: pods of the churn have limits, the
scenario's own pods are in a queue that takes back what it is due, and some are of no queue."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from dsched.model.queues import LABEL
from tests.acceptance import checker
from tests.faults import sites
from tests.faults.arena import Arena
from tests.faults.history import ADDED, BOUND, DELETED, LOST, PREFIX, Entry
from tests.faults.scenario import STANDALONE, Scenario
from tests.manifests import Json, queue_manifest

OWN = "own"
"""The queue of a scenario's own pods: it has no limit, and is due more than the others."""
LIMITS: dict[str, dict[str, int]] = {"teams": {"pods": 24}, "red": {"cpu": 6}, "blue": {"pods": 10}}
_PARENTS = {"red": "teams", "blue": "teams"}
_GUARANTEED = {OWN: 16, "red": 2, "blue": 2}
_IN_TURN = ("red", "blue", "red", "blue", "")
_QUEUES = {"disabled": [{"name": "PrioritySort"}, {"name": "DefaultPreemption"}], "enabled": [{"name": "FairShare"}]}


def divided(scenario: Scenario) -> Scenario:
    """The same with queues: in standalone mode, which all scenarios know that are not about an API server.

    Raises:
        ValueError: the scenario is about an API server, or has queues of its own.
    """
    if STANDALONE not in scenario.arenas or scenario.number == 27:
        raise ValueError(f"scenario {scenario.number} does not run with queues")
    options = list(scenario.options)
    if "--config" in options:
        place = options.index("--config") + 1
        options[place] = _with_queues(Path(options[place]))
    else:
        options += ["--config", sites.written("divided.yaml", sites.HEAD + yaml.safe_dump(_profiles({})))]
    return replace(scenario, arenas=(STANDALONE,), options=tuple(options), divided=True)


def _with_queues(path: Path) -> str:
    given = yaml.safe_load(path.read_text())
    return sites.written(f"divided-{path.name}", yaml.safe_dump({**given, **_profiles(given)}))


def _profiles(given: Json) -> Json:
    profiles: list[Any] = given.get("profiles") or [{"schedulerName": "default-scheduler"}]
    for profile in profiles:
        points = profile.setdefault("plugins", {}).setdefault("multiPoint", {})
        for what, named in _QUEUES.items():
            points[what] = [*points.get(what, ()), *named]
    return {"profiles": profiles}


def labels(number: int, own: bool) -> dict[str, str]:
    """Of a pod: of those of the churn one after the other."""
    queue = OWN if own else _IN_TURN[number % len(_IN_TURN)]
    return {LABEL: queue} if queue else {}


def put(arena: Arena, *, limited: bool) -> None:
    """Create or change the queues.

    Args:
        limited: whether they have limits; without any all pods are tried, so that everything comes to rest.
    """
    for name in ("teams", OWN, "red", "blue"):
        resources: dict[str, dict[str, int]] = {}
        if name in _GUARANTEED:
            resources["cpu"] = {"guaranteed": _GUARANTEED[name]}
        for resource, limit in LIMITS.get(name, {}).items() if limited else ():
            resources.setdefault(resource, {})["limit"] = limit
        arena.put("Queue", queue_manifest(name, _PARENTS.get(name, ""), resources=resources))


def exceeded_in_redis(arena: Arena) -> list[str]:
    """Limits that more counts against in Redis than they are, at this moment."""
    found = []
    for name in LIMITS:
        fields = arena.redis.hgetall(f"{PREFIX}quota:{name}")
        for field, amount in fields.items():
            kind, _, resource = field.partition(".")
            if kind == "used" and int(amount) > int(fields.get(f"allocatable.{resource}", amount)):
                found.append(f"I14 queue {name}: {amount} of {resource} counts against {fields}")
    return found


def exceeded(entries: Iterable[Entry], lifted: float) -> list[str]:
    """Binds that took a queue beyond its limit, until there were none any more (or Redis lost what it had been told).

    Args:
        lifted: monotonic seconds at which limits were taken away.
    """
    wanted: dict[str, tuple[str, Mapping[str, Any]]] = {}
    used: dict[str, Counter[str]] = {}
    placed: set[str] = set()
    found: list[str] = []
    for entry in entries:
        if entry.change == LOST or entry.at > lifted:
            break
        if entry.kind != "Pod":
            continue
        if entry.change == ADDED and entry.object is not None:
            queue = entry.object["metadata"].get("labels", {}).get(LABEL, "")
            wanted[entry.uid] = queue, checker.requests(entry.object)
        if entry.node and entry.uid not in placed:
            placed.add(entry.uid)
            _count(used, *wanted[entry.uid], 1)
            if entry.change == BOUND:
                found += [f"{each} once {entry.key} was bound" for each in _beyond(used, wanted[entry.uid][0])]
        if entry.change == DELETED and entry.uid in placed:
            _count(used, *wanted[entry.uid], -1)
    return found


def _above(queue: str) -> tuple[str, ...]:
    return (queue, _PARENTS[queue]) if queue in _PARENTS else (queue,)


def _count(used: dict[str, Counter[str]], queue: str, requests: Mapping[str, Any], sign: int) -> None:
    for name in _above(queue):
        for resource, amount in requests.items():
            used.setdefault(name, Counter())[resource] += sign * amount


def _beyond(used: dict[str, Counter[str]], queue: str) -> list[str]:
    return [
        f"I14 queue {name} had {used[name][resource]} of {resource}, more than {limit},"
        for name in _above(queue)
        for resource, limit in LIMITS.get(name, {}).items()
        if used[name][resource] > limit
    ]
