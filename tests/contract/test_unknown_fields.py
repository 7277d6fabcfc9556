"""Fields of pods that dsched does not know: who leads takes the pod and tells once, of pods that it schedules."""

from prometheus_client import REGISTRY

from dsched.cluster.interface import Change
from dsched.manifests import kinds
from tests.contract.systems import System
from tests.integration.cluster.waiting import wait_until
from tests.manifests import Json, pod_manifest

PROFILES = frozenset({"default-scheduler"})


def odd(field: str, scheduler: str = "default-scheduler", **labels: str) -> Json:
    """A pod with a field that nobody knows."""
    return pod_manifest("shop/odd", schedulerName=scheduler, labels=labels, **{field: {"a": 1}})


def count(field: str) -> float:
    return REGISTRY.get_sample_value("dsched_unknown_fields_total", {"field": f"spec.{field}"}) or 0.0


def told(system: System, key: str = "shop/odd") -> list[tuple[str, str, str]]:
    return [(each.type, each.reason, each.message.rpartition(": ")[2]) for each in system.events(key)]


def test_a_pod_that_is_there_at_first(system: System) -> None:
    before = count("atFirst")
    system.put(odd("atFirst"), pod_manifest("shop/plain"))
    system.lead(PROFILES)
    assert sorted(pod.key for pod in system.cluster.list().pods) == ["shop/odd", "shop/plain"]
    wait_until("it is told", lambda: told(system))
    assert told(system) == [("Warning", "UnknownField", "spec.atFirst")]
    assert told(system, "shop/plain") == []
    assert count("atFirst") == before + 1


def test_a_pod_that_comes_changes_and_comes_again(system: System) -> None:
    before = count("comes")
    system.lead(PROFILES)
    heard = system.listed()
    system.put(odd("comes"))
    heard.wait_for(Change.ADDED, "Pod", "shop/odd")
    wait_until("it is told", lambda: told(system))
    system.put(odd("comes", changed="yes"))
    heard.wait_for(Change.MODIFIED, "Pod", "shop/odd")
    assert told(system) == [("Warning", "UnknownField", "spec.comes")]
    assert count("comes") == before + 1, "a change of something else is not told again"
    system.delete(kinds.POD, "shop/odd")
    heard.wait_for(Change.DELETED, "Pod", "shop/odd")
    system.put(odd("comes"))
    wait_until("the second one is counted", lambda: heard.hear() or count("comes") == before + 2)


def test_pods_of_other_schedulers_are_counted_only(system: System) -> None:
    before = count("notOurs")
    system.put(odd("notOurs", "another"))
    system.lead(PROFILES)
    system.cluster.list()
    wait_until("it is counted", lambda: count("notOurs") == before + 1)
    assert told(system) == []


def test_who_does_not_lead_tells_nothing(system: System) -> None:
    before = count("standby")
    system.put(odd("standby"))
    for _ in range(2):
        heard = system.listed()
        system.put(odd("standby", changed=str(heard.version)))
        heard.wait_for(Change.MODIFIED, "Pod", "shop/odd")
        assert (told(system), count("standby")) == ([], before)
        system.lead(PROFILES)
        system.cluster.stand_down()
    system.lead(PROFILES)
    system.cluster.list()
    wait_until("it is told", lambda: told(system))
    assert count("standby") == before + 1
