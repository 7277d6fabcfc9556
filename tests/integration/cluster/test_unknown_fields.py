"""Fields of standalone pods that dsched does not know: the pod is taken, and it is told once."""

import logging
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from prometheus_client import REGISTRY

from dsched.clock import ManualClock
from dsched.cluster.standalone import keys
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.cluster.standalone.objects import Objects
from dsched.manifests import kinds
from dsched.model.meta import PodKey
from dsched.state.client import Store
from tests.manifests import Json, node_manifest, pod_manifest

PROFILES = frozenset({"default-scheduler"})
Apply = Callable[..., Any]


@pytest.fixture
def leading(cluster: StandaloneCluster) -> StandaloneCluster:
    cluster.lead(1, lambda: True, PROFILES)
    return cluster


@pytest.fixture(autouse=True)
def epoch(store: Store) -> None:
    store.redis.set(store.key("epoch"), 1)


def with_field(key: str, path: str, **more: Any) -> Json:
    return pod_manifest(key, **{path: {"a": 1}}, **more)


def told(store: Store, key: str) -> list[tuple[str, str]]:
    return [(each.reason, each.message.rpartition(": ")[2]) for each in Objects(store).events(PodKey(key))]


def count(field: str) -> float:
    return REGISTRY.get_sample_value("dsched_unknown_fields_total", {"field": field}) or 0.0


def test_a_pod_that_is_there_at_first(
    store: Store, leading: StandaloneCluster, apply: Apply, caplog: pytest.LogCaptureFixture
) -> None:
    before = count("spec.atFirst")
    apply(node_manifest(), with_field("shop/web", "atFirst"), pod_manifest("shop/plain"))
    assert sorted(pod.key for pod in leading.list().pods) == ["shop/plain", "shop/web"]
    assert told(store, "shop/web") == [("UnknownField", "spec.atFirst")]
    assert told(store, "shop/plain") == []
    assert count("spec.atFirst") == before + 1
    (line,) = [vars(record) for record in caplog.records if vars(record).get("action") == "unknown_field"]
    assert (line["levelno"], line["field"], line["pod"]) == (logging.WARNING, "spec.atFirst", "shop/web")


def test_a_pod_that_comes_changes_and_comes_again(store: Store, leading: StandaloneCluster, apply: Apply) -> None:
    version = leading.list().version
    counts = []

    def watched(change: Any) -> None:
        nonlocal version
        change()
        _, version = leading.watch(version, 0)
        counts.append(int(count("spec.comes") - before))

    before = count("spec.comes")
    watched(lambda: apply(with_field("shop/web", "comes")))
    watched(lambda: apply(with_field("shop/web", "comes", labels={"changed": "yes"})))
    leading.list()
    watched(lambda: None)
    assert counts == [1, 1, 1]
    watched(lambda: Applier(store, ManualClock()).delete(kinds.POD, ["shop/web"]))
    watched(lambda: apply(with_field("shop/web", "comes")))
    assert counts == [1, 1, 1, 1, 2]


def test_what_a_newer_dsched_or_another_client_wrote(store: Store, leading: StandaloneCluster, apply: Apply) -> None:
    """Not through ``apply``: straight into the hash of pods, as they stand there."""
    apply(pod_manifest("shop/web"))
    name = store.key(keys.objects(kinds.POD).name)
    written = msgspec.json.decode(store.redis.hget(name, "shop/web"))
    written["spec"]["containers"][0]["ofTomorrow"] = True
    store.redis.hset(name, "shop/web", msgspec.json.encode(written))
    (pod,) = leading.list().pods
    assert pod.key == "shop/web"
    assert told(store, "shop/web") == [("UnknownField", "spec.containers[].ofTomorrow")]
