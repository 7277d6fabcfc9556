"""Applying: what it makes of each object, that it is all or nothing, and that nobody's change is lost."""

import json
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsched.cluster.interface import Change
from dsched.cluster.standalone.applying import ATTEMPTS, Applier
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.cluster.standalone.objects import Objects
from dsched.errors import ClusterError, Conflict, ManifestError
from dsched.manifests import kinds
from dsched.model.meta import PodKey
from tests.manifests import loaded, node_manifest, other_manifest, pod_manifest

WEB = PodKey("default/web")


def outcomes(applied) -> list[str]:
    return [f"{each.kind.singular} {each.key} {each.outcome}" for each in applied]


def test_created_configured_unchanged(cluster, apply):
    assert outcomes(apply(pod_manifest(), node_manifest())) == ["pod default/web created", "node n1 created"]
    version = cluster.newest_version()
    assert outcomes(apply(pod_manifest(), node_manifest())) == ["pod default/web unchanged", "node n1 unchanged"]
    assert cluster.newest_version() == version
    changed = apply(pod_manifest(labels={"a": "b"}), node_manifest(cpu="8"))
    assert outcomes(changed) == ["pod default/web configured", "node n1 configured"]
    events, _ = cluster.watch(version, 0)
    assert [(event.change, event.kind) for event in events] == [(Change.MODIFIED, "Node"), (Change.MODIFIED, "Pod")]


def test_metadata_is_completed(store, apply):
    apply(pod_manifest())
    (value,) = Objects(store).get(kinds.POD, [WEB])
    metadata = value["metadata"]
    assert len(metadata["uid"]) == 36
    assert (metadata["creationTimestamp"], metadata["resourceVersion"]) == ("2023-11-14T22:13:20Z", "1")


def test_uid_and_time_of_creation_stay(cluster, clock, apply):
    apply(pod_manifest())
    (before,) = cluster.get_pods([WEB])
    clock.advance(60)
    apply(pod_manifest(labels={"a": "b"}))
    (after,) = cluster.get_pods([WEB])
    assert (after.uid, after.metadata.creation_timestamp) == (before.uid, before.metadata.creation_timestamp)
    assert after.metadata.labels == {"a": "b"}


def test_a_dump_keeps_its_uids(cluster, apply):
    manifest = pod_manifest(uid="u-1", nodeName="n1")
    manifest["metadata"].update(resourceVersion="991", creationTimestamp="2020-01-01T00:00:00Z", managedFields=[{}])
    apply(manifest)
    (pod,) = cluster.get_pods([WEB])
    assert (pod.uid, pod.metadata.creation_timestamp, pod.node_name) == ("u-1", "2020-01-01T00:00:00Z", "n1")
    assert outcomes(apply(manifest)) == ["pod default/web unchanged"]


def test_another_uid_replaces_the_pod(store, cluster, apply, reserve):
    apply(node_manifest(), pod_manifest())
    binding = reserve()
    cluster.bind([binding])
    version = cluster.newest_version()
    assert outcomes(apply(pod_manifest(uid="u-2", priority=5))) == ["pod default/web replaced"]
    events, _ = cluster.watch(version, 0)
    assert [(event.change, event.uid) for event in events] == [(Change.DELETED, binding.uid), (Change.ADDED, "u-2")]
    assert (cluster.get_pods([WEB])[0].node_name, Objects(store).events(WEB)) == ("", [])


def test_a_pod_that_was_deleted_comes_back_with_another_uid(store, cluster, apply):
    apply(pod_manifest())
    (before,) = cluster.get_pods([WEB])
    assert Applier(store).delete(kinds.POD, [WEB, "default/none"]) == [True, False]
    apply(pod_manifest())
    assert cluster.get_pods([WEB])[0].uid != before.uid


def test_a_bound_pod_stays_bound(cluster, apply, reserve):
    apply(node_manifest(), pod_manifest())
    cluster.bind([reserve()])
    apply(pod_manifest(labels={"a": "b"}))
    assert cluster.get_pods([WEB])[0].node_name == "n1"


def test_what_get_prints_can_be_applied(store, cluster, apply, reserve):
    apply(node_manifest(), pod_manifest("default/a"), pod_manifest("default/b"))
    cluster.bind([reserve("default/a")])
    printed = Objects(store).all_of(kinds.POD)
    assert [pod["spec"].get("nodeName") for pod in printed] == ["n1", None]
    assert outcomes(apply(*printed)) == ["pod default/a unchanged", "pod default/b unchanged"]


