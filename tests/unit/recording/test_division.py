"""What other queues do with a recorded run: recordings written by hand, with answers that can be worked out."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.model import tape
from dsched.model.meta import NodeName, PodUid
from dsched.model.pod import PodResourceClaimStatus
from dsched.plugins import registry
from dsched.recording.division import Divided
from dsched.recording.division_outcome import STEPS, Division, over_time, quantile
from tests.builders import make_node
from tests.devices import asking, make_claim, make_class, make_slice
from tests.manifests import group_manifest, queue_manifest
from tests.unit.plugins.fair_share.divided import GROUPED
from tests.unit.recording.by_hand import NODE, A, B, ByHand, full_of_a, keeps, pod, queue, waits


def reclaimed(found: Division) -> dict[str, tuple[int, int]]:
    return {each.name: (each.recorded.reclaimed, each.replayed.reclaimed) for each in found.queues}


def test_the_recorded_division_comes_to_what_was_recorded() -> None:
    found = full_of_a().divided(keeps("a", 4), B, ended=20)
    assert waits(found) == {"a0": (0, 0), "a1": (0, 0), "a2": (0, 0), "a3": (0, 0), "b0": (9, 9), "b1": (9, 9)}
    assert (found.recorded_evicted, found.replayed_evicted) == (0, 0)
    for each in found.queues:
        assert each.recorded == each.replayed
        assert [resource.recorded == resource.replayed for resource in each.resources] == [True]
    means = [queue(found, name).resources[0].replayed.mean for name in ("a", "b")]
    assert means == [4000 * 10 / 20, 2000 * 5 / 20]


def test_a_guarantee_is_reached_at_once_and_who_was_evicted_is_gone() -> None:
    """Nobody makes pods of no controller again; two of a have gone after one second."""
    found = full_of_a().divided(A, keeps("b", 2), ended=20)
    assert waits(found)["b0"] == waits(found)["b1"] == (9, 0)
    assert reclaimed(found) == {"a": (0, 2), "b": (0, 0)}
    assert (found.replayed_evicted, found.came_again) == (2, 0)
    (cpu,) = queue(found, "a").resources
    assert (cpu.replayed.mean, cpu.replayed.end) == ((2000 * 10 + 2000 * 1) / 20, 0)
    (cpu,) = queue(found, "b").resources
    assert cpu.replayed.mean == 2000 * 5 / 20
    assert cpu.replayed.over_time[:5] == (0, 0, 0, 0, 0)
    assert cpu.replayed.over_time[5:30] == (2000,) * 25
    assert cpu.recorded.over_time[49:51] == (0, 2000)


def test_a_controller_makes_its_pods_again_and_they_run_their_whole_time() -> None:
    """They come after a second, when b has two cores until 6: then they run for ten seconds."""
    found = full_of_a(owner="job").divided(A, keeps("b", 2), ended=20)
    assert (found.replayed_evicted, found.came_again) == (2, 2)
    told = [(each.recorded, each.replayed) for each in found.pods if each.recorded is None]
    assert [wait.ms for _, wait in told if wait is not None] == [4000, 4000]
    (cpu,) = queue(found, "a").resources
    assert cpu.replayed.mean == (2000 * 10 + 2000 * 1 + 2000 * 10) / 20
    assert queue(found, "a").replayed.pods == 6


def reclaiming() -> ByHand:
    """Pods of a borrow all four cores; b comes and takes two back, and these come again after three seconds."""
    made = ByHand(A, keeps("b", 2))
    for number in range(4):
        made.comes(f"a{number}/1", "a")
        made.begins(f"a{number}/1")
    made.at = 2
    made.comes("b0", "b", 2)
    made.decided("b0", "a2/1", "a3/1")
    made.ends("a2/1", "a3/1")
    made.begins("b0")
    made.at = 5
    made.comes("a2/2", "a")
    made.comes("a3/2", "a")
    made.decided("a2/2")
    made.decided("a3/2")
    made.at = 8
    made.ends("b0")
    made.begins("a2/2", "a3/2")
    made.at = 10
    made.ends("a0/1", "a1/1")
    made.at = 18
    made.ends("a2/2", "a3/2")
    return made


def test_the_recorded_division_takes_back_what_was_taken_back() -> None:
    found = reclaiming().divided(A, keeps("b", 2), ended=20)
    assert reclaimed(found) == {"a": (2, 2), "b": (0, 0)}
    assert (found.recorded_evicted, found.replayed_evicted, found.came_again) == (2, 2, 2)
    for each in found.queues:
        assert each.recorded == each.replayed
        assert [resource.recorded for resource in each.resources] == [resource.replayed for resource in each.resources]


def test_who_is_not_evicted_runs_as_long_as_who_came_in_its_place() -> None:
    """And nobody comes in its place: four pods of a run for ten seconds, then b."""
    found = reclaiming().divided(keeps("a", 4), B, ended=20)
    assert reclaimed(found) == {"a": (2, 0), "b": (0, 0)}
    assert (found.recorded_evicted, found.replayed_evicted) == (2, 0)
    assert [each.pod for each in found.pods if each.replayed is None] == ["shop/a2", "shop/a3"]
    assert waits(found)["b0"] == (0, 8)
    (cpu,) = queue(found, "a").resources
    assert cpu.replayed.mean == 4000 * 10 / 20


def test_who_makes_pods_of_a_queue_again_makes_others_of_it_again() -> None:
    """With these queues, others of a have to go as well: all come again after three seconds."""
    found = reclaiming().divided(A, keeps("b", 3), ended=20)
    assert (found.recorded_evicted, found.replayed_evicted, found.came_again) == (2, 2, 2)
    made = reclaiming()
    made.lines = [line for line in made.lines if not (isinstance(line, tape.PodOff) and line.uid.startswith("a"))]
    made.at = 19
    made.comes("b1", "b")
    found = made.divided(A, keeps("b", 4), ended=30)
    assert (found.replayed_evicted, found.came_again) == (3, 3)
    last = [each for each in found.pods if each.pod.startswith("shop/a") and each.recorded is None]
    assert [wait.ms for each in last if (wait := each.replayed) is not None] == [8000]


def test_who_was_evicted_and_did_not_come_again_stays() -> None:
    made = reclaiming()
    made.lines = [line for line in made.lines if not (isinstance(line, tape.Pending) and line.pod.uid.endswith("/2"))]
    found = made.divided(keeps("a", 4), B, ended=20)
    (cpu,) = queue(found, "a").resources
    assert (cpu.recorded.end, cpu.replayed.end) == (0, 2000)


def test_a_limit_that_is_tried_out_makes_pods_wait() -> None:
    found = full_of_a().divided(queue_manifest("a", resources={"cpu": {"limit": 2}}), B, ended=40)
    assert waits(found) == {"a0": (0, 0), "a1": (0, 0), "a2": (0, 10), "a3": (0, 10), "b0": (9, 0), "b1": (9, 0)}
    (cpu,) = queue(found, "a").resources
    assert (cpu.limit, max(cpu.replayed.over_time), max(cpu.recorded.over_time)) == (2000, 2000, 4000)


def test_pods_that_wait_in_the_end_count_with_what_they_have_waited() -> None:
    made = ByHand(A, cores=1, there=(pod("old", "a"),))
    made.at = 2
    made.comes("new", "a")
    made.decided("new")
    found = made.divided(A, ended=12)
    assert waits(found) == {"new": (10, 10)}
    waited = queue(found, "a").replayed
    assert (waited.pods, waited.median_ms, waited.waiting) == (1, 10_000, 1)


def test_a_pod_that_waited_before_the_recording_began_has_waited_since_it_came() -> None:
    made = ByHand(A)
    early = tape.Pending(pod("early", "a"), made.now_ms * 1000 - 5_000_000)
    made.lines.insert(-1, early)
    made.at = 1
    made.begins("early")
    assert waits(made.divided(A)) == {"early": (6, 5)}


def test_a_pod_that_was_deleted_before_it_ran_goes_then_wherever_it_is() -> None:
    made = ByHand(keeps("a", 4), B, there=tuple(pod(f"a{number}", "a") for number in range(4)))
    made.at = 1
    made.comes("b0", "b")
    made.decided("b0")
    made.at = 6
    made.deleted("b0")
    found = made.divided(keeps("a", 4), B, ended=10)
    assert waits(found) == {"b0": (5, 5)}
    assert queue(found, "b").replayed.waiting == 0
    found = made.divided(A, keeps("b", 2), ended=10)
    assert waits(found) == {"b0": (5, 0)}
    assert queue(found, "b").resources[0].replayed.mean == 1000 * 5 / 10


def test_pods_of_a_queue_that_is_not_there_wait() -> None:
    found = full_of_a().divided(A, ended=20)
    missing = queue(found, "b")
    assert (missing.known, missing.replayed.waiting, missing.recorded.waiting) == (False, 2, 0)
    assert (queue(found, "a").known, [each.name for each in found.queues]) == (True, ["a", "b"])


def test_pods_of_no_queue_come_first_and_are_told_last() -> None:
    made = full_of_a()
    made.at = 16
    made.comes("plain", "")
    made.begins("plain")
    found = made.divided(A, B, ended=20)
    assert [each.name for each in found.queues] == ["a", "b", ""]
    assert waits(found)["plain"] == (0, 0)


def test_a_queue_has_what_those_below_it_have() -> None:
    below = [queue_manifest(name, "top") for name in ("a", "b")]
    found = full_of_a().divided(queue_manifest("top"), *below, ended=20)
    top = queue(found, "top")
    assert [each.name for each in found.queues] == ["top", "a", "b"]
    assert (top.replayed.pods, queue(found, "a").parent) == (6, "top")
    parts = [queue(found, name).resources[0].replayed.mean for name in ("a", "b")]
    assert top.resources[0].replayed.mean == sum(parts)


def test_nodes_that_come_and_go() -> None:
    """A second node lets b in after three seconds."""
    made = full_of_a()
    added = tape.NodeIs(make_node("n2", cpu=2), at_ms=made.now_ms - 11_000)
    made.lines.insert(next(at for at, line in enumerate(made.lines) if isinstance(line, tape.PodOff)), added)
    found = made.divided(keeps("a", 4), B, ended=20)
    assert waits(found)["b0"] == (9, 3)
    gone = tape.NodeGone(NodeName("n2"), at_ms=added.at_ms)
    made.lines.insert(made.lines.index(added) + 1, gone)
    assert waits(made.divided(keeps("a", 4), B, ended=20))["b0"] == (9, 9)


def test_a_pod_that_somebody_else_bound_is_where_it_was() -> None:
    made = ByHand(A)
    made.at = 2
    made.told(tape.PodOn(NODE, pod("daemon", "", 4)))
    made.at = 3
    made.comes("a0", "a")
    made.decided("a0")
    made.at = 7
    made.ends("daemon")
    made.begins("a0")
    assert waits(made.divided(A, ended=9)) == {"a0": (4, 4)}


def test_a_namespace_that_changes_its_queue_changes_it_for_pods_that_come_later() -> None:
    made = ByHand(A, B)

    def labelled(name: str) -> None:
        labels = {"dsched.io/queue": name}
        made.told(tape.ObjectIs("Namespace", "shop", {"metadata": {"name": "shop", "labels": labels}}))

    labelled("a")
    made.comes("first", "")
    made.begins("first")
    made.at = 1
    labelled("b")
    made.comes("second", "")
    made.begins("second")
    found = made.divided(A, B, ended=4)
    assert {each.pod: each.queue for each in found.pods} == {"shop/first": "a", "shop/second": "b"}


def test_a_pod_group_waits_for_its_object_and_for_room_for_all() -> None:
    made = ByHand(A, B, features=GROUPED)
    made.comes("x", "b", 2)
    made.begins("x")
    made.at = 1
    for name in ("m0", "m1"):
        made.comes(name, "a", 2, schedulingGroup={"podGroupName": "g"})
    made.at = 2
    made.told(tape.ObjectIs("PodGroup", "shop/g", group_manifest("shop/g", min_count=2)))
    made.at = 5
    made.ends("x")
    made.begins("m0", "m1")
    made.at = 6
    made.comes("m2", "a", 2, schedulingGroup={"podGroupName": "g"})
    made.at = 8
    made.deleted("m2")
    made.told(tape.ObjectGone("PodGroup", "shop/g"))
    assert waits(made.divided(A, B, ended=12)) == {"x": (0, 0), "m0": (4, 4), "m1": (4, 4), "m2": (2, 2)}


def test_a_pod_that_changes_does_so_wherever_it_is() -> None:
    """One that runs gets another label; one that asks for more than any node has asks for less."""
    made = ByHand(A, there=(pod("old", "a"),))
    made.comes("new", "a", 9)
    made.decided("new")
    made.at = 3
    made.told(tape.PodOn(NODE, pod("old", "b")))
    made.comes("new", "a")
    made.begins("new")
    divided = Divided(made.history(5), made.configured, registry.intree(), {"a": A})
    assert waits(divided.run()) == {"new": (3, 3)}
    running = divided.simulation.memory.snapshot.table.pod(PodUid("old"))
    assert running is not None
    assert running.pod.metadata.labels["dsched.io/queue"] == "b"


def test_the_nearest_rank() -> None:
    numbers = list(range(1, 21))
    assert [quantile(numbers, part) for part in (0.5, 0.95, 1.0)] == [10, 19, 20]
    assert (quantile([7], 0.5), quantile([7], 0.95), quantile([], 0.5)) == (7, 7, None)


@given(st.lists(st.tuples(st.integers(-500, 3000), st.integers(0, 3000), st.integers(0, 9)), max_size=8))
def test_means_of_stretches_add_up(told: list[tuple[int, int, int]]) -> None:
    runs = [(began, began + span, amount) for began, span, amount in told]
    found = over_time(runs, 0, 1000)
    whole = sum(amount * max(0, min(ended, 1000) - max(began, 0)) for began, ended, amount in runs)
    assert sum(found) * 1000 / STEPS == pytest.approx(whole, abs=0.5)
    assert all(each >= 0 for each in found)


@st.composite
def demands(draw: st.DrawFn) -> list[tuple[int, str, int, int, int]]:
    """Pods by when they come: queue, cores, how long they run and priority."""
    pods = draw(
        st.lists(
            st.tuples(
                st.integers(0, 30), st.sampled_from("ab"), st.integers(1, 3), st.integers(1, 12), st.integers(0, 1)
            ),
            max_size=14,
        )
    )
    return sorted(pods)


def demanded(pods: list[tuple[int, str, int, int, int]], cores: int) -> ByHand:
    """Recorded on a node where there was room for all, so that nobody waited."""
    made = ByHand(A, B, cores=cores)
    happens: list[tuple[int, int, str, dict[str, Any]]] = []
    for number, (at, name, cpu, runs, priority) in enumerate(pods):
        happens.append((at, 1, f"{name}{number}", {"queue": name, "cpu": cpu, "priority": priority}))
        happens.append((at + runs, 0, f"{name}{number}", {}))
    for at, comes, name, asked in sorted(happens, key=lambda each: each[:3]):
        made.at = at
        if comes:
            made.comes(name, owner=f"job-{name}", **asked)
            made.begins(name)
        else:
            made.ends(name)
    return made


@settings(max_examples=25, deadline=None)
@given(demands())
def test_who_finds_room_at_once_then_does_so_with_any_queues_without_limits(
    pods: list[tuple[int, str, int, int, int]],
) -> None:
    found = demanded(pods, 60).divided(keeps("a", 3), queue_manifest("b", weight=5), ended=60)
    assert all(each.replayed is not None and each.replayed.ms == 0 for each in found.pods)
    assert found.replayed_evicted == 0
    for each in found.queues:
        assert each.recorded == each.replayed
        assert [resource.recorded for resource in each.resources] == [resource.replayed for resource in each.resources]


@settings(max_examples=25, deadline=None)
@given(demands(), st.integers(1, 6), st.integers(1, 6))
def test_no_queue_has_more_than_its_limit_and_all_that_comes_runs_in_the_end(
    pods: list[tuple[int, str, int, int, int]], limit: int, guarantee: int
) -> None:
    """The recording is of a large node; here that has six cores from the beginning, and there is time for all."""
    made = demanded(pods, 60)
    small = ByHand(A, B, cores=6)
    made.lines[1] = small.lines[1]
    limited = queue_manifest("a", resources={"cpu": {"limit": max(3, limit)}})
    found = made.divided(limited, keeps("b", guarantee), ended=1000)
    for each in found.queues:
        for resource in each.resources:
            assert all(resource.limit is None or used <= resource.limit for used in resource.replayed.over_time)
            assert resource.replayed.end == 0
        assert each.replayed.waiting == 0
    came = sum(each.replayed is not None for each in found.pods)
    assert came == len(pods) + found.came_again
    assert found.came_again == found.replayed_evicted


GPU = "gpu.deviceclass.resource.k8s.io/devices"


def with_gpus() -> ByHand:
    """Two pods of a share a claim for two of three devices, one after the other; b has one of a template."""
    made = ByHand(A, B)
    made.told(tape.ObjectIs("DeviceClass", "gpu", make_class()))
    made.told(tape.ObjectIs("ResourceSlice", "n1", make_slice(NODE, ["d0", "d1", "d2"])))
    made.told(tape.ObjectIs("ResourceClaim", "shop/shared", make_claim("shop/shared", asking(count=2))))
    made.comes("a0", "a", claims=["shared"])
    made.begins("a0")
    made.at = 4
    made.comes("a1", "a", claims=["shared"])
    made.begins("a1")
    named = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "one"}]}
    made.comes("b0", "b", **named)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "b0", "uid": "b0", "controller": True}
    own = make_claim("shop/own", asking())
    own["metadata"]["ownerReferences"] = [owner]
    made.told(tape.ObjectIs("ResourceClaim", "shop/own", own))
    waiting = pod("b0", "b", **named)
    status = msgspec.structs.replace(waiting.status, resource_claim_statuses=[PodResourceClaimStatus("c", "own")])
    made.told(tape.Pending(msgspec.structs.replace(waiting, status=status), made.now_ms * 1000))
    made.begins("b0")
    made.at = 8
    made.ends("a0")
    made.at = 12
    made.ends("a1", "b0")
    made.told(tape.ObjectGone("ResourceClaim", "shop/own"))
    return made


def test_devices_of_claims_count_once_while_a_pod_of_the_queue_uses_them() -> None:
    found = with_gpus().divided(A, B, ended=20)
    for name, mean in (("a", 2 * 12 / 20), ("b", 8 / 20)):
        (gpus,) = [each for each in queue(found, name).resources if each.resource == GPU]
        assert (gpus.recorded.mean, gpus.replayed.mean) == (mean, mean)
        assert (gpus.recorded.end, gpus.replayed.end) == (0, 0)


def test_a_limit_on_devices_is_replayed() -> None:
    found = with_gpus().divided(A, queue_manifest("b", resources={GPU: {"limit": 0}}), ended=20)
    assert waits(found) == {"a0": (0, 0), "a1": (0, 0), "b0": (0, 16)}


def test_a_claim_that_was_made_for_a_pod_is_there_as_long_as_the_pod_waits() -> None:
    """Then it ran from 4 to 12; here it begins when the last pod of a is gone."""
    made = with_gpus()
    made.told(tape.ObjectIs("ResourceSlice", "n1", make_slice(NODE, ["d0", "d1"])))
    top = queue_manifest("top", resources={GPU: {"limit": 2}})
    found = made.divided(top, queue_manifest("a", "top"), queue_manifest("b", "top"), ended=40)
    assert waits(found) == {"a0": (0, 0), "a1": (0, 0), "b0": (0, 8)}
    (gpus,) = [each for each in queue(found, "b").resources if each.resource == GPU]
    assert gpus.replayed.mean == 8 / 40


def test_a_pod_that_comes_again_has_its_claim_again() -> None:
    """It goes for b's, which wants the whole node, and comes again after a second."""
    made = ByHand(A, B)
    made.told(tape.ObjectIs("DeviceClass", "gpu", make_class()))
    made.told(tape.ObjectIs("ResourceSlice", "n1", make_slice(NODE, ["d0"])))
    named = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "one"}]}
    made.comes("a0", "a", 2, owner="job", **named)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a0", "uid": "a0", "controller": True}
    own = make_claim("shop/own", asking())
    own["metadata"]["ownerReferences"] = [owner]
    made.told(tape.ObjectIs("ResourceClaim", "shop/own", own))
    waiting = pod("a0", "a", 2, "job", **named)
    status = msgspec.structs.replace(waiting.status, resource_claim_statuses=[PodResourceClaimStatus("c", "own")])
    made.told(tape.Pending(msgspec.structs.replace(waiting, status=status), made.now_ms * 1000))
    made.begins("a0")
    made.at = 2
    made.comes("b0", "b", 4)
    made.at = 10
    made.ends("a0")
    made.told(tape.ObjectGone("ResourceClaim", "shop/own"))
    made.begins("b0")
    made.at = 13
    made.ends("b0")
    found = made.divided(A, keeps("b", 4), ended=30)
    assert (found.replayed_evicted, found.came_again) == (1, 1)
    assert waits(found)["b0"] == (8, 0)
    assert [each.replayed.ms for each in found.pods if each.recorded is None and each.replayed] == [2000]
    (gpus,) = [each for each in queue(found, "a").resources if each.resource == GPU]
    assert gpus.replayed.mean == (2 + 10) / 30
