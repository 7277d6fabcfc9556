"""Completed configurations for other versions."""

import json

import pytest

from dsched import config
from dsched.config import Features, other_version
from dsched.errors import ConfigError
from tests.unit.config.files import with_args
from tests.versions import V34, V35, V36, V37, with_gates

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
OFF = with_gates(V37, StorageCapacityScoring=False)


@pytest.mark.parametrize("before", [V34, V35, V36, V37])
@pytest.mark.parametrize("after", [V34, V35, V36, V37, OFF])
def test_every_version_takes_what_another_completed(before: Features, after: Features) -> None:
    document = config.completed(config.default(before))
    loaded = config.load(json.dumps(other_version.carried_over(document, before, after)), features=after)
    assert loaded.profiles == config.default(after).profiles, "what was by default is as by default"


def test_what_the_other_version_does_not_know_is_why() -> None:
    text = json.dumps(config.completed(config.default(V37)))
    with pytest.raises(ConfigError, match="unknown field"):
        config.load(text, features=V36)


def test_settings_stay() -> None:
    document = config.completed(config.load(with_args("VolumeBinding", bindTimeoutSeconds=7), features=V37))
    (profile,) = config.load(json.dumps(other_version.carried_over(document, V37, V34)), features=V34).profiles
    assert profile.args["VolumeBinding"].bind_timeout_seconds == 7


def test_own_plugins_and_weights_stay_and_default_ones_are_the_others() -> None:
    text = """
profiles:
- plugins:
    multiPoint:
      enabled: [{name: ImageLocality, weight: 9}]
      disabled: [{name: NodePorts}]
"""
    document = config.completed(config.load(HEAD + text, features=V34))
    loaded = config.load(json.dumps(other_version.carried_over(document, V34, V37)), features=V37)
    assert loaded.profiles == config.load(HEAD + text, features=V37).profiles


def test_a_profile_that_turns_the_default_plugins_off_names_its_own() -> None:
    text = """
profiles:
- plugins:
    multiPoint:
      enabled: [{name: PrioritySort}, {name: NodeUnschedulable}, {name: NodeName}, {name: DefaultBinder}]
      disabled: [{name: "*"}]
"""
    document = config.completed(config.load(HEAD + text, features=V34))
    loaded = config.load(json.dumps(other_version.carried_over(document, V34, V37)), features=V37)
    assert loaded.profiles == config.load(HEAD + text, features=V37).profiles
