"""Objects of a workload: as upstream makes them, and as good as checked one by one."""

from pathlib import Path

import pytest

from dsched.bench.making import DEFAULT_POD, Maker, with_claim
from dsched.bench.operations import CreateNodes, LabelNodes, NodeAllocatable, UniqueLabel
from dsched.bench.templates import Template
from dsched.errors import ManifestError

POD = """
apiVersion: v1
kind: Pod
metadata: {generateName: web-, labels: {app: web}}
spec: {containers: [{name: c, resources: {limits: {cpu: 1}}}]}
"""


def template(tmp_path: Path, text: str, name: str = "object.yaml") -> Template:
    (tmp_path / name).write_text(text)
    return Template(tmp_path / name)


def nodes(count: int, **strategy: object) -> CreateNodes:
    return CreateNodes(opcode="createNodes", count=count, **strategy)  # type: ignore[arg-type]


def test_nodes_have_names_of_their_own_and_their_hostname() -> None:
    made = Maker(0).nodes(3, nodes(50), None)

    assert len({each.key for each in made}) == 50
    assert all(each.key.startswith("node-3-") for each in made)
    assert all(each.value["metadata"]["labels"] == {"kubernetes.io/hostname": each.key} for each in made)
    assert made[0].value["status"]["allocatable"] == {"pods": "110", "cpu": "4", "memory": "32Gi"}


def test_a_seed_gives_the_same_names_and_uids_again() -> None:
    first, again, other = (
        [(each.key, each.value["metadata"]["uid"]) for each in Maker(seed).pods(None, "ns", 5)] for seed in (1, 1, 2)
    )

    assert first == again != other


def test_labels_go_round(tmp_path: Path) -> None:
    made = Maker(0).nodes(0, nodes(3, label_node_prepare_strategy=LabelNodes("zone", ["a", "b"])), None)

    assert [each.value["metadata"]["labels"]["zone"] for each in made] == ["a", "b", "a"]


def test_unique_labels_differ() -> None:
    made = Maker(0).nodes(0, nodes(3, unique_node_label_strategy=UniqueLabel("id")), None)

    assert len({each.value["metadata"]["labels"]["id"] for each in made}) == 3


def test_allocatable_is_added_and_each_node_has_its_csinode() -> None:
    strategy = NodeAllocatable({"volumes": "9"}, {"ebs": {"count": 9}}, ["kubernetes.io/aws-ebs"])

    node, csi = Maker(0).nodes(0, nodes(1, node_allocatable_strategy=strategy), None)

    assert node.value["status"]["allocatable"] == {"pods": "110", "cpu": "4", "memory": "32Gi", "volumes": "9"}
    assert csi.key == node.key
    assert csi.value["spec"]["drivers"] == [{"name": "ebs", "nodeID": node.key, "allocatable": {"count": 9}}]
    assert csi.value["metadata"]["annotations"] == {
        "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"
    }


def test_pods_of_one_template_differ_in_name_and_uid_alone(tmp_path: Path) -> None:
    made = list(Maker(0, signatures=False).pods(template(tmp_path, POD), "ns", 100))

    assert len({each.key for each in made}) == len({each.value["metadata"]["uid"] for each in made}) == 100
    for each in made:
        metadata = each.value["metadata"]
        assert each.key == f"ns/{metadata['name']}"
        assert metadata["name"].startswith("web-")
        assert {name: item for name, item in metadata.items() if name not in ("name", "uid")} == {
            "labels": {"app": "web"},
            "namespace": "ns",
        }
        assert each.value["spec"] == made[0].value["spec"]
        assert each.value["spec"]["containers"][0]["resources"]["requests"] == {"cpu": 1}


def test_pods_of_a_template_with_an_index_are_made_one_by_one(tmp_path: Path) -> None:
    text = POD.replace("generateName: web-", "name: web-{{ .Index }}").replace("app: web", "of: '{{ .Count }}'")

    made = list(Maker(0, signatures=False).pods(template(tmp_path, text), "ns", 3))

    assert [each.key for each in made] == ["ns/web-0", "ns/web-1", "ns/web-2"]
    assert made[2].value["metadata"]["labels"] == {"of": "3"}


def test_the_default_pod_is_not_changed_by_making_pods() -> None:
    list(Maker(0).pods(None, "ns", 3))

    assert DEFAULT_POD["metadata"] == {"generateName": "pod-"}


def test_a_template_that_is_wrong_is_told(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="containers"):
        list(Maker(0).pods(template(tmp_path, POD.replace("[{name", "{name").replace("}}}]", "}}}")), "ns", 1))


def test_claims_and_volumes_are_bound_to_each_other_and_pods_use_them(tmp_path: Path) -> None:
    volume = template(
        tmp_path,
        "apiVersion: v1\nkind: PersistentVolume\n"
        "spec: {accessModes: [ReadOnlyMany], capacity: {storage: 1Gi}, csi: {driver: ebs}}\n",
        "pv.yaml",
    )
    claim = template(
        tmp_path,
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {annotations: {a: b}}\n"
        "spec: {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}\n",
        "pvc.yaml",
    )
    maker = Maker(0)

    made = maker.volumes("ns", 2, volume, claim)
    pod = with_claim(next(iter(maker.pods(None, "ns", 1))), 1)

    last_volume, last_claim = made[2:]
    assert (last_volume.key, last_claim.key) == ("ns-vol-1", "ns/pvc-1")
    assert last_volume.value["spec"]["csi"] == {"driver": "ebs", "volumeHandle": "ns-vol-1"}
    assert last_volume.value["spec"]["claimRef"]["name"] == "pvc-1"
    assert last_claim.value["spec"]["volumeName"] == "ns-vol-1"
    assert last_claim.value["metadata"]["annotations"] == {"a": "b"}
    assert pod.value["spec"]["volumes"] == [{"name": "vol", "persistentVolumeClaim": {"claimName": "pvc-1"}}]


def test_pods_from_a_template_have_signatures_in_batches(tmp_path: Path) -> None:
    made = list(Maker(0).pods(template(tmp_path, POD), "ns", 5, 2))

    found = [each.value["metadata"]["labels"] for each in made]
    assert found == [{"app": "web", "signature": f"signature-label-{number}"} for number in (0, 0, 1, 1, 2)]


def test_each_pod_of_a_template_that_differs_has_a_signature(tmp_path: Path) -> None:
    text = POD.replace(", labels: {app: web}", "").replace("web-", "web-{{.Index}}-")

    made = Maker(0).pods(template(tmp_path, text), "ns", 2)

    found = [each.value["metadata"]["labels"] for each in made]
    assert found == [{"signature": "signature-label-0"}, {"signature": "signature-label-1"}]


def test_pods_without_a_template_have_no_signature_nor_others_where_none_are_wanted(tmp_path: Path) -> None:
    own, alike = Maker(0).pods(None, "ns", 2), Maker(0, signatures=False).pods(template(tmp_path, POD), "ns", 2)

    assert [each.value["metadata"].get("labels") for each in own] == [None, None]
    assert [each.value["metadata"]["labels"] for each in alike] == [{"app": "web"}, {"app": "web"}]


def test_nodes_declare_features() -> None:
    made = Maker(0, ["Feature1", "Feature2"]).nodes(0, nodes(2), None)

    assert [each.value["status"]["declaredFeatures"] for each in made] == [["Feature1", "Feature2"]] * 2
