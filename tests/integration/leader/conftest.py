"""A leader that is driven step by step, and what checks it."""

from pathlib import Path

import pytest

from dsched.state.client import Store
from tests.integration.leader.checker import Checker
from tests.integration.leader.rig import Rig


@pytest.fixture
def rig(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A system of its own."""
    return Rig(store, tmp_path, monkeypatch)


@pytest.fixture
def check(rig: Rig) -> Checker:
    """Checks that system."""
    return Checker(rig)
