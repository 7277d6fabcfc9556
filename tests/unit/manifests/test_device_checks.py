"""Slices, device classes, taint rules, claims and their templates are checked as an API server checks them."""

from pathlib import Path
from typing import Any

import pytest

from dsched.errors import ManifestError
from tests import devices
from tests.devices import alternative, asking, make_claim, make_class, make_device, make_slice, one_of, opaque, result
from tests.manifests import loaded, pod_manifest

Json = dict[str, Any]

TAINT = {"key": "broken", "effect": "NoSchedule"}


def problems(folder: Path, *objects: Json) -> list[str]:
    with pytest.raises(ManifestError) as error:
        loaded(folder, *objects)
    return [problem.partition("]: ")[2] for problem in error.value.problems]


def template(**spec: Any) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu"},
        "spec": spec,
    }


def sharing(policy: Json, node: str = "n1") -> Json:
    capacity = {"memory": {"value": "8", "requestPolicy": policy}}
    return make_slice(node, [make_device("a", allowMultipleAllocations=True, capacity=capacity)])


POLICY = "spec.devices[0].capacity.memory.requestPolicy"
SOUND = [
    sharing({"default": "1", "validValues": ["1", "2"]}, "n2"),
    sharing({"default": "3", "validRange": {"min": "1", "max": "7", "step": "2"}}, "n3"),
    make_slice(
        "n1",
        [
            make_device(
                "gpu-0",
                attributes={"model": "a100", "example.com/index": 0, "driverVersion": {"version": "1.2.3-rc.1+b"}},
                capacity={"memory": devices.capacity("80Gi")},
                taints=[TAINT],
                bindingConditions=["example.com/ready"],
                bindingFailureConditions=["example.com/failed"],
            ),
            "gpu-1",
        ],
    ),
    make_slice("", name="counters", pool="rack/1", counters={"set": {"memory": "80Gi"}}, allNodes=True),
    make_slice("", [make_device("nic", nodeName="n1")], pool="net", perDeviceNodeSelection=True),
    make_class("gpu", "device.driver == 'gpu.example.com'", extendedResourceName="example.com/gpu"),
    devices.taint_rule("maintenance", "None", driver=devices.DRIVER, pool="n1"),
    make_claim(
        "default/mine",
        asking("big", tolerations=[{"key": "broken", "operator": "Exists"}]),
        one_of("any", alternative("two", 2), alternative("all", None)),
        constraints=[{"requests": ["big", "any/two"], "matchAttribute": "gpu.example.com/model"}],
        config=[opaque("fast", "big")],
        allocated=[result("gpu-0", request="big")],
        reservedFor=[{"resource": "pods", "name": "web", "uid": "pod-1"}],
    ),
    template(metadata={"labels": {"a": "b"}}, spec={"devices": {"requests": [asking()]}}),
    pod_manifest(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}]),
]


def test_what_is_sound_is_taken(tmp_path: Path) -> None:
    assert len(loaded(tmp_path, *SOUND)) == len(SOUND)


