"""Completed configurations for other versions."""

import json

import pytest

from dsched import config
from dsched.config import Features, other_version
from dsched.errors import ConfigError
from tests.unit.config.files import names, with_args
from tests.versions import V34, V35, V36, V37, with_gates

OFF = with_gates(V37, StorageCapacityScoring=False)


@pytest.mark.parametrize("before", [V34, V35, V36, V37])
@pytest.mark.parametrize("after", [V34, V35, V36, V37, OFF])
def test_every_version_takes_what_another_completed(before: Features, after: Features) -> None:
    document = config.completed(config.default(before))
    loaded = config.load(json.dumps(other_version.carried_over(document, after)), features=after)
    found, expected = names(loaded, "filter"), names(config.default(after), "filter")
    assert set(found) - {"DynamicResources", "NodeDeclaredFeatures"} == set(expected) - {
        "DynamicResources",
        "NodeDeclaredFeatures",
    }
    assert set(found) >= set(expected)


def test_what_the_other_version_does_not_know_is_why() -> None:
    text = json.dumps(config.completed(config.default(V37)))
    with pytest.raises(ConfigError, match="unknown field"):
        config.load(text, features=V36)


def test_settings_stay() -> None:
    document = config.completed(config.load(with_args("VolumeBinding", bindTimeoutSeconds=7), features=V37))
    (profile,) = config.load(json.dumps(other_version.carried_over(document, V34)), features=V34).profiles
    assert profile.args["VolumeBinding"].bind_timeout_seconds == 7
