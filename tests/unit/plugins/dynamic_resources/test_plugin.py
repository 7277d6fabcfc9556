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
from tests.versions import V34

AT_POST_FILTER_ALONE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      disabled: [{name: DynamicResources}]
    postFilter:
      enabled: [{name: DynamicResources}]
"""
DEFAULT = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
CONFLICT = [make_term(fields=["metadata.name In x", "metadata.name In y"])]


def post_filtered(text: str = DEFAULT, **of_pod: Any) -> PostFilterResult | None:
    """What PostFilter comes to for a pod that fits nowhere."""
    snapshot = make_snapshot([make_node("n1", cpu="1"), make_node("n2", cpu="1")])
    framework = frameworks(text, Handle(snapshot), V34)[NAME]
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
        post_filtered(AT_POST_FILTER_ALONE, cpu="2")
    assert (raised.value.status.plugin, raised.value.status.message) == ("DynamicResources", "not found")


def test_after_a_rejection_by_an_earlier_pre_filter_it_fails() -> None:
    with pytest.raises(PluginFailure) as raised:
        post_filtered(required=CONFLICT)
    assert (raised.value.status.plugin, raised.value.status.message) == ("DynamicResources", "not found")
