"""NodeAffinity."""

from typing import Any

import pytest

from dsched.config import NodeAffinityArgs
from dsched.errors import PluginError
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Action, Code, PreFilterResult, Resource, Status
from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.model.pod import Pod
from dsched.plugins.node_affinity import ERR_REASON_CONFLICT, ERR_REASON_ENFORCED, ERR_REASON_POD, NodeAffinity
from tests.builders import make_node, make_pod, make_table, make_term
from tests.unit.plugins.asking import everywhere, reasons, scored, skips
from tests.unit.plugins.hints import queues

NO_HANDLE: Any = None
PLUGIN = NodeAffinity(NodeAffinityArgs(), NO_HANDLE)
TABLE = make_table(
    [
        make_node("n1", labels={"zone": "a", "cpus": "8"}),
        make_node("n2", labels={"zone": "b", "cpus": "16"}),
        make_node("n3"),
    ]
)


def adding(required: list[Any] | None = None, preferred: list[tuple[int, Any]] | None = None) -> NodeAffinity:
    """The plugin with an ``addedAffinity``."""
    added: dict[str, Any] = {}
    if required is not None:
        added["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": required}
    if preferred is not None:
        added["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": weight, "preference": term} for weight, term in preferred
        ]
    return NodeAffinity(NodeAffinityArgs(added), NO_HANDLE)


def pre_filtered(pod: Pod, plugin: NodeAffinity = PLUGIN) -> PreFilterResult | Status | None:
    return plugin.pre_filter(CycleState(), PodInfo(pod), Snapshot(TABLE))


class TestFilter:
    def test_selector_and_terms(self) -> None:
        assert reasons(PLUGIN, make_pod(node_selector={"zone": "a"}), TABLE) == ["", ERR_REASON_POD, ERR_REASON_POD]
        wanted = make_pod(required=[make_term("cpus Gt 8"), make_term("zone DoesNotExist")])
        assert reasons(PLUGIN, wanted, TABLE) == [ERR_REASON_POD, "", ""]

    def test_what_the_profile_adds_comes_first(self) -> None:
        plugin = adding(required=[make_term("zone Exists")])
        pod = make_pod(node_selector={"zone": "a"})
        assert reasons(plugin, pod, TABLE) == ["", ERR_REASON_POD, ERR_REASON_ENFORCED]
        assert reasons(plugin, make_pod(), TABLE) == ["", "", ERR_REASON_ENFORCED]

    def test_it_does_without_pre_filter(self) -> None:
        info = PodInfo(make_pod(node_selector={"zone": "b"}))
        assert PLUGIN.filter_table(CycleState(), info, TABLE, TABLE.all_rows).index.tolist() == [2, 0, 2]

    def test_an_added_affinity_that_is_not_legal(self) -> None:
        with pytest.raises(PluginError, match='addedAffinity: requirement on label "zone": In needs at least one'):
            adding(required=[make_term("zone In")])


class TestPreFilter:
    def test_skip_without_requirements(self) -> None:
        assert skips(PLUGIN, "pre_filter", make_pod(preferred=[(1, make_term("zone In a"))]))
        assert not skips(PLUGIN, "pre_filter", make_pod(node_selector={"a": "b"}))
        assert not skips(PLUGIN, "pre_filter", make_pod(required=[]))
        assert not skips(adding(required=[make_term("zone Exists")]), "pre_filter", make_pod())

    @pytest.mark.parametrize(
        ("terms", "nodes"),
        [
            ([["metadata.name In n1"]], {"n1"}),
            ([["metadata.name In n1"], ["metadata.name In gone"]], {"n1", "gone"}),
            ([["metadata.name In n1 n2", "metadata.name In n2 n3"]], {"n2"}),
            ([["metadata.name In n1", "metadata.name In n2"], ["metadata.name In n3"]], {"n3"}),
        ],
    )
    def test_named_nodes_narrow_the_search(self, terms: list[list[str]], nodes: set[str]) -> None:
        pod = make_pod(required=[make_term(fields=fields) for fields in terms])
        assert pre_filtered(pod) == PreFilterResult(frozenset(nodes))  # type: ignore[arg-type]

    @pytest.mark.parametrize("terms", [[], [["metadata.name In n1"], []], [["metadata.name NotIn n1"]]])
    def test_a_term_that_leaves_the_name_open_does_not(self, terms: list[list[str]]) -> None:
        assert pre_filtered(make_pod(required=[make_term("zone Exists", fields=fields) for fields in terms])) is None

    def test_terms_that_contradict_themselves(self) -> None:
        status = pre_filtered(make_pod(required=[make_term(fields=["metadata.name In n1", "metadata.name In n2"])]))
        assert isinstance(status, Status)
        assert status == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (ERR_REASON_CONFLICT,))


class TestScore:
    def test_weights_of_matching_preferences_add_up(self) -> None:
        pod = make_pod(preferred=[(5, make_term("zone In a b")), (3, make_term("cpus Gt 8")), (9, make_term())])
        assert scored(PLUGIN, pod, TABLE) == [5, 8, 0]

    def test_what_the_profile_prefers_counts_as_well(self) -> None:
        plugin = adding(preferred=[(2, make_term("zone In a"))])
        assert scored(plugin, make_pod(), TABLE) == [2, 0, 0]
        assert scored(plugin, make_pod(preferred=[(5, make_term("zone Exists"))]), TABLE) == [7, 5, 0]

    def test_skip_without_preferences(self) -> None:
        assert skips(PLUGIN, "pre_score", make_pod(required=[make_term("zone In a")]))
        assert not skips(PLUGIN, "pre_score", make_pod(preferred=[(1, make_term())]))
        assert not skips(adding(preferred=[(1, make_term("zone In a"))]), "pre_score", make_pod())

    def test_it_does_without_pre_score(self) -> None:
        info = PodInfo(make_pod(preferred=[(5, make_term("zone In b"))]))
        assert PLUGIN.score_table(CycleState(), info, TABLE, TABLE.all_rows).tolist() == [0, 5, 0]

    def test_a_preference_that_is_not_legal_is_an_error(self) -> None:
        info = PodInfo(make_pod(preferred=[(1, make_term("zone Gt a"))]))
        status = PLUGIN.pre_score(CycleState(), info, Snapshot(TABLE), everywhere(TABLE))
        assert status is not None and status.code is Code.ERROR
        assert "64-bit integer" in status.message


class TestHints:
    POD = make_pod(node_selector={"zone": "a"})
    FITS, OTHER = make_node(labels={"zone": "a"}), make_node(labels={"zone": "b"})

    def test_a_node_that_matches_now_helps(self) -> None:
        assert queues(PLUGIN, self.POD, Resource.NODE, Action.ADD, new=self.FITS)
        assert queues(PLUGIN, self.POD, Resource.NODE, Action.UPDATE, self.OTHER, self.FITS)

    def test_one_that_does_not_or_did_before_does_not(self) -> None:
        assert not queues(PLUGIN, self.POD, Resource.NODE, Action.ADD, new=self.OTHER)
        assert not queues(PLUGIN, self.POD, Resource.NODE, Action.UPDATE, self.FITS, self.FITS)
        assert not queues(PLUGIN, self.POD, Resource.NODE, Action.UPDATE, self.FITS, self.OTHER)

    def test_what_the_profile_adds_has_to_match_too(self) -> None:
        plugin = adding(required=[make_term("zone In b")])
        assert not queues(plugin, self.POD, Resource.NODE, Action.ADD, new=self.FITS)
        assert queues(plugin, make_pod(), Resource.NODE, Action.ADD, new=self.OTHER)
