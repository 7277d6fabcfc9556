"""DefaultBinder."""

from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code, Status
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from dsched.plugins.default_binder import DefaultBinder
from tests.builders import make_pod


class RecordingHandle:
    def __init__(self, answer: Status | None = None) -> None:
        self.answer = answer
        self.bound: list[tuple[str, str]] = []

    def bind(self, pod: PodInfo, node: NodeName) -> Status | None:
        self.bound.append((pod.key, node))
        return self.answer


def test_it_binds_through_the_handle() -> None:
    handle = RecordingHandle()
    status = DefaultBinder(None, handle).bind(CycleState(), PodInfo(make_pod("shop/web")), NodeName("n1"))
    assert status is None
    assert handle.bound == [("shop/web", "n1")]


def test_a_refusal_is_passed_on() -> None:
    refusal = Status(Code.ERROR, ("bound elsewhere",))
    plugin = DefaultBinder(None, RecordingHandle(refusal))
    assert plugin.bind(CycleState(), PodInfo(make_pod()), NodeName("n1")) == refusal