def test_what_label_keys_of_affinity_came_to_stays_when_labels_change(store, cluster, apply):
    keyed = {"topologyKey": "zone", "matchLabelKeys": ["app"], "mismatchLabelKeys": ["tenant"]}

    def web(app: str, selector: dict[str, Any], **more: Any) -> dict[str, Any]:
        term = {**keyed, "labelSelector": selector, **more}
        affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        return pod_manifest(labels={"app": app, "tenant": "x"}, affinity=affinity)

    def expressions() -> list[Any]:
        (pod,) = cluster.get_pods([WEB])
        (term,) = pod.spec.affinity.pod_affinity.required_during_scheduling_ignored_during_execution
        assert pod.metadata.labels["app"] == "shop"
        return [(each.key, each.operator, each.values) for each in term.label_selector.match_expressions]

    apply(web("web", {}))
    for again in (web("shop", {}), *Objects(store).get(kinds.POD, [WEB])):
        again["metadata"]["labels"]["app"] = "shop"
        apply(again)
        assert expressions() == [("app", "In", ["web"]), ("tenant", "NotIn", ["x"])]
    assert outcomes(apply(web("shop", {}))) == ["pod default/web unchanged"]
    for other in (web("shop", {"matchLabels": {"tier": "front"}}), web("shop", {}, topologyKey="host")):
        with pytest.raises(ManifestError, match=r"changed: affinity"):
            apply(other)


def test_what_label_keys_of_spread_came_to_stays_when_labels_change(cluster, apply):
    def web(app: str, **more: Any) -> dict[str, Any]:
        keyed = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["app"]}
        return pod_manifest(labels={"app": app}, topologySpreadConstraints=[{**keyed, "labelSelector": {}, **more}])

    apply(web("web"))
    apply(web("shop"))
    (pod,) = cluster.get_pods([WEB])
    (constraint,) = pod.spec.topology_spread_constraints
    (expression,) = constraint.label_selector.match_expressions
    assert (pod.metadata.labels["app"], expression.values) == ("shop", ["web"])
    with pytest.raises(ManifestError, match=r"changed: topologySpreadConstraints"):
        apply(web("shop", maxSkew=2))


def test_an_ended_pod_tells_its_phase(cluster, apply):
    apply(pod_manifest(nodeName="n1"))
    version = cluster.newest_version()
    apply({**pod_manifest(nodeName="n1"), "status": {"phase": "Succeeded"}})
    (event,), _ = cluster.watch(version, 0)
    assert (event.change, event.object.finished) == (Change.MODIFIED, True)
    assert outcomes(apply(pod_manifest(nodeName="n1"))) == ["pod default/web unchanged"]  # its status stays


def test_a_gate_is_removed(cluster, apply, reserve):
    apply(node_manifest(), pod_manifest(schedulingGates=[{"name": "wait"}]))
    apply(pod_manifest())
    (outcome,) = cluster.bind([reserve()])
    assert outcome.node == "n1"


IMMUTABLE = (
    "pod default/web: spec is immutable except for removed schedulingGates, added tolerations, container resources and "
    "images, cpu and memory of resources (changed: {}); delete it first"
)


@pytest.mark.parametrize(
    ("spec", "changed"),
    [({"nodeSelector": {"a": "b"}}, "nodeSelector"), ({"nodeName": "n2"}, "nodeName"), ({"priority": 9}, "priority")],
)
def test_a_forbidden_change_is_refused_and_nothing_is_applied(
    cluster, apply, tmp_path, spec: dict[str, Any], changed: str
):
    apply(pod_manifest())
    version = cluster.newest_version()
    with pytest.raises(ManifestError) as error:
        apply(node_manifest("new"), pod_manifest("default/new"), pod_manifest(**spec))
    assert str(error.value) == f"{tmp_path}/test.json.items[2]: {IMMUTABLE.format(changed)}"
    assert cluster.newest_version() == version
    assert (cluster.list().nodes, len(cluster.list().pods)) == ([], 1)


def test_an_unknown_priority_class_is_refused_and_nothing_is_applied(cluster, apply):
    with pytest.raises(ManifestError, match='there is no PriorityClass "high"'):
        apply(node_manifest(), pod_manifest(priorityClassName="high"))
    assert cluster.newest_version() == 0


def test_a_priority_class_of_the_same_call_counts(cluster, apply):
    apply(
        pod_manifest(priorityClassName="high"),
        other_manifest("PriorityClass", "scheduling.k8s.io/v1", "high", value=7),
    )
    assert cluster.get_pods([WEB])[0].spec.priority == 7
    apply(other_manifest("PriorityClass", "scheduling.k8s.io/v1", "high", value=8))
    assert outcomes(apply(pod_manifest(priorityClassName="high"))) == ["pod default/web unchanged"]
    assert cluster.get_pods([WEB])[0].spec.priority == 7


