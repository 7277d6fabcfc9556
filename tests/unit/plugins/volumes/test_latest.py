"""What was derived from a pod is not derived again until something changes."""

from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.plugins.volumes.latest import Latest
from tests.storage import claiming, info


def test_once_for_the_same_pod_and_version() -> None:
    asked: list[str] = []
    version = [1]

    def derive(pod: PodInfo, snapshot: Snapshot) -> int:
        asked.append(pod.key)
        return len(asked)

    latest = Latest(derive, lambda snapshot: version[0])
    first, second, snapshot = info(claiming(key="shop/a")), info(claiming(key="shop/b")), Snapshot()
    assert [latest(first, snapshot), latest(first, snapshot)] == [1, 1]
    assert latest(info(first.pod), snapshot) == 2  # another one of the same name
    assert [latest(second, snapshot), latest(first, snapshot)] == [3, 4]
    version[0] = 2
    assert latest(first, snapshot) == 5
    assert latest(first, Snapshot()) == 6
