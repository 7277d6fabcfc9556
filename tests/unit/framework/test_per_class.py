"""What is derived once per class of pods."""

from dsched.framework.per_class import PerClass
from dsched.framework.pod_info import PodInfo
from tests.builders import make_pod


def info(name: str, app: str) -> PodInfo:
    return PodInfo(make_pod(f"shop/{name}", labels={"app": app}))


def test_once_per_class_and_only_the_last_are_kept() -> None:
    asked: list[str] = []

    def derive(pod: PodInfo) -> str:
        asked.append(pod.pod.metadata.name)
        return pod.pod.metadata.labels["app"]

    tested = PerClass(derive, most=2)
    assert [tested(info(name, app)) for name, app in ("1a", "2b", "3a", "4c")] == ["a", "b", "a", "c"]
    assert asked == ["1", "2", "4"]
    tested(info("5", "a")), tested(info("6", "b"))  # b was asked for longest ago
    assert asked == ["1", "2", "4", "6"]
