"""InterPodAffinity."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.config import InterPodAffinityArgs
from dsched.errors import PluginError
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, Code, Resource, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.model.pod import Pod
from dsched.plugins.inter_pod_affinity.plugin import (
    ERR_REASON_AFFINITY,
    ERR_REASON_ANTI_AFFINITY,
    ERR_REASON_EXISTING,
    InterPodAffinity,
)
from tests.builders import make_node, make_pod
from tests.unit.plugins.hints import queues
from tests.unit.plugins.neighbours import (
    AFFINITIES,
    HOST,
    ZONE,
    Cluster,
    affinity,
    assert_takes_in,
    clusters,
    deleting,
    filtered,
    judged,
    namespaces,
    pods,
    scored,
    selector,
    term,
)
from tests.unit.plugins.plainly import Terms
from tests.versions import V37

WEB, DB = {"app": "web"}, {"app": "db"}
NODES = [
    make_node("n1", labels={ZONE: "a", HOST: "n1"}),
    make_node("n2", labels={ZONE: "a", HOST: "n2"}),
    make_node("n3", labels={ZONE: "b", HOST: "n3"}),
    make_node("n4", labels={HOST: "n4"}),
]


class Handle:
    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot


def plugin(snapshot: Snapshot | None = None, **args: Any) -> InterPodAffinity:
    return InterPodAffinity(InterPodAffinityArgs(**args), Handle(snapshot or Snapshot()))


def cluster(*placed: tuple[str, Pod], **others: Any) -> Cluster:
    return Cluster(NODES, list(placed), others)


def reasons(pod: Pod, around: Cluster) -> list[str] | None:
    return filtered(plugin(), pod, around.snapshot())


class TestFilter:
    def test_affinity_admits_the_domain_of_the_pod_it_needs(self) -> None:
        pod = make_pod(spec=affinity(near=[term(ZONE, "app In db")]))
        assert reasons(pod, cluster(("n1", make_pod("shop/db", labels=DB)))) == [
            "",
            "",
            ERR_REASON_AFFINITY,
            ERR_REASON_AFFINITY,
        ]

    def test_one_pod_has_to_meet_all_terms(self) -> None:
        """Two pods that meet a term each do not help."""
        pod = make_pod(spec=affinity(near=[term(ZONE, "app In db"), term(ZONE, "tier Exists")]))
        apart = cluster(("n1", make_pod("shop/a", labels=DB)), ("n1", make_pod("shop/b", labels={"tier": "x"})))
        assert reasons(pod, apart) == [ERR_REASON_AFFINITY] * 4
        both = cluster(("n1", make_pod("shop/a", labels=DB | {"tier": "x"})))
        assert reasons(pod, both) == ["", "", ERR_REASON_AFFINITY, ERR_REASON_AFFINITY]

    def test_the_first_of_its_kind_may_go_wherever_the_keys_are(self) -> None:
        pod = make_pod(labels=WEB, spec=affinity(near=[term(ZONE, "app In web")]))
        assert reasons(pod, cluster()) == ["", "", "", ERR_REASON_AFFINITY]
        other = make_pod(labels=DB, spec=affinity(near=[term(ZONE, "app In web")]))
        assert reasons(other, cluster()) == [ERR_REASON_AFFINITY] * 4

    def test_a_match_where_the_key_is_missing_does_not_end_that(self) -> None:
        pod = make_pod(labels=WEB, spec=affinity(near=[term(ZONE, "app In web")]))
        assert reasons(pod, cluster(("n4", make_pod("shop/w", labels=WEB)))) == ["", "", "", ERR_REASON_AFFINITY]
        assert reasons(pod, cluster(("n3", make_pod("shop/w", labels=WEB)))) == [
            ERR_REASON_AFFINITY,
            ERR_REASON_AFFINITY,
            "",
            ERR_REASON_AFFINITY,
        ]

    def test_anti_affinity_keeps_out_of_the_domain(self) -> None:
        pod = make_pod(spec=affinity(apart=[term(ZONE, "app In web")]))
        assert reasons(pod, cluster(("n2", make_pod("shop/w", labels=WEB)))) == [
            ERR_REASON_ANTI_AFFINITY,
            ERR_REASON_ANTI_AFFINITY,
            "",
            "",
        ]

    def test_running_pods_keep_others_out(self) -> None:
        guard = make_pod("shop/guard", spec=affinity(apart=[term(HOST, "app In web")]))
        assert reasons(make_pod(labels=WEB), cluster(("n2", guard))) == ["", ERR_REASON_EXISTING, "", ""]
        assert reasons(make_pod(labels=DB), cluster(("n2", guard))) is None

    def test_affinity_is_told_first_then_its_own_anti_affinity(self) -> None:
        guard = make_pod("shop/guard", labels=WEB, spec=affinity(apart=[term(HOST, "app In web")]))
        around = cluster(("n1", guard))
        own = affinity(near=[term(ZONE, "app In db")], apart=[term(HOST, "app In web")])
        assert reasons(make_pod(labels=WEB, spec=own), around) == [ERR_REASON_AFFINITY] * 4
        own = affinity(apart=[term(HOST, "app In web")])
        assert reasons(make_pod(labels=WEB, spec=own), around) == [ERR_REASON_ANTI_AFFINITY, "", "", ""]

    def test_codes(self) -> None:
        """Preemption helps against anti-affinity, never against missing company."""
        guard = make_pod("shop/guard", spec=affinity(apart=[term(HOST, "app In web")]))
        own = affinity(near=[term(ZONE, "app In web")], apart=[term(HOST, "app In db")])
        snapshot, state, pod = cluster(("n1", guard)).snapshot(), CycleState(), PodInfo(make_pod(labels=WEB, spec=own))
        tested = plugin()
        tested.pre_filter(state, pod, snapshot)
        statuses = tested.filter_table(state, pod, snapshot.table, snapshot.table.all_rows).statuses
        assert [status.code for status in statuses] == [
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            Code.UNSCHEDULABLE,
            Code.UNSCHEDULABLE,
        ]

    def test_terminating_pods_count(self) -> None:
        gone = deleting(make_pod("shop/w", labels=WEB))
        pod = make_pod(spec=affinity(apart=[term(HOST, "app In web")]))
        assert reasons(pod, cluster(("n1", gone))) == [ERR_REASON_ANTI_AFFINITY, "", "", ""]

    @pytest.mark.parametrize(
        ("more", "meant"),
        [
            ({}, {"shop"}),
            ({"namespaces": ["red"]}, {"red"}),
            ({"namespaceSelector": {}}, {"shop", "red", "blue", "unknown"}),
            ({"namespaceSelector": selector("team In red")}, {"red"}),
            ({"namespaceSelector": selector("team In red"), "namespaces": ["blue"]}, {"red", "blue"}),
            # An object without labels matches: so does every namespace, listed or not.
            ({"namespaceSelector": selector("team NotIn red")}, {"shop", "red", "blue", "unknown"}),
            ({"namespaceSelector": selector("team DoesNotExist")}, {"shop", "red", "blue", "unknown"}),
        ],
    )
    def test_namespaces_of_own_terms(self, more: Any, meant: set[str]) -> None:
        pod = make_pod(spec=affinity(apart=[term(HOST, "app In web", **more)]))
        known = namespaces(shop={}, red={"team": "red"}, blue={"team": "blue"})
        for namespace in ("shop", "red", "blue", "unknown"):
            around = cluster(("n1", make_pod(f"{namespace}/w", labels=WEB)), **known)
            kept_out = filtered(plugin(), pod, around.snapshot()) == [ERR_REASON_ANTI_AFFINITY, "", "", ""]
            assert kept_out == (namespace in meant), namespace

    @pytest.mark.parametrize(
        ("more", "meant"),
        [
            ({}, {"shop"}),
            ({"namespaceSelector": {}}, {"shop", "red", "blue", "unknown"}),
            ({"namespaceSelector": selector("team In red")}, {"red"}),
            # Terms of running pods look at the real labels; a namespace that is not known has none.
            ({"namespaceSelector": selector("team NotIn red")}, {"shop", "blue", "unknown"}),
        ],
    )
    def test_namespaces_of_terms_of_running_pods(self, more: Any, meant: set[str]) -> None:
        guard = make_pod("shop/guard", spec=affinity(apart=[term(HOST, "app In web", **more)]))
        known = namespaces(shop={}, red={"team": "red"}, blue={"team": "blue"})
        for namespace in ("shop", "red", "blue", "unknown"):
            found = reasons(make_pod(f"{namespace}/w", labels=WEB), cluster(("n1", guard), **known))
            assert (found is not None) == (namespace in meant), namespace

    def test_namespaces_that_change(self) -> None:
        snapshot, tested = cluster(("n1", make_pod("red/w", labels=WEB))).snapshot(), plugin()
        pod = make_pod(spec=affinity(apart=[term(HOST, "app In web", namespaceSelector=selector("team In red"))]))
        assert filtered(tested, pod, snapshot) == ["", "", "", ""]
        snapshot.put("Namespace", "red", {"metadata": {"name": "red", "labels": {"team": "red"}}})
        assert filtered(tested, pod, snapshot) == [ERR_REASON_ANTI_AFFINITY, "", "", ""]
        guard = make_pod(
            "x/g", spec=affinity(apart=[term(HOST, "app In db", namespaceSelector=selector("team Exists"))])
        )
        snapshot.table.add_pod(PodInfo(guard), NodeName("n2"))
        incoming = make_pod("red/db", labels=DB)
        assert filtered(tested, incoming, snapshot) == ["", ERR_REASON_EXISTING, "", ""]
        snapshot.drop("Namespace", "red")
        assert filtered(tested, incoming, snapshot) is None

    def test_terms_that_are_not_legal(self) -> None:
        pod = make_pod(spec=affinity(apart=[term(HOST, "app In")]))
        status = plugin().pre_filter(CycleState(), PodInfo(pod), cluster().snapshot())
        assert isinstance(status, Status)
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert status.message.startswith("parsing pod: requiredAntiAffinityTerms: ")

    def test_it_needs_its_pre_filter(self) -> None:
        table = cluster().snapshot().table
        with pytest.raises(PluginError, match="PreFilter has not run"):
            plugin().filter_table(CycleState(), PodInfo(make_pod()), table, table.all_rows)


class TestScore:
    def test_own_preferences(self) -> None:
        """n1, n2: 5 for the web pod in their zone, n1 another -2 for the one on it: 3, 5, 0, 0 → (x - 0) / 5 × 100."""
        own = affinity(likes=[(5, term(ZONE, "app In web"))], dislikes=[(2, term(HOST, "app In web"))])
        around = cluster(("n1", make_pod("shop/w", labels=WEB)))
        assert scored(plugin(), make_pod(spec=own), around.snapshot()) == [60, 100, 0, 0]

    def test_negative_sums_are_lifted(self) -> None:
        """-4 on n1 and n2, 0 elsewhere."""
        own = affinity(dislikes=[(4, term(ZONE, "app In web"))])
        around = cluster(("n1", make_pod("shop/w", labels=WEB)))
        assert scored(plugin(), make_pod(spec=own), around.snapshot()) == [0, 0, 100, 100]

    def test_truncated(self) -> None:
        """3, 1, 0, 0 → 100, 33.3…"""
        own = affinity(likes=[(1, term(HOST, "app In web"))])
        webs = [("n1", make_pod(f"shop/w{number}", labels=WEB)) for number in range(3)]
        around = cluster(*webs, ("n2", make_pod("shop/w3", labels=WEB)))
        assert scored(plugin(), make_pod(spec=own), around.snapshot()) == [100, 33, 0, 0]

    def test_what_running_pods_like(self) -> None:
        """The required affinity of the pod on n1 weighs 1, its preference 3; that of the pod on n3 -2: 4, 4, -2, 0."""
        fan = make_pod(
            "shop/fan", spec=affinity(near=[term(ZONE, "app In web")], likes=[(3, term(ZONE, "app Exists"))])
        )
        foe = make_pod("shop/foe", spec=affinity(dislikes=[(2, term(HOST, "app In web"))]))
        around = cluster(("n1", fan), ("n3", foe))
        assert scored(plugin(), make_pod(labels=WEB), around.snapshot()) == [100, 100, 0, 33]
        assert scored(plugin(), make_pod(labels=DB), around.snapshot()) == [100, 100, 0, 0]

    def test_weight_of_required_affinity(self) -> None:
        fan = make_pod("shop/fan", spec=affinity(near=[term(ZONE, "app In web")]))
        foe = make_pod("shop/foe", spec=affinity(dislikes=[(5, term(ZONE, "app In web"))]))
        pod, around = make_pod(labels=WEB), cluster(("n1", fan), ("n3", foe)).snapshot()
        assert scored(plugin(hard_pod_affinity_weight=15), pod, around) == [100, 100, 0, 25]  # 15, 15, -5, 0
        assert scored(plugin(hard_pod_affinity_weight=0), pod, around) == [100, 100, 0, 100]  # 0, 0, -5, 0

    def test_preferences_of_running_pods_may_be_ignored(self) -> None:
        foe = make_pod("shop/foe", spec=affinity(dislikes=[(5, term(ZONE, "app In web"))]))
        around, tested = cluster(("n3", foe)).snapshot(), plugin(ignore_preferred_terms_of_existing_pods=True)
        assert scored(tested, make_pod(labels=WEB), around) is None
        own = make_pod(labels=WEB, spec=affinity(likes=[(1, term(HOST, "app In no"))]))
        assert scored(tested, own, around) == [100, 100, 0, 100]

    def test_skip_where_no_term_means_anyone(self) -> None:
        own = affinity(likes=[(5, term(ZONE, "app In web"))])
        assert scored(plugin(), make_pod(spec=own), cluster(("n4", make_pod("shop/w", labels=WEB))).snapshot()) is None
        assert scored(plugin(), make_pod(), cluster().snapshot()) is None

    def test_weights_that_cancel_out_are_no_skip(self) -> None:
        own = affinity(likes=[(5, term(ZONE, "app In web"))], dislikes=[(5, term(ZONE, "app In web"))])
        around = cluster(("n1", make_pod("shop/w", labels=WEB)))
        assert scored(plugin(), make_pod(spec=own), around.snapshot()) == [0, 0, 0, 0]

    def test_terms_that_are_not_legal(self) -> None:
        pod = PodInfo(make_pod(spec=affinity(likes=[(1, term(HOST, "app In"))])))
        snapshot = cluster().snapshot()
        status = plugin().pre_score(CycleState(), pod, snapshot, np.ones(4, dtype=np.bool_))
        assert status is not None and status.code is Code.ERROR

    def test_it_needs_its_pre_score(self) -> None:
        table = cluster().snapshot().table
        with pytest.raises(PluginError, match="PreScore has not run"):
            plugin().score_table(CycleState(), PodInfo(make_pod()), table, table.all_rows)


TERMED = pods(st.just("new"), AFFINITIES | st.just({}))


@settings(max_examples=200, deadline=None)
@given(clusters(), TERMED, st.sampled_from([0, 1, 7]), st.booleans())
def test_as_worked_out_plainly(around: Cluster, pod: Pod, hard: int, only_own: bool) -> None:
    snapshot, plain = around.snapshot(), Terms(around, pod, hard, only_own)
    tested = plugin(hard_pod_affinity_weight=hard, ignore_preferred_terms_of_existing_pods=only_own)
    expected = plain.filtered()
    assert filtered(tested, pod, snapshot) == expected
    feasible = np.array([not reason for reason in expected or [""] * len(around.nodes)])
    if feasible.any():
        nodes = [node for node, fits in zip(around.nodes, feasible, strict=True) if fits]
        assert scored(tested, pod, snapshot, feasible) == plain.scored(nodes)


@settings(max_examples=100, deadline=None)
@given(clusters(), TERMED, st.integers(0, 6))
def test_every_row_is_judged_alike_alone_and_in_shards(around: Cluster, pod: Pod, cut: int) -> None:
    snapshot, tested = around.snapshot(), plugin()
    whole = filtered(tested, pod, snapshot)
    if whole is None:
        return
    for row, reason in enumerate(whole):
        assert filtered(tested, pod, snapshot, np.array([row])) == [reason]
    at = min(cut, len(whole))
    first, rest = (filtered(tested, pod, snapshot, rows) for rows in (slice(0, at), slice(at, len(whole))))
    assert first is not None and rest is not None and first + rest == whole


@settings(max_examples=150, deadline=None)
@given(clusters(), TERMED, st.data())
def test_kept_up_to_date_is_what_starting_anew_gives(around: Cluster, pod: Pod, data: st.DataObject) -> None:
    """One plugin asked again and again while pods come and go, and another that sees the end only."""
    snapshot, tested = around.snapshot(), plugin()
    for _ in range(data.draw(st.integers(1, 4))):
        filtered(tested, pod, snapshot), scored(tested, pod, snapshot)
        if around.placed and data.draw(st.booleans()):
            name, gone = around.placed.pop(data.draw(st.integers(0, len(around.placed) - 1)))
            snapshot.table.remove_pod(gone.uid)
        else:
            new = data.draw(pods(st.sampled_from(["x", "y"]), AFFINITIES))
            name = data.draw(st.sampled_from(around.nodes)).name
            snapshot.table.add_pod(PodInfo(new), name)
            around.placed = [(home, other) for home, other in around.placed if other.uid != new.uid]
            around.placed.append((name, new))
    fresh = around.snapshot()
    assert filtered(tested, pod, snapshot) == filtered(plugin(), pod, fresh)
    assert scored(tested, pod, snapshot) == scored(plugin(), pod, fresh)


@settings(max_examples=200, deadline=None)
@given(clusters(), TERMED, st.lists(st.integers(0, 5), max_size=6), st.sampled_from([0, 1, 7]), st.booleans())
def test_pods_of_the_class_that_come_are_taken_in(
    around: Cluster, pod: Pod, homes: list[int], hard: int, only_own: bool
) -> None:
    def tested() -> InterPodAffinity:
        return plugin(hard_pod_affinity_weight=hard, ignore_preferred_terms_of_existing_pods=only_own)

    assert_takes_in(tested, pod, around, [around.nodes[home % len(around.nodes)].name for home in homes])


@pytest.mark.parametrize(
    ("own", "homes", "followed"),
    [
        ({"near": [term(ZONE, "app In web")]}, ["n1", "n2", "n3", "n1"], 2),
        ({"apart": [term(HOST, "app In web")]}, ["n1", "n2", "n3"], 3),
        ({"likes": [(5, term(ZONE, "app In web"))]}, ["n1", "n1"], 1),
        ({"near": [term(ZONE, "app In db")], "dislikes": [(5, term(HOST, "app In web"))]}, ["n1", "n2"], 1),
    ],
)
def test_after_the_first_of_its_kind_it_need_not_begin_anew(own: Any, homes: list[NodeName], followed: int) -> None:
    around = cluster(("n1", make_pod("shop/db", labels=DB)))
    assert assert_takes_in(plugin, make_pod("shop/web", labels=WEB, spec=affinity(**own)), around, homes) == followed


@settings(max_examples=150, deadline=None)
@given(clusters(), TERMED, st.data())
def test_adding_and_removing_pods_is_as_if_they_had_come_and_gone(
    around: Cluster, pod: Pod, data: st.DataObject
) -> None:
    snapshot, tested, state, info = around.snapshot(), plugin(), CycleState(), PodInfo(pod)
    if tested.pre_filter(state, info, snapshot) is not None:
        return
    before, trial = judged(tested, state, info, snapshot), state.fork()
    after = Cluster(around.nodes, list(around.placed), around.others)
    for number in range(data.draw(st.integers(1, 3))):
        if after.placed and data.draw(st.booleans()):
            name, other = after.placed.pop(data.draw(st.integers(0, len(after.placed) - 1)))
            call = tested.remove_pod
        else:
            name = data.draw(st.sampled_from(around.nodes)).name
            other = data.draw(pods(st.just(f"more{number}"), AFFINITIES))
            after.placed.append((name, other))
            call = tested.add_pod
        call(trial, info, PodInfo(other), snapshot.table.info(snapshot.table.index[NodeName(name)]))
    expected = filtered(plugin(), pod, after.snapshot())
    assert judged(tested, trial, info, snapshot) == (expected or [""] * len(around.nodes))
    assert judged(tested, state, info, snapshot) == before


class TestSkipVersion:
    def test_plain_pods_do_not_care_who_comes(self) -> None:
        snapshot, tested, pod = cluster().snapshot(), plugin(), PodInfo(make_pod(labels=WEB))
        before = tested.skip_version(pod, snapshot)
        snapshot.table.add_pod(PodInfo(make_pod("shop/x", labels=WEB)), NodeName("n1"))
        other = make_pod("shop/y", spec=affinity(apart=[term(HOST, "app In db")]))
        snapshot.table.add_pod(PodInfo(other), NodeName("n1"))
        assert tested.skip_version(pod, snapshot) == before

    def test_pods_whose_terms_mean_it_do_matter(self) -> None:
        snapshot, tested, pod = cluster().snapshot(), plugin(), PodInfo(make_pod(labels=WEB))
        versions = [tested.skip_version(pod, snapshot)]
        guard = make_pod("shop/y", spec=affinity(apart=[term("rack", "app In web")]))
        snapshot.table.add_pod(PodInfo(guard), NodeName("n1"))
        versions.append(tested.skip_version(pod, snapshot))
        assert filtered(tested, pod.pod, snapshot) is None
        snapshot.table.set_node(make_node("n1", labels={"rack": "1"}))
        versions.append(tested.skip_version(pod, snapshot))
        assert filtered(tested, pod.pod, snapshot) == [ERR_REASON_EXISTING, "", "", ""]
        assert len(set(versions)) == 3


class TestHints:
    """After a pod on a node changed: does that help a web pod?"""

    DB_NEAR = make_pod(labels=WEB, spec=affinity(near=[term(ZONE, "app In db")]))
    DB_APART = make_pod(labels=WEB, spec=affinity(apart=[term(ZONE, "app In db"), term(ZONE, "tier In x")]))
    A_DB, A_WEB = make_pod("shop/o", labels=DB, node="n1"), make_pod("shop/o", labels=WEB, node="n1")

    def after(self, pod: Pod, action: Action, old: Any = None, new: Any = None) -> bool:
        return queues(plugin(), pod, Resource.ASSIGNED_POD, action, old, new)

    def test_a_pod_that_is_needed_came(self) -> None:
        assert self.after(self.DB_NEAR, Action.ADD, new=self.A_DB)
        assert not self.after(self.DB_NEAR, Action.ADD, new=self.A_WEB)
        assert not self.after(self.DB_NEAR, Action.DELETE, self.A_DB)
        assert self.after(self.DB_NEAR, Action.UPDATE, self.A_WEB, self.A_DB)
        assert not self.after(self.DB_NEAR, Action.UPDATE, self.A_DB, self.A_WEB)
        assert not self.after(self.DB_NEAR, Action.UPDATE, self.A_DB, self.A_DB)

    def test_a_pod_that_was_in_the_way_went(self) -> None:
        assert self.after(self.DB_APART, Action.DELETE, self.A_DB)
        assert not self.after(self.DB_APART, Action.DELETE, self.A_WEB)
        assert not self.after(self.DB_APART, Action.ADD, new=self.A_DB)
        assert self.after(self.DB_APART, Action.UPDATE, self.A_DB, self.A_WEB)
        assert not self.after(self.DB_APART, Action.UPDATE, self.A_WEB, self.A_DB)

    def test_a_pod_went_that_kept_others_away(self) -> None:
        guard = make_pod("shop/guard", spec=affinity(apart=[term(HOST, "app In web")]))
        assert self.after(make_pod(labels=WEB), Action.DELETE, guard)
        assert not self.after(make_pod(labels=DB), Action.DELETE, guard)

    def test_the_last_of_its_kind_went(self) -> None:
        own = make_pod(labels=WEB, spec=affinity(near=[term(HOST, "app In web")]))
        assert self.after(own, Action.DELETE, self.A_WEB)

    def test_terms_that_are_not_legal_are_tried_again(self) -> None:
        assert self.after(make_pod(spec=affinity(apart=[term(HOST, "app In")])), Action.ADD, new=self.A_DB)

    def test_own_labels(self) -> None:
        pod = make_pod(labels=WEB)
        assert queues(plugin(), pod, Resource.POD, Action.UPDATE, pod, make_pod(labels=DB))
        assert not queues(plugin(), pod, Resource.POD, Action.UPDATE, pod, make_pod(labels=WEB, priority=3))

    @pytest.mark.parametrize(
        ("pod", "old", "new", "helps"),
        [
            (DB_NEAR, None, {ZONE: "a"}, True),
            (DB_NEAR, None, {"rack": "1"}, False),
            (DB_NEAR, {}, {ZONE: "a"}, True),
            (DB_NEAR, {ZONE: "a"}, {ZONE: "b"}, True),
            (DB_NEAR, {ZONE: "a"}, {ZONE: "a", "rack": "1"}, False),
            (DB_NEAR, {ZONE: "a"}, {}, False),
            (DB_APART, None, {}, True),
            (DB_APART, {ZONE: "a"}, {}, True),
            (DB_APART, {ZONE: "a"}, {ZONE: "b"}, True),
            (DB_APART, {}, {ZONE: "a"}, False),
            (DB_APART, {ZONE: "a"}, {ZONE: "a"}, False),
            (make_pod(), None, {ZONE: "a"}, False),
        ],
    )
    def test_nodes(self, pod: Pod, old: Any, new: Any, helps: bool) -> None:
        before = None if old is None else make_node(labels=old)
        action = Action.ADD if old is None else Action.UPDATE
        assert queues(plugin(), pod, Resource.NODE, action, before, make_node(labels=new)) == helps


@pytest.mark.parametrize(
    ("more", "meant"),
    [
        ({"namespaceSelector": {}}, {"shop", "red", "blue", "unknown"}),
        ({"namespaceSelector": selector("team NotIn red")}, {"shop", "blue"}),
        ({"namespaceSelector": selector("team DoesNotExist")}, {"shop"}),
        ({"namespaceSelector": selector("team NotIn red"), "namespaces": ["red"]}, {"shop", "red", "blue"}),
    ],
)
def test_since_1_37_own_terms_mean_the_namespaces_that_are_selected_alone(more: Any, meant: set[str]) -> None:
    comes = make_pod("shop/comes", spec=affinity(apart=[term(HOST, "app In web", **more)]))
    known = namespaces(shop={}, red={"team": "red"}, blue={"team": "blue"})
    for namespace in ("shop", "red", "blue", "unknown"):
        around = cluster(("n1", make_pod(f"{namespace}/w", labels=WEB)), **known)
        asked = InterPodAffinity(InterPodAffinityArgs(), Handle(Snapshot()), V37)
        kept_out = filtered(asked, comes, around.snapshot()) == [ERR_REASON_ANTI_AFFINITY, "", "", ""]
        assert kept_out == (namespace in meant), namespace
