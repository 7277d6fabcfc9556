"""Pods and groups of scheduler-plugins are read as those of Kubernetes."""

from typing import Any

import msgspec
import pytest

from dsched.manifests import kinds
from dsched.model import coscheduling
from dsched.model.meta import from_builtins
from dsched.model.pod_groups import PodGroup
from tests.builders import make_pod


def group(**spec: Any) -> PodGroup:
    value = {"apiVersion": coscheduling.API_VERSION, "metadata": {"name": "g", "namespace": "shop"}, "spec": spec}
    return from_builtins(coscheduling.pod_group(value), PodGroup)


def test_members_that_are_needed_are_a_gang() -> None:
    found = group(minMember=3, minResources={"cpu": "4"}, scheduleTimeoutSeconds=10)
    assert (found.key, found.min_count, found.disrupted_together) == ("shop/g", 3, False)
    terms = found.spec.coscheduling
    assert terms is not None and (terms.min_resources, terms.schedule_timeout_seconds) == ({"cpu": "4"}, 10)


def test_a_group_that_needs_none_is_no_gang() -> None:
    assert group().spec.scheduling_policy.basic is not None
    assert group(minMember=0).spec.scheduling_policy.gang is None


def test_it_has_the_priority_of_its_pods_and_others_their_own() -> None:
    assert group(minMember=1).with_priority_of(7).priority == 7
    assert PodGroup().with_priority_of(7).priority == 0


def test_what_is_no_group_is_not_read() -> None:
    with pytest.raises(msgspec.ValidationError):
        group(minMember="three")


def test_the_label_names_the_group_where_the_spec_names_none() -> None:
    labelled = make_pod("shop/p", labels={coscheduling.LABEL: "g"})
    assert coscheduling.grouped(labelled).group_key == coscheduling.group_key(labelled) == "shop/g"
    both = make_pod("shop/p", labels={coscheduling.LABEL: "g"}, spec={"schedulingGroup": {"podGroupName": "own"}})
    assert coscheduling.grouped(both) is both and coscheduling.group_key(both) == "shop/own"
    plain = make_pod("shop/p")
    assert coscheduling.grouped(plain) is plain and coscheduling.group_key(plain) == ""


def test_manifests_of_the_version_are_taken() -> None:
    assert coscheduling.API_VERSION in kinds.POD_GROUP.same_as
    assert kinds.POD_GROUP.api_version == coscheduling.READ_AS
