"""Whom PreEnqueue is asked about when a pod joins its group: what it says is as if all were asked each time."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.framework.pod_info import PodInfo
from dsched.model.pod import Pod
from dsched.scheduler.ports import QueueName
from tests.manifests import queue_manifest
from tests.unit.plugins.fair_share.divided import Cluster

NAME = "default-scheduler"


def members(there: Cluster, count: int) -> list[PodInfo]:
    return there.group("g", "a", count, 2)


def place(there: Cluster) -> QueueName:
    group = there.made.pending.group("shop/g")
    return QueueName.NOWHERE if group is None else group.place


def counting(there: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    framework, asked = there.made.frameworks[NAME], []
    before = framework.run_pre_enqueue

    def run(pod: Pod) -> Any:
        asked.append(pod.metadata.name)
        return before(pod)

    monkeypatch.setattr(framework, "run_pre_enqueue", run)
    return asked


def test_those_that_have_passed_are_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Cluster(queue_manifest("a"), groups=True)
    pods = members(there, 50)
    there.wait(*pods[:2])
    asked = counting(there, monkeypatch)
    there.wait(*pods[2:])
    assert len(asked) == 48
    assert place(there) is QueueName.ACTIVE


def test_all_are_asked_once_something_has_changed_that_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Cluster(queue_manifest("a"), groups=True)
    pods = members(there, 6)
    there.wait(*pods[:3])
    there.memory.snapshot.put("Queue", "a", queue_manifest("a", namespaces=["other"]))
    there.wait(pods[3])
    assert place(there) is QueueName.GATED
    there.memory.snapshot.put("Queue", "a", queue_manifest("a"))
    there.wait(pods[4])
    assert place(there) is QueueName.GATED, "the plugin that gates it does not hear of pods that come"
    there.release("g")
    assert place(there) is QueueName.ACTIVE
    asked = counting(there, monkeypatch)
    changed = there.made.pending.get(pods[0].key)
    assert changed is not None
    there.made.pending.replace(changed, pods[0], there.made.frameworks[NAME])
    there.wait(pods[5])
    assert len(asked) == 1 + 6, "a pod that has changed may not pass any more"


def test_a_plugin_that_does_not_say_what_it_reads_is_asked_about_all(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Cluster(queue_manifest("a"), groups=True)
    monkeypatch.setattr(there.made.frameworks[NAME], "pre_enqueue_reads", None)
    pods = members(there, 4)
    there.wait(*pods[:3])
    asked = counting(there, monkeypatch)
    there.wait(pods[3])
    assert len(asked) == 1 + 4


steps = st.lists(
    st.one_of(
        st.sampled_from(["join", "join", "join", "gated", "closed", "open", "other"]),
        st.tuples(st.sampled_from(["drop", "relabel", "back"]), st.integers(0, 5)),
    ),
    max_size=20,
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_places_are_as_if_all_were_asked(taken: Sequence[str | tuple[str, int]]) -> None:
    there, always = (Cluster(queue_manifest("a"), queue_manifest("b"), groups=True) for _ in range(2))
    always.made.frameworks[NAME].pre_enqueue_reads = None
    for made in (there, always):
        made.group("g", "a", 0, 2)
    for number, step in enumerate(taken):
        for made in (there, always):
            _take(made, step, number)
        assert place(there) is place(always), step
        assert [(pod.key, pod.held) for pod in there.made.pending] == [(p.key, p.held) for p in always.made.pending]


def _take(there: Cluster, step: str | tuple[str, int], number: int) -> None:
    of = {"schedulingGroup": {"podGroupName": "g"}}
    if step in ("join", "gated"):
        gates = {"schedulingGates": [{"name": "later"}]} if step == "gated" else {}
        there.wait(there.pod("p", "a", **of, **gates))
    elif step in ("closed", "open"):
        spec = {"namespaces": ["other"]} if step == "closed" else {}
        there.memory.snapshot.put("Queue", "a", queue_manifest("a", **spec))
    elif step == "other":
        there.memory.snapshot.put("Namespace", "shop", {"metadata": {"name": "shop", "labels": {"n": str(number)}}})
    elif pods := list(there.made.pending):
        what, place_of = step
        pod = pods[place_of % len(pods)]
        if what == "drop":
            there.drop(pod.info)
        elif what == "relabel":
            pod.info.pod.metadata.labels["dsched.io/queue"] = "gone"
            there.made.pending.replace(pod, PodInfo(pod.info.pod), there.made.frameworks[NAME])
        elif there.made.pending.group("shop/g") is not None:
            there._change(there.made.groups.joined(pod))
