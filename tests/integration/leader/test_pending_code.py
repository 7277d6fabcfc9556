"""A plugin may say Pending: it waits for something, and when that comes the pod is tried without a pause."""

from typing import Any, ClassVar

import pytest

from dsched.framework.interface import Action, Code, Registration, Resource, Status
from tests.integration.leader.rig import Rig
from tests.manifests import node_manifest, pod_manifest

WEB = "shop/web"
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    {point}: {{enabled: [{{name: Waits}}]}}
"""


class Waits:
    """Turns every pod away, and waits for any change of a node."""

    name = "Waits"
    code: ClassVar[Code]

    def __init__(self, args: Any, handle: Any) -> None:
        pass

    def filter(self, state: Any, pod: Any, node: Any) -> Status:
        return Status(self.code, ("not yet",))

    def reserve(self, state: Any, pod: Any, node: Any) -> Status:
        return Status(self.code, ("not yet",))

    def unreserve(self, state: Any, pod: Any, node: Any) -> None:
        pass

    def events_to_register(self) -> tuple[Registration, ...]:
        return (Registration(Resource.NODE, frozenset({Action.UPDATE})),)


@pytest.mark.parametrize("point", ["filter", "reserve"])
@pytest.mark.parametrize(("code", "queue"), [(Code.PENDING, "active"), (Code.UNSCHEDULABLE, "backoff")])
def test_what_it_waits_for_ends_the_pause(rig: Rig, point: str, code: Code, queue: str) -> None:
    """Source: backend/queue/scheduling_queue.go ``isPodWorthRequeuing``, ``requeuePodWithQueueingStrategy``."""
    Waits.code = code
    rig.configure(CONFIGURATION.format(point=point), Waits)
    rig.apply(node_manifest("n1"), pod_manifest(WEB))
    led = rig.lead()
    led.turns()
    assert rig.queue(WEB) == "unschedulable"
    rig.apply(node_manifest("n1", labels={"changed": "yes"}))
    led.hear()
    led.term.memory.events.apply()
    assert rig.queue(WEB) == queue
