"""Queues between teams on the page: the tree, bars, one queue with its next pods; and the same as JSON."""

import json
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from dsched.clock import ManualClock
from dsched.cluster import opening
from dsched.cluster.opening import Chosen, Kind
from dsched.cluster.standalone import keys
from dsched.manifests import kinds
from dsched.model.queues import KUEUE_LABEL, LABEL
from dsched.observe.queue_pods import DescribedQueue
from dsched.plugins import registry
from dsched.scheduler.ports import QueueName
from dsched.state import client, leader_config
from dsched.state.client import Store
from dsched.state.leader_config import LeaderConfig
from dsched.ui import share_view, shares
from dsched.ui.shares import SharesTable, WaitingTable
from dsched.ui.system import System
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.integration.fsck.by_hand import ByHand
from tests.integration.ui.conftest import NEVER_S, Page
from tests.integration.ui.test_pages import FAIR_SHARE, HOSTILE, publish, seen
from tests.manifests import Json, guaranteed, node_manifest, other_manifest, pod_manifest, queue_manifest
from tests.redis_server import RedisServer

TOP = queue_manifest("ml")
RESEARCH = queue_manifest("research", "ml", resources={"cpu": {"guaranteed": 16, "limit": 28}})
PRODUCTION = queue_manifest("production", "ml", resources=guaranteed(cpu=16))
BORROWS: Json = {"usage": {"cpu": 28, "pods": 14}, "fairShare": {"cpu": 28}, "borrowed": {"cpu": 12}}
WAITS: Json = {"pending": {"cpu": 3}, "pendingPods": 3, "fairShare": {"cpu": 3}}


@pytest.fixture
def system(store: Store, tmp_path: Path) -> ByHand:
    return ByHand(store, tmp_path)


@pytest.fixture
def divided(store: Store) -> None:
    """The leader's configuration has FairShare."""
    publish(store, text=FAIR_SHARE)


def put(store: Store, *values: Json) -> None:
    """Queues as they stand in Redis, whatever they say."""
    for value in values:
        value = {**value, "metadata": {**value["metadata"], "resourceVersion": "1", "uid": "u"}}
        store.redis.hset(store.key(keys.objects(kinds.QUEUE).name), value["metadata"]["name"], json.dumps(value))


def with_status(value: Json, status: Json) -> Json:
    return {**value, "status": status}


def two_teams(store: Store) -> None:
    status = {"usage": {"cpu": 28}, "fairShare": {"cpu": 31}, "pending": {"cpu": 3}, "pendingPods": 3}
    put(store, with_status(TOP, status), with_status(RESEARCH, BORROWS), with_status(PRODUCTION, WAITS))


def test_a_cluster_without_queues(page: Page) -> None:
    page.look()
    assert "No queues divide this cluster." in seen(page, "/shares").text
    assert page.get("/api/shares").json()["queues"] == []
    assert "there is no queue gone" in seen(page, "/shares/gone", 404).text


@pytest.mark.usefixtures("divided")
def test_who_borrows_and_who_has_less_than_is_guaranteed(page: Page, store: Store) -> None:
    two_teams(store)
    page.look()
    found = seen(page, "/shares")
    words = found.text
    assert "ml 3 0" in words
    assert "16 of 16 cpu guaranteed, 12 borrowed, limit 28, fair share 28" in words
    assert "28 used, 12 borrowed ; due 28" in words
    assert "below its guarantee of 16" in words
    assert [link for link in found.links if link.startswith("/shares/")] == [
        "/shares/ml",
        "/shares/production",
        "/shares/research",
    ]
    bars = [dict(at) for tag, at in found.tags if tag == "rect" and "bar-" in dict(at).get("class", "")]
    # Beside its sibling the bar of research is whole: 16 of 28 are its own, the rest is borrowed.
    assert ("57.14%", "42.86%") in {(each.get("x"), each.get("width")) for each in bars}
    assert "pods" not in [at.get("scope") and word for (_, at), word in zip(found.tags, found.words, strict=False)]
    assert "14 used" in seen(page, "/shares?all=1").text
    assert "14 used" not in words


