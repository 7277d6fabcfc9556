"""One of each: what a user of a cluster sees of dsched's work."""

import json
import time
from collections import Counter
from typing import Any

import pytest

from dsched.state.client import connect
from dsched.state.keys import RESERVATIONS
from tests.acceptance import checker
from tests.e2e import history
from tests.e2e.apiserver import ApiServer
from tests.e2e.cluster import Cluster, make_node, make_pod, scheduled_condition
from tests.e2e.processes import Processes
from tests.e2e.versions import EACH_VERSION

pytestmark = EACH_VERSION

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
LONGEST_PAUSE_S = 5.0
"""After a third attempt, to the end of the second in which it is over: news of what another test had may have had a pod
tried again."""


@pytest.fixture(scope="module")
def asked_before(api_server: ApiServer) -> int:
    """How many requests there were before this module's."""
    return len(list(history.requests(api_server)))


@pytest.fixture(scope="module")
def running(asked_before: int, processes: Processes) -> Processes:
    """A leader, an evaluator and a binder at work for the module's tests."""
    processes.start()
    return processes


def test_pods_are_bound_where_they_fit(running: Processes, cluster: Cluster):
    cluster.add_nodes(*(make_node(f"n{number:02}", pods="20") for number in range(20)))
    cluster.add_pods(*(make_pod(f"web-{number:03}", "200m") for number in range(200)))
    cluster.wait_placed()
    found = checker.check(cluster.nodes(), cluster.pods())
    assert (found.problems, found.bound, found.pending) == ([], 200, 0)
    assert history.binds(cluster.server, cluster.namespace) == Counter(dict.fromkeys(cluster.placed(), 1))
    events = cluster.wait("the event is there", lambda: cluster.events("web-000"))
    assert [(event["reason"], event["type"]) for event in events] == [("Scheduled", "Normal")]
    where = cluster.pod("web-000")["spec"]["nodeName"]
    assert events[0]["message"] == f"Successfully assigned {cluster.namespace}/web-000 to {where}"


def test_pods_of_other_schedulers_are_left_alone(running: Processes, cluster: Cluster):
    cluster.add_nodes(make_node("n1"))
    cluster.add_pods(make_pod("theirs", scheduler="default-scheduler"), make_pod("ours"))
    cluster.wait_placed("ours")
    theirs = cluster.pod("theirs")
    assert "nodeName" not in theirs["spec"]
    assert scheduled_condition(theirs) == {}


def test_a_pod_that_fits_nowhere_says_why_until_it_fits(running: Processes, cluster: Cluster):
    cluster.add_nodes(make_node("n1", "2"), make_node("n2", "2"))
    cluster.wait_known("n1", "n2")
    cluster.add_pods(make_pod("big", "3"))
    told = cluster.wait_unschedulable("big")
    assert told.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    events = cluster.wait("the event is there", lambda: cluster.events("big"))
    assert [(event["reason"], event["type"], event["message"]) for event in events] == [
        ("FailedScheduling", "Warning", told)
    ]
    shown = running.run("dsched", "queue")
    assert shown.returncode == 0, shown.stderr
    assert f"{cluster.namespace}/big" in shown.stdout
    cluster.add_nodes(make_node("n3", "4"))
    assert cluster.wait_placed("big") == {"big": "n3"}
    assert scheduled_condition(cluster.pod("big"))["status"] == "True"


def test_a_gated_pod_waits_for_its_gate(running: Processes, cluster: Cluster):
    cluster.add_nodes(make_node("n1"))
    cluster.add_pods(make_pod("gated", schedulingGates=[{"name": "example.com/quota"}]), make_pod("free"))
    cluster.wait_placed("free")
    assert "nodeName" not in cluster.pod("gated")["spec"]
    cluster.core.patch_namespaced_pod("gated", cluster.namespace, {"spec": {"schedulingGates": None}})
    assert cluster.wait_placed("gated") == {"gated": "n1"}


def test_a_deleted_pod_makes_room(running: Processes, cluster: Cluster):
    cluster.add_nodes(make_node("n1", "1"))
    cluster.add_pods(make_pod("first", "1"))
    cluster.wait_placed("first")
    cluster.add_pods(make_pod("second", "1"))
    cluster.wait_unschedulable("second")
    cluster.delete_pods("first")
    assert cluster.wait_placed("second") == {"second": "n1"}


