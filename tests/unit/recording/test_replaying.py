"""What a replay refuses, and what is the same."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dsched import config, emulation
from dsched.config import Features, feature_gates, shown
from dsched.emulation import NOTHING, Asked, asked
from dsched.errors import ConfigError, RecordingError
from dsched.framework.interface import Status, unschedulable
from dsched.model import tape
from dsched.model.meta import NO_NODE, NodeName, PodUid, from_builtins
from dsched.model.pod import Pod
from dsched.plugins import profiles, registry
from dsched.recording import simulated
from dsched.recording.comparison import Comparing, Comparison
from dsched.recording.replaying import Replay
from dsched.recording.world import Fate
from dsched.scheduler.ports import QueueName
from dsched.simulation.from_manifests import ManifestCluster
from dsched.simulation.turned_away import MOST
from tests.builders import make_node, make_pod
from tests.manifests import group_manifest, resizing_manifest
from tests.unit.scheduler.grouped import make_group, members
from tests.unit.simulation.worlds import Gang, configured, known

NOW_MS = 1_700_000_000_000


def began() -> tape.Began:
    configured = config.default()
    return tape.Began(NOW_MS, 1, 0, shown(configured), configured.hash)


def decided(uid: str, node: str, at_ms: int = NOW_MS) -> tape.Decided:
    return tape.Decided(at_ms, (tape.Choice(PodUid(uid), 1, NodeName(node)),))


def compare(*lines: tape.Line) -> Comparing:
    made = Comparing(None, registry.intree())
    made.run(lines)
    return made


def test_the_configuration_is_read_back_as_it_was() -> None:
    for text in ("", "percentageOfNodesToScore: 0\n", "percentageOfNodesToScore: 30\n"):
        head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        configured = config.load(head + text)
        line = tape.decode(tape.encode(tape.Began(NOW_MS, 1, 0, shown(configured), configured.hash)))
        assert isinstance(line, tape.Began)
        assert config.load(msgspec.json.encode(line.config)) == configured


def test_a_recording_without_a_beginning_is_refused() -> None:
    with pytest.raises(RecordingError, match="nothing was recorded"):
        compare()
    with pytest.raises(RecordingError, match="line 2: a recording begins with everything there is, not with NodeIs"):
        compare(tape.NodeIs(make_node()))


def test_a_beginning_that_was_not_told_whole_is_passed_over() -> None:
    """Its leader was killed; the next one began anew."""
    pod = make_pod("shop/web", cpu=1)
    again = (tape.NodeIs(make_node("n1")), tape.Pending(pod), tape.Ready(), decided(pod.uid, "n1"))
    found = compare(began(), tape.NodeIs(make_node("n9")), began(), *again).conclude()
    assert (found.beginnings, found.decisions, found.equal) == (2, 1, True)


def test_a_last_beginning_that_was_not_told_whole_says_nothing_of_how_full_it_is() -> None:
    pod = make_pod("shop/web", cpu=1)
    first = (began(), tape.NodeIs(make_node("n1", cpu=4)), tape.Ready(), tape.Pending(pod), decided(pod.uid, "n1"))
    found = compare(*first, began(), tape.NodeIs(make_node("n1", cpu=8))).conclude()
    cpu = next(each for each in found.resources if each.resource == "cpu")
    assert (cpu.allocatable, cpu.recorded) == (4000, 1000)


def test_another_decision_is_told_with_both_sides() -> None:
    pod = make_pod("shop/web", cpu=1)
    found = compare(
        began(), tape.NodeIs(make_node("n1")), tape.Ready(), tape.Pending(pod), decided(pod.uid, "n2")
    ).conclude()
    assert (found.decisions, found.same, found.equal) == (1, 0, False)
    assert found.first == "pod shop/web, attempt 1: recorded n2, replayed n1"
    assert [(each.recorded, each.replayed) for each in found.moved] == [("n2", "n1")]


def test_a_pod_of_a_profile_that_there_is_no_longer_has_no_node() -> None:
    pod = make_pod("shop/web", cpu=1, spec={"schedulerName": "ours"})
    found = compare(
        began(), tape.NodeIs(make_node("n1")), tape.Ready(), tape.Pending(pod), decided(pod.uid, "n1")
    ).conclude()
    assert found.not_tried == 1
    assert [(each.recorded, each.replayed) for each in found.lost] == [("n1", "")]
    assert list(found.replayed_unschedulable) == ['schedulerName "ours" is none of default-scheduler']


def reserved_for_a_profile_that_there_is_no_longer(*lines: tape.Line, **more: Any) -> Comparing:
    """A pod had a node when the recording began, and its profile is not in this configuration."""
    pod = make_pod("shop/web", cpu=1, spec={"schedulerName": "ours"})
    there = (tape.NodeIs(make_node("n1", cpu=4)), tape.Pending(pod), tape.Reserved(NodeName("n1"), pod, **more))
    return compare(began(), *there, tape.Ready(), *lines)


def amounts(found: Comparison) -> dict[str, tuple[int, int]]:
    """What is taken at the end, as recorded and in the replay."""
    return {each.resource: (each.recorded, each.replayed) for each in found.resources}


@pytest.mark.parametrize("more", [{}, {"holding": {"Gang": NOW_MS + 60_000}, "since_ms": NOW_MS}])
def test_a_pod_whose_profile_there_is_no_longer_counts_until_it_is_released(more: dict[str, Any]) -> None:
    made = reserved_for_a_profile_that_there_is_no_longer(**more)
    assert amounts(made.conclude())["pods"] == (1, 1)
    made = reserved_for_a_profile_that_there_is_no_longer(tape.Released(PodUid("uid-web")), **more)
    found = amounts(made.conclude())
    assert (found["cpu"], found["pods"]) == ((0, 0), (0, 0))


def test_a_pod_whose_profile_there_is_no_longer_counts_once_it_is_bound() -> None:
    bound = (tape.Bound(PodUid("uid-web")), tape.NoLongerPending(PodUid("uid-web")))
    made = reserved_for_a_profile_that_there_is_no_longer(*bound)
    assert amounts(made.conclude())["pods"] == (1, 1)


def test_a_pod_whose_profile_there_is_no_longer_goes_with_its_node() -> None:
    """It was tried again, which nobody can here, and its node goes."""
    tried = (tape.Released(PodUid("uid-web")), decided("uid-web", "n1"), tape.NodeGone(NodeName("n1")))
    for lines in (tried, tried[1:]):
        made = reserved_for_a_profile_that_there_is_no_longer(*lines)
        assert made.replay is not None
        assert made.replay.memory.snapshot.table.node_of(PodUid("uid-web")) is None
        assert list(made.conclude().replayed_unschedulable) == ['schedulerName "ours" is none of default-scheduler']


def test_a_pod_that_is_turned_away_again_and_again_is_left_in_the_end() -> None:
    """The recorded leader found room for neither; here one turns the other away."""
    member, stray = make_pod("shop/member", priority=9), make_pod("shop/stray")
    choices = tuple(tape.Choice(pod.uid, 1, NO_NODE, "no room") for pod in (member, stray))
    made = Comparing(lambda _: configured(Gang), known(Gang))
    made.run(
        (
            began(),
            tape.NodeIs(make_node("n1", cpu=4)),
            tape.Ready(),
            tape.Pending(member),
            tape.Pending(stray),
            tape.Decided(NOW_MS, choices),
        )
    )
    assert made.replay is not None
    assert made.replay.fates[member.uid] == Fate(member.key, message="the gang is not complete")
    assert made.replay.fates[stray.uid].node == NO_NODE
    assert made.result.extra == 2 * MOST - 1  # the first attempts of both were recorded


class Calls:
    """A pod fits once another one has had its turn, which has everybody tried again."""

    name = "Calls"

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle, self._called = handle, False

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Status | None:
        if pod.key == "shop/caller":
            self._called = True
        self._handle.activate(["shop/first", "shop/caller"])
        return None if self._called and pod.key == "shop/first" else unschedulable("nobody has called")

    def events_to_register(self) -> list[Any]:
        return []


def test_a_pod_that_a_plugin_activates_is_tried_again_and_nobody_for_ever() -> None:
    first, caller = make_pod("shop/first", priority=9), make_pod("shop/caller")
    choices = tuple(tape.Choice(pod.uid, 1, NO_NODE, "no room") for pod in (first, caller))
    made = Comparing(lambda _: configured(Calls), known(Calls))
    there = began(), tape.NodeIs(make_node("n1", cpu=4)), tape.Ready(), tape.Pending(first), tape.Pending(caller)
    made.run((*there, tape.Decided(NOW_MS, choices)))
    assert made.replay is not None
    assert made.replay.fates[first.uid].node == "n1"
    assert made.replay.fates[caller.uid].node == NO_NODE
    assert 1 <= made.result.extra < 6


def test_the_mean_counts_to_the_end() -> None:
    pod = make_pod("shop/web", cpu=1)
    lines = (began(), tape.NodeIs(make_node("n1", cpu=4)), tape.Ready(), tape.Pending(pod), decided(pod.uid, "n1"))
    found = compare(*lines).conclude(NOW_MS + 1000)
    cpu = next(each for each in found.resources if each.resource == "cpu")
    assert (cpu.recorded_mean, cpu.replayed_mean) == (0.25, 0.25)
    assert found.ended_ms == NOW_MS + 1000


def replayed(*lines: tape.Line) -> Replay:
    made = Replay(config.default(), registry.intree(), began(), seed=0)
    for line in (tape.NodeIs(make_node("n1", cpu=2)), tape.Ready(), *lines):
        made.apply(line)
    return made


def test_a_recorded_world_has_its_pod_groups() -> None:
    lines = [tape.ObjectIs("PodGroup", "shop/train", group_manifest("shop/train", 3))]
    found = replayed(*(tape.decode(tape.encode(line)) for line in lines))
    groups = found.memory.snapshot.pod_groups.objects
    assert [(key, group.min_count) for key, group in groups.items()] == [("shop/train", 3)]
    found.apply(tape.ObjectGone("PodGroup", "shop/train"))
    assert groups == {}


def relabelled(cpu: int = 1) -> tuple[Pod, Pod]:
    """A pod, and what it has become."""
    old = make_pod("shop/web", cpu=cpu, labels={"app": "old"})
    return old, replace(old, metadata=replace(old.metadata, labels={"app": "new"}))


def labels(found: Replay, uid: PodUid) -> dict[str, str]:
    """Of the pod where it counts."""
    info = found.memory.snapshot.table.pod(uid)
    if info is not None:
        return info.pod.metadata.labels
    (pod,) = [pod for pod in found._pending if pod.uid == uid]
    return pod.info.pod.metadata.labels


def test_a_pod_that_changed_while_it_was_reserved_counts_as_it_is() -> None:
    old, new = relabelled()
    decision = (tape.Pending(old), decided(old.uid, "n1"), tape.Pending(new))
    assert labels(replayed(*decision), old.uid) == {"app": "old"}  # as in the leader
    assert labels(replayed(*decision, tape.Bound(old.uid)), old.uid) == {"app": "new"}


def test_a_pod_that_is_bound_elsewhere_counts_as_it_is() -> None:
    """Recorded was another node, so it was bound here at once."""
    old, new = relabelled()
    found = replayed(tape.Pending(old), decided(old.uid, "n9"), tape.Pending(new))
    assert labels(found, old.uid) == {"app": "new"}
    assert found.memory.snapshot.table.node_of(old.uid) == "n1"


def test_a_pod_that_has_no_place_here_is_tried_as_it_is() -> None:
    old, new = relabelled(cpu=4)
    found = replayed(tape.Pending(old), decided(old.uid, "n9"), tape.PodOn(NodeName("n9"), new.on(NodeName("n9"))))
    assert labels(found, old.uid) == {"app": "new"}
    assert found.memory.snapshot.table.node_of(old.uid) is None


@pytest.mark.parametrize("ends", ["taken back", "deleted"])
def test_who_left_promised_room_alone_is_tried_again(ends: str) -> None:
    """Recorded was another node, so what helps the pod is found out here."""
    big, small = make_pod("shop/big", cpu=2, priority=10), make_pod("shop/small", cpu=1)
    promised = (tape.Pending(big, place=QueueName.UNSCHEDULABLE), tape.Promised(big.uid, NodeName("n1")))
    found = replayed(*promised, tape.Pending(small), decided(small.uid, "n9"))
    table = found.memory.snapshot.table
    found.finish()
    assert table.node_of(small.uid) is None
    found.apply(tape.PromiseEnded(big.uid) if ends == "taken back" else tape.NoLongerPending(big.uid))
    found.finish()
    assert table.node_of(small.uid) == "n1"


# -- the version that decided --------------------------------------------------------------------------------------


def resized() -> Pod:
    """Takes up 4 cores until 1.36, and 3 since."""
    value = resizing_manifest("shop/resizing", "n1", asked=("1", "2"), has=("2", "1"))
    value["metadata"]["uid"] = "uid-resizing"
    return from_builtins(value, Pod)


def decided_as(features: Features, told: tuple[str, str], asked: Asked = NOTHING) -> str:
    """Where a pod of one core goes that was recorded on a node of 4 cores with that pod."""
    configured, pod = config.default(features), make_pod("shop/web", cpu=1)
    version, gates = told
    began = tape.Began(NOW_MS, 1, 0, shown(configured), configured.hash, version=version, gates=gates)
    made = Comparing(None, registry.intree(), asked=asked)
    made.run(
        (
            began,
            tape.NodeIs(make_node("n1", cpu=4)),
            tape.PodOn(NodeName("n1"), resized()),
            tape.Ready(),
            tape.Pending(pod),
            decided(pod.uid, "n1"),
        )
    )
    assert made.replay is not None
    return made.replay.memory.snapshot.table.node_of(pod.uid) or ""


@pytest.fixture
def as_before() -> Iterator[None]:
    yield
    profiles.emulate(feature_gates.UNSAID)


@pytest.mark.usefixtures("as_before")
def test_the_recorded_version_decides_unless_another_one_is_asked_for() -> None:
    newest = feature_gates.features(feature_gates.NEWEST, {"StorageCapacityScoring": False})
    assert decided_as(newest, emulation.written(newest)) == "n1"
    assert decided_as(newest, emulation.written(newest), asked(None, ["StorageCapacityScoring=true"])) == "n1"
    before = feature_gates.features(feature_gates.Version(1, 36))
    assert decided_as(before, emulation.written(before)) == ""
    assert decided_as(before, emulation.written(before), asked("1.37")) == "n1"
    assert decided_as(feature_gates.UNSAID, ("", "")) == "", "an older release recorded it"
    with pytest.raises(ConfigError, match=r"cannot emulate kube-scheduler 1\.99"):
        decided_as(newest, ("1.99", ""))


# -- pod groups ----------------------------------------------------------------------------------------------------


GROUPED = feature_gates.features(
    feature_gates.NEWEST, {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
)


def of_groups(nodes: int = 3) -> list[tape.Line]:
    """What a leader would tell of one gang that fits, one that evicts, one that is too large, and a pod."""
    groups = [make_group("shop/large", 9), make_group("shop/train", 4, priority=9), make_group("shop/few", 2)]
    pods = [
        *members(3, "shop/few", cpu="1"),
        *members(9, "shop/large", cpu="2"),
        *members(4, cpu="2", priority=9),
        make_pod("shop/web", cpu=1),
    ]
    given = ManifestCluster(
        tuple(make_node(f"n{number}", cpu=4) for number in range(nodes)),
        (make_pod("shop/low-0", cpu=3, node="n0", priority=1), make_pod("shop/low-1", cpu=3, node="n1", priority=1)),
        tuple(pods),
        tuple(("PodGroup", f"shop/{group['metadata']['name']}", group) for group in groups),
    )
    configured = profiles.configuration(None, registry.intree(), GROUPED)
    return [tape.decode(tape.encode(line)) for line in simulated.lines(configured, registry.intree(), given, NOW_MS, 0)]


@pytest.mark.usefixtures("as_before")
def test_groups_are_decided_again_as_groups() -> None:
    lines = of_groups()
    told = [group for line in lines if isinstance(line, tape.Decided) for group in line.groups]
    assert [group.end for group in told if group.key == "shop/train"] == ["waiting_on_preemption", "scheduled"]
    made = compare(*lines)
    found = made.conclude()
    assert (found.equal, found.first, found.not_tried) == (True, "", 0)
    assert found.recorded_evicted == found.replayed_evicted > 0
    assert found.recorded_unschedulable == found.replayed_unschedulable


@pytest.mark.usefixtures("as_before")
def test_a_group_that_finds_other_nodes_is_placed_whole_or_not_at_all() -> None:
    """In the replay the nodes are smaller: two pods of the gang had room on each, now one has."""
    lines = [
        tape.NodeIs(make_node(line.node.name, cpu=2)) if isinstance(line, tape.NodeIs) else line
        for line in of_groups()
        if not isinstance(line, tape.PodOn)
    ]
    made = compare(*lines)
    found = made.conclude()
    assert not found.equal
    assert made.replay is not None
    placed = [info.key for _, info in made.replay.memory.snapshot.table.placed()]
    assert sum(key.startswith("shop/train-") for key in placed) == 0
    assert sum(key.startswith("shop/large-") for key in placed) == 0
    assert sum(key.startswith("shop/few-") for key in placed) == 3


@pytest.mark.usefixtures("as_before")
def test_a_recording_without_groups_is_decided_as_groups_where_the_gate_is_on() -> None:
    """Its pods were decided one by one; here the first one's attempt brings the others."""
    lines = [replace(line, groups=()) if isinstance(line, tape.Decided) else line for line in of_groups()]
    made = compare(*lines)
    assert made.replay is not None
    placed = [info.key for _, info in made.replay.memory.snapshot.table.placed()]
    assert sum(key.startswith("shop/train-") for key in placed) == 4
