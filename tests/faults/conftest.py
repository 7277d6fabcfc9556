import pytest

from tests.acceptance.fixtures import make_system, redis_program, system

__all__ = ["make_system", "redis_program", "system"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever is in this folder kills processes."""
    for item in items:
        if "tests/faults/" in item.path.as_posix():
            item.add_marker(pytest.mark.faults)
