import pytest

from tests.chart import chart


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without helm there is nothing to look at."""
    here = [item for item in items if "tests/chart/" in item.path.as_posix()]
    for item in here:
        item.add_marker(pytest.mark.built)
    try:
        chart.folder()
    except chart.NoHelm as error:
        for item in here:
            item.add_marker(pytest.mark.skip(reason=str(error)))
