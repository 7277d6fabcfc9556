"""What the chart renders is what Kubernetes 1.34 and 1.37 know, and has no field that they do not."""

import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chart import chart
from tests.chart.chart import Json, rendered
from tests.chart.schemas import Schemas, UnknownKind
from tests.e2e import programs

OF_OTHERS = ("monitoring.coreos.com/v1", "keda.sh/v1alpha1")
"""Looked at where their definitions are: tests/e2e/build-assets fetches them."""


@pytest.fixture(scope="module", params=["1.34", "1.37"])
def schemas(request: pytest.FixtureRequest) -> Schemas:
    path = chart.folder() / "schemas" / f"{request.param}.json"
    if not path.exists():
        pytest.skip(f"{path} is not there: run tests/chart/build-tools")
    return Schemas(path, definitions())


def definitions() -> list[Path]:
    try:
        return sorted((programs.folder() / "crds").glob("*.yaml"))
    except programs.NoPrograms:
        return []


@pytest.mark.parametrize("values", chart.CASES, ids=lambda path: path.stem)
def test_every_object_is_one_that_kubernetes_knows(schemas: Schemas, values: Path):
    found = rendered(values)
    of_others = [each for each in found if each["apiVersion"] in OF_OTHERS]
    judged = found if definitions() else [each for each in found if each not in of_others]
    assert [wrong for each in judged for wrong in schemas.wrong(each)] == []
    if len(judged) < len(found):
        pytest.skip("no definitions of PodMonitors and others: run tests/e2e/build-assets; the rest is well")


def add_to_pod(pod: Json) -> None:
    pod["spec"]["template"]["spec"]["shedulerName"] = "dsched"


def add_to_container(pod: Json) -> None:
    pod["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]["pth"] = "/"


def mistype(pod: Json) -> None:
    pod["spec"]["replicas"] = "two"


def leave_out(pod: Json) -> None:
    del pod["spec"]["selector"]


@pytest.mark.parametrize("change", [add_to_pod, add_to_container, mistype, leave_out])
def test_what_kubernetes_does_not_know_is_seen(schemas: Schemas, change: Callable[[Json], None]):
    leader = next(each for each in rendered() if each["kind"] == "Deployment")
    changed = copy.deepcopy(leader)
    change(changed)
    assert list(schemas.wrong(leader)) == []
    assert len(list(schemas.wrong(changed))) == 1


def test_a_kind_that_is_no_longer_served_is_seen(schemas: Schemas):
    with pytest.raises(UnknownKind):
        list(schemas.wrong({"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget"}))