def test_a_pod_with_higher_priority_evicts_what_is_in_its_way(running: Processes, cluster: Cluster):
    cluster.add_nodes(make_node("n1", "2"), make_node("n2", "2"))
    # Built in, and higher than the pods' own 0.
    urgent = {"priorityClassName": "system-cluster-critical"}
    cluster.add_pods(*(make_pod(f"low-{number}", "1") for number in range(4)))
    before = cluster.wait_placed()
    cluster.add_pods(make_pod("urgent", "2", **urgent))
    node = cluster.wait("a node is nominated", lambda: cluster.pod("urgent")["status"].get("nominatedNodeName"))
    victims = {name for name, where in before.items() if where == node}

    def marked() -> bool:
        """A kubelet would let them end now; here nobody does."""
        pods = {pod["metadata"]["name"]: pod["metadata"] for pod in cluster.pods()}
        return all("deletionTimestamp" in pods.get(name, {"deletionTimestamp"}) for name in victims)

    cluster.wait("the victims are deleted", marked)
    for name in victims:
        history_of = history.of_pods(cluster.server, cluster.namespace).values()
        assert [each.disrupted for each in history_of if each.name == name] == [True]
        if name in {pod["metadata"]["name"] for pod in cluster.pods()}:
            cluster.delete_pods(name)
    assert cluster.wait_placed("urgent") == {"urgent": node}
    assert cluster.placed() == {name: where for name, where in before.items() if where != node} | {"urgent": node}


def test_the_most_important_come_first(running: Processes, cluster: Cluster):
    """All wait for a node; there is room for two of them. Not for any node: news of the deletion of one that another
    test had may still be on its way to the leader."""
    gold, silver = cluster.add_priority("gold", 1000), cluster.add_priority("silver", 10)
    here = {"kept-for": "ranks"}
    cluster.add_pods(make_pod("none", "1", nodeSelector=here))
    cluster.add_pods(
        make_pod("silver", "1", priorityClassName=silver, nodeSelector=here),
        make_pod("gold", "1", priorityClassName=gold, nodeSelector=here),
    )
    for name in ("none", "silver", "gold"):
        cluster.wait_unschedulable(name)
    time.sleep(LONGEST_PAUSE_S)  # else the first pod may be tried alone, while the others' pauses last
    cluster.add_nodes(make_node("n1", "2", labels=here))
    cluster.wait_placed("gold", "silver")
    assert "nodeName" not in cluster.pod("none")["spec"]


def test_pods_spread_over_zones(running: Processes, cluster: Cluster):
    cluster.add_nodes(*(make_node(f"n{number}", labels={ZONE: f"z{number % 3}"}) for number in range(9)))
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    pods = [make_pod(f"web-{n}", labels={"app": "web"}, topologySpreadConstraints=[spread]) for n in range(30)]
    cluster.add_pods(*pods)
    placed = cluster.wait_placed()
    zones = Counter(int(node.removeprefix("n")) % 3 for node in placed.values())
    assert zones == {0: 10, 1: 10, 2: 10}


def test_pods_keep_away_from_each_other(running: Processes, cluster: Cluster):
    cluster.add_nodes(*(make_node(f"n{number}") for number in range(3)))
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster.add_pods(*(make_pod(f"db-{number}", labels={"app": "db"}, affinity=affinity) for number in range(3)))
    assert sorted(cluster.wait_placed().values()) == ["n0", "n1", "n2"]
    cluster.add_pods(make_pod("db-3", labels={"app": "db"}, affinity=affinity))
    told = cluster.wait_unschedulable("db-3")
    assert told.startswith("0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.")


