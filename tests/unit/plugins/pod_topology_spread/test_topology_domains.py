"""How constraints divide the nodes; what they say of pods is tested with PodTopologySpread."""

import pytest

from dsched.arithmetic import spreading
from dsched.framework.pod_info import PodInfo
from dsched.model.pod import Pod
from dsched.plugins.pod_topology_spread import topology_domains
from dsched.plugins.pod_topology_spread.topology_domains import TopologyDomains
from tests.builders import make_node, make_pod, make_table
from tests.unit.plugins.neighbours import ZONE, constraint, spread

ACTION = spreading.DO_NOT_SCHEDULE


def web(app: str = "web", **more: str) -> Pod:
    return make_pod(f"shop/{app}", spec=spread(constraint(1, ZONE, f"app In {app}", **more)))


def asked(tested: TopologyDomains, pod: Pod, table: object) -> topology_domains.DomainsOfNodes:
    parsed = spreading.parse(pod.spec.topology_spread_constraints, {}, ACTION)
    return tested.of(ACTION, parsed, PodInfo(pod), table, True)  # type: ignore[arg-type]


def test_pods_that_divide_alike_share() -> None:
    table, tested = make_table([make_node("n1", labels={ZONE: "a"})]), TopologyDomains()
    first = asked(tested, web(), table)
    assert asked(tested, web("db"), table) is first
    assert asked(tested, web(nodeAffinityPolicy="Ignore"), table) is not first
    selecting = make_pod(node_selector={ZONE: "b"}, spec=spread(constraint(1, ZONE, "app In web")))
    assert asked(tested, selecting, table).by[0].counted.tolist() == [False]


def test_nodes_that_change_divide_anew() -> None:
    table, tested, pod = make_table([make_node("n1", labels={ZONE: "a"})]), TopologyDomains(), web()
    assert asked(tested, pod, table).labelled.tolist() == [True]
    table.set_node(make_node("n1"))
    assert asked(tested, pod, table).labelled.tolist() == [False]
    table.set_node(make_node("n2", labels={ZONE: "a"}))
    assert asked(tested, pod, table).labelled.tolist() == [False, True]
    table.remove_node(table.names[0])
    assert asked(tested, pod, table).labelled.tolist() == [True]
    assert asked(tested, pod, make_table()).labelled.tolist() == []


def test_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_domains, "MOST_DIVISIONS", 1)
    table, tested = make_table([make_node("n1", labels={ZONE: "a"})]), TopologyDomains()
    first = asked(tested, web(), table)
    asked(tested, web(nodeAffinityPolicy="Ignore"), table)
    assert asked(tested, web(), table) is not first
