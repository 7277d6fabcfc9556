"""DynamicResources in a profile: what it adds to the words about pods that have no claims."""

from typing import Any

import pytest

from dsched.engine.diagnosis import diagnose
from dsched.engine.evaluation import evaluate
from dsched.engine.failed_attempt import FailedAttempt
from dsched.framework.interface import PostFilterResult
from dsched.framework.pod_info import PodInfo
from dsched.framework.validation import PluginFailure
from tests.builders import make_node, make_pod, make_snapshot, make_term
from tests.unit.framework.frameworks import NAME, Handle, frameworks

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    {point}:
      enabled: [{{name: DynamicResources}}]
"""
CONFLICT = [make_term(fields=["metadata.name In x", "metadata.name In y"])]


def post_filtered(point: str = "multiPoint", **of_pod: Any) -> PostFilterResult | None:
    """What PostFilter comes to for a pod that fits nowhere."""
    snapshot = make_snapshot([make_node("n1", cpu="1"), make_node("n2", cpu="1")])
    framework = frameworks(CONFIGURATION.format(point=point), Handle(snapshot))[NAME]
    pod = PodInfo(make_pod(**of_pod))
    evaluation = evaluate(framework, pod, snapshot)
    assert not evaluation.feasible.any()
    attempt = FailedAttempt(framework, evaluation.state, pod, snapshot, evaluation, diagnose(evaluation, 2))
    return framework.run_post_filter(attempt)


def message(result: PostFilterResult | None) -> str:
    assert result is not None
    return result.status.message


def test_its_words_come_before_those_of_preemption() -> None:
    assert message(post_filtered(cpu="2")) == (
        "no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_at_post_filter_alone_it_is_the_last_and_never_finds_what_pre_filter_writes() -> None:
    with pytest.raises(PluginFailure) as raised:
        post_filtered("postFilter", cpu="2")
    assert (raised.value.status.plugin, raised.value.status.message) == ("DynamicResources", "not found")


def test_after_a_rejection_by_an_earlier_pre_filter_it_fails() -> None:
    with pytest.raises(PluginFailure) as raised:
        post_filtered(required=CONFLICT)
    assert (raised.value.status.plugin, raised.value.status.message) == ("DynamicResources", "not found")


def test_pods_with_claims_are_refused_as_without_it() -> None:
    refused = post_filtered(spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]})
    assert message(refused) == ("preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.")


def test_where_claims_are_not_judged_it_serves_no_other_point() -> None:
    text = CONFIGURATION.format(point="multiPoint")
    framework = frameworks(text)[NAME]
    points = {
        point for point in framework.profile.plugins if framework.plugin("DynamicResources") in framework.at(point)
    }
    assert points == {"preFilter", "postFilter"}