def test_a_request_is_for_one_device_unless_it_says_otherwise(tmp_path: Path) -> None:
    plain = {"deviceClassName": "gpu"}
    requests = [
        {"name": "one", "exactly": dict(plain)},
        {"name": "all", "exactly": {**plain, "allocationMode": "All"}},
        {"name": "first", "firstAvailable": [{"name": "a", **plain}]},
    ]
    made = template(spec={"devices": {"requests": requests}})
    (found,) = loaded(tmp_path, made)
    one, all_of, first = found.value["spec"]["spec"]["devices"]["requests"]
    assert one["exactly"] == {**plain, "allocationMode": "ExactCount", "count": 1}
    assert "count" not in all_of["exactly"]
    assert first["firstAvailable"][0]["count"] == 1


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (make_slice(driver="", pool="p"), "spec.driver: is missing"),
        (make_slice("n1", pool="a//b"), 'spec.pool.name: "" is not a DNS subdomain'),
        (make_slice("n1", slices=0), "spec.pool.resourceSliceCount: 0 is not greater than zero"),
        (make_slice("", pool="p"), "spec: exactly one of nodeName, nodeSelector, allNodes, perDeviceNodeSelection"),
        (make_slice("n1", allNodes=True), "spec: exactly one of nodeName, nodeSelector, allNodes, perDevice"),
        (make_slice("", pool="p", allNodes=False), "spec.allNodes: has to be true where it is given"),
        (make_slice("n1", ["a", "a"]), 'spec.devices[1].name: "a" is given twice'),
        (make_slice("n1", ["A"]), 'spec.devices[0].name: "A" is not a DNS label'),
        (make_slice("n1", [f"d{n}" for n in range(129)]), "spec.devices: has 129 entries, more than 128"),
        (
            make_slice("n1", [make_device(f"d{n}", taints=[TAINT]) for n in range(65)]),
            "spec.devices: has 65 entries, more than 64",
        ),
        (
            make_slice("n1", [make_device("a", attributes={"b": {}})]),
            "spec.devices[0].attributes.b: has to be exactly one of bool, int, string, version",
        ),
        (
            make_slice("n1", [make_device("a", attributes={"b": {"version": "1.2"}})]),
            'spec.devices[0].attributes.b.version: "1.2" is not a version as semver.org has them',
        ),
        (
            make_slice("n1", [make_device("a", attributes={"b": {"int": "1"}})]),
            "spec.devices[0].attributes",
        ),
        (
            make_slice("n1", [make_device("a", attributes={"b-c": 1})]),
            'spec.devices[0].attributes: "b-c" is no name: letters, digits',
        ),
        (
            make_slice("n1", [make_device("a", attributes={f"a{n}": n for n in range(33)})]),
            "spec.devices[0]: has more than 32 attributes and capacities",
        ),
        (
            make_slice("n1", [make_device("a", capacity={"memory": {"value": "lots"}})]),
            'spec.devices[0].capacity.memory.value: "lots" is not a quantity',
        ),
        (
            make_slice("n1", [make_device("a", capacity={"m": devices.capacity("1", default="1")})]),
            "spec.devices[0].capacity.m.requestPolicy: is only for devices with allowMultipleAllocations",
        ),
        (sharing({"validValues": ["1"], "validRange": {"min": "1"}}), f"{POLICY}: validValues and validRange exclude"),
        (sharing({"validValues": ["1"]}), f"{POLICY}.default: is missing"),
        (sharing({"default": "lots"}), f'{POLICY}.default: "lots" is not a quantity'),
        (sharing({"default": "1", "validValues": ["2", "1"]}), f'{POLICY}.validValues[1]: "1" is less than the value'),
        (sharing({"default": "1", "validValues": ["1", "9"]}), f'{POLICY}.validValues[1]: "9" is more than there is'),
        (sharing({"default": "1", "validValues": ["1", "1"]}), f'{POLICY}.validValues[1]: "1" is given twice'),
        (sharing({"default": "3", "validValues": ["1"]}), f'{POLICY}.validValues: the default, "3", is not among them'),
        (sharing({"default": "1", "validRange": {}}), f"{POLICY}.validRange.min: is missing"),
        (sharing({"default": "9", "validRange": {"min": "9"}}), f'{POLICY}.validRange.min: "9" is more than there is'),
        (sharing({"default": "1", "validRange": {"min": "2"}}), f'{POLICY}.validRange.default: "1" is less than min'),
        (
            sharing({"default": "4", "validRange": {"min": "1", "max": "3"}}),
            f'{POLICY}.validRange.default: "4" is more than max, "3"',
        ),
        (
            sharing({"default": "1", "validRange": {"min": "1", "max": "9"}}),
            f'{POLICY}.validRange.max: "9" is more than there is, "8"',
        ),
        (
            sharing({"default": "1", "validRange": {"min": "1", "step": "0"}}),
            f'{POLICY}.validRange.step: "0" is not greater than zero',
        ),
        (
            sharing({"default": "1", "validRange": {"min": "1", "step": "8"}}),
            f'{POLICY}.validRange.step: "8" above min is more than there is',
        ),
        (
            sharing({"default": "2", "validRange": {"min": "1", "step": "2"}}),
            f'{POLICY}.validRange.step: default, "2", is not min and a number of steps',
        ),
        (
            make_slice("n1", [make_device("a", taints=[{"key": "k", "effect": "Never"}])]),
            'spec.devices[0].taints[0].effect: "Never" is not one of NoSchedule, NoExecute, None',
        ),
        (
            make_slice("n1", [make_device("a", nodeName="n1")]),
            "spec.devices[0]: nodeName, nodeSelector, allNodes are only for slices with perDeviceNodeSelection",
        ),
        (
            make_slice("n1", [make_device("a", bindingConditions=["ready"])]),
            "spec.devices[0]: bindingConditions and bindingFailureConditions go together",
        ),
        (
            make_slice("n1", [make_device("a", consumesCounters=[{"counterSet": "s", "counters": {}}])]),
            "spec.devices[0].consumesCounters[0].counters: is missing",
        ),
        (make_slice("n1", ["a"], counters={"s": {"m": "1"}}), "spec: sharedCounters and devices exclude each other"),
        (make_class("gpu", ""), "spec.selectors[0].cel.expression: is missing"),
        (
            make_class("gpu", "device.drivr == 'a'"),
            "spec.selectors[0].cel.expression: does not compile: character 6: undefined field",
        ),
        (
            make_class("gpu", "device.driver"),
            "spec.selectors[0].cel.expression: does not compile: must evaluate to bool",
        ),
        (make_class("gpu", extendedResourceName="cpu"), 'spec.extendedResourceName: "cpu" is no name of an extended'),
        (make_class("gpu", config=[{}]), "spec.config[0].opaque: is missing"),
        (devices.taint_rule("r", "NoSchedule", ""), "spec.taint.key: is missing"),
        (devices.taint_rule("r", device="A"), 'spec.deviceSelector.device: "A" is not a DNS label'),
        (make_claim("default/a", {"name": "r"}), "spec.devices.requests[0]: exactly one of exactly, firstAvailable"),
        (make_claim("default/a", asking(of="")), "spec.devices.requests[0].exactly.deviceClassName: is missing"),
        (make_claim("default/a", asking(), asking()), 'spec.devices.requests[1].name: "r" is given twice'),
        (make_claim("default/a", asking(count=-1)), "spec.devices.requests[0].exactly.count: -1 is not greater"),
        (
            make_claim("default/a", asking(count=None) | {"exactly": asking(count=None)["exactly"] | {"count": 2}}),
            "spec.devices.requests[0].exactly.count: is not to be given with allocationMode All",
        ),
        (
            make_claim("default/a", one_of("r", *(alternative(f"a{n}") for n in range(9)))),
            "spec.devices.requests[0].firstAvailable: has 9 entries, more than 8",
        ),
        (
            make_claim("default/a", asking(tolerations=[{"operator": "Exists", "value": "v"}])),
            "spec.devices.requests[0].exactly.tolerations[0].value: has to be empty for operator Exists",
        ),
        (
            make_claim("default/a", asking(), constraints=[{"requests": ["x"], "matchAttribute": "d.io/a"}]),
            'spec.devices.constraints[0].requests[0]: "x" is no request of the claim',
        ),
        (
            make_claim("default/a", asking(), constraints=[{"matchAttribute": "a"}]),
            'spec.devices.constraints[0].matchAttribute: "a" names no domain: expected DOMAIN/NAME',
        ),
        (
            make_claim("default/a", asking(), constraints=[{"matchAttribute": "D.io/a"}]),
            'spec.devices.constraints[0].matchAttribute: "D.io/a" has capitals before the name',
        ),
        (
            make_claim("default/a", asking(), constraints=[{}]),
            "spec.devices.constraints[0]: exactly one of matchAttribute, distinctAttribute has to be given",
        ),
        (
            make_claim("default/a", asking(), reservedFor=[{"resource": "pods", "name": "web", "uid": "1"}]),
            "status.reservedFor: is only for claims with an allocation",
        ),
        (template(spec={"devices": {"requests": [{"name": "r"}]}}), "spec.spec.devices.requests[0]: exactly one of"),
        (template(spec={"devices": {"requests": "many"}}), "spec.spec.devices.requests: expected a list, found text"),
        (pod_manifest(resourceClaims=[{"name": "a"}]), "spec.resourceClaims[0]: exactly one of resourceClaimName, re"),
        (
            pod_manifest(resourceClaims=[{"name": "a", "resourceClaimName": "b"}] * 2),
            'spec.resourceClaims[1].name: "a" is given twice',
        ),
    ],
)
def test_what_the_api_server_would_refuse_is_refused(tmp_path: Path, manifest: Json, problem: str) -> None:
    found = problems(tmp_path, manifest)
    assert any(each.startswith(problem) for each in found), found
