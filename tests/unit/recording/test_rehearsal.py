"""What another version would decide differently: exactly what was seeded, and nothing where nothing was."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from dsched.config import Features, feature_gates
from dsched.emulation import Asked, asked
from dsched.model import tape
from dsched.model.claim_requests import FINALIZER
from dsched.model.meta import NodeName, key_of
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.plugins import profiles, registry
from dsched.recording import simulated
from dsched.recording.causes import Kind as Changed
from dsched.recording.rehearsal import Difference, Kind, Rehearsal, Rehearsed
from dsched.simulation.from_manifests import ManifestCluster
from tests.builders import make_node, make_pod
from tests.devices import asking, make_claim, make_class, make_slice, result
from tests.unit.recording.test_replaying import resized
from tests.unit.scheduler.grouped import make_group, members
from tests.versions import V34, V35, V36, V37, with_gates

NOW_MS = 1_700_000_000_000
RULES = {"name": "app", "restartPolicyRules": [{"action": "RestartAllContainers"}]}
NEEDED = "RestartAllContainersOnContainerExits"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    profiles.emulate(feature_gates.UNSAID)


def recording(
    features: Features,
    nodes: list[Node],
    pods: list[Pod],
    bound: Sequence[Pod] = (),
    others: Sequence[tuple[str, str, Any]] = (),
) -> list[tape.Line]:
    """What a leader of that version decides about the pods, in their order."""
    configured, plugins = profiles.configuration(None, registry.intree(), features), registry.intree()
    given = ManifestCluster(tuple(nodes), tuple(bound), tuple(pods), tuple(others))
    return simulated.lines(configured, plugins, given, NOW_MS, seed=0)


def rehearsed(lines: list[tape.Line], what: Asked) -> Rehearsed:
    rehearsal = Rehearsal(registry.intree(), what)
    rehearsal.run(lines)
    assert not rehearsal.found.not_reproduced
    return rehearsal.found


def only(found: Rehearsed) -> Difference:
    (difference,) = found.differences
    return difference


def declaring(name: str, *features: str, **more: Any) -> Node:
    made = make_node(name, **more)
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, declared_features=list(features)))


def plain(number: int) -> list[Pod]:
    return [make_pod(f"shop/plain-{each}", cpu=1, memory="1Gi") for each in range(number)]


def test_nothing_where_nothing_is_otherwise() -> None:
    nodes = [declaring(f"n{number}", NEEDED, cpu=8, memory="8Gi") for number in range(4)]
    lines = recording(V34, nodes, plain(40))
    for version in ("1.34", "1.35", "1.36", "1.37"):
        found = rehearsed(lines, asked(version))
        assert (found.decisions > 32, found.decides_otherwise) == (True, False)
        assert len(found.differences) == (8 if version == "1.37" else 0), "told of claims"


def test_a_pod_that_would_wait_for_a_feature_of_its_node() -> None:
    pod = make_pod("shop/rules", cpu=1, spec={"containers": [RULES]})
    lines = recording(V34, [make_node("n1", cpu=8)], [*plain(3), pod])
    assert rehearsed(lines, asked("1.35")).differences == []
    difference = only(rehearsed(lines, asked("1.37")))
    assert (difference.kind, difference.pod, difference.before.node) == (Kind.WAITS, "shop/rules", "n1")
    assert "didn't match Pod's required features" in difference.after.message
    assert difference.cause.names(Changed.GATE) == ["NodeDeclaredFeatures"]
    assert difference.cause.names(Changed.PLUGIN) == ["NodeDeclaredFeatures"]
    assert (str(difference.cause.since), difference.cause.together) == ("1.36", False)


def test_a_pod_that_would_no_longer_wait() -> None:
    """Where the older version is rehearsed, and a gate is turned off."""
    pod = make_pod("shop/rules", cpu=1, spec={"containers": [RULES]})
    lines = recording(V36, [make_node("n1", cpu=8)], [pod])
    gate = asked("1.36", ["NodeDeclaredFeatures=false"])
    for what, since in ((gate, "None"), (asked("1.35"), "None")):
        difference = only(rehearsed(lines, what))
        assert (difference.kind, difference.after.node) == (Kind.PLACED, "n1")
        assert difference.cause.names(Changed.GATE) == ["NodeDeclaredFeatures"]
        assert str(difference.cause.since) == since


def test_a_pod_that_would_go_elsewhere() -> None:
    """An image volume counts since 1.36."""
    volume = {"name": "model", "image": {"reference": "models/big:1"}}
    pod = make_pod("shop/model", cpu=1, spec={"volumes": [volume]})
    there = {"names": ["models/big:1"], "sizeBytes": 900 << 20}
    node = make_node("n2", cpu=8)
    node = msgspec.structs.replace(
        node, status=msgspec.convert({**msgspec.to_builtins(node.status), "images": [there]}, type(node.status))
    )
    found = []
    for number in range(6):
        named = make_pod(f"shop/model-{number}", cpu=1, spec={"volumes": [volume]})
        lines = recording(V35, [make_node("n1", cpu=8), node], [named])
        found += rehearsed(lines, asked("1.36")).differences
    assert pod.uid
    assert found
    assert {(each.kind, each.before.node, each.after.node) for each in found} == {(Kind.MOVES, "n1", "n2")}
    assert {tuple(each.cause.names(Changed.PLUGIN)) for each in found} == {("ImageLocality",)}
    assert {str(each.cause.since) for each in found} == {"1.36"}


def test_what_pods_being_resized_count_for() -> None:
    pod = make_pod("shop/web", cpu=1)
    lines = recording(V36, [make_node("n1", cpu=4)], [pod], [resized()])
    difference = only(rehearsed(lines, asked("1.37")))
    assert (difference.kind, difference.after.node) == (Kind.PLACED, "n1")
    assert [change.kind for change in difference.cause.changes] == [Changed.RESIZES]
    assert str(difference.cause.since) == "1.37"


def test_another_reason_is_no_other_decision() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    lines = recording(V34, [make_node("n1", cpu=8, taints=["gpu=yes:NoSchedule"])], [make_pod("shop/web", cpu=1)])
    found = rehearsed(lines, asked("1.37"))
    difference = only(found)
    assert taint
    assert (difference.kind, found.decides_otherwise) == (Kind.TOLD, False)
    assert difference.cause.names(Changed.PLUGIN) == ["DynamicResources", "TaintToleration"]


def test_what_becomes_of_claims_is_recorded() -> None:
    """The last of three pods finds no device; it would if the recording did not say who has them."""
    nodes = [make_node("n1", cpu=8)]
    claims = [make_claim(f"shop/claim-{number}", asking()) for number in range(3)]
    devices = [("DeviceClass", make_class()), ("ResourceSlice", make_slice("n1", ["d0", "d1"]))]
    others = [(kind, each["metadata"]["name"], each) for kind, each in devices]
    others += [("ResourceClaim", key_of(each), each) for each in claims]
    pods = [
        make_pod(f"shop/web-{number}", spec={"resourceClaims": [{"name": "d", "resourceClaimName": f"claim-{number}"}]})
        for number in range(3)
    ]
    lines = recording(V37, nodes, pods, others=others)
    told = [line.object for line in lines if isinstance(line, tape.ObjectIs) and line.object.get("status", {})]
    assert [each["status"]["allocation"]["devices"]["results"][0]["device"] for each in told] == ["d0", "d1"]
    found = rehearsed(lines, asked("1.36"))
    assert (found.decisions > 2, found.decides_otherwise) == (True, False)


def test_each_decision_is_taken_on_what_was_recorded() -> None:
    """A pod that waits in the other version took its room then, and does so in the rehearsal."""
    rules = make_pod("shop/rules", cpu=4, spec={"containers": [{**RULES, "resources": {"requests": {"cpu": 4}}}]})
    late = make_pod("shop/late", cpu=4)
    lines = recording(V34, [make_node("n1", cpu=4)], [rules, late])
    assert [each.pod for each in rehearsed(lines, asked("1.37")).differences if each.kind is not Kind.TOLD] == [
        "shop/rules"
    ]


def test_seeded_differences_are_found_among_many_others_and_no_more() -> None:
    asks = {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    seeded = [make_pod(f"shop/rules-{each}", spec={"containers": [{**RULES, **asks}]}) for each in range(5)]
    others = plain(20)
    pods = [*others[:10], *seeded[:3], *others[10:], *seeded[3:]]
    nodes = [declaring("n1", NEEDED, cpu=2, memory="2Gi"), *(make_node(f"n{n}", cpu=16, memory="16Gi") for n in (2, 3))]
    found = rehearsed(recording(with_gates(V37, StorageCapacityScoring=False), nodes, pods), asked("1.37"))
    assert (found.differences, found.decisions) == ([], len(pods))
    lines = recording(V35, nodes, pods)
    found = rehearsed(lines, asked("1.37"))
    told = {each.pod for each in found.differences}
    placed = {}
    for line in lines:
        if isinstance(line, tape.Decided):
            placed |= {choice.uid: choice.node for choice in line.choices}
    elsewhere = {pod.key for pod in seeded if placed[pod.uid] != NodeName("n1")}
    assert told == elsewhere
    assert len(told) >= 3, "n1 has room for two"
    assert [(cause.names(Changed.GATE), str(cause.since)) for cause, _ in found.causes] == [
        (["NodeDeclaredFeatures"], "1.36")
    ]


def test_a_gate_of_dscheds_own_is_a_cause_of_no_version() -> None:
    """Rehearsed with the gate on, a pod of high priority would get the device of one of low priority."""
    gate = "DschedDevicePreemption"
    low = make_pod("default/low", node="n1", spec={"resourceClaims": [{"name": "c", "resourceClaimName": "held"}]})
    new = make_pod("default/new", priority=10, spec={"resourceClaims": [{"name": "c", "resourceClaimName": "wanted"}]})
    consumer = {"resource": "pods", "name": "low", "uid": low.uid}
    held = make_claim("default/held", asking(), allocated=[result("d1")], reservedFor=[consumer])
    held["metadata"]["finalizers"] = [FINALIZER]
    others = [
        ("DeviceClass", "gpu", make_class()),
        ("ResourceSlice", "s", make_slice("n1", ["d1"])),
        ("ResourceClaim", "default/held", held),
        ("ResourceClaim", "default/wanted", make_claim("default/wanted", asking())),
    ]
    lines = recording(V37, [make_node("n1")], [new], [low], others)
    assert not rehearsed(lines, asked("1.37")).differences
    difference = only(rehearsed(lines, asked("1.37", [f"{gate}=true"])))
    assert difference.cause.names(Changed.GATE) == [gate]
    assert difference.cause.since is None


def test_pod_groups_are_rehearsed_as_groups() -> None:
    """As the same version nothing is otherwise; without the gate no pod of a group is placed."""
    on = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
    groups = [make_group("shop/train", 4, priority=9), make_group("shop/large", 9)]
    others = [("PodGroup", f"shop/{group['metadata']['name']}", group) for group in groups]
    pods = [*members(4, cpu="2", priority=9), *members(9, "shop/large", cpu="2"), make_pod("shop/web", cpu=1)]
    low = make_pod("shop/low", cpu=3, node="n0", priority=1)
    nodes = [make_node(f"n{number}", cpu=4) for number in range(2)]
    lines = recording(feature_gates.features(V37.version, on), nodes, pods, [low], others)
    gates = ",".join(f"{gate}=true" for gate in on)
    assert rehearsed(lines, asked("1.37", [gates])).differences == []
    found = rehearsed(lines, asked("1.37", ["GenericWorkload=false"]))
    waits = [each for each in found.differences if each.kind is Kind.WAITS]
    assert sorted(each.pod for each in waits) == [f"shop/train-{number}" for number in range(4)]
    assert {str(each.cause) for each in waits} == {"GenericWorkload"} or all(
        "GenericWorkload" in str(each.cause) for each in waits
    )
