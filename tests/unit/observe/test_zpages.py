"""``/statusz`` and ``/flagz`` in each form, which form a header asks for, and ``/configz`` without what is secret."""

import json
import platform
from typing import Any

import pytest
import yaml

from dsched import config
from dsched.clock import ManualClock
from dsched.config import SchedulerConfiguration
from dsched.observe import zpages
from dsched.observe.zpages import JSON, TEXT, YAML, Form, Status, flagz, negotiate

WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only.\n"
)
FLAGS = {"mode": "auto", "config": "", "redis-url": "redis://:***@h:1/0"}
BEGAN_MS = 1_770_000_000_500
"""2026-02-02 02:40:00.5 UTC"""
WANTED = "v=v1beta1;g=config.k8s.io;as=Statusz"
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
def clock() -> ManualClock:
    return ManualClock(BEGAN_MS)


@pytest.fixture
def status(clock: ManualClock) -> Any:
    page = Status(clock, "0.1.0", lambda: "1.34", ["/readyz", "/metrics", "/livez"]).page()
    clock.advance(2 * 3600 + 3 * 60 + 4.9)
    return page


def wanted(media_type: str, kind: str, version: str = "v1beta1") -> str:
    return f"{media_type};v={version};g=config.k8s.io;as={kind}"


def test_statusz_is_text_for_people(status: Any) -> None:
    answer = status("")
    assert (answer.status, answer.content_type) == (200, "text/plain; charset=utf-8")
    assert answer.body.decode() == (
        f"\ndsched statusz\n{WARNING}\n"
        "Started: Mon Feb  2 02:40:00 UTC 2026\n"
        "Up: 2 hr 03 min 04 sec\n"
        f"Python version: {platform.python_version()}\n"
        "Binary version: 0.1.0\n"
        "Emulation version: 1.34\n"
        "Paths: /livez /metrics /readyz\n"
    )


@pytest.mark.parametrize(
    ("media_type", "read"), [("application/json", json.loads), ("application/yaml", yaml.safe_load)]
)
def test_statusz_is_an_object_for_programs(status: Any, media_type: str, read: Any) -> None:
    answer = status(wanted(media_type, "Statusz"))
    assert (answer.status, answer.content_type, answer.headers) == (200, media_type, {})
    assert read(answer.body) == {
        "kind": "Statusz",
        "apiVersion": "config.k8s.io/v1beta1",
        "metadata": {"name": "dsched"},
        "startTime": "2026-02-02T02:40:00Z",
        "uptimeSeconds": 7384,
        "goVersion": "",
        "binaryVersion": "0.1.0",
        "emulationVersion": "1.34",
        "paths": ["/livez", "/metrics", "/readyz"],
    }


def test_a_clock_that_was_set_back_makes_no_negative_time(status: Any, clock: ManualClock) -> None:
    clock.advance(-10 * 3600)
    assert json.loads(status(wanted("application/json", "Statusz")).body)["uptimeSeconds"] == 0


def test_flagz_is_text_for_people() -> None:
    body = flagz(FLAGS)("*/*").body.decode()
    assert body == f"\ndsched flagz\n{WARNING}config=\nmode=auto\nredis-url=redis://:***@h:1/0\n"


def test_flagz_is_an_object_for_programs() -> None:
    assert json.loads(flagz(FLAGS)(wanted("application/json", "Flagz")).body) == {
        "kind": "Flagz",
        "apiVersion": "config.k8s.io/v1beta1",
        "metadata": {"name": "dsched"},
        "flags": FLAGS,
    }


def test_the_older_version_is_served_with_a_warning() -> None:
    answer = flagz(FLAGS)(wanted("application/json", "Flagz", "v1alpha1"))
    assert json.loads(answer.body)["apiVersion"] == "config.k8s.io/v1alpha1"
    told = '299 - "This version of the flagz endpoint is deprecated. Please use a newer version."'
    assert answer.headers == {"Warning": told}


def test_a_form_that_is_not_served_is_refused_with_those_that_are() -> None:
    answer = flagz(FLAGS)(wanted("application/json", "Statusz"))
    assert (answer.status, answer.content_type) == (406, "application/json")
    status = json.loads(answer.body)
    assert (status["kind"], status["reason"], status["code"]) == ("Status", "NotAcceptable", 406)
    assert status["message"].endswith(": application/json, application/yaml, text/plain")


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Form(TEXT)),
        ("  ", Form(TEXT)),
        ("text/plain", Form(TEXT)),
        ("text/*", Form(TEXT)),
        ("*/*", Form(TEXT)),
        ("*", Form(TEXT)),
        (f"application/json;{WANTED}", Form(JSON, "v1beta1")),
        (f"application/json; {WANTED.replace(';', ' ; ')}", Form(JSON, "v1beta1")),
        (f"application/yaml;{WANTED}", Form(YAML, "v1beta1")),
        (f"application/*;{WANTED}", Form(JSON, "v1beta1")),
        (f"*/*;{WANTED}", Form(JSON, "v1beta1")),
        ("application/json;v=v1alpha1;g=config.k8s.io;as=Statusz", Form(JSON, "v1alpha1")),
        ("application/json;v=foo;g=config.k8s.io;as=Statusz,*/*", Form(TEXT)),
        ("text/html,application/xhtml+xml,*/*;q=0.8", Form(TEXT)),
        (f"application/json;{WANTED},application/yaml;{WANTED}", Form(JSON, "v1beta1")),
        (f"application/json;q=0.5;{WANTED},application/yaml;{WANTED}", Form(YAML, "v1beta1")),
        (f"text/*;q=1,application/json;{WANTED}", Form(JSON, "v1beta1")),
        (f"application/json;q=much;{WANTED},text/plain;q=0.1", Form(TEXT)),
    ],
)
def test_what_is_wanted_most_is_served(accept: str, form: Form) -> None:
    assert negotiate(accept, "Statusz") == form


@pytest.mark.parametrize(
    "accept",
    [
        "application/xml",
        "application/json",
        "application/yaml",
        "application/json;v=v1beta1;g=config.k8s.io",
        "application/json;v=v1;g=config.k8s.io;as=Statusz",
        "application/json;v=v1beta1;g=apps;as=Statusz",
        "application/json;v=v1beta1;g=config.k8s.io;as=Flagz",
        f"application/json;stream=watch;{WANTED}",
        f"application/json;sv=v1;{WANTED}",
        f"application/cbor;{WANTED}",
        f"text/plain;{WANTED}",
        "json",
        ",",
    ],
)
def test_nothing_is_served_to_who_wants_something_else(accept: str) -> None:
    assert negotiate(accept, "Statusz") is None


@pytest.fixture
def present() -> list[SchedulerConfiguration]:
    return [config.default()]


def asked(present: list[SchedulerConfiguration]) -> bytes:
    answer = zpages.configz(lambda: present[-1])("text/plain")
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
