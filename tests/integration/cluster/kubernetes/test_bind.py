"""Binding: whatever the API server answers, or does not, a pod is bound once and the outcome is true."""

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsched.cluster.interface import Binding, BindVerdict
from dsched.cluster.kubernetes import bindings
from dsched.cluster.kubernetes.cluster import Kubernetes
from dsched.cluster.kubernetes.http import client
from dsched.model.meta import NodeName, PodKey, PodUid
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.manifests import pod_manifest

BOUND, CONFLICT, GONE = BindVerdict.BOUND, BindVerdict.CONFLICT, BindVerdict.GONE
REFUSED, NOT_NOW, UNKNOWN = BindVerdict.REFUSED, BindVerdict.NOT_NOW, BindVerdict.UNKNOWN
BIND = r"/web/binding"


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short patience, and short times for what never answers."""
    monkeypatch.setattr(bindings, "PATIENCE_S", 3.0)
    monkeypatch.setattr(bindings, "LOOK_S", 1.0)
    monkeypatch.setattr(client, "LONGEST_PAUSE_S", 0.1)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where everything is answered, however slow the machine is."""
    monkeypatch.setattr(bindings, "PATIENCE_S", 120.0)
    monkeypatch.setattr(bindings, "LOOK_S", 120.0)


@pytest.fixture
def pod(api: FakeApi) -> Binding:
    api.put("pods", pod_manifest("default/web", uid="u1"))
    return binding()


def binding(key: str = "default/web", uid: str = "u1", node: str = "n1") -> Binding:
    return Binding(PodKey(key), PodUid(uid), NodeName(node), 1)


def node_of(api: FakeApi) -> str:
    return str(api.get("pods", "default/web")["spec"].get("nodeName", ""))


def test_a_gated_pod_is_refused_in_the_api_servers_words(api: FakeApi, cluster: Kubernetes, pod: Binding) -> None:
    value = api.get("pods", "default/web")
    api.put("pods", {**value, "spec": {**value["spec"], "schedulingGates": [{"name": "g"}]}})
    (outcome,) = cluster.bind([pod])
    assert outcome.verdict is NOT_NOW
    assert "non-empty .spec.schedulingGates" in outcome.message
    assert not api.bound


FAULTS: dict[str, tuple[dict[str, Any], BindVerdict, bool]] = {
    "throttled once": ({"status": 429, "headers": {"Retry-After": "0"}}, BOUND, True),
    "throttled for a second": ({"status": 429, "headers": {"Retry-After": "1"}}, BOUND, True),
    "throttled for long": ({"status": 429, "headers": {"Retry-After": "3600"}}, NOT_NOW, False),
    "overloaded once": ({"status": 503, "times": 2}, BOUND, True),
    "etcd timed out once": ({"status": 500}, BOUND, True),
    "broken for long": ({"status": 500, "times": 1000}, UNKNOWN, False),
    "connection lost before": ({"drop": "before"}, BOUND, True),
    "connection lost after": ({"drop": "after"}, BOUND, True),
    "connection always lost before": ({"drop": "before", "times": 1000}, UNKNOWN, False),
    "forbidden": ({"status": 403}, REFUSED, False),
    "token expired": ({"status": 401, "times": 1000}, NOT_NOW, False),
    "malformed": ({"status": 400}, REFUSED, False),
    "invalid": ({"status": 422}, REFUSED, False),
    "not found, but it is there": ({"status": 404}, NOT_NOW, False),
    "conflict, but nothing is wrong": ({"status": 409}, NOT_NOW, False),
}


@pytest.mark.parametrize(("fault", "verdict", "bound"), FAULTS.values(), ids=FAULTS)
def test_answers(
    api: FakeApi, cluster: Kubernetes, pod: Binding, fault: dict[str, Any], verdict: BindVerdict, bound: bool
) -> None:
    api.fault("POST", BIND, **fault)
    (outcome,) = cluster.bind([pod])
    assert outcome.verdict is verdict, outcome
    assert (node_of(api) == "n1") is bound
    assert len(api.bound) == bound


