"""Objects as rows."""

from typing import Any

import pytest

from dsched.cli.render import columns
from dsched.manifests import kinds
from dsched.model.meta import from_builtins
from dsched.model.pod import Pod
from dsched.observe.words import amount
from tests.devices import asking, make_claim, make_class, make_slice, result, taint_rule
from tests.manifests import Json, group_manifest, node_manifest, other_manifest, pod_manifest

NOW_MS = 1_700_000_000_000
CREATED = "2023-11-14T21:13:15Z"  # 1 h and 5 s before


def row(kind: kinds.Kind, value: Json, *, wide: bool = False, used: columns.Used | None = None) -> dict[str, str]:
    value["metadata"]["creationTimestamp"] = CREATED
    chosen = columns.of(kind, wide=wide, namespaced=False)
    (cells,) = columns.rows([value], chosen, columns.View(NOW_MS, used or {}))
    return dict(zip((column.title for column in chosen), cells, strict=True))


def pod(spec: Json | None = None, **status: Any) -> Json:
    return {**pod_manifest("shop/web", **(spec or {})), "status": status}


def test_a_pods_row():
    assert row(kinds.POD, pod({"nodeName": "n1"})) == {
        "NAME": "web",
        "STATUS": "Scheduled",
        "NODE": "n1",
        "AGE": "1h",
    }


def test_a_wide_row_says_why_a_pod_has_no_node():
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    found = row(kinds.POD, pod({"priority": 5}, conditions=[condition], nominatedNodeName="n2"), wide=True)
    assert found == {
        "NAME": "web",
        "STATUS": "Pending",
        "NODE": "<none>",
        "AGE": "1h",
        "PRIORITY": "5",
        "NOMINATED NODE": "n2",
        "REASON": "Unschedulable: 0/1 nodes",
    }


def test_the_namespace_comes_first_where_there_is_one():
    assert columns.of(kinds.POD, wide=False, namespaced=True)[0].title == "NAMESPACE"
    assert columns.of(kinds.NODE, wide=False, namespaced=True)[0].title == "NAME"


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (pod(), "Pending"),
        (pod({"schedulingGates": [{"name": "a"}]}), "SchedulingGated"),
        (pod({"nodeName": "n1"}, phase="Pending"), "Scheduled"),
        (pod({"nodeName": "n1"}, phase="Running"), "Running"),
        (pod(phase="Succeeded"), "Succeeded"),
    ],
)
def test_the_status_of_a_pod(value: Json, status: str):
    assert columns.pod_status(value) == status


def test_a_pod_that_is_being_deleted_is_terminating():
    value = pod({"nodeName": "n1"}, phase="Running")
    value["metadata"]["deletionTimestamp"] = CREATED
    assert columns.pod_status(value) == "Terminating"


