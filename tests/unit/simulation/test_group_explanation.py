"""Explanations of pod groups: what each placement lacks, which one is taken, who has to go."""

from typing import Any

import pytest

from dsched import config
from dsched.cli.render.explain_group import lines
from dsched.errors import NotFound
from dsched.model.meta import from_builtins
from dsched.model.placement_wishes import PREFERRED
from dsched.model.pod import Pod
from dsched.model.pod_groups import POD_GROUP, PodGroup
from dsched.plugins import registry
from dsched.scheduler.memory import Memory
from dsched.scheduler.ports import Record
from dsched.simulation.group_explanation import GroupExplanation, explain_group
from dsched.simulation.live_group import LiveGroup
from tests.builders import make_node, make_pod, make_snapshot
from tests.unit.scheduler.grouped import Grouped, features, make_group, members

RACK = "example.com/rack"


def racks(*sizes: int) -> list[Any]:
    return [
        make_node(f"{rack}{number}", cpu=4, labels={RACK: rack})
        for rack, size in zip("abcd", sizes, strict=False)
        for number in range(size)
    ]


def standing(nodes: list[Any], group: dict[str, Any], pods: list[Pod], bound: list[Pod] | None = None) -> LiveGroup:
    memory = Memory(make_snapshot(nodes, bound or []))
    memory.snapshot.put(POD_GROUP, f"{group['metadata']['namespace']}/{group['metadata']['name']}", group)
    return LiveGroup(memory, from_builtins(group, PodGroup), tuple((pod, None) for pod in pods))


def ask(*args: Any, topology: bool = True, **more: Any) -> GroupExplanation:
    configured = config.default(features(topology=topology))
    return explain_group(configured, registry.intree(), standing(*args, **more))


def test_every_placement_is_told_of_and_which_one_is_taken() -> None:
    """Three racks of 4, 8 and 12 cores for eight: the rack that gets fullest is taken."""
    explained = ask(racks(1, 2, 3), make_group(min_count=4, topology=RACK), members(4, cpu="2"))
    assert [(each.name, each.nodes, each.fits, len(each.placed)) for each in explained.placements] == [
        ("b", 2, True, 4),
        ("c", 3, True, 4),
        ("a", 1, False, 2),
    ]
    best, other, small = explained.placements
    assert (best.score or 0) > (other.score or 0) and small.score is None
    assert small.message.startswith("minCount (4) cannot be satisfied: 2 scheduled, 1")
    assert list(small.rejected) == ["0/1 nodes are available: 1 Insufficient cpu."]
    assert (explained.chosen, explained.end, explained.message) == ("b", "scheduled", "")
    assert {each.node for each in explained.pods} == {"b0", "b1"}


def test_it_says_what_the_cycle_decides() -> None:
    nodes, group, pods = racks(2, 2), make_group(min_count=4, topology=RACK), members(4, cpu="2")
    decided = Grouped(nodes, groups=[group], topology=True).decide(pods)
    explained = ask(nodes, group, pods)
    assert [each.node for each in explained.pods] == [each.node for each in decided.decisions]


def test_who_would_have_to_go() -> None:
    low = [make_pod(f"shop/low-{node}", cpu="3", node=node, priority=1) for node in ("a0", "a1")]
    explained = ask(racks(2), make_group(min_count=2, priority=9), members(2, cpu="2", priority=9), bound=low)
    assert explained.victims == ("shop/low-a0", "shop/low-a1")
    assert (explained.end, explained.chosen) == ("waiting_on_preemption", None)
    assert sorted(each.nominated or "" for each in explained.pods) == ["a0", "a1"]


def test_without_topology_all_nodes_are_the_placement() -> None:
    explained = ask(racks(1, 1), make_group(min_count=2), members(2, cpu="3"), topology=False)
    (everywhere,) = explained.placements
    assert (everywhere.name, everywhere.nodes, everywhere.fits, explained.chosen) == ("", 2, True, "")