def test_what_was_answered_stands_where_it_is_too_late_to_ask_again(
    api: FakeApi, cluster: Kubernetes, pod: Binding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine sleeps longer than it was told to."""
    now = [1000.0]
    late = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds + 60.0))
    monkeypatch.setattr(client, "time", late)
    api.fault("POST", BIND, status=401, times=1000)
    (outcome,) = cluster.bind([pod])
    assert (outcome.verdict, "401" in outcome.message) == (NOT_NOW, True), outcome


@pytest.fixture
def impatient(cluster: Kubernetes) -> Iterator[Kubernetes]:
    """An answer may take half a second."""
    many = client.ManyCalls(cluster._access, 0.5)
    cluster._binder = bindings.Binder(many)
    yield cluster
    many.close()


def test_an_answer_that_never_comes(api: FakeApi, impatient: Kubernetes, pod: Binding) -> None:
    api.fault("POST", BIND, hang_s=30.0)
    (outcome,) = impatient.bind([pod])
    assert outcome.verdict is BOUND
    assert api.bound == [("default/web", "n1")]


def test_one_that_hangs_does_not_hold_up_the_others(
    api: FakeApi, impatient: Kubernetes, pod: Binding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bindings, "PATIENCE_S", 8.0)  # a slow machine needs some of it for the others
    api.put("pods", *(pod_manifest(f"default/p{number}", uid=f"p{number}") for number in range(100)))
    api.fault("POST", BIND, hang_s=30.0, times=1000)
    others = [binding(f"default/p{number}", f"p{number}") for number in range(100)]
    first, *rest = impatient.bind([pod, *others])
    assert first.verdict is UNKNOWN
    assert {outcome.verdict for outcome in rest} == {BOUND}


def test_an_api_server_that_is_not_there(api: FakeApi, cluster: Kubernetes, pod: Binding) -> None:
    api.stop()
    outcomes = cluster.bind([pod, binding("default/other", "u2")])
    assert {outcome.verdict for outcome in outcomes} == {UNKNOWN}
    api.__init__(api.folder)  # type: ignore[misc]  # the fixture stops it once more
    api.start()


@pytest.mark.usefixtures("patient")
def test_connections_are_kept_and_few(api: FakeApi, cluster: Kubernetes) -> None:
    api.put("pods", *(pod_manifest(f"default/p{number}", uid=f"p{number}") for number in range(300)))
    for start in range(0, 300, 100):
        pods = [binding(f"default/p{number}", f"p{number}") for number in range(start, start + 100)]
        assert {outcome.verdict for outcome in cluster.bind(pods)} == {BOUND}
    assert len(api._server._sockets) <= client.AT_ONCE + 1  # one for events


@pytest.mark.usefixtures("patient")
def test_two_binders_at_once(api: FakeApi, cluster: Kubernetes, access: Any) -> None:
    """The same message twice, as redelivery brings it about, and two that disagree."""
    api.put("pods", *(pod_manifest(f"default/p{number}", uid=f"p{number}") for number in range(200)))
    found: dict[str, list[Any]] = {}
    others = {name: Kubernetes(access) for name in ("same", "other")}

    def bind(name: str, made: Kubernetes, node: str) -> None:
        found[name] = list(made.bind([binding(f"default/p{number}", f"p{number}", node) for number in range(200)]))

    threads = [
        threading.Thread(target=bind, args=("first", cluster, "n1")),
        threading.Thread(target=bind, args=("same", others["same"], "n1")),
        threading.Thread(target=bind, args=("other", others["other"], "n2")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(api.bound) == len({key for key, _ in api.bound}) == 200
    where = dict(api.bound)
    for name, node in (("first", "n1"), ("same", "n1"), ("other", "n2")):
        for outcome in found[name]:
            expected = BOUND if where[outcome.key] == node else CONFLICT
            assert (outcome.verdict, outcome.node) == (expected, where[outcome.key])
    for made in others.values():
        made.close()


STEPS = st.lists(
    st.sampled_from(
        [
            {"status": 429, "headers": {"Retry-After": "0"}},
            {"status": 500},
            {"status": 503},
            {"drop": "before"},
            {"drop": "after"},
        ]
    ),
    max_size=4,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=STEPS, rival=st.sampled_from(["", "n1", "n2", "deleted"]), at=st.integers(1, 4))
def test_whatever_happens_the_outcome_is_true(
    api: FakeApi, cluster: Kubernetes, before: list[dict[str, Any]], rival: str, at: int
) -> None:
    """Faults in any order, with another writer coming in between two requests."""
    api._faults.clear()
    api.bound.clear()
    api.put("pods", pod_manifest("default/web", uid="u1"))
    for fault in before:
        api.fault("POST", BIND, **fault)
    api.before = _rival(api, rival, at)
    (outcome,) = cluster.bind([binding()])
    api.before = lambda method, path: None
    now = node_of(api) if ("pods", "default/web") in api.objects else None
    assert len(api.bound) <= 1
    if outcome.verdict is BOUND:
        assert now == "n1"
    elif outcome.verdict is CONFLICT:
        assert now == outcome.node == "n2"
    elif outcome.verdict is GONE:
        assert now is None
    else:
        assert outcome.verdict in (UNKNOWN, REFUSED)
        assert now != "n1"
    if now is not None:
        api.delete("pods", "default/web")


def _rival(api: FakeApi, what: str, at: int) -> Callable[[str, str], None]:
    asked = [0]

    def before(method: str, path: str) -> None:
        asked[0] += "/web" in path
        if not what or asked[0] != at or "/web" not in path or ("pods", "default/web") not in api.objects:
            return
        if what == "deleted":
            api.delete("pods", "default/web")
        elif not node_of(api):
            value = api.get("pods", "default/web")
            api.put("pods", {**value, "spec": {**value["spec"], "nodeName": what}})

    return before
