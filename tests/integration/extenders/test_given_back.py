"""Nodes that an extender gives back whole: whoever comes after it sees these, and nobody runs there.

Source: pkg/scheduler/extender.go ``Filter``; pkg/scheduler/schedule_one.go ``prioritizeNodes``.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from dsched.model.node import Node
from dsched.model.pod import Pod
from tests.builders import make_node, make_pod, make_term
from tests.extender import names, scoring
from tests.integration.extenders.conftest import Start, configuration, named
from tests.integration.extenders.deciding import decided, decision, explained

HOSTNAME, ZONE = "kubernetes.io/hostname", "zone"
POD = make_pod("shop/web", cpu=1)

Json = dict[str, Any]


def giving_back(change: Callable[[Json], None] = lambda node: None) -> Any:
    """Lets all nodes through: by name, where it was asked so, else each as it came but for a change."""

    def answer(question: Json) -> Json:
        if question["NodeNames"] is not None:
            return {"NodeNames": names(question)}
        nodes = copy.deepcopy(question["Nodes"]["items"])
        for node in nodes:
            change(node)
        return {"Nodes": {"items": nodes}}

    return answer


def by_name_alone(node: Json) -> None:
    name = node["metadata"]["name"]
    node.clear()
    node["metadata"] = {"name": name}


def scores(start: Start, nodes: list[Node], pod: Pod, *pods: Pod, filter: Any = None, cached: bool = False) -> Json:
    """What plugins give each node, by plugin."""
    server = start(filter=filter or giving_back())
    found = explained(configuration(named(server, "filter", nodeCacheCapable=cached)), nodes, pod, pods)
    return {node.name: {plugin: score.weighted for plugin, score in node.scores.items()} for node in found.nodes}


def of(plugin: str, found: Json) -> list[int]:
    return [by_plugin[plugin] for by_plugin in found.values()]


NODES = [make_node(name, labels={HOSTNAME: name, ZONE: zone}) for name, zone in [("n1", "a"), ("n2", "a"), ("n3", "b")]]


@pytest.mark.parametrize("plugin", ["NodeResourcesFit", "NodeResourcesBalancedAllocation"])
def test_nothing_is_requested_there(start: Start, plugin: str) -> None:
    heavy = make_pod("shop/heavy", cpu=3, memory="1Gi", node="n1")
    pod = make_pod("shop/web", cpu=1, memory="8Gi")
    by_name = of(plugin, scores(start, NODES, pod, heavy, cached=True))
    assert by_name[0] != by_name[1]
    whole = of(plugin, scores(start, NODES, pod, heavy))
    assert whole == [by_name[1]] * 3


def test_no_image_is_there(start: Start) -> None:
    nodes = [make_node("n1", images={"web:1": 900_000_000}), make_node("n2")]
    pod = make_pod("shop/web", cpu=1, image="web:1")
    assert of("ImageLocality", scores(start, nodes, pod, cached=True))[0] > 0
    assert of("ImageLocality", scores(start, nodes, pod)) == [0, 0]


def spreading(key: str) -> Pod:
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    return make_pod("shop/web", cpu=1, labels={"app": "web"}, spec={"topologySpreadConstraints": [constraint]})


def test_pods_are_counted_by_zone_and_not_by_hostname(start: Start) -> None:
    other = make_pod("shop/other", labels={"app": "web"}, node="n1")
    for key, by_name in ((HOSTNAME, [0, 200, 200]), (ZONE, [0, 0, 200])):
        assert of("PodTopologySpread", scores(start, NODES, spreading(key), other, cached=True)) == by_name
    assert of("PodTopologySpread", scores(start, NODES, spreading(HOSTNAME), other)) == [200, 200, 200]
    assert of("PodTopologySpread", scores(start, NODES, spreading(ZONE), other)) == [0, 0, 200]


def test_another_zone_counts_as_it_is_given_back(start: Start) -> None:
    other = make_pod("shop/other", labels={"app": "web"}, node="n1")

    def swapped(node: Json) -> None:
        labels = node["metadata"]["labels"]
        labels[ZONE] = {"a": "b", "b": "a"}[labels[ZONE]]

    assert of("PodTopologySpread", scores(start, NODES, spreading(ZONE), other, filter=giving_back(swapped))) == [
        200,
        200,
        0,
    ]
    nowhere = scores(start, NODES, spreading(ZONE), other, filter=giving_back(by_name_alone))
    assert of("PodTopologySpread", nowhere) == [0, 0, 0]


def test_what_pods_are_near_counts_by_the_labels_that_are_given_back(start: Start) -> None:
    near = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": ZONE}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "podAffinityTerm": near}]}
    pod = make_pod("shop/web", cpu=1, spec={"affinity": {"podAffinity": preferred}})
    database = make_pod("shop/db", labels={"app": "db"}, node="n3")
    assert of("InterPodAffinity", scores(start, NODES, pod, database)) == [0, 0, 200]

    def elsewhere(node: Json) -> None:
        node["metadata"]["labels"][ZONE] = "b" if node["metadata"]["name"] == "n1" else "unheard of"

    assert of("InterPodAffinity", scores(start, NODES, pod, database, filter=giving_back(elsewhere))) == [200, 0, 0]


def test_labels_taints_and_amounts_count_as_they_are_given_back(start: Start) -> None:
    def other(node: Json) -> None:
        if node["metadata"]["name"] == "n1":
            node["metadata"]["labels"]["disk"] = "ssd"
            node["spec"]["taints"] = [{"key": "old", "effect": "PreferNoSchedule"}]
            node["status"]["allocatable"] |= {"cpu": "100"}

    pod = make_pod("shop/web", cpu=1, preferred=[(1, make_term("disk In ssd"))])
    found = scores(start, NODES, pod, filter=giving_back(other))
    assert of("NodeAffinity", found) == [200, 0, 0]
    assert of("TaintToleration", found) == [0, 300, 300]
    fit = of("NodeResourcesFit", found)
    assert fit[0] > fit[1] == fit[2]
    nothing = scores(start, NODES, pod, filter=giving_back(by_name_alone))
    assert of("NodeResourcesFit", nothing) == [0, 0, 0]


@pytest.mark.parametrize("second", [{}, {"nodeCacheCapable": True}])
def test_who_is_asked_later_is_asked_about_what_was_given_back(start: Start, second: Json) -> None:
    def noted(node: Json) -> None:
        node["metadata"]["annotations"] = {"seen": "yes"}

    first = start(filter=giving_back(noted))
    later = start(filter=giving_back(), prioritize=scoring({"n2": 10}))
    last = start(prioritize=scoring({}))
    entries = (named(first, "filter"), named(later, "filter", "prioritize", **second), named(last, "prioritize"))
    assert decision(configuration(*entries), NODES, [POD]).node == "n2"
    asked = [question for _, question in (*later.asked, *last.asked) if question["Nodes"] is not None]
    assert len(asked) == (1 if second else 3)
    for question in asked:
        assert names(question) == ["n1", "n2", "n3"]
        assert all(node["metadata"]["annotations"] == {"seen": "yes"} for node in question["Nodes"]["items"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": {"allocatable": {"cpu": "many"}}}, "many"),
        ({"spec": {"taints": "none"}}, "taints"),
        ({"metadata": {"name": 1}}, "name"),
    ],
)
def test_a_node_that_cannot_be_read_is_a_failure_that_says_where(start: Start, change: Json, said: str) -> None:
    server = start(filter=giving_back(lambda node: node.update(change)))
    found = decision(configuration(named(server, "filter")), NODES, [POD])
    assert found.error is not None
    assert "a node of the answer" in found.error.message
    assert said in found.error.message


def test_what_is_given_back_for_one_pod_is_nothing_to_the_next(start: Start) -> None:
    """Pods of one class: the extender names the nodes of the second, which go by what is requested there."""

    def answer(question: Json) -> Json:
        if question["Pod"]["metadata"]["name"] == "first":
            return {"Nodes": {"items": [{"metadata": {"name": name}} for name in names(question)]}}
        return {"NodeNames": names(question)}

    nodes = [make_node(f"n{number}") for number in range(8)]
    heavy = [make_pod(f"shop/heavy{number}", cpu=1, node=f"n{number}") for number in range(7)]

    def points(question: Json) -> Json:
        return scoring({"n3": 10} if question["Pod"]["metadata"]["name"] == "first" else {})(question)

    entries = (named(start(filter=answer, prioritize=points), "filter", "prioritize", nodeCacheCapable=True),)
    pods = [*heavy, make_pod("shop/first", cpu=1), make_pod("shop/second", cpu=1)]
    assert [found.node for found in decided(configuration(*entries), nodes, pods)] == ["n3", "n7"]
