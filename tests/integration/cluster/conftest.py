"""A standalone cluster of its own for each test."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dsched.clock import ManualClock
from dsched.cluster.interface import Binding
from dsched.cluster.standalone.applying import Applied, Applier
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.state.client import Store
from tests.manifests import Json, loaded


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def cluster(store: Store, clock: ManualClock) -> StandaloneCluster:
    return StandaloneCluster(store, clock)


@pytest.fixture
def apply(store: Store, clock: ManualClock, tmp_path: Path) -> Callable[..., Sequence[Applied]]:
    """Applies the manifests it is given."""

    def apply(*objects: Json) -> Sequence[Applied]:
        return Applier(store, clock).apply(loaded(tmp_path, *objects))

    return apply


@pytest.fixture
def reserve(store: Store, cluster: StandaloneCluster) -> Callable[..., Binding]:
    """Reserves a node for a pod that is there, the way the leader does, and makes the binding for it."""

    def reserve(key: str = "default/web", node: str = "n1", epoch: int = 7, state: str = "binding") -> Binding:
        (pod,) = cluster.get_pods([PodKey(key)])
        assert pod is not None, f"there is no pod {key}"
        store.redis.hset(store.key("reservations"), pod.uid, f"{key} {node} {epoch} {state} 1 1700000000000")
        return Binding(PodKey(key), PodUid(pod.uid), NodeName(node), epoch)

    return reserve
