"""What is filled in, as the API server does."""

from pathlib import Path
from typing import Any

from dsched.manifests import kinds
from dsched.manifests.defaulting import fill_in
from tests.manifests import Json, loaded, node_manifest, other_manifest, pod_manifest


def filled(folder: Path, manifest: Json) -> Json:
    (found,) = loaded(folder, manifest)
    return found.value


def container(folder: Path, spec: Json, **fields: Any) -> Json:
    value = filled(folder, pod_manifest(**{"containers": [{"name": "main", **fields}], **spec}))
    found: Json = value["spec"]["containers"][0]
    return found


def test_the_scheduler_is_the_default_one_unless_named(tmp_path: Path):
    assert filled(tmp_path, pod_manifest())["spec"]["schedulerName"] == "default-scheduler"
    assert filled(tmp_path, pod_manifest(schedulerName="mine"))["spec"]["schedulerName"] == "mine"


def test_limits_are_requests_where_there_are_none(tmp_path: Path):
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    assert container(tmp_path, {}, resources=resources)["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_limits_of_a_pod_are_its_requests_where_no_container_has_any(tmp_path: Path):
    spec = {"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}
    value = filled(tmp_path, pod_manifest(**spec))  # its container requests cpu
    assert value["spec"]["resources"]["requests"] == {"memory": "1Gi"}


def test_ports_are_tcp_and_host_ports_under_the_hosts_network(tmp_path: Path):
    assert container(tmp_path, {}, ports=[{"containerPort": 80}])["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    ports = container(tmp_path, {"hostNetwork": True}, ports=[{"containerPort": 53, "protocol": "UDP"}])["ports"]
    assert ports == [{"containerPort": 53, "protocol": "UDP", "hostPort": 53}]


def test_label_keys_of_affinity_terms_become_expressions_once():
    term = {
        "labelSelector": {},
        "topologyKey": "zone",
        "matchLabelKeys": ["app", "none"],
        "mismatchLabelKeys": ["tier"],
    }
    value = pod_manifest(
        labels={"app": "web", "tier": "front"},
        affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    for _ in range(2):
        fill_in(kinds.POD, value)
        assert term["labelSelector"] == {
            "matchExpressions": [
                {"key": "app", "operator": "In", "values": ["web"]},
                {"key": "tier", "operator": "NotIn", "values": ["front"]},
            ]
        }


def test_label_keys_of_spread_constraints_become_expressions_once():
    constraint: Json = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["app"]}
    value = pod_manifest(labels={"app": "web"}, topologySpreadConstraints=[constraint, {"matchLabelKeys": ["app"]}])
    for _ in range(2):
        fill_in(kinds.POD, value)
        assert constraint["labelSelector"] == {
            "matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]
        }
    assert "labelSelector" not in value["spec"]["topologySpreadConstraints"][1]


def test_texts_that_are_empty_are_filled_in(tmp_path: Path):
    assert filled(tmp_path, pod_manifest(schedulerName=""))["spec"]["schedulerName"] == "default-scheduler"
    ports = container(tmp_path, {}, ports=[{"containerPort": 80, "protocol": ""}])["ports"]
    assert ports == [{"containerPort": 80, "protocol": "TCP"}]


def test_sources_of_volumes_are_filled_in(tmp_path: Path):
    disk, image = {"name": "a", "azureDisk": {"diskURI": "u"}}, {"name": "b", "rbd": {"monitors": ["m"], "image": "i"}}
    spec = filled(tmp_path, pod_manifest(volumes=[disk, image]))["spec"]
    assert (spec["volumes"][0]["azureDisk"]["kind"], spec["volumes"][1]["rbd"]["pool"]) == ("Shared", "rbd")


def test_a_replication_controller_has_its_templates_labels(tmp_path: Path):
    template = {"metadata": {"labels": {"app": "web"}}}
    value = filled(tmp_path, other_manifest("ReplicationController", "v1", "web", spec={"template": template}))
    assert value["metadata"]["labels"] == value["spec"]["selector"] == {"app": "web"}


def test_a_driver_says_what_it_minds(tmp_path: Path):
    value = filled(tmp_path, other_manifest("CSIDriver", "storage.k8s.io/v1", "d"))
    assert value["spec"] == {"storageCapacity": False, "preventPodSchedulingIfMissing": False}


def test_a_nodes_capacity_is_allocatable(tmp_path: Path):
    node = {**node_manifest(), "status": {"capacity": {"cpu": 4}}}
    assert filled(tmp_path, node)["status"]["allocatable"] == {"cpu": 4}
    assert filled(tmp_path, node_manifest(cpu="2"))["status"]["allocatable"]["cpu"] == "2"


def test_a_namespace_carries_its_name_as_a_label(tmp_path: Path):
    value = filled(tmp_path, other_manifest("Namespace", "v1", "shop"))
    assert value["metadata"]["labels"] == {"kubernetes.io/metadata.name": "shop"}


def test_a_replication_controller_selects_its_template(tmp_path: Path):
    spec = {"template": {"metadata": {"labels": {"app": "web"}}}}
    value = filled(tmp_path, other_manifest("ReplicationController", "v1", "web", spec=spec))
    assert value["spec"]["selector"] == {"app": "web"}


def test_storage_classes_bind_at_once_unless_told(tmp_path: Path):
    value = filled(tmp_path, other_manifest("StorageClass", "storage.k8s.io/v1", "fast", provisioner="p"))
    assert (value["volumeBindingMode"], value["reclaimPolicy"]) == ("Immediate", "Delete")