@pytest.mark.usefixtures("divided")
def test_as_json(page: Page, store: Store) -> None:
    two_teams(store)
    page.look()
    answer = page.get("/api/shares").json()
    assert [(each["name"], each["depth"], each["children"]) for each in answer["queues"]] == [
        ("ml", 0, 2),
        ("production", 1, 0),
        ("research", 1, 0),
    ]
    assert (answer["resources"], answer["note"], answer["problems"]) == (["cpu", "pods"], "", [])
    assert answer["queues"][2]["resources"]["cpu"] == {
        "used": 28000,
        "borrowed": 12000,
        "guaranteed": 16000,
        "limit": 28000,
        "fair_share": 28000,
        "pending": 0,
        "named": True,
    }
    assert answer["queues"][0]["resources"]["cpu"]["guaranteed"] == 32000, "what those below have together"
    put(store, with_status(RESEARCH, {"usage": {"cpu": 16}, "reclaimedPods": 6}))
    page.look()
    research = page.get("/api/shares/research").json()
    assert research["path"] == ["ml", "research"]
    assert research["history"]["used"]["cpu"][-2:] == [28000, 16000]
    assert research["history"]["reclaimed_pods"][-2:] == [0, 6]
    assert len(research["history"]["at_ms"]) == len(research["history"]["used"]["cpu"])
    told = seen(page, "/shares/research").text
    assert "6 pods, 6 of them lately" in told
    assert "6 lately" in seen(page, "/shares").text


