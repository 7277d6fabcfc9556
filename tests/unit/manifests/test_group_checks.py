"""Pod groups are checked and completed as an API server does it, and change only where that is allowed."""

from pathlib import Path
from typing import Any

import pytest

from dsched.errors import ManifestError
from dsched.manifests import admission, group_checks, kinds
from dsched.manifests.admission import classes
from tests.manifests import Json, group_manifest, loaded, pod_manifest

GPU = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}
RACK = {"topology": [{"key": "topology.kubernetes.io/rack"}]}


def problems(folder: Path, *objects: Json) -> list[str]:
    with pytest.raises(ManifestError) as error:
        loaded(folder, *objects)
    return [problem.partition("]: ")[2] for problem in error.value.problems]


def test_what_is_sound_is_taken(tmp_path: Path) -> None:
    sound = [
        group_manifest(),
        group_manifest("shop/devices", resourceClaims=[GPU, {"name": "link", "resourceClaimName": "fast"}]),
        group_manifest("shop/basic", None, disruptionMode={"all": {}}, schedulingConstraints=RACK),
        group_manifest("shop/made", 1, workloadRef={"workloadName": "job.v1", "templateName": "workers"}, priority=5),
        {**group_manifest("shop/alpha"), "apiVersion": "scheduling.k8s.io/v1alpha3"},
        pod_manifest(schedulingGroup={"podGroupName": "train"}),
    ]
    assert len(loaded(tmp_path, *sound)) == len(sound)


def test_pods_of_a_group_are_disrupted_one_by_one_unless_it_says_otherwise(tmp_path: Path) -> None:
    plain, together = loaded(tmp_path, group_manifest(), group_manifest("default/all", disruptionMode={"all": {}}))
    assert plain.value["spec"]["disruptionMode"] == {"single": {}}
    assert together.value["spec"]["disruptionMode"] == {"all": {}}


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (group_manifest(min_count=0), "spec.schedulingPolicy.gang.minCount: is missing"),
        (group_manifest(min_count=-1), "spec.schedulingPolicy.gang.minCount: -1 is not greater than zero"),
        (group_manifest(schedulingPolicy={}), "spec.schedulingPolicy: exactly one of basic, gang has to be given"),
        (
            group_manifest(schedulingPolicy={"basic": {}, "gang": {"minCount": 1}}),
            "spec.schedulingPolicy: exactly one of basic, gang has to be given",
        ),
        (group_manifest(disruptionMode={}), "spec.disruptionMode: exactly one of single, all has to be given"),
        (
            group_manifest(schedulingConstraints={"topology": [{"key": "a"}, {"key": "b"}]}),
            "spec.schedulingConstraints.topology: has 2 entries, more than 1",
        ),
        (
            group_manifest(schedulingConstraints={"topology": [{}]}),
            "spec.schedulingConstraints.topology[0].key: is missing",
        ),
        (group_manifest(priority=1_000_000_001), "spec.priority: 1000000001 is more than 1000000000"),
        (group_manifest(priorityClassName="A"), 'spec.priorityClassName: "A" is not a DNS subdomain'),
        (group_manifest(workloadRef={"workloadName": "w"}), "spec.workloadRef.templateName: is missing"),
        (
            group_manifest(parentCompositePodGroupName="root"),
            "spec.parentCompositePodGroupName: needs the feature CompositePodGroup, which dsched does not have yet",
        ),
        (group_manifest(resourceClaims=[{"name": "gpu"}]), "spec.resourceClaims[0]: exactly one of resourceClaimName"),
        (group_manifest(resourceClaims=[GPU, GPU]), 'spec.resourceClaims[1].name: "gpu" is given twice'),
        (
            group_manifest(resourceClaims=[{**GPU, "name": f"g{n}"} for n in range(5)]),
            "spec.resourceClaims: has 5 entr",
        ),
        (group_manifest(preemptionPolicy="Never"), "spec.preemptionPolicy: needs the feature PodGroupPreemptionPolicy"),
        (pod_manifest(schedulingGroup={}), "spec.schedulingGroup.podGroupName: is missing"),
        (pod_manifest(schedulingGroup={"podGroupName": "A"}), 'spec.schedulingGroup.podGroupName: "A" is not a DNS'),
    ],
)
def test_what_is_wrong_is_refused_by_name(tmp_path: Path, manifest: Json, problem: str) -> None:
    (found,) = problems(tmp_path, manifest, pod_manifest("default/other"))
    assert found.startswith(problem)


