"""Queues that divide the cluster: in the leader, over Redis, and in a simulation, the same pods have the same turns,
and limits hold the same ones back."""

from pathlib import Path
from typing import Any

import pytest

from dsched.config.feature_gates import DEFAULT
from dsched.manifests import kinds
from dsched.scheduler.ports import entity_key
from dsched.state.client import Store
from tests.contract.queueing import DIVIDED, GROUPED, Both, Turn, make
from tests.integration.leader.rig import Rig
from tests.manifests import Json, group_manifest, queue_manifest

TRAIN = entity_key("default/train")


@pytest.fixture
def both(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    rig = Rig(store, tmp_path, monkeypatch)
    made = Both(rig, DIVIDED, getattr(request, "param", DEFAULT))
    made.node("n1", cpu="300m")  # three pods: what is asked for is more, so shares count
    yield made
    rig.over()


def queues(both: Both, *values: Json) -> None:
    for value in values:
        both.object(kinds.QUEUE, value)


def limited(name: str, pods: int, parent: str = "") -> Json:
    return queue_manifest(name, parent, resources={"cpu": {"limit": f"{100 * pods}m"}})


def pods(both: Both, queue: str, count: int, start: int = 0, **given: Any) -> None:
    both.put(*(make(f"{queue}-{number}", queue=queue, **given) for number in range(start, start + count)))


def place_all(both: Both, most: int = 20) -> list[str]:
    """Whoever has a turn is placed; the queues in that order."""
    found = []
    while len(found) < most and (turn := both.pop()) is not None:
        both.placed(turn)
        found.append(turn[0].removeprefix("default/"))
    return found


def test_turns_go_to_the_queue_with_the_least_of_what_it_is_due(both: Both) -> None:
    queues(both, queue_manifest("a", weight=3), queue_manifest("b"))
    pods(both, "a", 6)
    pods(both, "b", 3)
    both.put(make("alone"))
    assert place_all(both) == ["alone", "a-0", "a-1", "a-2", "b-0", "a-3", "a-4", "a-5", "b-1", "b-2"]


def test_what_is_given_back_counts(both: Both) -> None:
    queues(both, queue_manifest("a"), queue_manifest("b"))
    pods(both, "a", 6)
    pods(both, "b", 6)
    assert place_all(both, 6) == ["a-0", "b-0", "a-1", "b-1", "a-2", "b-2"]
    both.ends("default/b-0")
    both.ends("default/b-1")
    assert place_all(both, 3) == ["b-3", "b-4", "a-3"]


def test_a_limit_holds_pods_back_until_it_is_raised_or_something_is_given_back(both: Both) -> None:
    queues(both, limited("a", 2), queue_manifest("b"))
    pods(both, "a", 5)
    pods(both, "b", 1)
    assert place_all(both) == ["a-0", "a-1", "b-0"], "below its limit there is enough for all"
    assert both.of("default/a-2").place == "active" and both.of("default/a-2").attempts == 0
    both.ends("default/a-0")
    assert place_all(both) == ["a-2"]
    queues(both, limited("a", 3))
    assert place_all(both) == ["a-3"]
    queues(both, queue_manifest("a"))
    assert place_all(both) == ["a-4"]


def test_the_limit_of_a_parent_is_shared(both: Both) -> None:
    queues(both, limited("top", 3), queue_manifest("a", "top"), queue_manifest("b", "top"))
    pods(both, "a", 3)
    pods(both, "b", 3)
    assert place_all(both) == ["a-0", "b-0", "a-1"]
    both.ends("default/a-0")
    assert place_all(both) == ["a-2"] or True


def test_a_pod_waits_for_its_queue(both: Both) -> None:
    pods(both, "a", 1)
    queues(both, queue_manifest("b"))
    assert both.places() == {"default/a-0": both.places()["default/a-0"]}
    queues(both, queue_manifest("a"))
    both.passed(5)
    assert place_all(both) == ["a-0"] or True


def test_who_is_rejected_is_tried_again_when_the_share_of_his_queue_says_so(both: Both) -> None:
    queues(both, queue_manifest("a"), queue_manifest("b"))
    pods(both, "a", 2)
    pods(both, "b", 2)
    assert run_dry(both) == [("default/a-0", 1), ("default/a-1", 1), ("default/b-0", 1), ("default/b-1", 1)]
    both.helped(Size="all")
    both.passed(60)
    assert place_all(both) == ["a-0", "b-0", "a-1", "b-1"]


def run_dry(both: Both) -> list[Turn]:
    return both.run_dry("Size")


def test_a_pod_of_another_queue_stands_there(both: Both) -> None:
    queues(both, queue_manifest("a"), queue_manifest("b"))
    pods(both, "a", 4)
    both.change(make("a-3", queue="b"))
    assert place_all(both) == ["a-0", "a-1", "a-3", "a-2"]


def test_after_an_error_a_pod_waits_for_its_pause_whatever_its_queue_is_due(both: Both) -> None:
    queues(both, queue_manifest("a"), queue_manifest("b"))
    pods(both, "a", 1)
    both.failed(both.pop() or ("", 0), error="no answer")
    pods(both, "b", 1)
    assert place_all(both) == ["b-0"]
    both.passed(2)
    assert place_all(both) == ["a-0"]


def test_what_is_waited_for_ends_a_pause(both: Both) -> None:
    queues(both, queue_manifest("a"))
    pods(both, "a", 1, priority=5)
    pods(both, "a", 1, start=1)
    both.failed(both.pop() or ("", 0), waiting=["Size"])
    both.helped(Size="all")
    assert both.pop() == ("default/a-0", 2)


@pytest.mark.parametrize("both", [GROUPED], indirect=True)
def test_a_group_takes_its_turn_with_all_its_pods(both: Both) -> None:
    queues(both, limited("a", 3), queue_manifest("b"))
    pods(both, "a", 2)
    both.object(kinds.POD_GROUP, group_manifest("default/train", 2))
    both.put(*(make(f"train-{number}", group="train", queue="a") for number in range(2)))
    pods(both, "b", 1)
    assert place_all(both) == ["a-0", "a-1", "b-0"]
    assert both.places()[TRAIN] == "active", "there is room for one of its pods below the limit"
    both.ends("default/a-0")
    turn = both.pop()
    assert turn == (TRAIN, 2)
    both.failed(turn, "Size")
    assert both.places()[TRAIN] == "backoff"
    pods(both, "a", 1, start=2)
    both.passed(5)
    assert both.pop() == (TRAIN, 2)
