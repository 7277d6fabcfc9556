"""The chart makes the same objects as deploy/kubernetes does: those who change from one to the other lose nothing."""

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.chart import CHART, PRODUCTION, VALUES, Json, rendered
from tests.e2e.test_manifests import BY_TASKS, KUSTOMIZATIONS, MONITORING, with_components
from tests.e2e.test_manifests import rendered as kustomized

CASES = {
    "dev": ([VALUES / "try.yaml"], "dev", []),
    "production": ([PRODUCTION], "production", []),
    "dev, instead of kube-scheduler": ([VALUES / "instead-of.yaml"], "dev", ["instead-of-kube-scheduler"]),
    "production, with others' operators": (
        [PRODUCTION, VALUES / "monitoring.yaml"],
        "production",
        [MONITORING, BY_TASKS],
    ),
}
"""Values, and the overlay with the components that come to the same."""

OF_HELM = ("app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart")
HASHED = re.compile(r"(dsched-(?:scheduler|environment|redis))-[0-9a-z]{10}$")


def same_labels(objects: list[Json]) -> list[Json]:
    """Helm's own labels; by that of the release its pods are chosen, so that two releases share a namespace."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {key: without(inner) for key, inner in value.items() if key not in OF_HELM}
            return {key: inner for key, inner in kept.items() if key != "matchLabels" or inner}
        return [without(each) for each in value] if isinstance(value, list) else value

    found: list[Json] = without(objects)
    return found


def no_names_for_people(objects: list[Json]) -> list[Json]:
    """What an object's labels tell people: Kustomize's overlays say less. Those of pods are compared."""
    for each in objects:
        for label in ("app.kubernetes.io/name", "app.kubernetes.io/version"):
            each["metadata"]["labels"].pop(label, None)
    return objects


def same_order(objects: list[Json]) -> list[Json]:
    """Kustomize's patches put theirs first."""
    for each in objects:
        pod = each.get("spec", {}).get("template", {}).get("spec", {})
        for whose in (pod, *pod.get("containers", ())):
            for lists in ("volumes", "volumeMounts"):
                whose[lists] = sorted(whose.get(lists, ()), key=lambda one: one["name"])
    return objects


def same_names(objects: list[Json]) -> list[Json]:
    """Kustomize puts a hash of what is in them into the names of ConfigMaps and Secrets …"""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [without(each) for each in value]
        return HASHED.sub(r"\1", value) if isinstance(value, str) else value

    found: list[Json] = without(objects)
    return found


def no_checksums(objects: list[Json]) -> list[Json]:
    """… and the chart into an annotation of the pods: both start them anew when it changes."""
    for each in objects:
        metadata = each.get("spec", {}).get("template", {}).get("metadata", {})
        if metadata.get("annotations", {}).pop("checksum/settings", None) is not None and not metadata["annotations"]:
            del metadata["annotations"]
    return objects


def no_namespace(objects: list[Json]) -> list[Json]:
    """Helm puts a release into a namespace that is there ; docs/helm.md says how to restrict it."""
    return [each for each in objects if each["kind"] != "Namespace"]


def no_definitions(objects: list[Json]) -> list[Json]:
    """Helm applies what is in the folder crds and does not render it; that it is the same is a test of its own."""
    return [each for each in objects if each["kind"] != "CustomResourceDefinition"]


def no_dashboard(objects: list[Json]) -> list[Json]:
    """Kustomize has none: it is imported by hand."""
    return [each for each in objects if each["metadata"]["name"] != "dsched-dashboard"]


def same_text(objects: list[Json]) -> list[Json]:
    """Comments in a configuration file are not what it says."""
    for each in objects:
        for name in each.get("data", {}):
            if name.endswith(".yaml"):
                each["data"][name] = yaml.safe_load(each["data"][name])
            elif name.endswith(".conf"):
                each["data"][name] = each["data"][name].rstrip("\n")
    return objects


ALLOWED: tuple[Callable[[list[Json]], list[Json]], ...] = (
    same_labels,
    no_names_for_people,
    same_order,
    same_names,
    no_checksums,
    no_namespace,
    no_definitions,
    no_dashboard,
    same_text,
)
"""All that may differ, each with its reason."""


def judged(objects: list[Json]) -> dict[str, Json]:
    for same in ALLOWED:
        objects = same(copy.deepcopy(objects))
    found = {f"{each['kind']} {each['metadata']['name']}": each for each in objects}
    assert len(found) == len(objects), "two objects have one name"
    return found


@pytest.mark.parametrize("case", CASES)
def test_chart_and_kustomization_come_to_the_same(case: str, tmp_path: Path):
    values, overlay, components = CASES[case]
    folder = with_components(tmp_path, overlay, components) if components else KUSTOMIZATIONS / "overlays" / overlay
    wanted, found = judged(kustomized(folder)), judged(rendered(*values))
    if "instead-of-kube-scheduler" in components:  # the guide has the profile changed by hand
        (profile,) = wanted["ConfigMap dsched-scheduler"]["data"]["scheduler.yaml"]["profiles"]
        profile["schedulerName"] = "default-scheduler"
    assert sorted(found) == sorted(wanted)
    assert list(differences(found, wanted)) == []


def test_both_define_the_same_kinds():
    assert (CHART / "crds" / "queues.yaml").read_text() == (KUSTOMIZATIONS / "base" / "crds.yaml").read_text()


def differences(chart: Any, kustomization: Any, path: str = "") -> Iterator[str]:
    """Where they differ, and in what."""
    if isinstance(chart, dict) and isinstance(kustomization, dict):
        for key in chart.keys() | kustomization.keys():
            yield from differences(chart.get(key), kustomization.get(key), f"{path} / {key}")
    elif isinstance(chart, list) and isinstance(kustomization, list) and len(chart) == len(kustomization):
        for number, (one, other) in enumerate(zip(chart, kustomization, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif chart != kustomization:
        yield f"{path}: {chart!r} in the chart, {kustomization!r} in the kustomization"


def test_a_difference_is_seen():
    """What is allowed does not cover what matters."""
    wanted = rendered()
    changes: list[tuple[str, Callable[[Json], Any]]] = [
        ("Deployment dsched-leader", lambda each: each["spec"].update(replicas=3)),
        ("Deployment dsched-binder", lambda each: each["spec"]["template"]["spec"].update(schedulerName="dsched")),
        ("NetworkPolicy dsched", lambda each: each["spec"]["egress"].append({})),
        ("ClusterRole dsched-leader", lambda each: each["rules"].append({})),
        ("ConfigMap dsched-environment", lambda each: each["data"].update(DSCHED_NAME="other")),
    ]
    for name, change in changes:
        changed = copy.deepcopy(wanted)
        (one,) = [each for each in changed if f"{each['kind']} {each['metadata']['name']}" == name]
        change(one)
        assert judged(changed)[name] != judged(wanted)[name], name
