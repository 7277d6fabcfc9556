"""Listing, watching and reading: everything there is, and every change after it, once and in order."""

from random import Random
from typing import Any

import pytest

from dsched.cluster.interface import Change, Event, Listing
from dsched.errors import WatchExpired
from dsched.manifests import kinds
from dsched.model.meta import PodKey
from dsched.model.node import Node
from dsched.model.pod import Pod
from tests.contract.systems import System
from tests.integration.cluster.waiting import wait_until
from tests.manifests import Json, node_manifest, other_manifest, pod_manifest

ADDED, MODIFIED, DELETED, BOUND, STATUS = Change.ADDED, Change.MODIFIED, Change.DELETED, Change.BOUND, Change.STATUS
WEB = PodKey("default/web")


def service(name: str = "web", **labels: str) -> Json:
    found = other_manifest("Service", "v1", name, spec={"selector": labels})
    found["metadata"]["namespace"] = "shop"
    return found


class TestListing:
    def test_everything_there_is_is_listed(self, system: System) -> None:
        system.put(
            node_manifest("n2"),
            node_manifest("n1"),
            other_manifest("Namespace", "v1", "shop"),
            service(),
            pod_manifest("default/b"),
            pod_manifest("default/a"),
            other_manifest("PriorityClass", "scheduling.k8s.io/v1", "high", value=5),
        )
        system.bind_elsewhere("default/b", "n1")
        listing = system.cluster.list()
        assert {node.name for node in listing.nodes} == {"n1", "n2"}
        assert {pod.key: pod.node_name for pod in listing.pods} == {"default/a": "", "default/b": "n1"}
        (found,) = listing.others["Service"]
        assert found["spec"] == {"selector": {}}
        assert [each["metadata"]["name"] for each in listing.others["Namespace"]] == ["shop"]
        assert [each["metadata"]["name"] for each in listing.others["StorageClass"]] == []
        assert not {"Pod", "Node"} & set(listing.others)

    def test_pods_and_nodes_come_with_those_first_that_changed_least_recently(self, system: System) -> None:
        for name in ("c", "a", "b"):
            system.put(node_manifest(name), pod_manifest(f"default/{name}"))
        system.put(node_manifest("c", cpu="8"), pod_manifest("default/c", labels={"changed": "yes"}))
        listing = system.cluster.list()
        assert [node.name for node in listing.nodes] == ["a", "b", "c"]
        assert [pod.key for pod in listing.pods] == ["default/a", "default/b", "default/c"]

    def test_it_says_from_where_to_watch(self, system: System) -> None:
        system.put(node_manifest(), pod_manifest(), other_manifest("Namespace", "v1", "shop"))
        listing = system.cluster.list()
        assert listing.version >= max(int(each.metadata.resource_version) for each in (*listing.pods, *listing.nodes))
        assert system.cluster.watch(listing.version, 0.05) == ([], listing.version)

    def test_an_empty_cluster_is_watched_from_its_listing(self, system: System) -> None:
        heard = system.listed()
        assert heard.listing.pods == heard.listing.nodes == []
        assert not any(heard.listing.others.values())
        assert heard.hear() == []
        system.put(node_manifest())
        heard.wait_for(ADDED, "Node", "n1")

    def test_listing_again_begins_anew(self, system: System) -> None:
        first = system.listed()
        system.put(pod_manifest())
        first.wait_for(ADDED, "Pod", WEB)
        second = system.listed()
        assert [pod.key for pod in second.listing.pods] == [WEB]
        system.put(pod_manifest("default/later"))
        second.wait_for(ADDED, "Pod", "default/later")
        assert second.told == [(ADDED, "Pod", "default/later")]


