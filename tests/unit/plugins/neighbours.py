"""Clusters in which pods look at their neighbours: selectors, terms and constraints told in one line each, and random
ones of all of them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Code, Rows, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.meta import NodeName
from dsched.model.node import Node
from dsched.model.pod import Pod
from tests.builders import make_node, make_pod, make_term

Json = dict[str, Any]

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def selector(*expressions: str) -> Json:
    """A label selector from requirements like ``"app In web db"``."""
    return {"matchExpressions": make_term(*expressions)["matchExpressions"]}


def term(key: str, *expressions: str, absent: bool = False, **more: Any) -> Json:
    """A term of pod affinity: topology key, label selector, further fields; ``absent`` leaves the selector out."""
    chosen = {} if absent else {"labelSelector": selector(*expressions)}
    return {"topologyKey": key, **chosen, **more}


def affinity(
    near: Iterable[Json] = (),
    apart: Iterable[Json] = (),
    likes: Iterable[tuple[int, Json]] = (),
    dislikes: Iterable[tuple[int, Json]] = (),
) -> Json:
    """A pod's spec with terms: required and (weight, term) preferred ones of affinity and anti-affinity."""

    def side(required: Iterable[Json], preferred: Iterable[tuple[int, Json]]) -> Json:
        return {
            "requiredDuringSchedulingIgnoredDuringExecution": list(required),
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": weight, "podAffinityTerm": one} for weight, one in preferred
            ],
        }

    return {"affinity": {"podAffinity": side(near, likes), "podAntiAffinity": side(apart, dislikes)}}


def constraint(skew: int, key: str, *expressions: str, hard: bool = True, absent: bool = False, **more: Any) -> Json:
    """A topology spread constraint."""
    chosen = {} if absent else {"labelSelector": selector(*expressions)}
    unsatisfiable = "DoNotSchedule" if hard else "ScheduleAnyway"
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": unsatisfiable, **chosen, **more}


def spread(*constraints: Json) -> Json:
    """A pod's spec with constraints."""
    return {"topologySpreadConstraints": list(constraints)}


def deleting(pod: Pod) -> Pod:
    """The same pod while it terminates."""
    meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="2025-01-01T00:00:00Z")
    return msgspec.structs.replace(pod, metadata=meta)


@dataclass
class Cluster:
    """Nodes, the pods on them, and the other objects by kind and key."""

    nodes: list[Node]
    placed: list[tuple[str, Pod]] = field(default_factory=list)
    others: dict[str, dict[str, Json]] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        snapshot = Snapshot()
        for node in self.nodes:
            snapshot.table.set_node(node)
        for name, pod in self.placed:
            snapshot.table.add_pod(PodInfo(pod), NodeName(name))
        for kind, objects in self.others.items():
            for key, value in objects.items():
                snapshot.put(kind, key, value)
        return snapshot

    def on(self, node: Node) -> list[Pod]:
        return [pod for name, pod in self.placed if name == node.name]


def filtered(plugin: Any, pod: Pod, snapshot: Snapshot, rows: Rows | None = None) -> list[str] | None:
    """The plugin's reason a row, "" where the pod passes; None when PreFilter skips."""
    state, info = CycleState(), PodInfo(pod)
    answer = plugin.pre_filter(state, info, snapshot)
    if isinstance(answer, Status):
        assert answer.code is Code.SKIP, answer
        return None
    return judged(plugin, state, info, snapshot, rows)


def judged(plugin: Any, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Rows | None = None) -> list[str]:
    """What Filter says with this state."""
    table = snapshot.table
    verdict = plugin.filter_table(state, pod, table, table.all_rows if rows is None else rows)
    return [verdict.statuses[number - 1].message if number else "" for number in verdict.index]


def scored(plugin: Any, pod: Pod, snapshot: Snapshot, feasible: NDArray[np.bool_] | None = None) -> list[int] | None:
    """Normalised scores of the feasible rows, by default all; None when PreScore skips."""
    state, info, table = CycleState(), PodInfo(pod), snapshot.table
    feasible = np.ones(len(table), dtype=np.bool_) if feasible is None else feasible
    answer = plugin.pre_score(state, info, snapshot, feasible)
    if answer is not None:
        assert answer.code is Code.SKIP, answer
        return None
    raw = plugin.score_table(state, info, table, np.flatnonzero(feasible))
    assert (plugin.score_table(state, info, table, table.all_rows)[feasible] == raw).all()
    scores: list[int] = plugin.normalize(state, info, raw).tolist()
    return scores


