"""Manifests that nobody means well with: applied, and written into Redis past all checks."""

import copy
import json
import math
from collections.abc import Iterator
from random import Random
from typing import Any

import yaml

from dsched.cluster.standalone import keys
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.errors import DschedError, ManifestError
from dsched.manifests import kinds, load
from dsched.state.client import Store
from tests.attacks.attack import Stand, attack
from tests.attacks.contents import stepped
from tests.integration.leader.rig import Rig
from tests.manifests import Json, node_manifest, other_manifest, pod_manifest

NASTY: tuple[Any, ...] = (
    *(2**31, -(2**31) - 1, 2**63, -(2**63) - 1, 2**64, 10**40, -1, 0, True, None, 0.5, 1e300, math.inf, math.nan),
    *("", "1e400", "-1e40", "9" * 300, "8Ei", "0x" + "f" * 50, "\0", "\ud800", "a\nb", "x" * 5000, "2038-01-19", "~"),
    *([], {}, [[]], [None], {"": None}, {"metadata": []}, ["a"] * 300),
)
WHOLE: tuple[Json, ...] = (
    node_manifest("odd"),
    pod_manifest(
        "default/odd",
        priority=1,
        tolerations=[{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}],
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
    ),
    other_manifest(
        "PersistentVolume",
        "v1",
        "odd",
        spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "d"}},
    ),
    other_manifest("PodDisruptionBudget", "policy/v1", "odd", spec={"selector": {}, "minAvailable": 1}),
    other_manifest(
        "CSINode", "storage.k8s.io/v1", "odd", spec={"drivers": [{"name": "d", "allocatable": {"count": 3}}]}
    ),
)


def spoiled(rng: Random) -> Json:
    """An object in which something, at any depth, is exchanged for something nasty."""
    value: Json = json.loads(json.dumps(rng.choice(WHOLE)))
    for _ in range(rng.randint(1, 3)):
        holder, key = rng.choice([place for place in _places(value) if place[1] not in ("apiVersion", "kind", "name")])
        holder[key] = copy.deepcopy(rng.choice(NASTY))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def texts(rng: Random) -> Iterator[bytes]:
    """A file as it might be written, and broken ones."""
    value = spoiled(rng)
    text = json.dumps(value).encode("utf-8", "surrogatepass")
    yield text
    yield yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass")
    at = rng.randrange(len(text))
    yield text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
    yield text[:at]
    yield text.replace(b'"spec":', b'"spec": {}, "spec":', 1)
    depth = rng.choice([50, 101, 950, 100_000])
    yield (
        b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"odd"},"spec":'
        + b'{"a":' * depth
        + b"1"
        + b"}" * depth
        + b"}"
    )


@attack(
    "manifests with anything anywhere: numbers beyond 64 bits, keys given twice, other types, depth, broken texts",
    sees="`dsched apply` names the field, and applies nothing; what it takes, leaders can read",
)
def anything_applied(stand: Stand) -> None:
    stepped(stand)
    rig = Rig(stand.store(), stand.folder)
    applier = Applier(rig.store, rig.clock)
    rig.apply(node_manifest("n1"))
    for _ in range(stand.rounds):
        for text in texts(stand.rng):
            try:
                manifests = load.load_text(text, "hostile.json")
            except ManifestError as error:
                assert error.problems, text[:300]
                continue
            try:
                applier.apply(manifests)
            except DschedError:
                continue  # e.g. it contradicts what is there
    _others_are_scheduled(rig)


@attack(
    "objects written into Redis past `dsched apply`, with anything anywhere",
    sees="each is left out as one object, logged with its key, counted, named by `dsched fsck`; others are scheduled",
)
def anything_written(stand: Stand) -> None:
    stepped(stand)
    rig = Rig(stand.store(), stand.folder)
    rig.apply(node_manifest("n1"))
    for number in range(stand.rounds):
        value = spoiled(stand.rng)
        _write(rig.store, value, f"odd-{number}")
    listed = StandaloneCluster(rig.store).list()
    assert "n1" in {node.name for node in listed.nodes}
    _others_are_scheduled(rig)


def _write(store: Store, value: Json, name: str) -> None:
    kind = kinds.BY_NAME[value["kind"]]
    metadata = value["metadata"] if isinstance(value.get("metadata"), dict) else {}
    rest = {key: item for key, item in metadata.items() if key not in ("resourceVersion", "uid", "name")}
    value["metadata"] = {"resourceVersion": "1", "uid": f"uid-{name}", "name": name, **rest}
    key = f"default/{name}" if kind.namespaced else name
    raw = json.dumps(value).encode("utf-8", "surrogatepass")
    store.redis.hset(store.key(keys.objects(kind).name), key, raw)
    if kind is kinds.POD:
        store.redis.hset(store.key(keys.STATE.name), key, f"uid-{name} - 0 - - Pending 1")


def _others_are_scheduled(rig: Rig) -> None:
    """Also by the next leader."""
    for name in ("default/first", "default/second"):
        led = rig.lead()
        rig.apply(pod_manifest(name))
        led.run()
        assert rig.node_of(name), name
