"""What a configuration says about whose pods are ours and what filters look at."""

import pytest

from dsched import config
from dsched.config.feature_gates import UNSAID
from dsched.fsck import profiles
from dsched.fsck.profiles import PORTS, Profiles

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"


def of(text):
    return profiles.of(config.load(HEAD + text, "scheduler.yaml"), UNSAID)


def test_without_a_configuration_the_leader_the_records_and_the_default_count():
    assert Profiles().schedulers(None, ()) == {"default-scheduler"}
    assert Profiles().schedulers(None, {"mine"}) == {"default-scheduler", "mine"}
    assert Profiles().schedulers(frozenset({"mine"}), {"old"}) == {"mine"}


def test_a_configuration_names_its_schedulers():
    assert of("- schedulerName: mine\n").schedulers(frozenset({"old"}), {"older"}) == {"mine"}


@pytest.mark.parametrize("resource", ["cpu", "memory", "pods", "nvidia.com/gpu", PORTS])
def test_default_plugins_look_at_everything(resource):
    assert Profiles().checks("default-scheduler", resource)
    assert of("- schedulerName: mine\n").checks("mine", resource)


def test_a_profile_without_filters():
    found = of(
        "- schedulerName: mine\n  plugins:\n    multiPoint:\n      disabled:\n"
        "      - name: NodeResourcesFit\n      - name: NodePorts\n"
    )
    for resource in ("cpu", "pods", "nvidia.com/gpu", PORTS):
        assert not found.checks("mine", resource)
    assert found.checks("default-scheduler", "cpu")


def test_ignored_resources():
    found = of(
        "- schedulerName: mine\n  pluginConfig:\n  - name: NodeResourcesFit\n    args:\n"
        "      ignoredResources: [nvidia.com/gpu]\n      ignoredResourceGroups: [example.com]\n"
    )
    assert [found.checks("mine", name) for name in ("nvidia.com/gpu", "example.com/a", "other.com/a", "cpu")] == [
        False,
        False,
        True,
        True,
    ]
