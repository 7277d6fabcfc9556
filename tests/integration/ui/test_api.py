"""The JSON that the page uses."""

import json

import pytest
import redis

from dsched.scheduler.ports import QueueName
from dsched.state import phases, workers
from dsched.state.client import Store
from dsched.state.phases import Written
from dsched.state.workers import Worker
from dsched.ui import live as live_module
from dsched.ui.evaluating import LARGEST_MANIFEST
from tests.integration.fsck.by_hand import ByHand
from tests.integration.workers.processes import wait_until
from tests.manifests import apply, node_manifest, other_manifest, pod_manifest

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: asked, namespace: shop}
spec:
  containers:
  - {name: main, image: nginx, resources: {requests: {cpu: '%s'}}}
"""


@pytest.fixture
def system(store, tmp_path):
    return ByHand(store, tmp_path)


def everything(store: Store) -> dict[bytes, bytes]:
    """All that Redis holds of a system."""
    return {name: store.redis.dump(name) for name in store.names("")}


def test_every_endpoint_is_listed_and_answers(page, system):
    system.cluster_with("web")
    page.look()
    listed = page.get("/api/").json()
    assert all(path.startswith(("GET /api/", "POST /api/")) for path in listed)
    for path in ("overview", "throughput", "queues/active", "nodes", "nodes/n1", "pods/default/web", "session"):
        assert page.get(f"/api/{path}").status_code == 200, path
    assert page.get("/api/pods/default/web/explanation").json()["pod"] == "default/web"


def test_the_overview(page, system, store):
    system.cluster_with("web", "api")
    system.pop()
    system.put("web", QueueName.UNSCHEDULABLE)
    workers.note(store, Worker("evaluator-1@here", "evaluator", page.look().overview.at_ms, "abc", table=40))
    store.redis.xadd(store.key("nodes:log"), {"first": "1", "deltas": ""}, id="42-0")
    page.look()
    overview = page.get("/api/overview").json()
    assert overview["epoch"] == system.epoch
    assert overview["queues"]["unschedulable"] == 1
    assert [(each["name"], each["silent"], each["config"], each["behind"]) for each in overview["workers"]] == [
        ("evaluator-1@here", False, "abc", 2)
    ]
    assert overview["redis"] == "redis://test"


def test_throughput(page, store):
    store.redis.set(store.key("leader"), "one 4")
    phases.write(store, Written(1, attempts={"scheduled": (1, 2)}))
    page.look()
    phases.write(store, Written(2, attempts={"scheduled": (5, 8)}))
    page.look()
    (point,) = page.get("/api/throughput").json()
    assert point["rates"]["scheduled"] > 0
    assert page.get("/api/overview").json()["latest"] == point


def test_a_queue(page, system):
    system.cluster_with("web", "api")
    answer = page.get("/api/queues/active").json()
    assert (answer["count"], answer["more"], [pod["key"] for pod in answer["pods"]]) == (
        2,
        False,
        ["default/api", "default/web"] if answer["pods"][0]["key"] == "default/api" else ["default/web", "default/api"],
    )
    assert [pod["key"] for pod in page.get("/api/queues/active?q=api").json()["pods"]] == ["default/api"]
    assert page.get("/api/queues/nowhere").status_code == 404


def test_five_thousand_nodes(page, store):
    pipe = store.redis.pipeline()
    for number in range(5000):
        fields = {"allocatable.cpu": 4000, "used.cpu": number % 4001, "allocatable.memory": 1 << 34, "version": 1}
        pipe.hset(store.key(f"node:n-{number:04}"), mapping=fields)
    pipe.execute()
    answer = page.get("/api/nodes")
    nodes = answer.json()
    assert (len(nodes["names"]), nodes["names"][7], nodes["used"]["cpu"][7]) == (5000, "n-0007", 7)
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) < 100_000
    plain = page.get("/api/nodes", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.json() == nodes
    assert page.get("/nodes").text.count("/nodes/n-") == 50


def test_an_explanation_is_that_of_the_command(page, store, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from dsched.cli.main import app

    apply(store, tmp_path, node_manifest("n1"), node_manifest("n2", cpu="1"), pod_manifest("shop/web"))
    words = ["explain", "pod", "shop/web", "-o", "json", "--redis-url", store.url, "--name", store.name]
    told = CliRunner().invoke(app, words)
    assert page.get("/api/pods/shop/web/explanation").json() == json.loads(told.stdout)


def test_what_if_changes_nothing(page, store, tmp_path):
    apply(store, tmp_path, node_manifest("n1"), node_manifest("n2", cpu="8"), pod_manifest("shop/web"))
    before = everything(store)
    answer = page.post("/api/what-if", content=POD % 6).json()
    assert [(pod["key"], pod["ending"], pod["node"]) for pod in answer["pods"]] == [("shop/asked", "placed", "n2")]
    assert answer["explanation"]["chosen"] == "n2"
    assert answer["explanation"]["filtered"]["n1"]["reasons"] == ["Insufficient cpu"]
    assert answer["others"] == []
    assert everything(store) == before


def test_what_if_with_more_nodes_and_the_pending_pods(page, store, tmp_path):
    apply(store, tmp_path, node_manifest("n1"), pod_manifest("shop/huge", containers=[huge("64")]))
    text = json.dumps(node_manifest("n2", cpu="128"))
    assert page.post("/api/what-if", content=text).json()["others"] == []
    answer = page.post("/api/what-if?pending=1", content=text).json()
    assert answer["pods"] == []
    assert [(pod["key"], pod["node"]) for pod in answer["others"]] == [("shop/huge", "n2")]


def test_what_if_evicts_on_paper_only(page, store, tmp_path):
    low = pod_manifest("shop/low", containers=[huge("4")], nodeName="n1")
    apply(
        store,
        tmp_path,
        node_manifest("n1"),
        low,
        other_manifest("PriorityClass", "scheduling.k8s.io/v1", "high", value=9),
    )
    before = everything(store)
    asked = POD % 3 + "  priorityClassName: high\n"
    answer = page.post("/api/what-if", content=asked).json()
    assert [(pod["key"], pod["node"]) for pod in answer["pods"]] == [("shop/asked", "n1")]
    assert [(pod["key"], pod["ending"], pod["evicted_by"]) for pod in answer["others"]] == [
        ("shop/low", "evicted", "shop/asked")
    ]
    assert everything(store) == before


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: [", "manifest:2:1: is not YAML"),
        ("kind: Pod", "manifest: apiVersion: is missing"),
        (POD % "lots", 'manifest: spec.containers[0].resources.requests.cpu: "lots"'),
        (POD % 1 + "---\n" + POD % 1, "manifest[1]: pod shop/asked is already given in manifest[0]"),
        (POD % 1 + "  priorityClassName: none\n", 'spec.priorityClassName: there is no PriorityClass "none"'),
        ("a: &a [1]\n" + "b: " + "[" * 200, "is nested more than"),
        ("", "manifest: holds no object"),
    ],
)
def test_what_cannot_be_taken_says_where(page, text, problem):
    answer = page.post("/api/what-if", content=text)
    assert answer.status_code == 422, answer.text
    assert any(problem in each for each in answer.json()["error"]["problems"]), answer.text
    form = page.post("/what-if", data={"manifest": text})
    assert form.status_code == 422
    assert "These cannot be taken" in form.text


def test_too_many_pods_are_refused(page, store, tmp_path):
    apply(store, tmp_path, node_manifest("n1"))
    pods = [pod_manifest(f"shop/web-{number}") for number in range(201)]
    answer = page.post("/api/what-if", content=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    assert answer.json()["error"]["problems"] == ["201 pods without a node are too many; at most 200 are placed"]


def test_what_if_in_the_page_explains_any_of_several_pods(page, store, tmp_path):
    apply(store, tmp_path, node_manifest("n1"))
    text = POD % 9 + "---\n" + (POD % 1).replace("asked", "small")
    first = page.post("/what-if", data={"manifest": text}).text
    assert "Why pod shop/asked" in first
    assert "Insufficient cpu" in first
    other = page.post("/what-if", data={"manifest": text, "pod": "shop/small"}).text
    assert "Why pod shop/small" in other
    assert page.post("/what-if", data={"manifest": text, "pod": "shop/none"}).status_code == 404


def test_a_text_as_large_as_may_be_is_taken_as_browsers_send_it(page, store, tmp_path):
    apply(store, tmp_path, node_manifest("n1"))
    line = "# as long as ordinary lines are\n"
    text = POD % 1
    text += line * ((LARGEST_MANIFEST - len(text)) // len(line))
    assert len(text.replace("\n", "\r\n")) > LARGEST_MANIFEST
    answer = page.post("/what-if", data={"manifest": text.replace("\n", "\r\n")})
    assert answer.status_code == 200, answer.text[-1000:]
    assert "shop/asked" in answer.text


def test_events_tell_of_trouble_and_that_it_is_over(make_page, store, monkeypatch):
    page = make_page(every_s=0.02)

    def fail(*words, **options):
        raise redis.ConnectionError("gone")

    with page.stream("GET", "/api/events") as answer:
        lines = answer.iter_lines()
        assert next(lines) == "event: overview"
        with monkeypatch.context() as broken:
            broken.setattr(store.redis.connection_pool, "get_connection", fail)
            while (line := next(lines)) != "event: trouble":
                assert line != "event: error"
            next(lines)
            assert "does not answer" in json.loads(next(lines).removeprefix("data: "))["message"]
        while next(lines) != "event: overview":
            pass
        assert page.live._listeners == 1
    wait_until("nobody listens any more", lambda: page.live._listeners == 0)


def test_what_cannot_be_understood_does_not_end_the_looking(page, store):
    store.redis.hset(store.key("workers"), "evaluator-1", "nonsense")
    assert page.look().error == ""
    store.redis.set(store.key("queue:gated"), "of another type")
    assert "a leader clears it" in page.look().error
    assert page.get("/api/overview").status_code == 503
    store.redis.delete(store.key("queue:gated"))
    assert page.look().error == ""


def test_events_are_limited_in_number(page, monkeypatch):
    monkeypatch.setattr(live_module, "MOST_LISTENERS", 0)
    assert page.get("/api/events").status_code == 503


def huge(cpu: str) -> dict[str, object]:
    return {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
