"""Binding: a compare-and-set that is told once."""

import threading
from dataclasses import replace

import pytest

from dsched.cluster.interface import Binding, BindOutcome, BindVerdict, Change
from dsched.manifests import kinds
from dsched.model.meta import NodeName, PodKey, PodUid
from tests.contract.systems import System, ToldEvent
from tests.manifests import node_manifest, pod_manifest

WEB = PodKey("default/web")
BOUND, CONFLICT, GONE = BindVerdict.BOUND, BindVerdict.CONFLICT, BindVerdict.GONE
SCHEDULED = ToldEvent("Normal", "Scheduled", "Successfully assigned default/web to n1", 1)


@pytest.fixture(autouse=True)
def there(system: System) -> None:
    system.put(node_manifest("n1"), node_manifest("n2"), pod_manifest(WEB))


def bind(system: System, binding: Binding) -> BindOutcome:
    (outcome,) = system.cluster.bind([binding])
    return outcome


def node_of(system: System, key: str = WEB) -> str:
    return str(system.there(kinds.POD, key)["spec"].get("nodeName", ""))


def test_a_pod_is_bound_and_told_so(system: System) -> None:
    binding = system.binding(WEB)
    assert bind(system, binding) == BindOutcome(WEB, binding.uid, BOUND, NodeName("n1"))
    assert node_of(system) == "n1"
    assert system.events(WEB) == [SCHEDULED]


def test_binding_again_reads_the_outcome(system: System) -> None:
    binding = system.binding(WEB)
    first = bind(system, binding)
    heard, pod = system.listed(), system.there(kinds.POD, WEB)
    assert bind(system, binding) == first
    assert system.cluster.bind([binding, binding]) == [first, first]
    assert list(system.another().bind([binding])) == [first]
    assert system.there(kinds.POD, WEB) == pod
    assert system.told_nothing(heard)
    assert system.events(WEB) == [SCHEDULED]


def test_binding_again_reads_the_outcome_where_the_reservation_is_over_or_the_pod_is_leaving(system: System) -> None:
    binding = system.binding(WEB)
    first = bind(system, binding)
    assert bind(system, replace(binding, epoch=binding.epoch + 1)) == first
    leaving = system.there(kinds.POD, WEB)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    system.put(leaving)
    assert bind(system, binding) == first
    assert system.events(WEB) == [SCHEDULED]


def test_the_same_pod_twice_in_a_batch_is_bound_once(system: System) -> None:
    binding = system.binding(WEB)
    outcomes = system.cluster.bind([binding, binding, replace(binding, node=NodeName("n2"))])
    node = node_of(system)
    assert [each.verdict for each in outcomes] == [BOUND if asked == node else CONFLICT for asked in ("n1", "n1", "n2")]
    assert {each.node for each in outcomes} == {node}
    assert [each.reason for each in system.events(WEB)] == ["Scheduled"]


def test_a_pod_bound_elsewhere_is_a_conflict(system: System) -> None:
    system.bind_elsewhere(WEB, "n2")
    outcome = bind(system, system.binding(WEB))
    assert (outcome.verdict, outcome.node, outcome.message) == (CONFLICT, "n2", "the pod is bound to n2")
    assert node_of(system) == "n2"
    assert SCHEDULED not in system.events(WEB)


def test_a_pod_that_was_bound_stays_where_it_is(system: System) -> None:
    bind(system, system.binding(WEB))
    outcome = bind(system, system.binding(WEB, "n2"))
    assert (outcome.verdict, outcome.node, outcome.message) == (CONFLICT, "n1", "the pod is bound to n1")
    assert node_of(system) == "n1"
    assert system.events(WEB) == [SCHEDULED]


def test_a_pod_that_somebody_has_bound_to_the_same_node_is_bound(system: System) -> None:
    system.bind_elsewhere(WEB, "n1")
    binding = system.binding(WEB)
    assert bind(system, binding) == BindOutcome(WEB, binding.uid, BOUND, NodeName("n1"))
    assert system.events(WEB) == [SCHEDULED]