def assert_takes_in(plugin: Callable[[], Any], pod: Pod, around: Cluster, homes: Iterable[NodeName]) -> int:
    """Pods of the class come one after the other; the plugin that follows says of each row what another one says that
    begins anew, and names every row of which it says something else than before. How often it could follow."""
    snapshot, tested, info = around.snapshot(), plugin(), PodInfo(pod)
    state, followed, table = _begun(tested, info, snapshot), 0, snapshot.table
    for number, home in enumerate(homes):
        if state is None:
            break
        before, name = _said(tested, state, info, snapshot), f"{pod.metadata.name}-{number}"
        meta = msgspec.structs.replace(pod.metadata, name=name, uid=name)
        table.add_pod(PodInfo(msgspec.structs.replace(pod, metadata=meta)), home)
        anew, row = _begun(plugin(), info, snapshot), table.index[home]
        concerned = tested.pre_filter_placed(state, info, snapshot, row)
        rescored = None if concerned is None else tested.pre_score_placed(state, info, snapshot, row, True)
        if concerned is None or rescored is None:
            state = _begun(tested, info, snapshot)
            continue
        followed += 1
        assert anew is not None
        now = _said(tested, state, info, snapshot)
        assert now == _said(plugin(), anew, info, snapshot)
        for was, found, rows in zip(before, now, (concerned, rescored), strict=True):
            others = {number for number, (one, other) in enumerate(zip(was, found, strict=True)) if one != other}
            assert others <= set(rows.tolist())
        every = range(len(table))
        if tested.name not in state.skip_filter:
            few = tested.filter_few(state, info, table, every)
            assert [status.message if status else "" for status in few] == now[0]
        if tested.name not in state.skip_score:
            assert tested.score_few(state, info, table, every) == now[1]
    return followed


def _begun(plugin: Any, pod: PodInfo, snapshot: Snapshot) -> CycleState | None:
    """After PreFilter and PreScore, as the framework runs them; None where one of them rejects the pod."""
    state, every = CycleState(), np.ones(len(snapshot.table), dtype=np.bool_)
    answers = plugin.pre_filter(state, pod, snapshot), plugin.pre_score(state, pod, snapshot, every)
    for answer, skipped in zip(answers, (state.skip_filter, state.skip_score), strict=True):
        if answer is not None:
            if answer.code is not Code.SKIP:
                return None
            skipped.add(plugin.name)
    return state