def test_classes_are_read_only_for_what_may_refer_to_them(apply, monkeypatch):
    """Who applies a pod to an idle system waits for each round trip."""
    read: list[kinds.Kind] = []
    all_of = Objects.all_of
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    monkeypatch.setattr(Objects, "all_of", lambda self, kind: read.append(kind) or all_of(self, kind))
    for value, kind in (
        (pod_manifest(), kinds.PRIORITY_CLASS),
        (other_manifest("PersistentVolumeClaim", "v1", "data", spec=spec), kinds.STORAGE_CLASS),
        (node_manifest(), None),
    ):
        read.clear()
        apply(value)
        assert read == ([] if kind is None else [kind])


def test_a_node_that_is_deleted_leaves_its_pods(store, cluster, apply):
    apply(node_manifest(), pod_manifest(nodeName="n1"))
    version = cluster.newest_version()
    (node,) = cluster.list().nodes
    assert Applier(store).delete(kinds.NODE, ["n1", "n2"]) == [True, False]
    (event,), _ = cluster.watch(version, 0)
    assert (event.change, event.kind, event.key, event.uid) == (Change.DELETED, "Node", "n1", node.metadata.uid)
    assert cluster.get_pods([WEB])[0].node_name == "n1"


def test_progress_counts_every_object(store, tmp_path):
    done = []
    manifests = loaded(tmp_path, *(pod_manifest(f"default/p{number}") for number in range(1001)), node_manifest())
    Applier(store).apply(manifests, done.append)
    assert sum(done) == 1002


def test_a_change_between_look_and_write_is_looked_at_again(store, cluster, clock, apply, reserve, tmp_path):
    """The pod is bound by somebody else right after it was looked at."""
    apply(node_manifest(), pod_manifest())
    applier, binding = Applier(store, clock), reserve()
    look = applier._plan

    def late(*looked_at):
        plans = look(*looked_at)
        cluster.bind([binding])
        return plans

    applier._plan = late
    (applied,) = applier.apply(loaded(tmp_path, pod_manifest(labels={"a": "b"})))
    (pod,) = cluster.get_pods([WEB])
    assert (applied.outcome, pod.node_name, pod.metadata.labels) == ("configured", "n1", {"a": "b"})


def test_a_change_that_makes_it_impossible_is_a_conflict(store, cluster, clock, apply, tmp_path):
    apply(pod_manifest(schedulingGates=[{"name": "wait"}]))
    applier = Applier(store, clock)
    look, manifests = (
        applier._plan,
        loaded(tmp_path, pod_manifest(schedulingGates=[{"name": "wait"}], labels={"a": "b"})),
    )

    def late(*looked_at):
        plans = look(*looked_at)
        apply(pod_manifest())
        return plans

    applier._plan = late
    with pytest.raises(Conflict, match="changed by others meanwhile"):
        applier.apply(manifests)
    assert cluster.get_pods([WEB])[0].metadata.labels == {}


def test_objects_that_never_stand_still_are_given_up(store, clock, apply, tmp_path):
    apply(node_manifest())
    applier, count = Applier(store, clock), iter(range(1000))
    look, manifests = applier._plan, loaded(tmp_path, node_manifest(cpu="16"))

    def late(*looked_at):
        plans = look(*looked_at)
        apply(node_manifest(memory=f"{next(count)}Gi"))
        return plans

    applier._plan = late
    with pytest.raises(Conflict, match="node n1 changed all the time"):
        applier.apply(manifests)
    assert next(count) == ATTEMPTS


def test_a_refused_batch_is_written_again_before_the_next_one(store, cluster, clock, apply, tmp_path):
    keys = [f"default/p{number}" for number in range(1200)]
    applier, look = Applier(store, clock), []
    look.append(applier._plan)

    def late(*looked_at):
        plans = look[-1](*looked_at)
        applier._plan = look[-1]
        apply(pod_manifest(keys[700], labels={"by": "another"}))
        return plans

    applier._plan = late
    applied = applier.apply(loaded(tmp_path, *(pod_manifest(key) for key in keys)))
    assert [each.key for each in applied] == keys
    assert {each.key: each.outcome for each in applied if each.outcome != "created"} == {keys[700]: "configured"}
    # In the order of the manifests, but for the one that was there before.
    others = [pod.key for pod in cluster.list().pods if pod.key != keys[700]]
    assert others == [key for key in keys if key != keys[700]]
    assert cluster.get_pods([keys[700]])[0].metadata.labels == {}