def test_what_gates_it_is_told_and_the_rest_as_if_nothing_did() -> None:
    explained = ask(racks(1), make_group(min_count=3), members(2, cpu="1"))
    assert explained.gate is not None and explained.gate.message.startswith("waiting for minCount pods from a gang")
    assert explained.end == "error"


def test_pods_on_nodes_pin_the_domain() -> None:
    (placed,) = members(1, start=9, cpu="1", node="a0")
    explained = ask(racks(1, 2), make_group(min_count=3, topology=RACK), members(2, cpu="1"), bound=[placed])
    assert [each.name for each in explained.placements] == ["a"]
    assert explained.chosen == "a"


def test_pods_are_in_the_order_in_which_they_are_decided() -> None:
    found = standing(racks(1), make_group(min_count=1), members(3, cpu="1"))
    tried = Record(
        found.pods[2][0].key, {"uid": found.pods[2][0].uid, "queue": "group", "attempts": "2", "queued_us": "5"}
    )
    pods = (found.pods[0], found.pods[1], (found.pods[2][0], tried))
    told = LiveGroup(found.memory, found.group, pods)
    explained = explain_group(config.default(features(topology=True)), registry.intree(), told)
    assert [each.pod for each in explained.pods] == ["shop/train-2", "shop/train-0", "shop/train-1"]


def test_why_it_cannot_be_explained() -> None:
    found = standing(racks(1), make_group(min_count=1), [])
    with pytest.raises(NotFound, match="pod group shop/train has no pods"):
        explain_group(config.default(features()), registry.intree(), found)
    found = standing(racks(1), make_group(min_count=1), members(1))
    with pytest.raises(NotFound, match="profile default-scheduler places no groups; the feature gate GenericWorkload"):
        explain_group(config.default(), registry.intree(), found)
    stranger = standing(racks(1), make_group(min_count=1), members(1, spec={"schedulerName": "other"}))
    with pytest.raises(NotFound, match=r'pod shop/train-0: schedulerName "other" is none of'):
        explain_group(config.default(features()), registry.intree(), stranger)


def test_as_text() -> None:
    found = standing(racks(1, 2), make_group(min_count=4, topology=RACK), members(4, cpu="2"))
    explained = explain_group(config.default(features(topology=True)), registry.intree(), found)
    told = [" ".join(line.split()) for line in lines(explained, found)]
    assert told[:3] == [
        "Group: shop/train (profile default-scheduler)",
        f"Needs: 4 pods together on nodes with one value of {RACK}; 4 wait",
        "Chosen: b, for 4 of 4 pods",
    ]
    table = told[told.index("Placements:") + 1 :]
    assert table[0] == "PLACEMENT NOTE NODES PODS SCORE LACKS"
    assert table[1].startswith("b chosen 2 4/4 ")
    assert table[2].startswith("a 1 2/4 - minCount (4)")
    assert table[2].endswith("shop/train-2: 0/1 nodes are available: 1 Insufficient cpu.")


def test_with_levels_every_domain_of_each_is_told_of_and_the_narrowest_is_taken() -> None:
    """Racks of one and two nodes in one block: four pods need the second rack, or the block."""
    block = "example.com/block"
    nodes = [
        make_node(name, cpu=4, labels={RACK: rack, block: "all"})
        for name, rack in (("a0", "a"), ("b0", "b"), ("b1", "b"))
    ]
    group = make_group(min_count=4, annotations={PREFERRED: f"{RACK},{block}"})
    found = standing(nodes, group, members(4, cpu="2"))
    explained = explain_group(config.default(features(placement=True)), registry.intree(), found)
    told = {each.name: (each.nodes, each.fits) for each in explained.placements}
    assert [(nodes, fits) for name, (nodes, fits) in told.items() if name == explained.chosen] == [(2, True)]
    assert (1, False) in told.values() and (3, True) in told.values()
    assert {each.node for each in explained.pods} == {"b0", "b1"}
