"""PodTopologySpread."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.config import PodTopologySpreadArgs
from dsched.errors import PluginError
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, Code, Resource, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.model.pod import Pod, TopologySpreadConstraint
from dsched.plugins.pod_topology_spread.plugin import ERR_REASON_CONSTRAINTS, ERR_REASON_LABEL, PodTopologySpread
from tests.builders import make_node, make_pod
from tests.unit.plugins.hints import queues
from tests.unit.plugins.neighbours import (
    CONSTRAINTS,
    COUNTING,
    HOST,
    ZONE,
    Cluster,
    Json,
    assert_takes_in,
    clusters,
    constraint,
    deleting,
    filtered,
    judged,
    pods,
    scored,
    spread,
)
from tests.unit.plugins.plainly import Spreading

WEB = {"app": "web"}
NODES = [
    make_node("n1", labels={ZONE: "a", HOST: "n1"}),
    make_node("n2", labels={ZONE: "a", HOST: "n2"}),
    make_node("n3", labels={ZONE: "b", HOST: "n3"}),
]
FULL = ERR_REASON_CONSTRAINTS


class Handle:
    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot


def plugin(*defaults: Json, system: bool = True, snapshot: Snapshot | None = None) -> PodTopologySpread:
    args = PodTopologySpreadArgs(defaults, "System" if system and not defaults else "List")
    return PodTopologySpread(args, Handle(snapshot or Snapshot()))


def webs(**counts: int) -> list[tuple[str, Pod]]:
    """So many web pods on each node."""
    return [
        (node, make_pod(f"shop/{node}-{number}", labels=WEB))
        for node, count in counts.items()
        for number in range(count)
    ]


def cluster(*nodes: Any, **counts: int) -> Cluster:
    return Cluster(list(nodes) or NODES, webs(**counts))


def pod(*constraints: Json, labels: Any = WEB, **more: Any) -> Pod:
    return make_pod("shop/new", labels=labels, spec=spread(*constraints), **more)


def service(**selector: str) -> dict[str, dict[str, Json]]:
    return {"Service": {"shop/web": {"metadata": {"name": "web"}, "spec": {"selector": selector}}}}


class TestFilter:
    def test_skew(self) -> None:
        """a: 2 + 1 - 1 = 2 > 1, b: 1 + 1 - 1 = 1."""
        found = filtered(plugin(), pod(constraint(1, ZONE, "app In web")), cluster(n1=1, n2=1, n3=1).snapshot())
        assert found == [FULL, FULL, ""]

    def test_a_pod_that_does_not_match_itself(self) -> None:
        """a: 2 + 0 - 1 = 1, a third would be too many."""
        asking = pod(constraint(1, ZONE, "app In web"), labels={})
        assert filtered(plugin(), asking, cluster(n1=1, n2=1, n3=1).snapshot()) == ["", "", ""]
        assert filtered(plugin(), asking, cluster(n1=2, n2=1, n3=1).snapshot()) == [FULL, FULL, ""]

    def test_all_constraints_have_to_be_met_the_first_that_is_not_is_told(self) -> None:
        """Hosts: n1 1, n2 0, n3 0. Zones: a 1, b 0. A web pod may go to n3 only."""
        both = pod(constraint(1, HOST, "app In web"), constraint(1, ZONE, "app In web"))
        assert filtered(plugin(), both, cluster(n1=1).snapshot()) == [FULL, FULL, ""]
        unlabelled = make_node("n4", labels={ZONE: "a"})
        first, second = constraint(1, ZONE, "app In web"), constraint(1, HOST, "app In web")
        around = cluster(*NODES, unlabelled, n1=1)
        assert filtered(plugin(), pod(first, second), around.snapshot()) == [FULL, FULL, "", FULL]
        assert filtered(plugin(), pod(second, first), around.snapshot()) == [FULL, FULL, "", ERR_REASON_LABEL]

    def test_codes(self) -> None:
        snapshot, state, info = cluster().snapshot(), CycleState(), PodInfo(pod(constraint(1, ZONE, "app In web")))
        tested = plugin()
        tested.pre_filter(state, info, snapshot)
        statuses = tested.filter_table(state, info, snapshot.table, snapshot.table.all_rows).statuses
        assert {status.message: status.code for status in statuses} == {
            ERR_REASON_CONSTRAINTS: Code.UNSCHEDULABLE,
            ERR_REASON_LABEL: Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        }

    def test_nodes_that_lack_a_key_of_any_constraint_are_no_domain(self) -> None:
        """n4 has no host label: its zone c, empty, does not make the fewest 0."""
        around = cluster(*NODES, make_node("n4", labels={ZONE: "c"}), n1=1, n3=1)
        asking = pod(constraint(1, ZONE, "app In web"), constraint(9, HOST, "app In web"))
        assert filtered(plugin(), asking, around.snapshot()) == ["", "", "", ERR_REASON_LABEL]
        asking = pod(constraint(1, ZONE, "app In web"))
        assert filtered(plugin(), asking, around.snapshot()) == [FULL, FULL, FULL, ""]

    @pytest.mark.parametrize(("domains", "admits"), [(None, True), (2, True), (3, False)])
    def test_min_domains(self, domains: int | None, admits: bool) -> None:
        """Two zones with a pod each: with fewer than minDomains the fewest is 0, and 1 + 1 - 0 > 1."""
        asking = pod(constraint(1, ZONE, "app In web", minDomains=domains))
        found = filtered(plugin(), asking, cluster(n1=1, n3=1).snapshot())
        assert found == (["", "", ""] if admits else [FULL] * 3)

    def test_node_affinity_policy(self) -> None:
        """The pod selects zone a. Honored: the fewest is a's 2; ignored: b's 0."""
        selecting: Any = {"node_selector": {ZONE: "a"}}
        honor = pod(constraint(1, ZONE, "app In web"), **selecting)
        ignore = pod(constraint(1, ZONE, "app In web", nodeAffinityPolicy="Ignore"), **selecting)
        around = cluster(n1=1, n2=1).snapshot()
        assert filtered(plugin(), honor, around) == ["", "", ""]
        assert filtered(plugin(), ignore, around) == [FULL, FULL, ""]

    def test_node_taints_policy(self) -> None:
        """n3 is tainted: ignored by default, so the fewest is b's 0; honored it is a's 2. A cordoned node counts."""
        tainted = make_node("n3", labels={ZONE: "b"}, taints=["x:NoSchedule"])
        honor = constraint(1, ZONE, "app In web", nodeTaintsPolicy="Honor")
        around = Cluster([*NODES[:2], tainted], webs(n1=1, n2=1)).snapshot()
        assert filtered(plugin(), pod(constraint(1, ZONE, "app In web")), around) == [FULL, FULL, ""]
        assert filtered(plugin(), pod(honor), around) == ["", "", ""]
        assert filtered(plugin(), pod(honor, tolerations=["x"]), around) == [FULL, FULL, ""]
        cordoned = make_node("n3", labels={ZONE: "b"}, unschedulable=True)
        around = Cluster([*NODES[:2], cordoned], webs(n1=1, n2=1)).snapshot()
        assert filtered(plugin(), pod(honor), around) == [FULL, FULL, ""]

    def test_policies_of_one_constraint_do_not_touch_another(self) -> None:
        """The pod selects zone a. Zones are asked to honor that: the fewest is a's 2. Racks are not: the fewest is r3's
        0, and 1 + 1 - 0 > 1 in r1."""
        racks = [make_node(f"n{at}", labels={ZONE: zone, "rack": f"r{at}"}) for at, zone in enumerate("aab", start=1)]
        zone, rack = constraint(1, ZONE, "app In web"), constraint(1, "rack", "app In web", nodeAffinityPolicy="Ignore")
        around = Cluster(racks, webs(n1=1, n2=1)).snapshot()
        assert filtered(plugin(), pod(zone, node_selector={ZONE: "a"}), around) == ["", "", ""]
        assert filtered(plugin(), pod(zone, rack, node_selector={ZONE: "a"}), around) == [FULL, FULL, ""]

    def test_match_label_keys(self) -> None:
        """Only pods of the same version count: none of version 2 yet."""
        around = cluster(n1=3)
        asking = constraint(1, ZONE, "app In web", matchLabelKeys=["version", "absent"])
        assert filtered(plugin(), pod(asking, labels=WEB | {"version": "2"}), around.snapshot()) == ["", "", ""]
        assert filtered(plugin(), pod(asking), around.snapshot()) == [FULL, FULL, ""]

    def test_pods_that_do_not_count(self) -> None:
        others = [
            ("n1", make_pod("other/x", labels=WEB)),
            ("n1", deleting(make_pod("shop/x", labels=WEB))),
            ("n1", make_pod("shop/y")),
        ]
        found = filtered(plugin(), pod(constraint(1, ZONE, "app In web")), Cluster(NODES, others).snapshot())
        assert found == ["", "", ""]

    def test_empty_and_absent_selectors(self) -> None:
        """An empty selector counts the pod itself, 0 + 1 - 0, and no other; an absent one not even that."""
        around = cluster(n1=5).snapshot()
        assert filtered(plugin(), pod(constraint(1, ZONE)), around) == ["", "", ""]
        assert filtered(plugin(), pod(constraint(1, ZONE, absent=True)), around) == ["", "", ""]
        assert filtered(plugin(), pod(constraint(1, ZONE, absent=True, matchLabelKeys=["app"])), around) == ["", "", ""]

    def test_default_constraints(self) -> None:
        around = Cluster(NODES, webs(n1=1), service(app="web"))
        tested = plugin({"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"})
        assert filtered(tested, make_pod(labels=WEB), around.snapshot()) == [FULL, FULL, ""]
        assert filtered(tested, pod(constraint(9, HOST, "app In web")), around.snapshot()) == ["", "", ""]
        assert filtered(tested, make_pod(labels={"app": "db"}), around.snapshot()) is None
        assert filtered(plugin(), make_pod(labels=WEB), around.snapshot()) is None
        assert filtered(plugin(system=False), make_pod(labels=WEB), around.snapshot()) is None

    def test_skip_without_hard_constraints(self) -> None:
        assert filtered(plugin(), pod(constraint(1, ZONE, "app In web", hard=False)), cluster().snapshot()) is None

    def test_a_selector_that_is_not_legal_is_an_error(self) -> None:
        snapshot = cluster().snapshot()
        status = plugin().pre_filter(CycleState(), PodInfo(pod(constraint(1, ZONE, "app In"))), snapshot)
        assert isinstance(status, Status) and status.code is Code.ERROR
        soft = PodInfo(pod(constraint(1, ZONE, "app In", hard=False)))
        status = plugin().pre_score(CycleState(), soft, snapshot, np.ones(3, dtype=np.bool_))
        assert status is not None and status.code is Code.ERROR

    def test_it_needs_its_pre_filter(self) -> None:
        table = cluster().snapshot().table
        with pytest.raises(PluginError, match="PreFilter has not run"):
            plugin().filter_table(CycleState(), PodInfo(pod()), table, table.all_rows)

    def test_default_constraints_that_are_none(self) -> None:
        with pytest.raises(PluginError, match="defaultConstraints"):
            plugin({"maxSkew": "one"})


class TestScore:
    def test_fewer_pods_around_are_better(self) -> None:
        """Zones a 3, b 1; each weighs log(2 + 2) = 1.386: 4.16 → 4, 1.39 → 1; 100 × (4 + 1 - 4) / 4, (5 - 1) / 4."""
        asking = pod(constraint(1, ZONE, "app In web", hard=False))
        assert scored(plugin(), asking, cluster(n1=2, n2=1, n3=1).snapshot()) == [25, 25, 100]

    def test_hosts_are_weighed_by_their_number(self) -> None:
        """log(3 + 2) = 1.609; 2 → 3.2 → 3, 0, 1 → 1.6 → 2."""
        asking = pod(constraint(1, HOST, "app In web", hard=False))
        assert scored(plugin(), asking, cluster(n1=2, n3=1).snapshot()) == [0, 100, 33]

    def test_only_feasible_hosts_weigh(self) -> None:
        """log(1 + 2) = 1.0986 for one of three hosts: 3.3 → 3; with log(3 + 2) it were 5."""
        asking = pod(constraint(1, HOST, "app In web", hard=False))
        snapshot, tested, state, info = cluster(n1=3).snapshot(), plugin(), CycleState(), PodInfo(asking)
        tested.pre_score(state, info, snapshot, np.array([True, False, False]))
        assert tested.score_table(state, info, snapshot.table, np.array([0])).tolist() == [3]

    def test_an_empty_label_value_is_the_domain_of_nodes_without_the_label(self) -> None:
        """Under system defaults. Zones "" (n1, and n2 without a label) with 4 pods together, b with 0; log(2 + 2) =
        1.386. n1: hosts 0 × 1.609 + 2, zones 4 × 1.386 + 4 → 11.5 → 12. n2: 4 × 1.609 + 2 = 8.4 → 8; n3: 2 + 4 = 6."""
        nodes = [make_node("n1", labels={HOST: "n1", ZONE: ""}), make_node("n2", labels={HOST: "n2"}), NODES[2]]
        around = Cluster(nodes, webs(n2=4), service(app="web")).snapshot()
        state, info, tested = CycleState(), PodInfo(make_pod(labels=WEB)), plugin()
        tested.pre_score(state, info, around, np.ones(3, dtype=np.bool_))
        assert tested.score_table(state, info, around.table, around.table.all_rows).tolist() == [12, 8, 6]

    def test_max_skew_waters_the_difference_down(self) -> None:
        """2 × 1.609 + 4 = 7.2 → 7, 4, 1.609 + 4 = 5.6 → 6: 100 × 4/7, 7/7, 5/7."""
        asking = pod(constraint(5, HOST, "app In web", hard=False))
        assert scored(plugin(), asking, cluster(n1=2, n3=1).snapshot()) == [57, 100, 71]

    def test_nodes_that_lack_a_key_get_nothing(self) -> None:
        around = cluster(*NODES, make_node("n4", labels={HOST: "n4"}), n1=2, n2=1, n3=1)
        asking = pod(constraint(1, ZONE, "app In web", hard=False))
        assert scored(plugin(), asking, around.snapshot()) == [25, 25, 100, 0]

    def test_only_feasible_domains_weigh(self) -> None:
        """Of the zones only a is feasible: log(1 + 2) = 1.0986; 3 → 3.3 → 3 for both of its nodes."""
        asking = pod(constraint(1, ZONE, "app In web", hard=False))
        feasible = np.array([True, True, False])
        assert scored(plugin(), asking, cluster(n1=2, n2=1, n3=1).snapshot(), feasible) == [100, 100]

    def test_all_alike_are_all_best(self) -> None:
        asking = pod(constraint(1, ZONE, "app In web", hard=False))
        assert scored(plugin(), asking, cluster().snapshot()) == [100, 100, 100]

    def test_system_defaults(self) -> None:
        """Hosts, skew 3: 2 × log(4 + 2) + 2 = 5.58, 2, 2, 2. Zones, skew 5: n4 has none but makes a third domain,
        2 × log(3 + 2) + 4 = 7.22 in a, 4 in b. Together 12.8 → 13, 9.2 → 9, 6, 2: 100 × (13 + 2 - s) / 13."""
        around = Cluster([*NODES, make_node("n4", labels={HOST: "n4"})], webs(n1=2), service(app="web"))
        assert scored(plugin(), make_pod(labels=WEB), around.snapshot()) == [15, 46, 69, 100]
        assert scored(plugin(system=False), make_pod(labels=WEB), around.snapshot()) is None
        assert scored(plugin(), make_pod(labels={"app": "db"}), around.snapshot()) is None

    def test_list_defaults_want_every_key(self) -> None:
        around = Cluster([*NODES, make_node("n4", labels={HOST: "n4"})], webs(n1=2), service(app="web"))
        tested = plugin({"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"})
        assert scored(tested, make_pod(labels=WEB), around.snapshot()) == [0, 0, 100, 0]

    def test_services_that_come_later(self) -> None:
        snapshot, tested, info = cluster(n1=1).snapshot(), plugin(), PodInfo(make_pod(labels=WEB))
        assert scored(tested, info.pod, snapshot) is None
        before = tested.skip_version(info, snapshot)
        snapshot.put("ReplicaSet", "shop/x", {"spec": {"selector": {"matchLabels": WEB}}})
        assert tested.skip_version(info, snapshot) == before
        snapshot.put("Service", "shop/web", {"spec": {"selector": WEB}})
        assert tested.skip_version(info, snapshot) != before
        assert scored(tested, info.pod, snapshot) is not None

    def test_it_needs_its_pre_score(self) -> None:
        table = cluster().snapshot().table
        with pytest.raises(PluginError, match="PreScore has not run"):
            plugin().score_table(CycleState(), PodInfo(pod()), table, table.all_rows)


SPREAD = pods(
    st.just("new"), st.just({}) | st.builds(spread, CONSTRAINTS) | st.builds(spread, CONSTRAINTS, CONSTRAINTS)
)
DEFAULTS = st.sampled_from(
    [
        None,
        None,
        (),
        (
            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"},
            {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"},
            {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "ScheduleAnyway"},
        ),
    ]
)


def with_defaults(defaults: Any) -> tuple[PodTopologySpread, list[TopologySpreadConstraint] | None]:
    if defaults is None:
        return plugin(), None
    records = [
        TopologySpreadConstraint(one["maxSkew"], one["topologyKey"], one["whenUnsatisfiable"]) for one in defaults
    ]
    return plugin(*defaults, system=False), records


@settings(max_examples=250, deadline=None)
@given(clusters(st.just({})), SPREAD, DEFAULTS)
def test_as_worked_out_plainly(around: Cluster, asking: Pod, defaults: Any) -> None:
    tested, records = with_defaults(defaults)
    snapshot, plain = around.snapshot(), Spreading(around, asking, records)
    expected = plain.filtered()
    assert filtered(tested, asking, snapshot) == expected
    feasible = np.array([not reason for reason in expected or [""] * len(around.nodes)])
    if feasible.any():
        nodes = [node for node, fits in zip(around.nodes, feasible, strict=True) if fits]
        assert scored(tested, asking, snapshot, feasible) == plain.scored(nodes)


@settings(max_examples=100, deadline=None)
@given(clusters(st.just({})), SPREAD, st.integers(0, 6))
def test_every_row_is_judged_alike_alone_and_in_shards(around: Cluster, asking: Pod, cut: int) -> None:
    snapshot, tested = around.snapshot(), plugin()
    whole = filtered(tested, asking, snapshot)
    if whole is None:
        return
    for row, reason in enumerate(whole):
        assert filtered(tested, asking, snapshot, np.array([row])) == [reason]
    at = min(cut, len(whole))
    first, rest = (filtered(tested, asking, snapshot, rows) for rows in (slice(0, at), slice(at, len(whole))))
    assert first is not None and rest is not None and first + rest == whole


@settings(max_examples=150, deadline=None)
@given(clusters(st.just({})), SPREAD, st.data())
def test_kept_up_to_date_is_what_starting_anew_gives(around: Cluster, asking: Pod, data: st.DataObject) -> None:
    """One plugin asked again and again while pods and nodes change, and another that sees the end only."""
    snapshot, tested = around.snapshot(), plugin()
    for _ in range(data.draw(st.integers(1, 4))):
        filtered(tested, asking, snapshot), scored(tested, asking, snapshot)
        match data.draw(st.sampled_from(["add", "add", "remove", "label"])):
            case "remove" if around.placed:
                _, gone = around.placed.pop()
                snapshot.table.remove_pod(gone.uid)
            case "label":
                name = data.draw(st.sampled_from(around.nodes)).name
                changed = make_node(name, labels={ZONE: data.draw(st.sampled_from(["z1", "z9"])), HOST: name})
                around.nodes = [changed if node.name == name else node for node in around.nodes]
                snapshot.table.set_node(changed)
            case _:
                name, new = (
                    data.draw(st.sampled_from(around.nodes)).name,
                    data.draw(pods(st.sampled_from("xy"), st.just({}))),
                )
                around.placed = [(home, other) for home, other in around.placed if other.uid != new.uid]
                around.placed.append((name, new))
                snapshot.table.add_pod(PodInfo(new), name)
    fresh = around.snapshot()
    assert filtered(tested, asking, snapshot) == filtered(plugin(), asking, fresh)
    assert scored(tested, asking, snapshot) == scored(plugin(), asking, fresh)


@settings(max_examples=200, deadline=None)
@given(clusters(st.just({})), SPREAD, st.lists(st.integers(0, 5), max_size=6), DEFAULTS)
def test_pods_of_the_class_that_come_are_taken_in(
    around: Cluster, asking: Pod, homes: list[int], defaults: Any
) -> None:
    nodes = [around.nodes[home % len(around.nodes)].name for home in homes]
    followed = assert_takes_in(lambda: with_defaults(defaults)[0], asking, around, nodes)
    assert followed in (0, len(nodes))


@settings(max_examples=200, deadline=None)
@given(
    clusters(st.just({})),
    pods(st.just("new"), st.builds(spread, COUNTING) | st.builds(spread, COUNTING, COUNTING)),
    st.data(),
)
def test_adding_and_removing_pods_is_as_if_they_had_come_and_gone(
    around: Cluster, asking: Pod, data: st.DataObject
) -> None:
    """But for the exceptions of the next test."""
    around.placed = [(name, other) for name, other in around.placed if not other.deleting]
    snapshot, tested, state, info = around.snapshot(), plugin(), CycleState(), PodInfo(asking)
    assert tested.pre_filter(state, info, snapshot) is None
    before, trial = judged(tested, state, info, snapshot), state.fork()
    after = Cluster(around.nodes, list(around.placed), around.others)
    for number in range(data.draw(st.integers(1, 3))):
        if after.placed and data.draw(st.booleans()):
            name, other = after.placed.pop()
            call = tested.remove_pod
        else:
            name = data.draw(st.sampled_from(around.nodes)).name
            other = data.draw(pods(st.just(f"more{number}"), st.just({})))
            after.placed.append((name, other))
            call = tested.add_pod
        call(trial, info, PodInfo(other), snapshot.table.info(snapshot.table.index[NodeName(name)]))
    assert judged(tested, trial, info, snapshot) == filtered(plugin(), asking, after.snapshot())
    assert judged(tested, state, info, snapshot) == before


def test_added_pods_count_that_prefilter_would_not_count() -> None:
    """As in the source: terminating ones, and any where the selector restricts nothing."""
    snapshot, tested, state = cluster().snapshot(), plugin(), CycleState()
    info = PodInfo(pod(constraint(1, ZONE, "app In web")))
    tested.pre_filter(state, info, snapshot)
    tested.add_pod(state, info, PodInfo(deleting(make_pod("shop/x", labels=WEB))), snapshot.table.info(0))
    assert judged(tested, state, info, snapshot) == [FULL, FULL, ""]
    state, info = CycleState(), PodInfo(pod(constraint(1, ZONE)))
    tested.pre_filter(state, info, snapshot)
    tested.add_pod(state, info, PodInfo(make_pod("shop/x")), snapshot.table.info(0))
    assert judged(tested, state, info, snapshot) == [FULL, FULL, ""]


class TestHints:
    ASKING = pod(constraint(1, ZONE, "app In web"))
    MATCHING, OTHER = make_pod("shop/x", labels=WEB, node="n1"), make_pod("shop/x", node="n1")

    def after(self, action: Action, old: Any = None, new: Any = None) -> bool:
        return queues(plugin(), self.ASKING, Resource.ASSIGNED_POD, action, old, new)

    def test_pods_that_match_come_and_go(self) -> None:
        assert self.after(Action.ADD, new=self.MATCHING) and self.after(Action.DELETE, self.MATCHING)
        assert not self.after(Action.ADD, new=self.OTHER) and not self.after(Action.DELETE, self.OTHER)
        elsewhere = make_pod("other/x", labels=WEB, node="n1")
        assert not self.after(Action.ADD, new=elsewhere) and not self.after(Action.DELETE, elsewhere)

    def test_pods_come_to_match_or_cease_to(self) -> None:
        assert self.after(Action.UPDATE, self.MATCHING, self.OTHER)
        assert self.after(Action.UPDATE, self.OTHER, self.MATCHING)
        assert not self.after(Action.UPDATE, self.MATCHING, make_pod("shop/x", labels=WEB | {"v": "2"}, node="n1"))

    def test_own_update(self) -> None:
        def after(old: Pod, new: Pod) -> bool:
            return queues(plugin(), old, Resource.POD, Action.UPDATE, old, new)

        plain = constraint(1, ZONE, "app In web")
        assert after(pod(plain), pod(plain, labels={}))
        assert not after(pod(plain), pod(plain, tolerations=["x"]))
        honor = constraint(1, ZONE, "app In web", nodeTaintsPolicy="Honor")
        assert after(pod(honor), pod(honor, tolerations=["x"]))

    @pytest.mark.parametrize(
        ("old", "new", "helps"),
        [
            (None, {"labels": {ZONE: "a"}}, True),
            (None, {"labels": {HOST: "n"}}, False),
            ({"labels": {ZONE: "a"}}, None, True),
            ({"labels": {}}, None, False),
            ({"labels": {ZONE: "a"}}, {"labels": {}}, True),
            ({"labels": {}}, {"labels": {ZONE: "a"}}, True),
            ({"labels": {ZONE: "a"}}, {"labels": {ZONE: "b"}}, True),
            ({"labels": {ZONE: "a"}}, {"labels": {ZONE: "a", HOST: "n"}}, False),
            ({"labels": {ZONE: "a"}}, {"labels": {ZONE: "a"}, "taints": ["x:NoSchedule"]}, True),
            ({"labels": {}}, {"labels": {}, "taints": ["x:NoSchedule"]}, False),
        ],
    )
    def test_nodes(self, old: Any, new: Any, helps: bool) -> None:
        action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
        before, after = (None if facts is None else make_node(**facts) for facts in (old, new))
        assert queues(plugin(), self.ASKING, Resource.NODE, action, before, after) == helps

    def test_a_selector_that_is_not_legal_is_tried_again(self) -> None:
        broken = pod(constraint(1, ZONE, "app In"))
        assert queues(plugin(), broken, Resource.ASSIGNED_POD, Action.ADD, new=self.OTHER)
