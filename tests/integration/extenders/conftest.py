"""Extenders that run, and what calls them."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dsched import config
from dsched.config import SchedulerConfiguration
from dsched.extenders.extenders import Extenders
from dsched.framework.extender import ReadObjects
from tests.extender import TestExtender

Start = Callable[..., TestExtender]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts extenders with answers by verb; they are stopped when the test ends."""
    started: list[TestExtender] = []

    def start(*args: Any, **answers: Any) -> TestExtender:
        started.append(TestExtender(*args, **answers))
        return started[-1]

    yield start
    for server in started:
        if not server.over.is_set():
            server.stop()


def named(server: TestExtender | str, *verbs: str, **more: Any) -> dict[str, Any]:
    """An extender's entry in a configuration; ``verbs`` are those it serves."""
    url = server if isinstance(server, str) else server.url
    weight = {"weight": 1} if "prioritize" in verbs else {}
    return {"urlPrefix": url, **{f"{verb}Verb": verb for verb in verbs}, **weight, **more}


def configuration(*extenders: dict[str, Any], **more: Any) -> SchedulerConfiguration:
    """A configuration with extenders."""
    return config.load(text(*extenders, **more), "test.yaml")


def text(*extenders: dict[str, Any], **more: Any) -> str:
    """The same as text."""
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return json.dumps({**head, "extenders": list(extenders), **more})


def made(*extenders: dict[str, Any], read: ReadObjects | None = None) -> Extenders:
    """What calls them."""
    return Extenders(configuration(*extenders).extenders, read)
