"""The pages as the server renders them: all of it is there without JavaScript."""

import json
import re
from html.parser import HTMLParser

import pytest
import redis

from dsched.clock import SystemClock
from dsched.model.meta import PodUid
from dsched.model.queues import LABEL
from dsched.scheduler.ports import Move, QueueName, entity_key
from dsched.state import keys, leader_config, pauses
from dsched.state.leader_config import LeaderConfig
from dsched.ui import queues
from tests.integration.fsck.by_hand import ByHand
from tests.manifests import node_manifest, pod_manifest, queue_manifest

FAIR_SHARE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      disabled: [{name: PrioritySort}, {name: DefaultPreemption}]
      enabled: [{name: FairShare}]
"""
HOSTILE = '<script>window.pwned = 1</script><img src=x onerror="window.pwned = 1">'


@pytest.fixture
def system(store, tmp_path):
    return ByHand(store, tmp_path)


def asking_for(cores):
    return [{"name": "main", "image": "nginx", "resources": {"requests": {"cpu": cores}}}]


class Seen(HTMLParser):
    """Elements and words of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.links = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "a":
            self.links.append(dict(attributes).get("href"))

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def seen(page, path, status=200):
    answer = page.get(path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    return Seen(answer.text)


def rejected(system, name="web", **record):
    system.cluster_with(name)
    system.pop()
    system.put(name, QueueName.UNSCHEDULABLE, **record)


def test_an_empty_system(page):
    assert "nobody leads" in seen(page, "/").text
    assert "No pod is active." in seen(page, "/queues").text
    assert "No node." in seen(page, "/nodes").text
    for path in ("/what-if", "/queues?place=gated&q=web"):
        seen(page, path)


def test_the_queue_that_holds_pods_which_fit_nowhere_comes_first(page, system):
    rejected(system, message="0/2 nodes are available: 2 Insufficient cpu.")
    found = seen(page, "/queues")
    assert "0/2 nodes are available: 2 Insufficient cpu." in found.text
    assert "unschedulable 1" in found.text
    assert "/pods/default/web" in found.links
    assert "/pods/default/web/explanation" in found.links


def test_pods_beside_their_group(page, system):
    group, stands = "default/train", system.clock.now_ms()
    system.cluster_with("train-0")
    pod = system.pod("train-0")
    beside = Move(pod.key, pod.uid, QueueName.ACTIVE, QueueName.GROUP, stands, group, stands, {"group": group})
    entity = Move(entity_key(group), PodUid("uid"), QueueName.NOWHERE, QueueName.BACKOFF, stands, "turn", 0)
    assert "group 1" not in seen(page, "/queues").text
    assert system.queue.move([beside, entity]) == []
    found = seen(page, "/queues?place=group")
    assert "group 1" in found.text and group in found.text
    assert "/pods/default/train-0" in found.links
    found = seen(page, "/queues?place=backoff")
    assert "podgroup/default/train" in found.text
    assert not [link for link in found.links if "train" in link]
    assert f"waits with its pod group {group}, which is in backoff" in seen(page, "/pods/default/train-0").text


def test_pods_are_found_by_name_reason_and_plugin(page, system):
    rejected(system, message="0/2 nodes are available: 2 Insufficient cpu.")
    for text in ("WEB", "insufficient", "NodeResources"):
        assert "/pods/default/web" in seen(page, f"/queues?place=unschedulable&q={text}").links
    assert "No pod here has “nginx”" in seen(page, "/queues?place=unschedulable&q=nginx").text


def test_a_large_queue_is_shown_in_pages(page, store, monkeypatch):
    monkeypatch.setattr(queues, "PAGE", 10)
    monkeypatch.setattr(queues, "SEARCHED", 20)
    store.redis.zadd(store.key(keys.UNSCHEDULABLE.name), {f"default/web-{number:02}": number for number in range(25)})
    first, last = seen(page, "/queues?place=unschedulable"), seen(page, "/queues?place=unschedulable&page=3")
    assert [link for link in first.links if link and link.startswith("/pods/default/web-")][::2] == [
        f"/pods/default/web-{number:02}" for number in range(10)
    ]
    assert "?place=unschedulable&page=2" in first.links
    assert "/pods/default/web-24" in last.links
    assert "?place=unschedulable&page=4" not in last.links
    filtered = seen(page, "/queues?place=unschedulable&q=web-1&page=1")
    assert "Only the first pods of this place were looked through" in filtered.text
    assert "?place=unschedulable&q=web-1&page=2" not in filtered.links


@pytest.mark.parametrize("path", ["/queues?page=0", "/queues?page=x", "/nodes?page=-1", "/queues?page=99999999"])
def test_pages_that_there_cannot_be(page, path):
    assert "page: expected a number from 1 on" in seen(page, path, 400).text


def test_what_is_not_there(page):
    assert "there is no pod shop/web" in seen(page, "/pods/shop/web", 404).text
    assert "there is no pod shop/web" in seen(page, "/pods/shop/web/explanation", 404).text
    assert "there is no node n9" in seen(page, "/nodes/n9", 404).text
    assert "there is no place" in seen(page, "/queues?place=nowhere", 404).text
    assert "Not Found" in seen(page, "/nowhere", 404).text


def test_a_pod(page, system):
    system.apply(node_manifest("n1"), pod_manifest("shop/big", labels={"app": "big"}, nodeSelector={"disk": "ssd"}))
    system.take_in()
    found = seen(page, "/pods/shop/big")
    assert "number 1 of 1 in the active queue" in found.text
    assert "app=big" in found.text
    assert "disk=ssd" in found.text
    assert "cpu 0.1" in found.text
    assert "disk=ssd" in seen(page, "/pods?name=shop/big").text
    explained = seen(page, "/pods/shop/big/explanation")
    assert "NodeAffinity" in explained.text
    assert "0 of 1 nodes fit" in explained.text
    assert "node(s) didn't match Pod's node affinity/selector" in explained.text


def test_an_explanation_says_what_the_queues_above_the_pod_have(page, system, store):
    queues = [
        queue_manifest("top", resources={"cpu": {"guaranteed": 1, "limit": 2}}),
        queue_manifest("team", "top"),
    ]
    pods = [
        pod_manifest(f"shop/{name}", labels={LABEL: "team"}, containers=asking_for(cores), **more)
        for name, cores, more in (("has", 2, {"nodeName": "n1"}), ("wants", 1, {}))
    ]
    system.apply(node_manifest("n1", cpu="8"), *queues, *pods)
    system.take_in()
    publish(store, text=FAIR_SHARE)
    found = seen(page, "/pods/shop/wants/explanation")
    assert "Queue team: 0 of 0 cpu guaranteed, 2 borrowed" in found.text
    assert "Queue top: 1 of 1 cpu guaranteed, 1 borrowed, limit 2" in found.text
    assert 'queue "top" has no room below its limit of cpu; evaluated as if there was room' in found.text


WHY = "/pods/default/web/explanation"
MORE = json.dumps(node_manifest("n2"))


@pytest.mark.parametrize(
    ("withheld", "told"),
    [
        ("the configuration holds private keys", "the leader keeps its configuration back (the configuration holds"),
        (None, "no leader has published its configuration yet, so the default configuration was used"),
    ],
)
def test_a_configuration_that_is_not_the_leaders_is_told_of(page, system, store, withheld, told):
    rejected(system)
    if withheld is not None:
        publish(store, withheld)
    assert told in seen(page, WHY).text
    answer = page.post("/what-if", data={"manifest": MORE})
    assert told in Seen(answer.text).text
    assert told in page.post("/api/what-if", content=MORE).json()["note"]


def test_of_the_leaders_own_there_is_nothing_to_tell(page, system, store):
    rejected(system)
    publish(store)
    assert "The system may decide otherwise" not in seen(page, WHY).text
    assert page.post("/api/what-if", content=MORE).json()["note"] == ""


def publish(store, withheld="", text=""):
    """As a leader does when it begins: the default configuration, another one, or one that it keeps back."""
    store.redis.set(store.key(keys.EPOCH.name), 1)
    leader_config.publish(store, LeaderConfig(1, "123456789abc", "standalone", "", text, withheld))


def test_a_node(page, system):
    system.apply(node_manifest("n1", labels={"disk": "ssd"}), pod_manifest("default/web"))
    system.take_in()
    system.pop()
    system.reserve("web")
    found = seen(page, "/nodes/n1")
    assert "disk=ssd" in found.text
    assert "default/web (being bound)" in found.text
    assert "0.1" in found.text
    assert "/nodes/n1" in seen(page, "/nodes?q=N1").links
    assert "No node has that in its name" in seen(page, "/nodes?q=n2").text


def test_hostile_texts_stay_texts(page, system, store):
    rejected(system, message=HOSTILE, plugins=HOSTILE.replace(" ", ""))
    pauses.pause(store, HOSTILE.replace(" ", ""), 1, HOSTILE)
    store.redis.hset(store.key("workers"), f"evaluator@{HOSTILE}", f"evaluator {SystemClock().now_ms()} <b>x</b>")
    page.look()
    for path in ("/", "/queues", "/pods/default/web", f"/queues?q={HOSTILE}", f"/nodes?q={HOSTILE}", f"/{HOSTILE}"):
        found = Seen(page.get(path).text)
        assert not any(tag == "script" and "src" not in attributes for tag, attributes in found.tags)
        assert not any(tag == "img" or "onerror" in attributes for tag, attributes in found.tags)
    assert HOSTILE in seen(page, "/queues").text
    assert HOSTILE in seen(page, "/").text
    posted = page.post("/what-if", data={"manifest": f"</textarea>{HOSTILE}"})
    assert posted.status_code == 422
    assert not any(tag == "img" for tag, _ in Seen(posted.text).tags)


def test_every_field_has_a_label_and_every_page_a_heading(page, system, make_page):
    rejected(system)
    page.look()
    for client in (page, make_page(writes=True)):
        for path in ("/", "/queues", "/nodes", "/pods/default/web", "/pods/default/web/explanation", "/what-if"):
            text = client.get(path).text
            tags = Seen(text).tags
            labelled = {attributes["for"] for tag, attributes in tags if tag == "label" and "for" in attributes}
            fields = [
                attributes
                for tag, attributes in tags
                if tag in ("input", "select", "textarea", "canvas")
                and attributes.get("type") not in ("hidden", "checkbox")
            ]
            assert all(each.get("id") in labelled or "aria-label" in each for each in fields), (path, fields)
            assert [tag for tag, _ in tags].count("h1") == 1
            assert re.search(r'<html lang="en">', text)
            assert 'href="#main"' in text


def test_redis_that_does_not_answer(page, store, monkeypatch):
    page.look()

    def fail(*words, **options):
        raise redis.ConnectionError("gone")

    monkeypatch.setattr(store.redis.connection_pool, "get_connection", fail)
    page.look()
    for path in ("/", "/queues", "/nodes", "/pods/a/b"):
        assert "does not answer" in seen(page, path, 503).text
    assert "does not answer" in page.get("/api/overview").json()["error"]["message"]


def test_what_another_version_would_decide_differently(make_page, tmp_path):
    """Of a file, which may be written anew; there is no such page without one."""
    cause = {"plugins": ["NodeDeclaredFeatures"], "gates": ["G"], "others": [], "together": False, "since": "1.36"}
    nowhere = {"node": "", "message": HOSTILE, "nominated": None, "victims": []}
    difference = {"kind": "waits", "pod": "shop/web", "attempt": 1, "line": 9, "chance": False, "cause": cause}
    difference |= {"recorded": {**nowhere, "node": "n1"}, "compared": nowhere}
    told = {
        "version": 1,
        "recorded": {"version": "1.34", "featureGates": ""},
        "compared": {"version": "1.37", "featureGates": "A=true"},
        "decisions": 1234,
        "notReproduced": 0,
        "counts": {"waits": 1},
        "causes": [{**cause, "counts": {"waits": 1}}],
        "differences": [difference],
    }
    path = tmp_path / "told.json"
    path.write_text(json.dumps(told))
    page = make_page(rehearsal=path)
    found = seen(page, "/rehearsal")
    assert "1,234 decisions of kube-scheduler 1.34, each made again as 1.37 A=true" in found.text
    assert "NodeDeclaredFeatures, G, since 1.36" in found.text
    assert "/pods/shop/web" in found.links
    assert "/rehearsal" in seen(page, "/").links
    assert ("script", {}) not in found.tags
    path.write_text(json.dumps({**told, "causes": [], "differences": []}))
    assert "All the same." in seen(page, "/rehearsal").text
    path.write_text("{}")
    assert "is not what" in page.get("/rehearsal").text
    assert make_page().get("/rehearsal").status_code == 404