def test_two_callers_at_once_leave_one_of_both(store, connect, apply, tmp_path):
    keys = [f"default/p{number}" for number in range(200)]
    folders = [tmp_path / "0", tmp_path / "1"]
    for folder in folders:
        folder.mkdir()
    batches = [
        loaded(folder, *(pod_manifest(key, labels={"by": str(number)}) for key in keys))
        for number, folder in enumerate(folders)
    ]
    threads = [threading.Thread(target=Applier(connect(store.name)).apply, args=(manifests,)) for manifests in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pods = StandaloneCluster(store).list().pods
    assert sorted(pod.key for pod in pods) == sorted(keys)
    assert len({pod.metadata.labels["by"] for pod in pods}) == 1
    events, _ = StandaloneCluster(store).watch(0, 0)
    assert [event.version for event in events] == list(range(1, 401))


NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
TEXT = st.text(st.characters(blacklist_categories=["Cs"]), max_size=30)
PODS = st.builds(
    lambda name, annotations, priority, selector, cpu: {
        **pod_manifest(f"default/{name}", priority=priority, nodeSelector=selector),
        "metadata": {"name": name, "annotations": annotations},
        "status": {"phase": "Pending", "conditions": [{"type": "Custom", "status": "True", "message": cpu}]},
    },
    NAMES,
    st.dictionaries(NAMES, TEXT, max_size=3),
    st.integers(-1000, 1000),
    st.dictionaries(NAMES, NAMES, max_size=3),
    TEXT,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pods=st.lists(PODS, min_size=1, max_size=5, unique_by=lambda pod: pod["metadata"]["name"]))
def test_what_is_applied_is_listed(store, tmp_path, pods):
    Applier(store).delete(kinds.POD, [pod.key for pod in StandaloneCluster(store).list().pods])
    manifests = loaded(tmp_path, *pods)
    Applier(store).apply(manifests)
    listed = {pod.key: pod for pod in StandaloneCluster(store).list().pods}
    assert list(listed) == [each.key for each in manifests]
    for manifest in pods:
        pod = listed[f"default/{manifest['metadata']['name']}"]
        assert pod.metadata.annotations == manifest["metadata"]["annotations"]
        assert pod.spec.priority == manifest["spec"]["priority"]
        assert pod.spec.node_selector == manifest["spec"]["nodeSelector"]
        assert pod.status.conditions[0].message == manifest["status"]["conditions"][0]["message"]
    assert {each.outcome for each in Applier(store).apply(loaded(tmp_path, *pods))} == {"unchanged"}


def test_a_bound_claim_stays_bound_when_its_manifest_is_applied_again(store, apply):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    bound = {
        **claim,
        "metadata": {**claim["metadata"], "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {**claim["spec"], "volumeName": "pv-1"},
    }
    apply(bound)
    apply({**claim, "metadata": {**claim["metadata"], "labels": {"tier": "db"}}})
    (value,) = Objects(store).get(kinds.BY_NAME["PersistentVolumeClaim"], ["default/data"])
    assert value["spec"]["volumeName"] == "pv-1"
    assert value["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
    assert value["metadata"]["labels"] == {"tier": "db"}


def test_a_claim_for_devices_asks_for_what_it_asked_for(store, cluster, apply):
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
    claim = other_manifest("ResourceClaim", "resource.k8s.io/v1", "a", spec={"devices": devices})
    apply(claim)
    (found,) = cluster.get_objects("ResourceClaim", ["default/a"])
    assert cluster.list().others["ResourceClaim"] == [found]
    assert outcomes(apply(claim)) == ["resourceclaim default/a unchanged"]
    changed = {"requests": [{"name": "r", "exactly": {"deviceClassName": "nic"}}]}
    with pytest.raises(ManifestError, match="spec: is immutable; delete the claim first"):
        apply(claim | {"spec": {"devices": changed}})
    assert cluster.get_objects("ResourceClaim", ["default/a"]) == [found]


def test_the_claims_that_a_pod_got_stay_when_its_manifest_is_applied_again(cluster, apply):
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    got = [{"name": "gpu", "resourceClaimName": "web-gpu-x2x4b"}]
    apply(pod_manifest(resourceClaims=claims) | {"status": {"resourceClaimStatuses": got}})
    apply(pod_manifest(resourceClaims=claims, labels={"a": "b"}))
    (pod,) = cluster.get_pods([WEB])
    assert [each.resource_claim_name for each in pod.status.resource_claim_statuses] == ["web-gpu-x2x4b"]


@pytest.mark.parametrize("name", ["resourceVersion", "uid", "creationTimestamp"])
def test_what_somebody_else_has_written_incompletely_says_what_it_lacks(store, apply, name: str):
    apply(node_manifest("n1"))
    value = json.loads(store.redis.hget(store.key("cluster:nodes"), "n1"))
    del value["metadata"][name]
    store.redis.hset(store.key("cluster:nodes"), "n1", json.dumps(value))
    with pytest.raises(ClusterError, match=rf"it has no metadata.{name}\); 'dsched delete node' takes it away"):
        apply(node_manifest("n1"))
    Applier(store).delete(kinds.NODE, ["n1"])
    assert outcomes(apply(node_manifest("n1"))) == ["node n1 created"]
