"""What plugins say of the pods that they let into the active queue unasked."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsched.config import Features
from dsched.config.feature_gates import DEFAULT
from dsched.framework.runtime import Framework
from tests.builders import make_pod
from tests.unit.framework.frameworks import frameworks

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""
GROUPED = Features(DEFAULT.version, DEFAULT.on | {"GenericWorkload"})

SPECS = st.fixed_dictionaries(
    {},
    optional={
        "schedulingGates": st.lists(st.just({"name": "gate"}), max_size=1),
        "resourceClaims": st.lists(st.just({"name": "gpu", "resourceClaimName": "missing"}), max_size=1),
        "schedulingGroup": st.sampled_from([{}, {"podGroupName": "missing"}]),
        "priority": st.integers(-5, 5),
        "nodeSelector": st.just({"zone": "a"}),
    },
)


@pytest.fixture(scope="module")
def framework() -> Framework:
    (made,) = frameworks(CONFIG, features=GROUPED).values()
    assert {"SchedulingGates", "DynamicResources", "GangScheduling"} <= {each.name for each in made.at("preEnqueue")}
    return made


@given(spec=SPECS)
def test_who_may_not_be_gated_is_let_in_by_each_plugin(framework: Framework, spec: dict[str, Any]) -> None:
    pod = make_pod(spec=spec)
    answers = [plugin.pre_enqueue(pod) for plugin in framework.at("preEnqueue")]
    if not framework.may_gate(pod):
        assert answers == [None] * len(answers)
    assert (framework.run_pre_enqueue(pod) is None) == all(answer is None for answer in answers)


def test_a_pod_by_itself_is_not_asked_about(framework: Framework) -> None:
    assert not framework.may_gate(make_pod())
    assert framework.may_gate(make_pod(gates=["gate"]))