def admitted(group: Json, stored: Json | None = None) -> tuple[Json, list[str]]:
    told: list[str] = []
    known = classes([{"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}], [])
    admission.admit(kinds.POD_GROUP, group, stored, known, lambda path, what: told.append(f"{path}: {what}"))
    spec = group["spec"]
    return {name: spec[name] for name in ("priorityClassName", "priority", "preemptionPolicy") if name in spec}, told


def test_a_class_gives_its_priority_and_no_policy() -> None:
    assert admitted(group_manifest(priorityClassName="high")) == ({"priorityClassName": "high", "priority": 1000}, [])
    assert admitted(group_manifest()) == ({"priority": 0}, [])


def test_the_built_in_classes_are_beyond_what_a_group_may_have() -> None:
    _, told = admitted(group_manifest(priorityClassName="system-node-critical"))
    assert told == ["spec.priority: 2000001000 is more than 1000000000"]


def test_an_unknown_class_is_refused() -> None:
    _, told = admitted(group_manifest(priorityClassName="none"))
    assert told == ['spec.priorityClassName: there is no PriorityClass "none"; apply it first or in the same call']


def test_the_priority_of_its_creation_stays() -> None:
    stored = group_manifest(priorityClassName="high", priority=7)
    assert admitted(group_manifest(), stored)[0] == {"priorityClassName": "high", "priority": 7}


@pytest.mark.parametrize(
    ("after", "changed"),
    [
        (group_manifest(), []),
        (group_manifest(min_count=9), []),
        (group_manifest(min_count=None), ["schedulingPolicy"]),
        (group_manifest(priority=1), ["priority"]),
        (group_manifest(resourceClaims=[GPU]), ["resourceClaims"]),
        (group_manifest(disruptionMode={"all": {}}), ["disruptionMode"]),
        (group_manifest(newField=1, schedulingConstraints=RACK), ["newField", "schedulingConstraints"]),
    ],
)
def test_only_how_many_make_a_gang_may_change(after: Json, changed: list[str]) -> None:
    before: Any = group_manifest()
    assert group_checks.forbidden(before["spec"], after["spec"]) == changed


def wishing(**annotations: str) -> Json:
    manifest = group_manifest(min_count=3)
    manifest["metadata"]["annotations"] = {
        f"dsched.io/{name.replace('_', '-')}": text for name, text in annotations.items()
    }
    return manifest


def test_annotations_about_topology_are_taken(tmp_path: Path) -> None:
    rack = {"required_topology": "topology.kubernetes.io/zone", "preferred_topology": "rack, example.com/block"}
    assert loaded(tmp_path, wishing(**rack, desired_count="3"))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("required_topology", "a,,b", '"a,,b" has an empty entry; list node labels with commas between them'),
        ("required_topology", "a,b,a", '"a" is there twice'),
        ("required_topology", "a,b,c,d,e", "has 5 entries, more than 4"),
        ("preferred_topology", "a b", '"a b" is not a qualified name'),
        ("preferred_topology", "zone", '"zone" is in dsched.io/required-topology as well; name it once'),
        ("desired_count", "0", '"0" is no number from 1 to 2147483647'),
        ("desired_count", "three", '"three" is no number from 1 to 2147483647'),
        ("desired_count", "9" * 5000, "is no number from 1 to 2147483647"),
        ("desired_count", "2", "2 is less than spec.schedulingPolicy.gang.minCount, 3"),
    ],
)
def test_annotations_that_cannot_be_read_are_refused(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (found,) = problems(tmp_path, wishing(**{"required_topology": "zone", name: text}))
    assert found.startswith(f"metadata.annotations[dsched.io/{name.replace('_', '-')}]: ") and problem in found


def of_scheduler_plugins(**spec: Any) -> Json:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": spec,
    }


def test_groups_of_scheduler_plugins_become_groups_of_kubernetes(tmp_path: Path) -> None:
    (found,) = loaded(tmp_path, of_scheduler_plugins(minMember=3, minResources={"cpu": 4}))
    assert found.value["apiVersion"] == "scheduling.k8s.io/v1beta1"
    assert found.value["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert found.value["spec"]["coscheduling"] == {"minResources": {"cpu": 4}}
    assert loaded(tmp_path, found.value)[0].value == found.value


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"minMember": "3"}, "spec.minMember: expected a whole number, found text"),
        ({"minMember": -1}, "spec.minMember: -1 is less than 0"),
        ({"scheduleTimeoutSeconds": -1}, "spec.scheduleTimeoutSeconds: -1 is less than 0"),
        ({"minResources": {"cpu": "-1"}}, "spec.minResources.cpu: -1 is less than 0"),
        ({"minResources": {"cpu": "much"}}, 'spec.minResources.cpu: "much" is no quantity'),
    ],
)
def test_groups_of_scheduler_plugins_are_checked(tmp_path: Path, spec: Json, problem: str) -> None:
    (found,) = problems(tmp_path, of_scheduler_plugins(**spec))
    assert found == problem