class TestWatching:
    def test_a_pods_life(self, system: System) -> None:
        system.put(node_manifest())
        heard = system.listed()
        system.put(pod_manifest())
        uid = system.uid(WEB)
        system.put(pod_manifest(labels={"a": "b"}))
        system.cluster.bind([system.binding(WEB)])
        system.put(pod_manifest(labels={"a": "c"}))
        system.delete(kinds.POD, WEB)
        system.put(pod_manifest())
        again = system.uid(WEB)
        assert again != uid
        heard.wait_for(DELETED, "Pod", WEB)
        wait_until("the second one is told", lambda: heard.hear() or len(heard.events) == 6)
        changes = [(event.change, event.kind, event.key, event.uid) for event in heard.events]
        assert changes == [
            *((change, "Pod", WEB, uid) for change in (ADDED, MODIFIED, BOUND, MODIFIED, DELETED)),
            (ADDED, "Pod", WEB, again),
        ]
        labels = [event.object.metadata.labels for event in heard.events if isinstance(event.object, Pod)]
        assert (labels[0], labels[1], labels[-2], labels[-1]) == ({}, {"a": "b"}, {"a": "c"}, {})
        assert heard.events[3].object.node_name == "n1"
        assert heard.events[4].object is None
        assert heard.events[5].object.node_name == ""

    def test_who_was_bound_is_told_whoever_bound_him(self, system: System) -> None:
        system.put(
            node_manifest("n1"), node_manifest("n2"), pod_manifest("default/ours"), pod_manifest("default/theirs")
        )
        heard = system.listed()
        system.cluster.bind([system.binding("default/ours")])
        system.bind_elsewhere("default/theirs", "n2")
        for key, node in (("default/ours", "n1"), ("default/theirs", "n2")):
            event = heard.wait_for(BOUND, "Pod", key)
            assert (event.node, event.uid) == (node, system.uid(key))
            assert event.version == int(system.version_of(kinds.POD, key))
            assert event.object is None or (isinstance(event.object, Pod) and event.object.node_name == node)
        assert len(heard.events) == 2

    def test_objects_come_as_records_with_their_version(self, system: System) -> None:
        heard = system.listed()
        system.put(node_manifest(), service(a="b"), pod_manifest())
        node = heard.wait_for(ADDED, "Node", "n1")
        other = heard.wait_for(ADDED, "Service", "shop/web")
        pod = heard.wait_for(ADDED, "Pod", WEB)
        assert isinstance(node.object, Node)
        assert isinstance(pod.object, Pod)
        assert other.object is not None and other.object["spec"] == {"selector": {"a": "b"}}
        for event, kind, key in ((node, kinds.NODE, "n1"), (other, kinds.SERVICE, "shop/web"), (pod, kinds.POD, WEB)):
            assert event.version == int(system.version_of(kind, key)) > heard.listing.version
            assert event.uid == system.there(kind, key)["metadata"]["uid"]
        assert node.object.metadata.resource_version == str(node.version)
        assert pod.object.metadata.resource_version == str(pod.version)
        assert heard.version >= max(node.version, other.version, pod.version)

    def test_nodes_and_other_kinds_come_change_and_go(self, system: System) -> None:
        system.put(node_manifest(), service(a="b"))
        heard = system.listed()
        system.put(node_manifest(cpu="8"), service(a="c"))
        assert heard.wait_for(MODIFIED, "Node", "n1").object.status.allocatable["cpu"] == "8"
        assert heard.wait_for(MODIFIED, "Service", "shop/web").object["spec"] == {"selector": {"a": "c"}}
        uids = {"Node": system.there(kinds.NODE, "n1")["metadata"]["uid"]}
        uids["Service"] = system.there(kinds.SERVICE, "shop/web")["metadata"]["uid"]
        system.delete(kinds.NODE, "n1")
        system.delete(kinds.SERVICE, "shop/web")
        for kind, key in (("Node", "n1"), ("Service", "shop/web")):
            gone = heard.wait_for(DELETED, kind, key)
            assert (gone.uid, gone.object) == (uids[kind], None)
        assert len(heard.events) == 4

    def test_a_change_of_a_pod_that_waits_shows_what_is_said_of_it(self, system: System) -> None:
        promised = {**pod_manifest(), "status": {"nominatedNodeName": "n1"}}
        system.put(promised)
        heard = system.listed()
        (listed,) = heard.listing.pods
        assert listed.status.nominated_node_name == "n1"
        system.put({**promised, "metadata": {**promised["metadata"], "labels": {"a": "b"}}})
        assert heard.wait_for(MODIFIED, "Pod", WEB).object.status.nominated_node_name == "n1"

    def test_nothing_is_told_twice(self, system: System) -> None:
        heard = system.listed()
        system.put(pod_manifest())
        heard.wait_for(ADDED, "Pod", WEB)
        assert (heard.hear(), heard.version) == ([], heard.version)
        heard.events = []
        assert system.told_nothing(heard)

    def test_one_from_the_future_expires(self, system: System) -> None:
        heard = system.listed()
        with pytest.raises(WatchExpired):
            system.cluster.watch(heard.version + 1000, 0.0)
        again = system.listed()
        system.put(pod_manifest())
        again.wait_for(ADDED, "Pod", WEB)


