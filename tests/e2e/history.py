"""What has happened in a cluster: every version of every pod, from etcd, and every request, from the audit log.

Neither depends on a watch that may break: etcd keeps all versions until it is told to forget them.
"""

import base64
import json
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.apiserver import ApiServer

Json = dict[str, Any]

PODS = "/registry/pods/"
MARK = "dsched-test/history"
ALL_KEYS = base64.b64encode(b"\0").decode()


@dataclass
class PodHistory:
    """What has become of a pod.

    Attributes:
        nodes: the nodes it had one after the other, each change once; never more than one entry when all is well.
        nominated: the nodes that were nominated for it, likewise.
        deleted: whether it is gone.
        disrupted: whether it was marked as the victim of a preemption.
        made, bound: when it came and when it first had a node, as places in the order of all changes; 0 for never.
    """

    name: str
    made: int
    bound: int = 0
    nodes: list[str] = field(default_factory=list)
    nominated: list[str] = field(default_factory=list)
    deleted: bool = False
    disrupted: bool = False

    def add(self, pod: Json, at: int) -> None:
        """Take a version in."""
        if not self.bound and pod["spec"].get("nodeName"):
            self.bound = at
        _append(self.nodes, pod["spec"].get("nodeName", ""))
        _append(self.nominated, pod.get("status", {}).get("nominatedNodeName", ""))
        conditions = pod.get("status", {}).get("conditions", ())
        self.disrupted |= any(each["type"] == "DisruptionTarget" for each in conditions)


def of_pods(server: ApiServer, namespace: str) -> dict[str, PodHistory]:
    """By UID, every pod that there ever was in a namespace."""
    found: dict[str, PodHistory] = {}
    uids: dict[str, str] = {}
    for at, (key, value) in enumerate(_changes(server.etcd_url), 1):
        if not key.startswith(f"{PODS}{namespace}/"):
            continue
        if value is None:
            found[uids[key]].deleted = True
            continue
        pod = json.loads(value)
        uid = uids[key] = pod["metadata"]["uid"]
        found.setdefault(uid, PodHistory(pod["metadata"]["name"], at)).add(pod, at)
    return found


@dataclass(frozen=True)
class Request:
    """A request as the API server has answered it."""

    user: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int


def requests(server: ApiServer) -> Iterator[Request]:
    """All requests so far. A server that is killed may leave the last ones out, and a torn line."""
    for line in server.audit_log.read_text(errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        about = entry.get("objectRef", {})
        yield Request(
            entry["user"].get("username", ""),
            entry["verb"],
            about.get("apiGroup", ""),
            about.get("resource", ""),
            about.get("subresource", ""),
            about.get("namespace", ""),
            about.get("name", ""),
            entry.get("responseStatus", {}).get("code", 0),
        )


def binds(server: ApiServer, namespace: str) -> Counter[str]:
    """How often the API server has accepted a bind, by pod name."""
    return Counter(
        request.name
        for request in requests(server)
        if (request.resource, request.subresource, request.namespace) == ("pods", "binding", namespace)
        and request.code == 201
    )


def _changes(etcd_url: str) -> Iterator[tuple[str, str | None]]:
    """Key and new value, None for deleted, of every change in etcd so far, in order."""
    mark = base64.b64encode(MARK.encode()).decode()
    _post(f"{etcd_url}/v3/kv/put", {"key": mark, "value": mark})
    target = int(_post(f"{etcd_url}/v3/kv/range", {"key": mark})["kvs"][0]["mod_revision"])
    wanted = {"create_request": {"key": ALL_KEYS, "range_end": ALL_KEYS, "start_revision": "1"}}
    with urllib.request.urlopen(_request(f"{etcd_url}/v3/watch", wanted)) as stream:
        for line in stream:
            for event in json.loads(line)["result"].get("events", ()):
                key = base64.b64decode(event["kv"]["key"]).decode()
                gone = event.get("type") == "DELETE"
                yield key, None if gone else base64.b64decode(event["kv"].get("value", "")).decode(errors="replace")
                if key == MARK and int(event["kv"]["mod_revision"]) >= target:
                    return


def _post(url: str, body: Json) -> Json:
    with urllib.request.urlopen(_request(url, body)) as answer:
        found: Json = json.load(answer)
        return found


def _request(url: str, body: Json) -> urllib.request.Request:
    return urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})


def _append(values: list[str], value: str) -> None:
    if value and value not in values[-1:]:
        values.append(value)
