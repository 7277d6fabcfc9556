"""Scenarios that know nothing of queues, in a cluster that is divided between some: pods of the churn have limits, the
scenario's own pods are in a queue that takes back what it is due, and some are of no queue. Some of the churn's pods
claim a device for themselves, and some share a claim for two, in each queue; devices have limits as well."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from dsched.model.queues import LABEL
from tests.acceptance import checker
from tests.devices import asking, make_slice
from tests.faults import sites
from tests.faults.arena import Arena
from tests.faults.history import ADDED, BOUND, DELETED, LOST, PREFIX, Entry
from tests.faults.scenario import STANDALONE, Scenario
from tests.manifests import Json, queue_manifest

OWN = "own"
"""The queue of a scenario's own pods: it has no limit, and is due more than the others."""
GPU = "gpu.deviceclass.resource.k8s.io/devices"
LIMITS: dict[str, dict[str, int]] = {
    "teams": {"pods": 24, GPU: 7},
    "red": {"cpu": 6, GPU: 4},
    "blue": {"pods": 10},
}
NO_LIMIT = 1_000_000
"""Limits that leave room for everything, so that what counts against them can still be compared with the pods."""
_PARENTS = {"red": "teams", "blue": "teams"}
_GUARANTEED = {OWN: {"cpu": 16}, "red": {"cpu": 2, GPU: 2}, "blue": {"cpu": 2, GPU: 1}}
DEVICES = 16
"""Of the cluster, on whatever node: more than queues may have, fewer than pods may want once there is no limit."""
_SHARED = "shared"
"""A claim for two devices, whose pods count it once in each queue."""
_IN_TURN = ("red", "blue", "red", "blue", "")
_QUEUES = {"disabled": [{"name": "PrioritySort"}, {"name": "DefaultPreemption"}], "enabled": [{"name": "FairShare"}]}


def divisible(scenario: Scenario) -> bool:
    """Whether it is about neither an API server nor queues of its own."""
    return STANDALONE in scenario.arenas and scenario.number != 27


def divided(scenario: Scenario) -> Scenario:
    """The same with queues: in standalone mode, which all scenarios know that are not about an API server.

    Raises:
        ValueError: it is not `divisible`.
    """
    if not divisible(scenario):
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


def claim(number: int, own: bool) -> str:
    """Which claim a pod has: one that it shares, one of its own, or none (empty)."""
    if own or LABEL not in labels(number, own):
        return ""
    return {0: _SHARED, 3: _SHARED, 2: "gpu", 6: "gpu", 8: "gpu"}.get(number % 10, "")


def said(number: int, own: bool) -> tuple[dict[str, str], Json]:
    """Labels of a pod, and fields of its spec."""
    source = {_SHARED: "resourceClaimName", "gpu": "resourceClaimTemplateName"}
    name = claim(number, own)
    return labels(number, own), {"resourceClaims": [{"name": "gpu", source[name]: name}]} if name else {}


def put(arena: Arena, *, limited: bool) -> None:
    """Create or change the queues, and what there is of devices.

    Args:
        limited: whether limits hold anybody back; else all pods are tried, so that everything comes to rest.
    """
    for each in _devices():
        arena.put(each["kind"], each)
    for name in ("teams", OWN, "red", "blue"):
        resources = {resource: {"guaranteed": amount} for resource, amount in _GUARANTEED.get(name, {}).items()}
        for resource, limit in LIMITS.get(name, {}).items():
            resources.setdefault(resource, {})["limit"] = limit if limited else NO_LIMIT
        arena.put("Queue", queue_manifest(name, _PARENTS.get(name, ""), resources=resources))


def _devices() -> list[Json]:
    """A class of devices, and claims for them."""

    def wanted(count: int) -> Json:
        return {"devices": {"requests": [asking(count=count)]}}

    def made(kind: str, name: str, spec: Json, **metadata: str) -> Json:
        named = {"name": name, **metadata}
        return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": named, "spec": spec}

    return [
        made("DeviceClass", "gpu", {}),
        make_slice("", [f"gpu-{at}" for at in range(DEVICES)], name="gpus", pool="gpus", allNodes=True),
        made("ResourceClaimTemplate", "gpu", {"spec": wanted(1)}, namespace="default"),
        made("ResourceClaim", _SHARED, wanted(2), namespace="default"),
    ]


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
    pods: dict[str, Json] = {}
    there: set[str] = set()
    found: list[str] = []
    for entry in entries:
        if entry.change == LOST or entry.at > lifted:
            break
        if entry.kind != "Pod":
            continue
        if entry.change == ADDED and entry.object is not None:
            pods[entry.uid] = entry.object
        if entry.node and entry.uid not in there and _queue(pods[entry.uid]) in _PARENTS:
            there.add(entry.uid)
            if entry.change == BOUND:
                used = _used(pods[uid] for uid in there)
                found += [f"{each} once {entry.key} was bound" for each in _beyond(used, _queue(pods[entry.uid]))]
        if entry.change == DELETED:
            there.discard(entry.uid)
    return found


def judged(pods: Sequence[Json]) -> list[Json]:
    """Pods as who knows nothing of devices may judge them: without their claims, and none that waits for devices which
    others have."""
    there = [pod for pod in pods if pod["spec"].get("nodeName")]
    shared = any(_claimed(pod) == _SHARED for pod in there)
    left = DEVICES - 2 * shared - sum(_claimed(pod) == "gpu" for pod in there)
    wanted = {"": 0, "gpu": 1, _SHARED: 0 if shared else 2}
    fitting = [pod for pod in pods if pod["spec"].get("nodeName") or wanted[_claimed(pod)] <= left]
    return [{**pod, "spec": {**pod["spec"], "resourceClaims": []}} for pod in fitting]


def _claimed(pod: Json) -> str:
    """As `claim`."""
    (named,) = pod["spec"].get("resourceClaims") or [{}]
    return str(named.get("resourceClaimName") or named.get("resourceClaimTemplateName") or "")


def _used(pods: Iterable[Json]) -> dict[str, Counter[str]]:
    """What pods that are placed come to, by queue; a claim that several use counts once for each of their queues."""
    used: dict[str, Counter[str]] = {}
    shared: set[str] = set()
    for pod in pods:
        requests, queue = Counter(checker.requests(pod)), _queue(pod)
        if _claimed(pod) == "gpu":
            requests[GPU] += 1
        elif _claimed(pod) == _SHARED and queue not in shared:
            shared.add(queue)
            requests[GPU] += 2
        for name in _above(queue):
            used.setdefault(name, Counter()).update(requests)
    return used


def _queue(pod: Json) -> str:
    return str(pod["metadata"].get("labels", {}).get(LABEL, ""))


def _above(queue: str) -> tuple[str, ...]:
    return (queue, _PARENTS[queue]) if queue in _PARENTS else (queue,)


def _beyond(used: dict[str, Counter[str]], queue: str) -> list[str]:
    return [
        f"I14 queue {name} had {used[name][resource]} of {resource}, more than {limit},"
        for name in _above(queue)
        for resource, limit in LIMITS.get(name, {}).items()
        if used[name][resource] > limit
    ]