def steps(rng: Random) -> list[tuple[Any, ...]]:
    """What a user does, and when somebody hears of it."""
    made = {
        "pod": lambda: (rng.randrange(3), rng.choice("ab")),
        "no_pod": lambda: (rng.randrange(3),),
        "bind": lambda: (rng.randrange(3), rng.random() < 0.5),
        "node": lambda: (rng.randrange(2), rng.choice("48")),
        "no_node": lambda: (rng.randrange(2),),
        "service": lambda: (rng.choice("ab"),),
        "hear": lambda: (),
        "lose_history": lambda: (),
    }
    chosen = rng.choices(list(made), weights=[6, 3, 4, 2, 1, 2, 3, 1], k=30)
    return [(what, *made[what]()) for what in chosen]


class Follower:
    """What somebody knows who lists, watches, and lists again when he is told to."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._begin(system.cluster.list())

    def _begin(self, listing: Listing) -> None:
        self.version = listing.version
        self.known: dict[tuple[str, str], tuple[str, str, Any]] = {}
        for record in (*listing.pods, *listing.nodes):
            self._take("Node" if isinstance(record, Node) else "Pod", record)
        for kind, objects in listing.others.items():
            for value in objects:
                self._take(kind, value)

    def _take(self, kind: str, found: Any) -> None:
        if isinstance(found, Pod):
            self.known[kind, found.key] = (found.uid, found.node_name, found.metadata.labels.get("is"))
        elif isinstance(found, Node):
            self.known[kind, found.name] = (found.metadata.uid, "", str(found.status.allocatable["cpu"]))
        else:
            metadata = found["metadata"]
            key = kinds.BY_NAME[kind].key(metadata.get("namespace", ""), metadata["name"])
            self.known[kind, key] = (metadata["uid"], "", found["spec"]["selector"]["is"])

    def hear(self) -> None:
        try:
            events, self.version = self._system.cluster.watch(self.version, 0.02)
        except WatchExpired:
            self._begin(self._system.cluster.list())
            return
        for event in events:
            self._heard(event)

    def _heard(self, event: Event) -> None:
        """Each object's changes come in order: it comes, changes, and goes, as what it was when it came."""
        at = (event.kind, event.key)
        before = self.known.get(at)
        if event.change is ADDED:
            assert before is None, event
            self._take(event.kind, event.object)
            return
        assert before is not None and before[0] == event.uid, event
        if event.change is DELETED:
            del self.known[at]
        elif event.change is BOUND:
            assert before[1] == "", event
            self.known[at] = (before[0], event.node, before[2])
        elif event.change is MODIFIED:
            self._take(event.kind, event.object)
            uid, node, _ = self.known[at]
            # It may have got its node besides, where all that happened while the watch was away is told as one change.
            assert (uid, node) == before[:2] or (uid, before[1]) == (before[0], ""), event


class User:
    """Does what there is to do; what cannot be done is left."""

    def __init__(self, system: System) -> None:
        self._system = system

    def pod(self, number: int, label: str) -> None:
        self._system.put(pod_manifest(f"default/p{number}", labels={"is": label}))

    def no_pod(self, number: int) -> None:
        self._gone(kinds.POD, f"default/p{number}")

    def bind(self, number: int, ours: bool) -> None:
        key = f"default/p{number}"
        pod = self._system.read(kinds.POD, key)
        if pod is None or pod["spec"].get("nodeName") or self._system.read(kinds.NODE, "n0") is None:
            return
        if ours:
            self._system.cluster.bind([self._system.binding(key, "n0")])
        else:
            self._system.bind_elsewhere(key, "n0")

    def node(self, number: int, cpu: str) -> None:
        self._system.put(node_manifest(f"n{number}", cpu=cpu))

    def no_node(self, number: int) -> None:
        self._gone(kinds.NODE, f"n{number}")

    def service(self, label: str) -> None:
        self._system.put(service(**{"is": label}))

    def lose_history(self) -> None:
        self._system.lose_history()

    def _gone(self, kind: kinds.Kind, key: str) -> None:
        if self._system.read(kind, key) is not None:
            self._system.delete(kind, key)

    def there(self) -> dict[tuple[str, str], tuple[str, str, Any]]:
        """All that there is, in the form in which a follower knows it."""
        found = {}
        for number in range(3):
            if (pod := self._system.read(kinds.POD, key := f"default/p{number}")) is not None:
                metadata = pod["metadata"]
                found["Pod", key] = (metadata["uid"], pod["spec"].get("nodeName", ""), metadata["labels"]["is"])
        for number in range(2):
            if (node := self._system.read(kinds.NODE, name := f"n{number}")) is not None:
                found["Node", name] = (node["metadata"]["uid"], "", node["status"]["allocatable"]["cpu"])
        if (other := self._system.read(kinds.SERVICE, "shop/web")) is not None:
            found["Service", "shop/web"] = (other["metadata"]["uid"], "", other["spec"]["selector"]["is"])
        return found


