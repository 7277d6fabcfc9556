"""A leader as a standalone cluster sees one."""

from collections.abc import Callable
from typing import Any

import pytest

from dsched.clock import ManualClock
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.manifests import kinds
from dsched.state.client import Store


class Leader:
    """Leads, as far as the cluster is concerned: lists, then watches when it is told to."""

    def __init__(self, store: Store, clock: ManualClock, epoch: int) -> None:
        store.redis.set(store.key("leader:epoch"), epoch)
        self.cluster = StandaloneCluster(store, clock)
        self.cluster.lead(epoch, lambda: True, group_claims=True)
        self.version = self.cluster.list().version

    def hear(self) -> None:
        """Watch until there is nothing more."""
        events: Any = True
        while events:
            events, self.version = self.cluster.watch(self.version, 0.0)


@pytest.fixture
def lead(store: Store, clock: ManualClock) -> Callable[[int], Leader]:
    return lambda epoch: Leader(store, clock, epoch)


@pytest.fixture
def leader(lead: Callable[[int], Leader]) -> Leader:
    return lead(1)


@pytest.fixture
def delete(store: Store, clock: ManualClock) -> Callable[[kinds.Kind, str], bool]:
    return lambda kind, key: Applier(store, clock).delete(kind, [key])[0]
