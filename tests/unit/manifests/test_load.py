"""What manifests are refused for, word by word."""

from pathlib import Path
from typing import Any

import pytest

from dsched.errors import ManifestError
from dsched.manifests import load
from tests.manifests import Json, loaded, node_manifest, other_manifest, pod_manifest

WEB = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Pod
metadata: {name: ok}
spec: {containers: [{name: main}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: main
    resources: {requests: {cpu: 10x}}
"""


def refused(folder: Path, *objects: Json, namespace: str | None = None) -> list[str]:
    """The problems, without the file's name; of several objects with the item's number."""
    with pytest.raises(ManifestError) as error:
        loaded(folder, *objects, namespace=namespace)
    prefix = f"{folder}/test.json.items[0]: "
    return [problem.removeprefix(prefix).removeprefix(f"{folder}/test.json.") for problem in error.value.problems]


def with_container(**fields: Any) -> Json:
    return pod_manifest(containers=[{"name": "main", **fields}])


def node_affinity(**requirement: Any) -> Json:
    required = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return pod_manifest(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})


def label_keys(**fields: Any) -> Json:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}
    return pod_manifest(labels={"app": "web"}, topologySpreadConstraints=[constraint])


def storage_class(expressions: list[Json]) -> Json:
    topologies = [{"matchLabelExpressions": expressions}]
    return other_manifest("StorageClass", "storage.k8s.io/v1", "a", provisioner="d", allowedTopologies=topologies)


def claim(**fields: Any) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **fields}
    return other_manifest("PersistentVolumeClaim", "v1", "a", spec=spec)


VOLUME = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
TOPOLOGY = "allowedTopologies[0].matchLabelExpressions"
TERM = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
EXPRESSION = f"{TERM}.matchExpressions[0]"


def test_a_problem_names_file_document_and_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("web.yaml").write_text(WEB)
    with pytest.raises(ManifestError) as error:
        load.load(["web.yaml"])
    assert str(error.value) == 'web.yaml[2]: spec.containers[0].resources.requests.cpu: "10x" is not a quantity'


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        ({"kind": "Pod", "metadata": {"name": "a"}}, "apiVersion: is missing: expected v1, the one taken for kind Pod"),
        (other_manifest("Pod", "v2", "a"), 'apiVersion: "v2" is not v1, the one taken for kind Pod'),
        ({"apiVersion": "v1", "metadata": {"name": "a"}}, "kind: is missing"),
        ({"apiVersion": "v1", "kind": "Pod"}, "metadata.name: is missing"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 5}}, "metadata.name: is no text"),
        (other_manifest("Pod", "v1", "a", metadata=[]), "metadata: expected an object"),
        (pod_manifest("shop/a", labels={"x/y/z": ""}), "metadata.labels: "),
        (pod_manifest("shop/a", labels={"x": "-"}), 'metadata.labels: "-" is not a label value'),
        (pod_manifest("shop/Web"), 'metadata.name: "Web" is not a DNS subdomain'),
        (pod_manifest("sh.op/web"), 'metadata.namespace: "sh.op" is not a DNS label'),
        (pod_manifest(uid="a b"), 'metadata.uid: "a b" is not a UID'),
        (pod_manifest(labels={"x": 1}), "metadata.labels.x: expected text, found a whole number"),  # type: ignore[dict-item]
        (pod_manifest(containers=[]), "spec.containers: has to name at least one container"),
        (pod_manifest(containers={}), "spec.containers: expected a list, found an object"),
        (pod_manifest(priority="high"), "spec.priority: expected a whole number, found text"),
        (pod_manifest(nodeName="N1"), 'spec.nodeName: "N1" is not a DNS subdomain'),
        (pod_manifest(nodeSelector={"a": "b c"}), 'spec.nodeSelector: "b c" is not a label value'),
        (
            pod_manifest(preemptionPolicy="Maybe"),
            'spec.preemptionPolicy: "Maybe" is not one of PreemptLowerPriority, Never',
        ),
        (pod_manifest(overhead={"cpu": "-1"}), 'spec.overhead.cpu: "-1" is negative'),
        (
            pod_manifest(schedulingGates=[{"name": "a"}, {"name": "a"}]),
            'spec.schedulingGates[1].name: "a" is given twice',
        ),
        (pod_manifest(schedulingGates=[{}]), "spec.schedulingGates[0].name: is missing"),
        (
            pod_manifest(schedulingGates=[{"name": "a"}], nodeName="n1"),
            "spec.nodeName: cannot be set before all schedulingGates are removed",
        ),
        ({**pod_manifest(), "status": {"phase": "Done"}}, 'status.phase: "Done" is not one of Pending, Running'),
        (with_container(name="a_b"), 'spec.containers[0].name: "a_b" is not a DNS label'),
        (pod_manifest(containers=[{}]), "spec.containers[0].name: is missing"),
        (
            pod_manifest(initContainers=[{"name": "main"}]),
            'spec.initContainers[0].name: "main" is given twice',
        ),
        (
            with_container(resources={"requests": {"gpu": 1}}),
            'spec.containers[0].resources.requests.gpu: "gpu" is neither a standard resource',
        ),
        (
            with_container(resources={"requests": {"a.b/gpu": 1}}),
            "spec.containers[0].resources.limits.a.b/gpu: has to be given: this resource cannot be overcommitted",
        ),
        (
            with_container(resources={"requests": {"a.b/gpu": 1}, "limits": {"a.b/gpu": 2}}),
            'spec.containers[0].resources.requests.a.b/gpu: "1" has to equal the limit, "2"',
        ),
        (
            with_container(resources={"limits": {"a.b/gpu": "500m"}}),
            'spec.containers[0].resources.limits.a.b/gpu: "500m" is not a whole number',
        ),
        (
            with_container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}),
            'spec.containers[0].resources.requests.cpu: "2" is more than the limit, "1500m"',
        ),
        (
            with_container(resources={"requests": {"memory": True}}),
            "spec.containers[0].resources.requests.memory: expected a quantity, found true or false",
        ),
        (
            with_container(resources={"limits": {"hugepages-2Mi": "2Mi"}}),
            "spec.containers[0].resources: huge pages need cpu or memory beside them",
        ),
        (with_container(ports=[{}]), "spec.containers[0].ports[0].containerPort: 0 is not between 1 and 65535"),
        (
            with_container(ports=[{"containerPort": 1, "hostPort": 65536}]),
            "spec.containers[0].ports[0].hostPort: 65536 is not between 1 and 65535",
        ),
        (
            with_container(ports=[{"containerPort": 1, "protocol": "tcp"}]),
            'spec.containers[0].ports[0].protocol: "tcp" is not one of TCP, UDP, SCTP',
        ),
        (
            pod_manifest(initContainers=[{"name": "a", "ports": [{"containerPort": 1, "hostPort": 80}] * 2}]),
            "spec.initContainers[0].ports[1].hostPort: 80 is taken by another port of this pod",
        ),
        (
            with_container(restartPolicy="Sometimes"),
            'spec.containers[0].restartPolicy: "Sometimes" is not one of Always, OnFailure, Never',
        ),
        (
            with_container(resources={"requests": {"requests.example.com/gpu": 1}}),
            "spec.containers[0].resources.requests.requests.example.com/gpu: "
            '"requests.example.com/gpu" is no name of an extended resource',
        ),
        (
            pod_manifest(resources={"limits": {"ephemeral-storage": "1Gi"}}),
            "spec.resources.limits.ephemeral-storage: is only for containers",
        ),
        (
            pod_manifest(
                resources={"requests": {"cpu": "1"}},
                containers=[{"name": name, "resources": {"limits": {"cpu": "600m"}}} for name in "ab"],
            ),
            'spec.resources.requests.cpu: "1" is less than what the containers request together',
        ),
        (
            pod_manifest(
                resources={"limits": {"memory": "1Gi"}},
                containers=[{"name": name, "resources": {"requests": {"memory": "600Mi"}}} for name in "ab"],
            ),
            'spec.resources.limits.memory: "1Gi" is less than what the containers request together',
        ),
        (
            pod_manifest(
                resources={"requests": {"cpu": "3"}, "limits": {"cpu": "4"}},
                containers=[{"name": "a", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "5"}}}],
            ),
            'spec.containers[0].resources.limits.cpu: "5" is more than the limit of the pod, "4"',
        ),
        (pod_manifest(volumes=[{"emptyDir": {}}]), "spec.volumes[0].name: is missing"),
        (pod_manifest(volumes=[{"name": "a", "emptyDir": {}}] * 2), 'spec.volumes[1].name: "a" is given twice'),
        (
            pod_manifest(volumes=[{"name": "a", "persistentVolumeClaim": {}}]),
            "spec.volumes[0].persistentVolumeClaim.claimName: is missing",
        ),
        (
            pod_manifest(volumes=[{"name": "a", "csi": {"driver": "a/b"}}]),
            'spec.volumes[0].csi.driver: "a/b" is not a DNS subdomain',
        ),
        (pod_manifest(volumes=[{"name": "a", "rbd": {"image": "i"}}]), "spec.volumes[0].rbd.monitors: is missing"),
        (
            label_keys(matchLabelKeys=["app"], labelSelector={"matchLabels": {"app": "web"}}),
            'spec.topologySpreadConstraints[0].matchLabelKeys: "app" is in labelSelector, too',
        ),
        (
            label_keys(matchLabelKeys=["app", "app"], labelSelector={}),
            'spec.topologySpreadConstraints[0].matchLabelKeys[1]: "app" is given twice',
        ),
        (
            with_container(ports=[{"containerPort": 1, "hostPort": 80}, {"containerPort": 2, "hostPort": 80}]),
            "spec.containers[0].ports[1].hostPort: 80 is taken by another port of this pod",
        ),
        (
            pod_manifest(hostNetwork=True, containers=[{"name": "a", "ports": [{"containerPort": 1, "hostPort": 2}]}]),
            "spec.containers[0].ports[0].hostPort: has to equal containerPort when hostNetwork is true",
        ),
        (pod_manifest(tolerations=[{}]), "spec.tolerations[0].operator: has to be Exists when key is empty"),
        (
            pod_manifest(tolerations=[{"key": "a", "operator": "In"}]),
            'spec.tolerations[0].operator: "In" is not one of Equal, Exists, Gt, Lt',
        ),
        (
            pod_manifest(tolerations=[{"key": "a", "operator": "Gt", "value": "1.5"}]),
            "spec.tolerations[0].value: has to be a whole number of 64 bits when operator is Gt",
        ),
        (
            pod_manifest(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
            "spec.tolerations[0].value: has to be empty when operator is Exists",
        ),
        (
            pod_manifest(tolerations=[{"key": "a", "effect": "No"}]),
            'spec.tolerations[0].effect: "No" is not one of NoSchedule, PreferNoSchedule, NoExecute',
        ),
        (
            pod_manifest(tolerations=[{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]),
            "spec.tolerations[0].effect: has to be NoExecute when tolerationSeconds is set",
        ),
        (node_affinity(key="a", operator="in"), f'{EXPRESSION}.operator: "in" is not one of In, NotIn, Exists'),
        (node_affinity(key="a", operator="In"), f"{EXPRESSION}.values: has to name at least one value for operator In"),
        (
            node_affinity(key="a", operator="Exists", values=["b"]),
            f"{EXPRESSION}.values: has to be empty for operator Exists",
        ),
        (
            node_affinity(key="a", operator="Gt", values=["1", "2"]),
            f"{EXPRESSION}.values: has to be one value for operator Gt",
        ),
        (
            node_affinity(key="a", operator="Gt", values=["-1"]),
            f'{EXPRESSION}.values[0]: "-1" is not a label value',
        ),
        (node_affinity(key="", operator="Exists"), f'{EXPRESSION}.key: "" is not a qualified name'),
        (
            pod_manifest(
                affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
            ),
            f"{TERM.removesuffix('[0]')}: has to name at least one term",
        ),
        (
            pod_manifest(
                affinity={
                    "podAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {"weight": 0, "podAffinityTerm": {"topologyKey": "zone"}}
                        ]
                    }
                }
            ),
            "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: 0 is not between 1",
        ),
        (
            pod_manifest(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}),
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: is missing",
        ),
        (
            pod_manifest(
                topologySpreadConstraints=[
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}
                ]
            ),
            "spec.topologySpreadConstraints[0].minDomains: goes only with whenUnsatisfiable DoNotSchedule",
        ),
        (node_manifest(cpu="much"), 'status.allocatable.cpu: "much" is not a quantity'),
        (
            {**node_manifest(), "spec": {"taints": [{"key": "a", "effect": "NoWay"}]}},
            'spec.taints[0].effect: "NoWay" is not one of NoSchedule, PreferNoSchedule, NoExecute',
        ),
        (
            {**node_manifest(), "spec": {"taints": [{"key": "a", "effect": "NoExecute"}] * 2}},
            "spec.taints[1]: a:NoExecute is given twice",
        ),
        (other_manifest("Namespace", "v1", "a.b"), 'metadata.name: "a.b" is not a DNS label'),
        (other_manifest("ReplicaSet", "apps/v1", "a"), "spec.selector: is missing"),
        (
            other_manifest("PodDisruptionBudget", "policy/v1", "a", spec={"minAvailable": "half"}),
            'spec.minAvailable: "half" is neither a whole number nor a percentage',
        ),
        (
            other_manifest("PriorityClass", "scheduling.k8s.io/v1", "a", value=1_000_000_001),
            "value: 1000000001 is more than 1000000000",
        ),
        (
            other_manifest("PriorityClass", "scheduling.k8s.io/v1", "system-a", value=5),
            'metadata.name: names beginning with "system-" are kept for the built-in classes',
        ),
        (other_manifest("StorageClass", "storage.k8s.io/v1", "a"), "provisioner: is missing"),
        (
            other_manifest("StorageClass", "storage.k8s.io/v1", "a", provisioner="p", volumeBindingMode="Late"),
            'volumeBindingMode: "Late" is not one of Immediate, WaitForFirstConsumer',
        ),
        (
            other_manifest("PersistentVolume", "v1", "a", spec={"accessModes": ["ReadWriteOnce"]}),
            "spec.capacity.storage: is missing",
        ),
        (
            other_manifest("PersistentVolumeClaim", "v1", "a", spec={"resources": {"requests": {"storage": "1Gi"}}}),
            "spec.accessModes: has to name at least one mode",
        ),
        (
            other_manifest("CSINode", "storage.k8s.io/v1", "a", spec={"drivers": [{"name": "d"}] * 2}),
            'spec.drivers[1].name: "d" is given twice',
        ),
        (
            other_manifest("CSIDriver", "storage.k8s.io/v1", "a", spec={"storageCapacity": "yes"}),
            "spec.storageCapacity: expected true or false, found text",
        ),
        (storage_class([{"key": "zone"}]), f"{TOPOLOGY}[0].values: has to name at least one value"),
        (storage_class([{"key": "zone", "values": ["a", "a"]}]), f'{TOPOLOGY}[0].values[1]: "a" is given twice'),
        (
            storage_class([{"key": "zone", "values": [each]} for each in "ab"]),
            f'{TOPOLOGY}[1].key: "zone" is given twice',
        ),
        (storage_class([]), f"{TOPOLOGY}: has to name at least one expression"),
        (
            claim(accessModes=["ReadWriteOncePod", "ReadWriteOnce"]),
            "spec.accessModes: ReadWriteOncePod excludes other modes",
        ),
        (
            claim(resources={"requests": {"storage": "0"}}),
            'spec.resources.requests.storage: "0" is not greater than zero',
        ),
        (
            claim(storageClassName="Fast"),
            'spec.storageClassName: "Fast" is not a DNS subdomain',
        ),
        (
            other_manifest("PersistentVolume", "v1", "a", spec={**VOLUME, "capacity": {"storage": "1Gi", "cpu": 1}}),
            "spec.capacity.cpu: is not storage, all that a volume has",
        ),
        (
            other_manifest("PersistentVolume", "v1", "a", spec={**VOLUME, "csi": {"driver": "d"}}),
            "spec.csi.volumeHandle: is missing",
        ),
        (
            other_manifest("PodDisruptionBudget", "policy/v1", "a", spec={"maxUnavailable": "101%"}),
            'spec.maxUnavailable: "101%" is more than 100%',
        ),
        (
            other_manifest("PriorityClass", "scheduling.k8s.io/v1", "a", value=1, preemptionPolicy=""),
            "preemptionPolicy: is missing: expected one of",
        ),
        (
            other_manifest("ReplicationController", "v1", "a", spec={"template": []}),
            "spec.template: expected an object, found a list",
        ),
        (
            other_manifest("CSIStorageCapacity", "storage.k8s.io/v1", "a", storageClassName="s", capacity="lots"),
            'capacity: "lots" is not a quantity',
        ),
        (
            other_manifest("VolumeAttachment", "storage.k8s.io/v1", "a", spec={"attacher": "d"}),
            "spec.nodeName: is missing",
        ),
    ],
)
def test_what_the_api_server_would_refuse_is_refused(tmp_path: Path, manifest: Json, problem: str):
    (found,) = refused(tmp_path, manifest)
    assert found.startswith(problem)


def test_an_unknown_kind_is_told_which_ones_there_are(tmp_path: Path):
    (found,) = refused(tmp_path, other_manifest("Ingress", "v1", "a"))
    assert found.startswith('kind: "Ingress" is not one of CSIDriver, CSINode, ')
    assert "Pod, PodDisruptionBudget" in found


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "Job", "CronJob"])
def test_workloads_are_told_that_nobody_makes_their_pods(tmp_path: Path, kind: str):
    (found,) = refused(tmp_path, other_manifest(kind, "apps/v1", "a"))
    assert found.startswith(f"kind: standalone mode has no controllers that make pods of a {kind}; ")


def test_an_object_given_twice_names_the_first_place(tmp_path: Path):
    (found,) = refused(tmp_path, node_manifest("a"), pod_manifest("default/a"), node_manifest("a"))
    assert found == f"items[2]: node a is already given in {tmp_path}/test.json.items[0]"


def test_all_problems_are_collected_and_the_rest_counted(tmp_path: Path):
    found = refused(tmp_path, *(node_manifest(f"n{number}", cpu="x") for number in range(25)))
    assert len(found) == 21
    assert found[0] == 'status.allocatable.cpu: "x" is not a quantity'
    assert found[-1] == "… and 5 more problems"


def test_pods_of_one_template_are_told_of_one_by_one(tmp_path: Path):
    wrong = {"containers": [{"name": "Main"}]}
    assert [
        problem.split(": ")[:2]
        for problem in refused(
            tmp_path,
            pod_manifest("default/a"),
            pod_manifest("default/b", labels={"a b": "c"}),
            {**pod_manifest("default/c"), "status": {"phase": "Fine"}},
            {**pod_manifest("default/d"), "status": {"phase": 3}},
            pod_manifest("default/e", **wrong),
            pod_manifest("default/f", **wrong),
        )
    ] == [
        ["items[1]", "metadata.labels"],
        ["items[2]", "status.phase"],
        ["items[3]", "status.phase"],
        ["items[4]", "spec.containers[0].name"],
        ["items[5]", "spec.containers[0].name"],
    ]


def test_pods_of_one_template_get_defaults_of_their_own(tmp_path: Path):
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["version"]}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = loaded(
        tmp_path, *(pod_manifest(f"default/{name}", labels={"version": name}, affinity=affinity) for name in "abc")
    )
    selectors = [
        pod.value["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
        for pod in pods
    ]
    expressions = [each["labelSelector"]["matchExpressions"] for each in selectors]
    assert expressions == [[{"key": "version", "operator": "In", "values": [name]}] for name in "abc"]


def test_what_json_writes_alike_is_told_apart(tmp_path: Path):
    file = tmp_path / "pods.yaml"
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: main, image: %s}]}\n"
    file.write_text("---\n".join([text % ("a", "aGk="), text % ("b", "!!binary aGk=")]))
    with pytest.raises(ManifestError) as error:
        load.load([str(file)])
    assert str(error.value) == f"{file}[1]: spec.containers[0].image: expected text, found bytes"


def test_templates_beyond_those_remembered_are_checked_pod_by_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(load, "SPECS", 1)
    sound = [pod_manifest(f"default/{name}", priority=number) for name in "ab" for number in (1, 2)]
    pods = [{**pod, "metadata": {"name": f"p{number}"}} for number, pod in enumerate(sound)]
    assert len(loaded(tmp_path, *pods)) == 4
    wrong = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "wrong"}, "spec": {}}
    assert refused(tmp_path, *pods, wrong) == ["items[4]: spec.containers: has to name at least one container"]


def test_the_namespace_asked_for_fills_in_and_must_not_be_contradicted(tmp_path: Path):
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "m"}]}}
    assert [each.key for each in loaded(tmp_path, bare)] == ["default/a"]
    bare["metadata"] = {"name": "a"}
    assert [each.key for each in loaded(tmp_path, bare, namespace="shop")] == ["shop/a"]
    found = refused(tmp_path, pod_manifest("other/a"), namespace="shop")
    assert found == ['metadata.namespace: "other" is not the namespace asked for, "shop"']


def test_objects_without_namespace_lose_it(tmp_path: Path):
    node = node_manifest("n1")
    node["metadata"]["namespace"] = "shop"
    (manifest,) = loaded(tmp_path, node)
    assert manifest.key == "n1"
    assert "namespace" not in manifest.value["metadata"]


def test_names_alone_are_read_for_deleting(tmp_path: Path):
    file = tmp_path / "a.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {nonsense: true}\n")
    (named,) = load.load_names([str(file)])
    assert (named.kind.name, named.key) == ("Pod", "default/a")


def test_a_pod_with_everything_sound_is_taken(tmp_path: Path):
    requirement = {"key": "zone", "operator": "In", "values": ["a"]}
    term = {"labelSelector": {"matchExpressions": [requirement]}, "topologyKey": "zone", "namespaceSelector": {}}
    node_term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    pod = pod_manifest(
        priority=5,
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [node_term]},
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 100,
                        "preference": {"matchExpressions": [{"key": "n", "operator": "Lt", "values": ["-4"]}]},
                    }
                ],
            },
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        },
        tolerations=[
            {"operator": "Exists"},
            {"key": "a.b/c", "value": "", "effect": "NoExecute", "tolerationSeconds": 0},
        ],
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}
        ],
        initContainers=[{"name": "side", "restartPolicy": "Always", "ports": [{"containerPort": 80, "hostPort": 80}]}],
    )
    (manifest,) = loaded(tmp_path, pod)
    assert manifest.value["spec"]["priority"] == 5
