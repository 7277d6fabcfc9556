"""What a replay refuses, and what is the same."""

import msgspec
import pytest

from dsched import config
from dsched.errors import RecordingError
from dsched.leader.taping import shown
from dsched.model import tape
from dsched.model.meta import NodeName, PodUid
from dsched.plugins import registry
from dsched.recording.comparison import Comparing
from tests.builders import make_node, make_pod

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


def test_the_mean_counts_to_the_end() -> None:
    pod = make_pod("shop/web", cpu=1)
    lines = (began(), tape.NodeIs(make_node("n1", cpu=4)), tape.Ready(), tape.Pending(pod), decided(pod.uid, "n1"))
    found = compare(*lines).conclude(NOW_MS + 1000)
    cpu = next(each for each in found.resources if each.resource == "cpu")
    assert (cpu.recorded_mean, cpu.replayed_mean) == (0.25, 0.25)
    assert found.ended_ms == NOW_MS + 1000
