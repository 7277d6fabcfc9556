"""Systems with a leader."""

import pytest

from dsched.state.client import Store
from dsched.state.queue import Queue
from dsched.state.reservations import Reservations
from dsched.state.usage import Usage
from tests.integration.state.support import take_over, with_node


@pytest.fixture
def epoch(store: Store) -> int:
    """The epoch of the system's first leader."""
    return take_over(store)


@pytest.fixture
def queue(store: Store, epoch: int) -> Queue:
    """The queue under the present epoch."""
    return Queue(store, epoch)


@pytest.fixture
def held(store: Store, epoch: int) -> Reservations:
    """Reservations under the present epoch."""
    return Reservations(store, epoch)


@pytest.fixture
def usage(store: Store, epoch: int) -> Usage:
    """Usage of the node n1: 4 cores, 110 pods."""
    return with_node(store, epoch)