@pytest.mark.parametrize("seed", range(12))
def test_who_follows_knows_what_there_is(system: System, seed: int) -> None:
    """Whatever happens, also where the watch can no longer tell everything."""
    user, follower = User(system), Follower(system)
    for what, *how in steps(Random(seed)):
        if what == "hear":
            follower.hear()
        else:
            getattr(user, what)(*how)
    wanted = user.there()
    assert wanted
    wait_until("all of it is heard", lambda: follower.hear() or follower.known == wanted)


class TestReading:
    def test_pods_as_they_are_now(self, system: System) -> None:
        system.put(node_manifest(), pod_manifest("default/a"), pod_manifest("default/b"))
        system.cluster.bind([system.binding("default/b")])
        wanted = [PodKey(f"default/{name}") for name in ("b", "none", "a", "b")]
        found = system.cluster.get_pods(wanted)
        assert [each and (each.key, each.node_name) for each in found] == [
            ("default/b", "n1"),
            None,
            ("default/a", ""),
            ("default/b", "n1"),
        ]
        assert found[0].uid == system.uid("default/b")
        assert found[0].metadata.resource_version == system.version_of(kinds.POD, "default/b")
        assert list(system.cluster.get_pods([])) == []

    def test_objects_as_they_are_now(self, system: System) -> None:
        system.put(node_manifest(), pod_manifest(), service(a="b"))
        found, missing = system.cluster.get_objects("Service", ["shop/web", "shop/none"])
        assert found == system.there(kinds.SERVICE, "shop/web")
        assert missing is None
        (node,) = system.cluster.get_objects("Node", ["n1"])
        assert node is not None and node["metadata"]["uid"] == system.there(kinds.NODE, "n1")["metadata"]["uid"]
        (pod,) = system.cluster.get_objects("Pod", [WEB])
        assert pod is not None and pod["spec"]["containers"]
        assert list(system.cluster.get_objects("Service", [])) == []

    def test_a_kind_that_nobody_knows_has_none(self, system: System) -> None:
        assert list(system.cluster.get_objects("Widget", ["a", "b"])) == [None, None]

    def test_a_survey_has_every_node_and_pod(self, system: System) -> None:
        leaving = pod_manifest("default/leaving")
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        system.put(node_manifest("n1"), pod_manifest("default/free"), pod_manifest("default/bound"), leaving)
        system.cluster.bind([system.binding("default/bound")])
        heard = system.listed()
        system.put(pod_manifest("default/late"), node_manifest("n2"))
        heard.wait_for(ADDED, "Pod", "default/late")
        heard.wait_for(ADDED, "Node", "n2")
        found = {seen.key: seen for piece in system.cluster.survey() for seen in piece}
        assert {key: (seen.node, seen.finished, seen.deleting) for key, seen in found.items()} == {
            "n1": ("", False, False),
            "n2": ("", False, False),
            "default/free": ("", False, False),
            "default/bound": ("n1", False, False),
            "default/leaving": ("", False, True),
            "default/late": ("", False, False),
        }
        for key, seen in found.items():
            there = system.there(kinds.POD if "/" in key else kinds.NODE, key)["metadata"]
            assert (seen.uid, seen.version) == (there["uid"], there["resourceVersion"])
            assert (seen.object is None) is ("/" in key)

    def test_it_says_what_it_is(self, system: System) -> None:
        version = system.cluster.kubernetes_version()
        assert (system.cluster.kind, str(version or "")) == (system.kind, system.version)
