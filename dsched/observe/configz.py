"""``/configz``: the configuration that a process has, completed, as v1.

Source: component-base v0.37 configz/configz.go; cmd/kube-scheduler/app/server.go ``Run``, which registers it under the
name ``componentconfig``.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from dsched import config
from dsched.config import SchedulerConfiguration
from dsched.observe.pages import Answer, Page
from dsched.state import location

NAME = "componentconfig"


def page(configured: Callable[[], SchedulerConfiguration]) -> Page:
    """The page that shows what ``configured`` says when it is asked."""

    def answer(_accept: str) -> Answer:
        body = msgspec.json.encode({NAME: shown(configured())})
        return Answer("application/json", body, headers={"X-Content-Type-Options": "nosniff"})

    return answer


def shown(configured: SchedulerConfiguration) -> dict[str, Any]:
    """As ``dsched config view`` prints it, but without private keys and passwords of extenders: nobody is asked who
    they are."""
    document = config.completed(configured)
    for extender in document.get("extenders") or ():
        extender["urlPrefix"] = location.shown(extender["urlPrefix"])
        (extender.get("tlsConfig") or {}).pop("keyData", None)
    return document
