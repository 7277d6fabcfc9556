"""``/configz``: the configuration as it is when somebody asks, without what is secret."""

import json

import pytest

from dsched import config
from dsched.config import SchedulerConfiguration
from dsched.observe import configz

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
KEY = "LS0tIHByaXZhdGUgLS0t"
WITH_SECRETS = f"""{HEAD}
extenders:
- urlPrefix: https://user:s3cr3t@extender.example/v1
  filterVerb: filter
  enableHTTPS: true
  tlsConfig: {{certData: LS0tIHB1YmxpYyAtLS0=, keyData: {KEY}, serverName: other}}
- urlPrefix: http://plain.example
  filterVerb: filter
"""


@pytest.fixture
def present() -> list[SchedulerConfiguration]:
    return [config.default()]


def asked(present: list[SchedulerConfiguration]) -> bytes:
    answer = configz.page(lambda: present[-1])("text/plain")
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert answer.headers == {"X-Content-Type-Options": "nosniff"}
    return answer.body


def test_it_is_what_config_view_prints(present: list[SchedulerConfiguration]) -> None:
    assert json.loads(asked(present)) == {"componentconfig": config.completed(config.default())}


def test_it_is_the_present_one(present: list[SchedulerConfiguration]) -> None:
    present.append(config.load(HEAD + "parallelism: 3\n"))
    assert json.loads(asked(present))["componentconfig"]["parallelism"] == 3


def test_secrets_of_extenders_are_not_shown(present: list[SchedulerConfiguration]) -> None:
    present.append(config.load(WITH_SECRETS))
    body = asked(present)
    assert KEY.encode() not in body
    assert b"s3cr3t" not in body
    first, second = json.loads(body)["componentconfig"]["extenders"]
    assert first["urlPrefix"] == "https://user:***@extender.example/v1"
    assert first["tlsConfig"]["certData"] == "LS0tIHB1YmxpYyAtLS0="
    assert second["urlPrefix"] == "http://plain.example"