def test_taints_and_cordons_are_respected(running: Processes, cluster: Cluster):
    tainted = make_node("n1") | {"spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}}
    cordoned = make_node("n2") | {"spec": {"unschedulable": True}}
    cluster.add_nodes(tainted, cordoned)
    cluster.add_pods(make_pod("web"), make_pod("trainer", tolerations=[{"key": "gpu", "operator": "Exists"}]))
    assert cluster.wait_placed("trainer") == {"trainer": "n1"}
    told = cluster.wait_unschedulable("web", "0/2 nodes are available")
    assert "1 node(s) had untolerated taint" in told  # which 1.34 names, and newer versions do not
    assert "1 node(s) were unschedulable" in told
    cluster.core.patch_node("n2", {"spec": {"unschedulable": False}})
    assert cluster.wait_placed("web") == {"web": "n2"}


def test_a_claim_that_waits_gets_a_volume_on_the_pods_node(running: Processes, cluster: Cluster):
    """The pod may go to two nodes and the volume is on one of them; the PV controller's part is played here."""
    cluster.add_nodes(*(make_node(f"n{number}") for number in range(3)))
    cluster.storage.create_storage_class(
        {
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    cluster.core.create_persistent_volume(local_volume("disk", "n2"))
    cluster.core.patch_persistent_volume_status("disk", {"status": {"phase": "Available"}})
    cluster.core.create_namespaced_persistent_volume_claim(
        cluster.namespace,
        {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    )
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster.add_pods(make_pod("db", volumes=volumes), make_pod("too-many", volumes=[*volumes, *missing()]))
    claimed = cluster.wait("the volume is claimed", lambda: cluster.core.read_persistent_volume("disk").spec.claim_ref)
    assert (claimed.namespace, claimed.name) == (cluster.namespace, "data")
    assert "nodeName" not in cluster.pod("db")["spec"], "bound before its claim was"
    bind_claim(cluster, "data", "disk")
    assert cluster.wait_placed("db") == {"db": "n2"}
    cluster.wait_unschedulable("too-many", 'persistentvolumeclaim "missing" not found')


def local_volume(name: str, node: str) -> Json:
    at = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/mnt/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [at]}]}},
        },
    }


def missing() -> list[Json]:
    return [{"name": "more", "persistentVolumeClaim": {"claimName": "missing"}}]


def bind_claim(cluster: Cluster, claim: str, volume: str) -> None:
    """What the PV controller does when a volume names a claim."""
    done = {"pv.kubernetes.io/bind-completed": "yes"}
    patch = {"metadata": {"annotations": done}, "spec": {"volumeName": volume}}
    cluster.core.patch_namespaced_persistent_volume_claim(claim, cluster.namespace, patch)
    status = {"status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}}
    cluster.core.patch_namespaced_persistent_volume_claim_status(claim, cluster.namespace, status)
    cluster.core.patch_persistent_volume_status(volume, {"status": {"phase": "Bound"}})


def test_fsck_compares_redis_with_the_cluster(running: Processes, cluster: Cluster):
    cluster.add_nodes(make_node("n1", "1"), make_node("n2", "1"))
    cluster.add_pods(make_pod("web"), make_pod("big", "3"), make_pod("theirs", scheduler="default-scheduler"))
    cluster.wait_placed("web")
    cluster.wait_unschedulable("big")

    def looked(code: int) -> Json | None:
        """What it says, once the leader has taken everything in."""
        told = running.run("dsched", "fsck", "-o", "json")
        assert told.stdout, told.stderr
        found: Json = json.loads(told.stdout)
        return found if told.returncode == code and not found["open"] else None

    found = cluster.wait("it is clean", lambda: looked(0))
    assert (found["nodes"], found["bound"], found["pending"], found["reservations"]) == (2, 1, 2, 0)
    # Two pods of ours that no binder has bound, for more than the node has; and a reservation that nobody owns.
    cluster.add_pods(*(make_pod(f"forced-{number}", "600m", nodeName="n2") for number in range(2)))
    store = connect(running.redis.url, running.name)

    def broken() -> dict[tuple[str, str], list[str]] | None:
        store.redis.hset(store.key(RESERVATIONS.name), "uid-x", "none/such n1 1 reserved 1 0")  # the leader mends it
        found = looked(1) or {"breaches": []}
        told: dict[tuple[str, str], list[str]] = {}
        for each in found["breaches"]:
            told.setdefault((each["invariant"], each["subject"]), []).append(each["message"])
        return told if {("I3", "n2"), ("I6", "none/such")} <= told.keys() else None

    told = cluster.wait("it is not clean", broken)
    store.redis.hdel(store.key(RESERVATIONS.name), "uid-x")
    store.close()
    assert any("of cpu, 1000m are allocatable" in line for line in told["I3", "n2"]), told
    assert "n1 is reserved for uid uid-x, and there is no such pod" in told["I6", "none/such"]
    cluster.delete_pods("forced-0")
    cluster.wait("it is clean again", lambda: looked(0))


def test_nothing_was_forbidden(running: Processes, api_server: ApiServer, asked_before: int):
    """The rights of deploy/kubernetes are enough for all that was done above."""
    asked = [each for each in list(history.requests(api_server))[asked_before:] if ":dsched-" in each.user]
    assert {each.user.rpartition(":")[2] for each in asked} == {"dsched-leader", "dsched-binder"}
    assert {(each.user, each.verb, each.resource, each.subresource) for each in asked if each.code == 403} == set()
