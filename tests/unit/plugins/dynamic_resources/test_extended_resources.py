"""Extended resources as claims: which requests, and for which containers."""

from typing import Any

from dsched.model.meta import from_builtins
from dsched.model.pod import Pod
from dsched.model.resource_claims import DeviceClass
from dsched.plugins.dynamic_resources import extended_resources, objects
from tests.builders import make_container, make_pod
from tests.devices import make_class
from tests.unit.plugins.dynamic_resources.judging import cluster

GPU = "example.com/gpu"


def claimed(pod: Pod, *resources: str) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    """Requests with their counts, and which container uses which."""
    cls = from_builtins(make_class("gpu"), DeviceClass)
    found = extended_resources.claim_for(pod, resources or (GPU,), lambda _: cls)
    requests = [
        (each.name, each.exactly.count) for each in found.claim.spec.devices.requests if each.exactly is not None
    ]
    return requests, [(each.container_name, each.request_name) for each in found.mappings]


def container(name: str, count: int, **fields: Any) -> dict[str, Any]:
    return make_container(name, requests={GPU: str(count)}, **fields)


def test_containers_side_by_side_have_requests_of_their_own() -> None:
    pod = make_pod(containers=[container("a", 1), make_container("b", "1"), container("c", 2)])
    assert claimed(pod) == (
        [("container-0-request-0", 1), ("container-2-request-0", 2)],
        [("a", "container-0-request-0"), ("c", "container-2-request-0")],
    )


def test_init_containers_use_what_later_containers_have() -> None:
    pod = make_pod(init=[container("init", 1)], containers=[container("a", 2)])
    assert claimed(pod) == (
        [("container-1-request-0", 2)],
        [("a", "container-1-request-0"), ("init", "container-1-request-0")],
    )


def test_init_containers_share_what_they_need_beyond() -> None:
    pod = make_pod(init=[container("one", 3), container("two", 2)], containers=[container("a", 1)])
    requests, mappings = claimed(pod)
    assert requests == [("container-0-request-0", 2), ("container-2-request-0", 1)]
    assert mappings == [
        ("a", "container-2-request-0"),
        ("one", "container-2-request-0"),
        ("one", "container-0-request-0"),
        ("two", "container-2-request-0"),
        ("two", "container-0-request-0"),
    ]


def test_the_newest_class_of_a_resource_counts_and_every_class_stands_for_one() -> None:
    def of(name: str, created: str) -> dict[str, Any]:
        found = make_class(name, extendedResourceName=GPU)
        return {**found, "metadata": {**found["metadata"], "creationTimestamp": created}}

    newest, oldest = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"
    snapshot = cluster(of("b", newest), of("c", newest), of("a", oldest))
    known = objects.of(snapshot)
    found = known.class_behind(GPU)
    assert found is not None and found.metadata.name == "b"
    implicit = known.class_behind(f"{objects.IMPLICIT_PREFIX}a")
    assert implicit is not None and implicit.metadata.name == "a"
    assert known.class_behind("example.com/tpu") is None
