"""Which version of Kubernetes an API server is.

Source: k8s.io/apimachinery pkg/version ``Info``; component-base compatibility/version.go ``Info``.
"""

import re

import msgspec

from dsched.cluster.kubernetes.http import client
from dsched.cluster.kubernetes.http.client import Calls
from dsched.cluster.kubernetes.http.exchange import Answer, Request
from dsched.config.feature_gates import Version
from dsched.errors import ClusterUnavailable

PATIENCE_S = 5.0


class _Info(msgspec.Struct, rename="camel"):
    """Providers write ``37+`` as the minor version."""

    major: str = ""
    minor: str = ""
    emulation_major: str = ""
    emulation_minor: str = ""


def ask(calls: Calls) -> Version:
    """The API server's version; one that emulates an older one serves what that did, so it counts as that.

    Raises:
        ClusterUnavailable: it cannot be read.
    """
    outcome = calls.make(Request("GET", "/version"), PATIENCE_S)
    if not isinstance(outcome, Answer) or outcome.status != 200:
        raise _unreadable(client.told(outcome))
    try:
        info = msgspec.json.decode(outcome.body, type=_Info)
    except msgspec.DecodeError as error:
        raise _unreadable(str(error)) from error
    text = f"{info.emulation_major or info.major}.{info.emulation_minor or info.minor}"
    if not (found := re.match(r"(\d+)\.(\d+)", text, re.ASCII)):
        raise _unreadable(f"it says {text!r}")
    return Version(int(found[1]), int(found[2]))


def _unreadable(why: str) -> ClusterUnavailable:
    return ClusterUnavailable(
        f"the API server's version (GET /version) cannot be read: {why}; --emulated-version names one to decide as"
    )
