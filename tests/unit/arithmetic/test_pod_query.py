"""Questions about pods."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.arithmetic.pod_query import PodQuery, all_of
from dsched.model import selectors
from tests.builders import make_pod
from tests.unit.plugins.neighbours import deleting

WEB = selectors.labels_equal({"app": "web"})
QUERIES = st.builds(
    PodQuery,
    st.sampled_from([None, frozenset({"a"}), frozenset({"a", "b"}), frozenset()]),
    st.sampled_from([WEB, selectors.EVERYTHING, selectors.NOTHING, selectors.labels_equal({"tier": "x"})]),
    st.booleans(),
)


@pytest.mark.parametrize(
    ("query", "admitted"),
    [
        (PodQuery(None, WEB), {"a/web", "b/web", "a/gone"}),
        (PodQuery(frozenset({"a"}), WEB), {"a/web", "a/gone"}),
        (PodQuery(frozenset({"a"}), WEB, deleting=False), {"a/web"}),
        (PodQuery(None, selectors.NOTHING), set()),
        (PodQuery(frozenset({"b"}), selectors.EVERYTHING), {"b/web"}),
    ],
)
def test_pods(query: PodQuery, admitted: set[str]) -> None:
    pods = [
        make_pod("a/web", labels={"app": "web"}),
        make_pod("b/web", labels={"app": "web"}),
        make_pod("a/db"),
        deleting(make_pod("a/gone", labels={"app": "web"})),
    ]
    assert {pod.key for pod in pods if query.admits_pod(pod)} == admitted


@given(
    st.lists(QUERIES, min_size=1, max_size=3),
    st.sampled_from("abc"),
    st.sampled_from([{}, {"app": "web"}, {"app": "web", "tier": "x"}]),
    st.booleans(),
)
def test_all_at_once(queries: list[PodQuery], namespace: str, labels: dict[str, str], gone: bool) -> None:
    each = all(query.admits(namespace, labels, gone) for query in queries)
    assert all_of(queries).admits(namespace, labels, gone) == each


def test_equal_queries_are_one_key() -> None:
    assert len({PodQuery(frozenset({"a"}), WEB), PodQuery(frozenset({"a"}), WEB), PodQuery(None, WEB)}) == 2
