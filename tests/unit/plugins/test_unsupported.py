"""UnsupportedFields: pods that need what dsched does not have are refused by name, never placed as if they did not."""

from typing import Any

import pytest

from dsched.engine.evaluation import evaluate
from dsched.framework.interface import Code
from dsched.framework.pod_info import PodInfo
from tests.builders import make_node, make_pod, make_snapshot
from tests.unit.framework.frameworks import default_framework


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (
            {"resourceClaims": [{"name": "gpu"}]},
            "spec.resourceClaims needs the plugin DynamicResources, which this profile does not enable",
        ),
        (
            {"schedulingGroup": {"podGroupName": "train"}},
            "spec.schedulingGroup needs the plugin GangScheduling, which needs the feature gate GenericWorkload",
        ),
        (
            {"workloadRef": {"name": "train", "podGroup": "workers"}},
            "spec.schedulingGroup needs the plugin GangScheduling, which needs the feature gate GenericWorkload",
        ),
    ],
)
def test_refused_with_the_field_and_the_plugin(spec: dict[str, Any], reason: str) -> None:
    found = evaluate(default_framework(), PodInfo(make_pod(spec=spec)), make_snapshot([make_node()])).rejection
    assert found is not None
    assert (found.plugin, found.code) == ("UnsupportedFields", Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    assert found.reasons == (reason,)


def test_pods_without_such_fields_are_placed() -> None:
    assert evaluate(default_framework(), PodInfo(make_pod()), make_snapshot([make_node()])).feasible.all()