def test_a_pod_that_is_not_there_is_gone(system: System) -> None:
    none = Binding(PodKey("default/none"), PodUid("u"), NodeName("n1"), 7)
    outcome = bind(system, none)
    assert (outcome.verdict, outcome.node, outcome.message) == (GONE, "", "there is no such pod")
    assert system.events("default/none") == []


@pytest.mark.parametrize("node", ["", "n1", "n2"])
def test_a_pod_with_another_uid_is_gone_wherever_that_one_is(system: System, node: str) -> None:
    if node:
        system.bind_elsewhere(WEB, node)
    before = system.there(kinds.POD, WEB)
    outcome = bind(system, replace(system.binding(WEB), uid=PodUid("dead")))
    assert (outcome.verdict, outcome.message) == (GONE, f"the pod has another uid, {before['metadata']['uid']}")
    assert system.there(kinds.POD, WEB) == before


def test_a_pod_that_is_being_deleted_is_gone(system: System) -> None:
    leaving = pod_manifest("default/leaving")
    leaving["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    system.put(leaving)
    outcome = bind(system, system.binding("default/leaving"))
    assert (outcome.verdict, outcome.message) == (GONE, "the pod is being deleted")
    assert node_of(system, "default/leaving") == ""


def test_a_gated_pod_is_not_bound_now(system: System) -> None:
    system.put(pod_manifest("default/gated", schedulingGates=[{"name": "wait"}]))
    outcome = bind(system, system.binding("default/gated"))
    assert outcome.verdict is BindVerdict.NOT_NOW
    assert outcome.message
    assert (node_of(system, "default/gated"), system.events("default/gated")) == ("", [])


def test_each_pod_of_a_batch_ends_on_its_own_and_in_order(system: System) -> None:
    keys = [PodKey(f"default/p{number}") for number in range(40)]
    system.put(*(pod_manifest(key) for key in keys))
    bindings = [system.binding(key) for key in keys]
    bindings[7] = replace(bindings[7], uid=PodUid("dead"))
    system.bind_elsewhere(keys[11], "n2")
    bindings[11] = system.binding(keys[11])
    outcomes = system.cluster.bind(bindings)
    assert [each.key for each in outcomes] == keys
    assert {number: each.verdict for number, each in enumerate(outcomes) if each.verdict is not BOUND} == {
        7: GONE,
        11: CONFLICT,
    }
    assert [node_of(system, key) for key in keys[10:13]] == ["n1", "n2", "n1"]
    assert system.cluster.bind([]) == []


def test_binders_at_once_bind_each_pod_once(system: System) -> None:
    """The same batch twice, as redelivery brings it about."""
    keys = [PodKey(f"default/p{number}") for number in range(60)]
    system.put(*(pod_manifest(key) for key in keys))
    bindings = [system.binding(key) for key in keys]
    clusters = [system.another() for _ in range(2)]
    heard = system.listed()
    start = threading.Barrier(2)
    verdicts: list[BindVerdict] = []

    def run(number: int) -> None:
        start.wait()
        verdicts.extend(clusters[number].bind([each])[0].verdict for each in bindings)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == [BOUND] * 120
    for each in clusters:
        assert each.drain(60.0)
    assert {key: [each.reason for each in system.events(key)] for key in keys} == {key: ["Scheduled"] for key in keys}
    for key in keys:
        heard.wait_for(Change.BOUND, "Pod", key)
    assert sorted(key for _, _, key in heard.told) == sorted(keys)


def test_a_reservation_that_is_over_stops_a_bind_where_the_cluster_sees_it(system: System) -> None:
    late = replace(system.binding(WEB), epoch=1)
    assert system.cluster.checks_reservations is system.checks_reservations
    lost = BindVerdict.RESERVATION_LOST if system.checks_reservations else BOUND
    assert bind(system, late).verdict is lost
    assert node_of(system) == ("" if system.checks_reservations else "n1")
