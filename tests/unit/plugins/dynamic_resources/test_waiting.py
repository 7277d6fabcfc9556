"""PreBind says that a pod waits for its devices, once a decision."""

from types import SimpleNamespace
from typing import Any

from dsched.clock import ManualClock
from dsched.config import DynamicResourcesArgs
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code
from dsched.framework.pod_info import PodInfo
from dsched.model.meta import NodeName
from dsched.plugins.dynamic_resources.plugin import DynamicResources
from tests.builders import make_pod
from tests.unit.plugins.dynamic_resources.judging import features
from tests.unit.plugins.dynamic_resources.test_binding import Cluster, errand, waiting_claim


def asked(plugin: DynamicResources, since_ms: int) -> Code | None:
    """What PreBind says about a pod of a decision."""
    decided: dict[str, Any] = {**errand(waits=True).packed(), "sinceMs": since_ms}
    status = plugin.pre_bind(CycleState({plugin.name: decided}), PodInfo(make_pod("default/web")), NodeName("n1"))
    return None if status is None else status.code


def test_it_is_said_once_a_decision() -> None:
    told: list[tuple[str, ...]] = []
    clock = ManualClock()
    handle = SimpleNamespace(
        cluster=Cluster(waiting_claim()), clock=clock, event=lambda pod, *words: told.append((pod.key, *words))
    )
    plugin = DynamicResources(DynamicResourcesArgs(), handle, features())
    assert [asked(plugin, clock.now_ms()), asked(plugin, clock.now_ms())] == [Code.WAIT, Code.WAIT]
    said = "Normal", "BindingConditionsPending", "waiting for binding conditions for device on node n1"
    assert told == [("default/web", *said)]
    asked(plugin, clock.now_ms() + 1)
    assert len(told) == 2


def test_it_is_said_of_devices_that_are_ready_by_now() -> None:
    # As where a bind that waited for them is refused, and tried again.
    told: list[tuple[str, ...]] = []
    handle = SimpleNamespace(
        cluster=Cluster(waiting_claim("Attached")), clock=ManualClock(), event=lambda pod, *words: told.append(words)
    )
    assert asked(DynamicResources(DynamicResourcesArgs(), handle, features()), 0) is None
    assert [words[1] for words in told] == ["BindingConditionsPending"]


def test_nothing_is_said_where_claims_cannot_be_written() -> None:
    handle = SimpleNamespace(cluster=Cluster(waiting_claim(), refusal="no"), clock=ManualClock(), event=None)
    assert asked(DynamicResources(DynamicResourcesArgs(), handle, features()), 0) is Code.ERROR
