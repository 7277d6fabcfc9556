"""What one read of a watch may hold."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dsched.cluster.kubernetes import reflector, resources
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.feed import Feed
from dsched.cluster.kubernetes.http.exchange import Request
from dsched.cluster.kubernetes.reflector import Reflector

EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


def frame(type_: str, value: dict[str, Any]) -> bytes:
    return json.dumps({"type": type_, "object": value}).encode() + b"\n"


def pod(name: str, version: int) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"u-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}}


def listed(*pods: dict[str, Any], version: int) -> bytes:
    mark = {"resourceVersion": str(version), "annotations": {"k8s.io/initial-events-end": "true"}}
    return b"".join(frame("ADDED", each) for each in pods) + frame("BOOKMARK", {"metadata": mark})


def test_changes_that_come_with_the_end_of_a_watch_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The listing that follows finds them known already."""
    answers = [
        listed(pod("a", 10), version=10),
        frame("DELETED", pod("a", 11)) + frame("ADDED", pod("b", 12)) + frame("ERROR", EXPIRED),
        listed(pod("b", 12), version=12),
    ]

    def stream(_self: object, _request: Request, _timeout_s: float, opened: Any) -> Iterator[bytes]:
        opened()
        yield answers.pop(0)

    monkeypatch.setattr(reflector.Connection, "stream", stream)
    feed = Feed()
    watched = Reflector(Access(), resources.POD, feed)
    watched._turn()
    with pytest.raises(reflector.Expired):
        watched._turn()
    watched._version = ""
    watched._turn()
    events, _ = feed.take(0.0)
    assert [(event.change.value, event.key) for event in events] == [("DELETED", "default/a"), ("ADDED", "default/b")]
