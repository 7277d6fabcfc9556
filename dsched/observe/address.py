"""Where a process serves its metrics: nowhere unless the environment or an option says so."""

import os
from collections.abc import Mapping

from dsched.errors import DschedError

PORT_VARIABLE = "DSCHED_METRICS_PORT"
HOST_VARIABLE = "DSCHED_METRICS_HOST"
LOOPBACK = "127.0.0.1"
"""Metrics name plugins, profiles and extenders, pages show a leader's configuration, and neither has passwords or keys;
but nobody is asked who they are."""


def address(environ: Mapping[str, str] = os.environ) -> tuple[str, int] | None:
    """Host and port that the environment names, None where it names no port.

    Raises:
        DschedError: the port is no number.
    """
    text = environ.get(PORT_VARIABLE, "")
    if not text:
        return None
    if not text.isdecimal() or int(text) > 65535:
        raise DschedError(f"{PORT_VARIABLE}={text} is no port: expected a number from 0 (any free one) to 65535")
    return environ.get(HOST_VARIABLE) or LOOPBACK, int(text)
