"""What an answer to a bind means, whatever the pod looks like afterwards; and how requests are repeated."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.cluster.interface import Binding, BindVerdict
from dsched.cluster.kubernetes import bindings
from dsched.cluster.kubernetes.http import client
from dsched.cluster.kubernetes.http.client import Outcome
from dsched.cluster.kubernetes.http.exchange import Answer, Broken, TimedOut
from dsched.errors import ClusterUnavailable
from dsched.model.meta import NodeName, PodKey, PodUid
from tests.protobuf import read_binding

ASKED = Binding(PodKey("shop/web"), PodUid("u1"), NodeName("n1"), 3)
LOST: list[Outcome] = [Broken("lost"), TimedOut("late"), ClusterUnavailable("not there")]
ANSWERS = st.one_of(
    st.sampled_from(LOST),
    st.sampled_from([201, 400, 401, 403, 404, 409, 422, 429, 500, 503]).map(lambda s: Answer(s, b"")),
)


def pod(uid: str, node: str, deleting: bool) -> Answer:
    metadata = {"name": "web", "namespace": "shop", "uid": uid} | ({"deletionTimestamp": "2026"} if deleting else {})
    return Answer(200, json.dumps({"metadata": metadata, "spec": {"nodeName": node}}).encode())


LOOKS = st.one_of(
    st.builds(pod, st.sampled_from(["u1", "u2"]), st.sampled_from(["", "n1", "n2"]), st.booleans()),
    st.sampled_from([*LOST, Answer(404, b""), Answer(500, b""), Answer(200, b"<html>")]),
)


@given(ANSWERS, LOOKS)
def test_bound_is_said_only_when_it_is_so(answer: Outcome, looked: Outcome) -> None:
    asked = not client.succeeded(answer) and bindings.leaves_doubt(answer)
    found = bindings.outcome(ASKED, answer, looked if asked else None)
    here = looked == pod("u1", "n1", False) or looked == pod("u1", "n1", True)
    if client.succeeded(answer) or (asked and here):
        assert found.verdict is BindVerdict.BOUND
        assert found.node == "n1"
    else:
        assert found.verdict is not BindVerdict.BOUND
    if asked and isinstance(answer, Answer) and answer.status == 404 and looked == Answer(404, b""):
        assert found.verdict is BindVerdict.GONE
    if found.verdict in (BindVerdict.REFUSED, BindVerdict.NOT_NOW):
        assert isinstance(answer, Answer), "what got no answer may still be carried out"
        assert answer.status < 500
    if found.verdict is BindVerdict.CONFLICT:
        assert found.node == "n2"


NAMES = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=253)


@given(NAMES, NAMES, st.text(min_size=1, max_size=40), NAMES)
def test_the_request_names_pod_uid_and_node(namespace: str, name: str, uid: str, node: str) -> None:
    request = bindings.request(Binding(PodKey(f"{namespace}/{name}"), PodUid(uid), NodeName(node), 3))
    assert (request.method, request.path) == ("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding")
    assert request.content_type == "application/vnd.kubernetes.protobuf"
    assert read_binding(request.body) == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(409, b'{"message":"it has a node","code":409}'), "it has a node (409)"),
        (Answer(502, b"<html>bad gateway</html>"), "<html>bad gateway</html> (502)"),
        (Answer(500, b'{"reason":"Timeout"}'), "Timeout (500)"),
        (Answer(503, b"{}"), "no reason given (503)"),
        (Broken("lost"), "lost"),
    ],
)
def test_told(answer: Outcome, told: str) -> None:
    assert client.told(answer) == told


@given(st.integers(0, 100))
def test_pauses_grow_and_are_jittered(attempt: int) -> None:
    full = min(client.FIRST_PAUSE_S * 2**attempt, client.LONGEST_PAUSE_S)
    assert full / 2 <= client.pause_s(attempt) <= full
    assert client.pause_s(attempt, [Answer(429, b"", 60.0), Answer(429, b"", 7.0)]) == 60.0


def test_what_we_may_not_do_says_nothing_of_the_node() -> None:
    told = (
        b'{"message": "pods \\"p\\" is forbidden: User \\"u\\" cannot create resource \\"pods/binding\\" in API group"}'
    )
    assert bindings.outcome(ASKED, Answer(403, told), None).verdict is BindVerdict.NOT_NOW
    told = b'{"message": "pods \\"p\\" is forbidden: the node has no room"}'
    assert bindings.outcome(ASKED, Answer(403, told), None).verdict is BindVerdict.REFUSED
