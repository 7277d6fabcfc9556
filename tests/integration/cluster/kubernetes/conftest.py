"""A fake API server for each test, and clusters that use it."""

import math
from collections.abc import Callable, Iterator

import pytest

from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.cluster import Kubernetes
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.integration.cluster.kubernetes.fixtures import api
from tests.integration.cluster.watching import Watcher

__all__ = ["api"]


@pytest.fixture
def access(api: FakeApi) -> Access:
    return Access(api.kubeconfig())


@pytest.fixture
def cluster(access: Access) -> Iterator[Kubernetes]:
    made = Kubernetes(access, "dsched", events_a_second=math.inf)
    yield made
    made.close()


@pytest.fixture
def watcher(cluster: Kubernetes) -> Callable[[], Watcher]:
    """Lists, and hears what happens from then on."""
    return lambda: Watcher(cluster)