@pytest.mark.usefixtures("divided")
def test_the_next_pods_are_those_of_the_command(page: Page, system: ByHand, store: Store) -> None:
    from typer.testing import CliRunner

    from dsched.cli.main import app

    system.apply(TOP, RESEARCH, node_manifest("n1"))
    system.apply(*(pod_manifest(f"default/web-{number}", labels={LABEL: "research"}) for number in range(12)))
    system.apply(pod_manifest("default/has", labels={LABEL: "research"}, nodeName="n1"))
    system.take_in()
    system.pop()
    system.put("web-3", QueueName.UNSCHEDULABLE, message="0/1 nodes are available: 1 Insufficient cpu.")
    page.look()
    words = ["describe", "queue", "ml", "-o", "json", "--redis-url", store.url, "--name", store.name]
    told = json.loads(CliRunner().invoke(app, words).stdout)
    answer = page.get("/api/shares/ml").json()
    assert {name: answer[name] for name in msgspec.structs.asdict(_EMPTY)} == told
    assert len(told["next_pods"]) == 10
    waits = {each["pod"]: each["waits_for"] for each in told["next_pods"]}
    assert waits["default/web-3"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert "default/has" not in waits
    found = seen(page, "/shares/ml")
    assert "/pods/default/web-3" in found.links
    assert "0/1 nodes are available: 1 Insufficient cpu." in found.text


_EMPTY = DescribedQueue({}, [], [], [])


def test_the_label_of_kueue_counts_where_the_configuration_says_so(page: Page, system: ByHand, store: Store) -> None:
    from typer.testing import CliRunner

    from dsched.cli.main import app

    words = ["describe", "queue", "research", "-o", "json", "--redis-url", store.url, "--name", store.name]
    system.apply(RESEARCH | {"spec": {}}, pod_manifest("shop/a", labels={KUEUE_LABEL: "research"}))
    page.look()
    kueue = "  pluginConfig: [{name: FairShare, args: {kueueLabel: true}}]\n"
    for number, (text, found) in enumerate(((FAIR_SHARE, []), (FAIR_SHARE + kueue, ["shop/a"]))):
        publish(store)
        leader_config.publish(store, LeaderConfig(1, f"hash-{number}", "standalone", "", text))
        for told in (page.get("/api/shares/research").json(), json.loads(CliRunner().invoke(app, words).stdout)):
            assert [each["pod"] for each in told["next_pods"]] == found
    leader_config.publish(
        store, LeaderConfig(1, "other", "standalone", "", FAIR_SHARE.replace("FairShare", "Elsewhere"))
    )
    done = CliRunner().invoke(app, words)
    assert json.loads(done.stdout)["next_pods"] == []
    assert "Kueue's label alone puts into a queue are not told of" in " ".join(done.stderr.split())


def test_without_fair_share_it_says_that_nothing_is_divided(page: Page, store: Store) -> None:
    put(store, TOP)
    page.look()
    assert "nothing is divided by these queues" in seen(page, "/shares").text


@pytest.mark.usefixtures("divided")
def test_names_and_reasons_are_text(page: Page, store: Store, system: ByHand) -> None:
    hostile = queue_manifest(HOSTILE, "ml", resources={HOSTILE: {"guaranteed": 1}})
    put(store, TOP, with_status(hostile, {"usage": {HOSTILE: 1}}), queue_manifest("a/../b?c#d", HOSTILE))
    page.look()
    for path in ("/shares", f"/shares/{quote(HOSTILE, safe='')}", f"/shares/{quote('a/../b?c#d', safe='')}"):
        found = seen(page, path)
        assert HOSTILE in found.text
        assert "window.pwned" not in [at.get("src") for _, at in found.tags]
        assert [tag for tag, _ in found.tags if tag == "img"] == []
        assert all(dict(at).get("src", "").startswith("/static/") for tag, at in found.tags if tag == "script")
        assert all(link.startswith(("/", "?", "#main")) for link in found.links if link)


@pytest.mark.usefixtures("divided")
def test_queues_that_somebody_broke_are_told_of(page: Page, store: Store) -> None:
    put(store, queue_manifest("lost", "gone"), queue_manifest("a", "b"), queue_manifest("b", "a"))
    put(store, with_status(queue_manifest("odd"), {"usage": {"cpu": "much"}}), queue_manifest("worse", weight="x"))
    page.look()
    found = seen(page, "/shares").text
    assert 'its parent "gone" does not exist' in found
    assert "is below it or hangs in the air" in found
    assert 'queue odd: "much" is not a quantity' in found
    assert "queue worse" in found
    assert "a › b" in seen(page, "/shares/b").text
    assert 'It counts for nothing: its parent "gone" does not exist.' in seen(page, "/shares/lost").text
    assert seen(page, "/shares/odd").text.startswith("Queue odd")


def thousand(store: Store) -> None:
    """1,010 queues in four levels."""
    resources = {name: {"guaranteed": 1, "limit": 100} for name in ("cpu", "memory", "nvidia.com/gpu")}
    status = {"usage": {"cpu": "1500m", "pods": 3}, "fairShare": {"cpu": 2}, "borrowed": {"cpu": "500m"}}
    names = [("q0", ""), *((f"q0-{a}", "q0") for a in range(9))]
    names += [(f"q0-{a}-{b}", f"q0-{a}") for a in range(9) for b in range(10)]
    names += [(f"q0-{a}-{b}-{c:02}", f"q0-{a}-{b}") for a in range(9) for b in range(10) for c in range(10)]
    put(store, *(with_status(queue_manifest(name, above, resources=resources), status) for name, above in names))


@pytest.mark.usefixtures("divided")
def test_a_thousand_queues_are_folded_to_a_page(page: Page, store: Store) -> None:
    thousand(store)
    page.look()
    assert len(page.get("/api/shares").json()["queues"]) == 1000
    found = page.get("/shares").text
    assert found.count('href="/shares/q0') == 100, "three levels"
    assert "10 below" in found
    first = page.get("/shares?levels=4").text
    assert first.count('href="/shares/q0') == share_view.ROWS
    assert "page=2" in first
    assert page.get("/shares?levels=4&page=10").text.count('href="/shares/q0') == 100
    below = page.get("/shares/q0-3").text
    assert below.count('href="/shares/q0-3-') == 10, "all that are below make more than a page"
    assert page.get("/shares?q=Q0-3-4-").text.count('href="/shares/q0-3-4-') == 10
    assert "has “nobody” in its name" in page.get("/shares?q=nobody").text
    assert page.get("/shares?levels=0").status_code == 400


def test_looking_asks_redis_for_no_queue_by_itself(tmp_path: Path) -> None:
    """However many queues there are: the same number of commands. A Redis of its own, so that nobody else asks."""
    server = RedisServer(tmp_path)
    server.start()
    store = client.connect(server.url, "shares")
    publish(store, text=FAIR_SHARE)
    page = Page(store, "127.0.0.1", NEVER_S, {})
    try:
        page.look()
        few = asked(page, store)
        thousand(store)
        many = asked(page, store)
    finally:
        page.end()
        store.close()
        server.stop()
    assert few
    assert many - few == Counter({"hscan": (many - few)["hscan"]})
    assert (many - few)["hscan"] < 20


def asked(page: Page, store: Store) -> Counter[str]:
    """Commands that Redis runs for one look and one visit, scripts' included."""
    before = _calls(store)
    page.look()
    assert page.get("/shares").status_code == 200
    return _calls(store) - before


def _calls(store: Store) -> Counter[str]:
    stats = store.redis.info("commandstats")
    return Counter({name.removeprefix("cmdstat_"): each["calls"] for name, each in stats.items()})


@pytest.mark.usefixtures("divided")
def test_looking_writes_nothing(page: Page, store: Store) -> None:
    two_teams(store)
    before = {name: store.redis.dump(name) for name in store.names("")}
    page.look()
    for path in ("/shares", "/shares/research", "/api/shares", "/api/shares/research"):
        assert page.get(path).status_code == 200
    assert {name: store.redis.dump(name) for name in store.names("")} == before


def test_in_kubernetes(api: FakeApi, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only pods without a node are read for the next ones, and queues are not asked for at each look."""
    publish(store, text=FAIR_SHARE)
    labels = {LABEL: "research"}
    api.put("queues", TOP, with_status(RESEARCH, BORROWS))
    api.put("namespaces", other_manifest("Namespace", "v1", "shop", spec={}))
    api.put("pods", pod_manifest("shop/web", labels=labels), pod_manifest("shop/db", labels=labels, nodeName="n1"))
    api.fault("GET", r"/pods\?(?!.*spec\.nodeName%3D(&|$))", status=400)
    monkeypatch.setenv(opening.KIND, Kind.KUBERNETES.value)
    monkeypatch.setenv(opening.KUBECONFIG, api.kubeconfig())
    monkeypatch.setenv(opening.CONTEXT, "")
    chosen, clock = Chosen(Kind.KUBERNETES, api.kubeconfig()), ManualClock()
    system = System(
        store, "", None, registry.intree(), lambda configured: opening.open_cluster(chosen, store, configured), clock
    )
    table, waiting = SharesTable(system), WaitingTable(store, clock)
    table.look()
    clock.advance(shares.KUBERNETES_EVERY_S - 1)
    table.look()
    assert [each.name for each in table.latest.shares.queues] == ["ml", "research"]
    research = table.latest.queue("research")
    assert research is not None and research.resources["cpu"].borrowed == 12000
    configured = system.configuration().config
    with system.cluster(configured) as cluster:
        first = waiting.read(configured, cluster)
        waiting.read(configured, cluster)
    assert [pod.key for pod in first["research"]] == ["shop/web"]
    asked = {path.rpartition("/")[2]: count for (_, path), count in api.requests.items()}
    assert asked == {"queues": 1, "pods": 1, "namespaces": 1}
    api.fault("GET", "/queues", status=403)
    clock.advance(2)
    table.look()
    assert "queues may not be listed" in table.latest.shares.note
