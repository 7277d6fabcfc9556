"""Preemption for a pod where pods of pod groups are on the nodes: a group that is disrupted together goes whole."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dsched.framework.interface import Code, PostFilterResult
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.model.pod_groups import POD_GROUP
from tests.builders import make_node, make_pod
from tests.unit.plugins.default_preemption.test_default_preemption import names, pod, preempt
from tests.unit.scheduler.grouped import make_group
from tests.versions import V37, WITH_GROUPS


def member(name: str, cpu: str, priority: int = 0, group: str = "train", **more: Any) -> PodInfo:
    return pod(name, cpu, priority, spec={"schedulingGroup": {"podGroupName": group}}, **more)


def cluster(*groups: dict[str, Any], **nodes: list[PodInfo]) -> Snapshot:
    """Nodes of 4 CPUs with their pods."""
    snapshot = Snapshot()
    for group in groups:
        snapshot.put(POD_GROUP, f"{group['metadata']['namespace']}/{group['metadata']['name']}", group)
    for name, pods in nodes.items():
        snapshot.table.set_node(make_node(name, cpu="4"))
        for each in pods:
            snapshot.table.add_pod(each, NodeName(name))
    return snapshot


def before_and_after(snapshot: Snapshot, info: PodInfo) -> PostFilterResult:
    """What preemption says; nothing has changed on the nodes."""
    before = [list(pods) for pods in snapshot.table.pods]
    result = preempt(snapshot, info, WITH_GROUPS)
    assert [list(pods) for pods in snapshot.table.pods] == before
    return result


def test_a_group_that_is_disrupted_together_goes_from_all_its_nodes() -> None:
    a, b = member("a", "3"), member("b", "3")
    snapshot = cluster(make_group(together=True), n1=[a], n2=[b])
    result = before_and_after(snapshot, pod("new", "2", 10))
    assert sorted(names(result)) == ["a", "b"]
    assert preempt(snapshot, pod("new", "2", 10), V37).victims in ((a,), (b,)), "without the gate"


def test_nobody_goes_from_a_node_where_a_group_is_disrupted_together_that_has_pods_on_a_node_that_is_gone() -> None:
    """Not even pods of no group; from other nodes they go."""
    snapshot = cluster(make_group(together=True), n1=[member("a", "1"), pod("single", "3")], gone=[member("b", "1")])
    snapshot.table.remove_node(NodeName("gone"))
    why = 'failed to get node info for node "gone" from snapshot: nodeinfo not found for node name "gone"'
    result = before_and_after(snapshot, pod("new", "2", 10))
    assert (result.nominated, result.status.code, result.status.message) == (None, Code.ERROR, f"preemption: {why}")
    snapshot.table.set_node(make_node("n2", cpu="4"))
    snapshot.table.add_pod(other := pod("other", "4"), NodeName("n2"))
    assert before_and_after(snapshot, pod("new", "2", 10)).victims == (other,)


def test_of_any_other_group_one_pod_is_enough() -> None:
    snapshot = cluster(make_group(), n1=[member("a", "3"), member("b", "1")], n2=[member("c", "4")])
    assert len(names(before_and_after(snapshot, pod("new", "3", 10)))) == 1


def test_a_pod_goes_rather_than_a_group_with_pods_elsewhere() -> None:
    """Of equal priority, groups are spared first, and between nodes fewer victims are better."""
    snapshot = cluster(
        make_group(together=True),
        n1=[member("a", "2"), pod("single", "2")],
        n2=[member("b", "4")],
        n3=[member("c", "4")],
    )
    result = before_and_after(snapshot, pod("new", "2", 10))
    assert (result.nominated, names(result)) == ("n1", ["single"])


def test_a_group_of_higher_priority_is_no_victim_although_its_pods_say_less() -> None:
    group = make_group(together=True, priority=20)
    snapshot = cluster(group, n1=[member("a", "4", 1)])
    result = before_and_after(snapshot, pod("new", "2", 10))
    assert (result.nominated, result.victims) == ("", ())
    assert "No preemption victims found for incoming pod" in result.status.message


def test_a_budget_of_one_pod_protects_its_group() -> None:
    """Who is more important has to go for it."""
    guarded = member("b", "1", labels={"app": "web"})
    snapshot = cluster(
        make_group(together=True), n1=[member("a", "2"), pod("plain", "2", 5)], n2=[guarded, pod("k", "3", 10)]
    )
    assert sorted(names(before_and_after(snapshot, pod("new", "2", 10)))) == ["a", "b"]
    budget = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    }
    snapshot.put("PodDisruptionBudget", "shop/web", budget)
    assert names(before_and_after(snapshot, pod("new", "2", 10))) == ["plain"]


def test_topology_spread_counts_what_goes_elsewhere() -> None:
    """One per node at most, and one on each: the pod fits on n1 only if the pods of its kind go; with the group they go
    from both, so no skew is left that would keep it off."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    nodes = {name: make_node(name, cpu="4", labels={"kubernetes.io/hostname": name}) for name in ("n1", "n2")}
    snapshot = cluster(make_group(together=True))
    for name, node in nodes.items():
        snapshot.table.set_node(node)
        snapshot.table.add_pod(member(f"on-{name}", "4", labels={"app": "web"}), NodeName(name))
    info = PodInfo(
        make_pod("shop/new", cpu="2", priority=10, labels={"app": "web"}, spec={"topologySpreadConstraints": [spread]})
    )
    assert sorted(names(before_and_after(snapshot, info))) == ["on-n1", "on-n2"]


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(["1", "2"]), st.integers(0, 3)), min_size=2, max_size=3),
        min_size=1,
        max_size=4,
    )
)
def test_pods_of_groups_that_are_not_disrupted_together_go_like_others(nodes: list[list[tuple[str, int]]]) -> None:
    """Where all are of such groups, none ranks before the others."""

    def made(grouped: bool) -> Snapshot:
        groups, pods = [], {}
        for at, on_it in enumerate(nodes):
            pods[f"n{at}"] = []
            for number, (cpu, priority) in enumerate(on_it):
                name = f"p{at}-{number}"
                groups.append(make_group(f"shop/{name}", priority=priority))
                pods[f"n{at}"].append(member(name, cpu, priority, group=name) if grouped else pod(name, cpu, priority))
        return cluster(*(groups if grouped else ()), **pods)

    new = pod("new", "3", 2)
    if any(sum(int(cpu) for cpu, _ in on_it) < 2 for on_it in nodes):
        return
    grouped, plain = (preempt(made(each), new, WITH_GROUPS) for each in (True, False))
    assert (grouped.nominated, names(grouped), grouped.status) == (plain.nominated, names(plain), plain.status)