def _said(plugin: Any, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> tuple[list[str], list[int]]:
    """By row what Filter and Score say; where they are skipped, that nothing is in the way, and 0."""
    table = snapshot.table
    skips = [plugin.name in skipped for skipped in (state.skip_filter, state.skip_score)]
    reasons = [""] * len(table) if skips[0] else judged(plugin, state, pod, snapshot)
    scores = [0] * len(table) if skips[1] else plugin.score_table(state, pod, table, table.all_rows).tolist()
    return reasons, scores


def namespaces(**labels: Mapping[str, str]) -> dict[str, dict[str, Json]]:
    """Namespaces with their labels, as a cluster's other objects."""
    return {"Namespace": {name: {"metadata": {"name": name, "labels": dict(of)}} for name, of in labels.items()}}


# -- at random -------------------------------------------------------------------------------------------------------

KEYS = [HOST, ZONE, "rack"]
EXPRESSION = st.sampled_from(["app In web", "app In web db", "tier Exists", "tier NotIn x", "app DoesNotExist"])
EXPRESSIONS = st.lists(EXPRESSION, max_size=2)
LABELS = st.fixed_dictionaries(
    {}, optional={"app": st.sampled_from(["web", "db"]), "tier": st.sampled_from(["x", "y"]), "v": st.just("1")}
)
POLICIES = st.sampled_from([{}, {"nodeAffinityPolicy": "Ignore"}, {"nodeTaintsPolicy": "Honor"}])
TERMS = st.builds(
    lambda key, expressions, absent, more: term(key, *expressions, absent=absent, **more),
    st.sampled_from(KEYS),
    EXPRESSIONS,
    st.sampled_from([False, False, False, True]),
    st.sampled_from(
        [
            {},
            {},
            {"namespaces": ["a", "b"]},
            {"namespaceSelector": {}},
            {"namespaceSelector": selector("team In red")},
            {"namespaceSelector": selector("team NotIn red"), "namespaces": ["a"]},
            {"matchLabelKeys": ["v"]},
            {"mismatchLabelKeys": ["app", "v"]},
        ]
    ),
)
WEIGHTED = st.tuples(st.integers(1, 9), TERMS)
AFFINITIES = st.builds(
    affinity,
    st.lists(TERMS, max_size=2),
    st.lists(TERMS, max_size=2),
    st.lists(WEIGHTED, max_size=2),
    st.lists(WEIGHTED, max_size=2),
)


def constraints(counting: bool = False) -> st.SearchStrategy[Json]:
    """Spread constraints; ``counting``: hard ones with a selector that restricts something."""
    return st.builds(
        lambda skew, key, wanted, hard, absent, domains, policies, keys: constraint(
            skew, key, *wanted, hard=hard, absent=absent, minDomains=domains if hard else None, **policies, **keys
        ),
        st.integers(1, 3),
        st.sampled_from(KEYS),
        st.lists(EXPRESSION, min_size=int(counting), max_size=2),
        st.just(True) if counting else st.booleans(),
        st.just(False) if counting else st.sampled_from([False, False, False, True]),
        st.none() | st.integers(1, 4),
        POLICIES,
        st.sampled_from([{}, {"matchLabelKeys": ["v", "app"]}]),
    )


CONSTRAINTS = constraints()
COUNTING = constraints(counting=True)
SPECS = st.one_of(st.just({}), AFFINITIES, st.builds(spread, CONSTRAINTS, CONSTRAINTS), st.builds(spread, CONSTRAINTS))
SPACES = {"a": {"team": "red"}, "b": {"team": "blue"}, "c": {}}


def pods(name: st.SearchStrategy[str], specs: st.SearchStrategy[Json] = SPECS) -> st.SearchStrategy[Pod]:
    return st.builds(
        lambda namespace, name, labels, spec, **facts: make_pod(
            f"{namespace}/{name}", labels=labels, spec=spec, **facts
        ),
        st.sampled_from(["a", "a", "b", "c"]),
        name,
        LABELS,
        specs,
        node_selector=st.sampled_from([{}, {}, {"rack": "1"}]),
        tolerations=st.sampled_from([[], ["a"]]),
    )


def nodes(number: int) -> st.SearchStrategy[Node]:
    return st.builds(
        lambda host, labels, **facts: make_node(
            f"n{number}", labels=labels | ({HOST: f"n{number}"} if host else {}), **facts
        ),
        st.sampled_from([True, True, True, False]),
        st.fixed_dictionaries({}, optional={ZONE: st.sampled_from(["z1", "z2", ""]), "rack": st.sampled_from("12")}),
        taints=st.sampled_from([[], [], ["a:NoSchedule"]]),
    )


NODES = st.integers(1, 6).flatmap(lambda count: st.tuples(*(nodes(number) for number in range(count))).map(list))
SERVICES = st.dictionaries(
    st.sampled_from(["a/s1", "a/s2", "b/s1"]),
    st.sampled_from([{"spec": {"selector": {"app": "web"}}}, {"spec": {"selector": {"tier": "x"}}}, {"spec": {}}]),
    max_size=2,
)


@st.composite
def clusters(draw: st.DrawFn, specs: st.SearchStrategy[Json] = SPECS) -> Cluster:
    """Up to six nodes and twelve pods in three namespaces, of which the last is not among the known ones."""
    cluster = Cluster(draw(NODES), others=namespaces(a=SPACES["a"], b=SPACES["b"]) | {"Service": draw(SERVICES)})
    for number in range(draw(st.integers(0, 12))):
        pod = draw(pods(st.just(f"p{number}"), specs))
        pod = deleting(pod) if draw(st.integers(0, 5)) == 0 else pod
        cluster.placed.append((draw(st.sampled_from(cluster.nodes)).name, pod))
    return cluster