def test_a_nodes_row_shows_what_is_used():
    used = {"n1": {"cpu": 1500, "memory": 3 << 29, "pods": 2, "example.com/gpu": 1}}
    value = node_manifest(**{"example.com/gpu": "8"})
    value["spec"] = {"unschedulable": True, "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}
    assert row(kinds.NODE, value, wide=True, used=used) == {
        "NAME": "n1",
        "STATUS": "Ready,SchedulingDisabled",
        "CPU": "1.5/4",
        "MEMORY": "1.5Gi/8Gi",
        "PODS": "2/110",
        "AGE": "1h",
        "OTHER RESOURCES": "example.com/gpu=1/8",
        "TAINTS": "a=b:NoSchedule",
    }


def test_a_node_that_says_so_is_not_ready():
    value = node_manifest()
    value["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert columns.node_status(value) == "NotReady"


def test_used_counts_bound_pods_that_have_not_ended():
    def record(name: str, node: str, phase: str = "") -> Pod:
        return from_builtins({**pod_manifest(f"a/{name}", nodeName=node), "status": {"phase": phase}}, Pod)

    pods = [record("a", "n1"), record("b", "n1"), record("c", "n1", "Failed"), record("d", "")]
    assert columns.used_by_node(pods) == {"n1": {"pods": 2, "cpu": 200}}  # 2 x 100m


@pytest.mark.parametrize(
    ("resource", "counted", "text"),
    [
        ("cpu", 250, "0.25"),
        ("cpu", 64000, "64"),
        ("memory", 0, "0"),
        ("memory", 1 << 30, "1Gi"),
        ("memory", 1500 << 20, "1.5Gi"),
        ("ephemeral-storage", 5 << 10, "5Ki"),
        ("pods", 110, "110"),
    ],
)
def test_amounts_for_people(resource: str, counted: int, text: str):
    assert amount(resource, counted) == text


def test_lines_align():
    table = [["NAME", "STATUS"], ["a", "Pending"], ["long-name", ""]]
    wide = columns.widths(table)
    assert [columns.line(cells, wide) for cells in table] == [
        "NAME        STATUS",
        "a           Pending",
        "long-name",
    ]


def test_other_kinds_have_their_columns():
    value = other_manifest("PersistentVolume", "v1", "pv", spec={"capacity": {"storage": "1Gi"}})
    value["spec"]["claimRef"] = {"namespace": "shop", "name": "data"}
    found = row(kinds.PERSISTENT_VOLUME, value)
    assert (found["CAPACITY"], found["CLAIM"], found["STORAGECLASS"]) == ("1Gi", "shop/data", "<none>")
    assert row(kinds.SERVICE, other_manifest("Service", "v1", "s")) == {"NAME": "s", "AGE": "1h"}


def test_a_time_that_cannot_be_read_has_no_age():
    assert columns.age("yesterday", NOW_MS) == "<unknown>"


def test_a_claims_row_says_whether_it_has_its_devices():
    claim = make_claim("shop/gpu", asking())
    assert row(kinds.RESOURCE_CLAIM, claim) == {"NAME": "gpu", "STATE": "pending", "AGE": "1h"}
    used = [{"resource": "pods", "name": "web", "uid": "u"}]
    claim = make_claim("shop/gpu", asking(), allocated=[result("gpu-0")], reservedFor=used)
    found = row(kinds.RESOURCE_CLAIM, claim, wide=True)
    assert found["STATE"] == "allocated,reserved"
    assert (found["DEVICES"], found["RESERVED FOR"]) == ("gpu.example.com/n1/gpu-0", "web")
    assert found["REQUESTS"] == "r: 1 of gpu"


def test_devices_that_claims_have():
    admin = make_claim("shop/look", asking(), allocated=[result("gpu-1", adminAccess=True)])
    claims = [make_claim("shop/gpu", asking(), allocated=[result("gpu-0")]), admin, make_claim("shop/none", asking())]
    assert columns.held_devices(claims) == {"gpu.example.com/n1/gpu-0"}


def test_rows_of_devices_and_what_taints_them():
    found = row(kinds.RESOURCE_SLICE, make_slice("n1", ["a", "b"]), wide=True)
    assert (found["NODE"], found["POOL"], found["DEVICES"], found["SLICES"]) == ("n1", "n1", "2", "1")
    assert row(kinds.DEVICE_CLASS, make_class(extendedResourceName="example.com/gpu"))["EXTENDED RESOURCE"] == (
        "example.com/gpu"
    )
    assert row(kinds.DEVICE_CLASS, make_class("gpu", "a", "b"), wide=True)["SELECTORS"] == "a && b"
    assert row(kinds.DEVICE_TAINT_RULE, taint_rule("r", pool="n1"))["DEVICES"] == "*/n1/*"


def grouped(status: str = "", reason: str = "", message: str = "", **spec: Any) -> Json:
    condition = {"type": "PodGroupInitiallyScheduled", "status": status, "reason": reason, "message": message}
    return {**group_manifest("shop/train", 3, **spec), "status": {"conditions": [condition] if status else []}}


def test_a_pod_groups_row():
    assert row(kinds.POD_GROUP, grouped()) == {
        "NAME": "train",
        "POLICY": "Gang",
        "WORKLOAD": "<none>",
        "STATUS": "Pending",
        "AGE": "1h",
    }


def test_a_wide_row_says_how_many_pods_of_a_group_have_a_node_and_why_no_more():
    value = grouped("False", "Unschedulable", "0/1 nodes", schedulingConstraints={"topology": [{"key": "rack"}]})
    value["metadata"]["creationTimestamp"] = CREATED
    pods = [
        pod_manifest("shop/a", nodeName="n1", schedulingGroup={"podGroupName": "train"}),
        pod_manifest("shop/b", schedulingGroup={"podGroupName": "train"}),
        {**pod_manifest("shop/c", schedulingGroup={"podGroupName": "train"}), "status": {"phase": "Failed"}},
        pod_manifest("default/d", schedulingGroup={"podGroupName": "train"}),
        pod_manifest("shop/e"),
    ]
    chosen = columns.of(kinds.POD_GROUP, wide=True, namespaced=False)
    counts = columns.pods_by_group(from_builtins(each, Pod) for each in pods)
    (cells,) = columns.rows([value], chosen, columns.View(NOW_MS, {}, grouped=counts))
    assert dict(zip((column.title for column in chosen), cells, strict=True)) == {
        "NAME": "train",
        "POLICY": "Gang",
        "WORKLOAD": "<none>",
        "STATUS": "Unschedulable",
        "AGE": "1h",
        "MIN COUNT": "3",
        "PODS": "1/2",
        "PRIORITY": "<none>",
        "TOPOLOGY": "rack",
        "REASON": "Unschedulable: 0/1 nodes",
    }


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (grouped("True", "Scheduled"), "Scheduled"),
        (grouped("False", "SchedulerError"), "Unschedulable"),
        (
            {
                "status": {
                    "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
                }
            },
            "PreemptionByScheduler",
        ),
    ],
)
def test_the_status_of_a_pod_group(value: Json, status: str):
    assert columns.group_status(value) == status
