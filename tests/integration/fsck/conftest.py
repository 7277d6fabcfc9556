from pathlib import Path

import pytest

from dsched.state.client import Store
from tests.integration.cluster.kubernetes.fixtures import api
from tests.integration.fsck.by_hand import ByHand
from tests.integration.leader.conftest import rig

__all__ = ["api", "rig"]


@pytest.fixture
def system(store: Store, tmp_path: Path) -> ByHand:
    """A system with a leader and nothing else."""
    return ByHand(store, tmp_path)
