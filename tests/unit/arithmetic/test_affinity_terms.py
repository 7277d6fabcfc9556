"""Terms of pod affinity and anti-affinity."""

from collections.abc import Mapping
from typing import Any

import pytest

from dsched.arithmetic.affinity_terms import NO_TERMS, AffinityTerm, pod_terms
from dsched.model.pod import Pod
from tests.builders import make_pod
from tests.unit.plugins.neighbours import affinity, selector, term

SPACES: Mapping[str, Mapping[str, str]] = {"shop": {}, "red": {"team": "red"}, "blue": {"team": "blue"}}


def only(one: Any, labels: Mapping[str, str] | None = None) -> AffinityTerm:
    (parsed,) = pod_terms(make_pod(labels=labels, spec=affinity(near=[one]))).affinity
    return parsed


def test_the_four_kinds() -> None:
    one, other = term("zone", "app In web"), term("host", "app In db")
    found = pod_terms(make_pod(spec=affinity([one], [other, one], [(3, one)], [(4, other)])))
    assert [each.topology_key for each in found.affinity] == ["zone"]
    assert [each.topology_key for each in found.anti_affinity] == ["host", "zone"]
    assert [(weight, each.topology_key) for weight, each in found.preferred] == [(3, "zone"), (-4, "host")]
    assert not found.problems and not found.empty


def test_pods_without_terms() -> None:
    assert pod_terms(make_pod()) is NO_TERMS
    assert pod_terms(make_pod(required=[])) is NO_TERMS
    assert pod_terms(make_pod(spec=affinity())).empty


def test_equal_terms_are_one_key() -> None:
    def pod(name: str) -> Pod:
        return make_pod(f"shop/{name}", spec=affinity(apart=[term("zone", "app In web")]))

    assert len({pod_terms(pod("a")), pod_terms(pod("b")), NO_TERMS}) == 2


def test_one_kind_that_is_not_legal_leaves_the_others() -> None:
    found = pod_terms(make_pod(spec=affinity(near=[term("zone", "app In")], apart=[term("zone", "app In web")])))
    assert not found.affinity and len(found.anti_affinity) == 1
    (problem,) = found.problems
    assert problem.startswith("requiredAffinityTerms: ")


@pytest.mark.parametrize(
    ("more", "namespaces"),
    [
        ({}, {"shop"}),
        ({"namespaces": ["red"]}, {"red"}),
        ({"namespaces": [], "namespaceSelector": selector("team In blue")}, {"blue"}),
        ({"namespaces": ["red"], "namespaceSelector": selector("team In blue")}, {"red", "blue"}),
        ({"namespaceSelector": {}}, None),
        ({"namespaceSelector": selector("team NotIn blue")}, None),
    ],
)
def test_namespaces_of_a_query(more: Any, namespaces: set[str] | None) -> None:
    query = only(term("zone", "app In web", **more)).query(lambda: SPACES, unlabelled=True)
    assert query.namespaces == namespaces
    assert query.deleting


def test_namespaces_are_looked_at_only_where_some_are_selected() -> None:
    def never() -> Mapping[str, Mapping[str, str]]:
        raise AssertionError

    for more in ({}, {"namespaces": ["red"]}, {"namespaceSelector": {}}):
        only(term("zone", "app In web", **more)).query(never, unlabelled=True)


def test_match_looks_at_the_labels_of_the_namespace() -> None:
    one = only(term("zone", "app In web", namespaceSelector=selector("team In red")))
    assert one.matches("red", {"app": "web"}, SPACES["red"])
    assert not one.matches("red", {"app": "db"}, SPACES["red"])
    assert not one.matches("blue", {"app": "web"}, SPACES["blue"])
    assert not one.matches("shop", {"app": "web"}, SPACES["shop"])


def test_an_absent_selector_matches_no_pod() -> None:
    assert not only(term("zone", absent=True)).matches("shop", {}, {})
    assert not only(term("zone", absent=True, matchLabelKeys=["v"]), {"v": "1"}).matches("shop", {"v": "1"}, {})
    assert only(term("zone")).matches("shop", {}, {})


class TestLabelKeys:
    def test_same_and_other_values(self) -> None:
        one = only(
            term("zone", "app In web", matchLabelKeys=["v"], mismatchLabelKeys=["t", "no"]), {"v": "1", "t": "x"}
        )
        assert one.matches("shop", {"app": "web", "v": "1", "t": "y"}, {})
        assert not one.matches("shop", {"app": "web", "v": "2", "t": "y"}, {})
        assert not one.matches("shop", {"app": "web", "v": "1", "t": "x"}, {})

    def test_what_the_api_server_has_folded_in_stays_as_it_is(self) -> None:
        """The pod's label changed since; the selector still asks for what it was."""
        one = only(term("zone", "app In web", "v In 1", matchLabelKeys=["v"]), {"v": "2"})
        assert one.matches("shop", {"app": "web", "v": "1"}, {})
