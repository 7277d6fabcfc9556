"""An API server with little in it that answers as it is told: it keeps objects, lists and watches them, binds pods,
patches and deletes, and has faults.

What it answers to a bind is what pkg/registry/core/pod/storage/storage.go ``assignPod`` answers.
"""

import contextlib
import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.manifests import Json
from tests.protobuf import MAGIC, read_binding

NAMED = re.compile(
    r"^/(?:api|apis/(?P<api>[^/]+))/[^/]+/(?:namespaces/(?P<ns>[^/]+)/)?(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?$"
)
NAMESPACED = {"pods", "services", "events", "replicasets", "persistentvolumeclaims", "podgroups"}


@dataclass
class Fault:
    """What happens to requests besides, or instead of, being answered.

    Attributes:
        status: answer with it.
        drop: ``before`` or ``after`` the request was carried out, the connection is closed without an answer.
        hang_s: nothing happens for so long, then the connection is closed.
        times: so many requests.
    """

    method: str
    path: str
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    drop: str = ""
    hang_s: float = 0.0
    times: int = 1


class FakeApi:
    """Runs on a free port of 127.0.0.1 between `start` and `stop`.

    Attributes:
        requests: how many there were, by method and path.
        tokens: those that are taken; None for no check.
        watch_lists: whether watches from the beginning are served; else they are refused as older servers do.
        version: what it says of itself; None for nothing at all.
        before: called for every request, before it is carried out.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects: dict[tuple[str, str], Json] = {}
        self.requests: Counter[tuple[str, str]] = Counter()
        self.bound: list[tuple[str, str]] = []
        self.tokens: set[str] | None = None
        self.watch_lists = True
        self.bookmarks = True
        self.version: Json | None = {"major": "1", "minor": "37", "gitVersion": "v1.37.2"}
        self.before: Callable[[str, str], None] = lambda method, path: None
        self.lock = threading.Condition()
        self._faults: list[Fault] = []
        self._log: list[tuple[int, str, str, str]] = []
        self._compacted = 0
        self._version = 10
        self._generation = 0
        self._stopping = False
        handler = type("Handler", (_Handler,), {"api": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self.lock:
            self._stopping = True
            self.lock.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._server.close_all()
        self._thread.join()

    def kubeconfig(self, token_file: Path | None = None) -> str:
        """Writes a kubeconfig file; gives its path."""
        path = self.folder / "kubeconfig"
        user: Json = {"tokenFile": str(token_file)} if token_file else {}
        value = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path.write_text(json.dumps(value))
        return str(path)

    # -- what a test does ------------------------------------------------------------------------------------------

    def put(self, plural: str, *values: Json) -> None:
        """Create or change objects."""
        with self.lock:
            for value in values:
                self._put(plural, value)
            self.lock.notify_all()

    def delete(self, plural: str, key: str) -> None:
        with self.lock:
            self._delete(plural, key)
            self.lock.notify_all()

    def get(self, plural: str, key: str) -> Json:
        with self.lock:
            found: Json = json.loads(json.dumps(self.objects[plural, key]))
            return found

    def all(self, plural: str) -> list[Json]:
        with self.lock:
            return [value for (kind, _), value in self.objects.items() if kind == plural]

    def fault(self, method: str, path: str, **what: Any) -> None:
        """The next requests whose path matches have this fault."""
        with self.lock:
            self._faults.append(Fault(method, path, **what))

    def end_watches(self) -> None:
        """End every watch, cleanly."""
        with self.lock:
            self._generation += 1
            self.lock.notify_all()

    def compact(self) -> None:
        """Forget the history: watches from earlier on are refused with 410."""
        with self.lock:
            self._log.clear()
            self._compacted = self._version

    def bookmark(self) -> None:
        """Tell all watches how far they are."""
        with self.lock:
            self._version += 1
            self._log.append((self._version, "", "BOOKMARK", ""))
            self.lock.notify_all()

    # -- objects; with the lock held -------------------------------------------------------------------------------

    def _put(self, plural: str, value: Json) -> None:
        key = _key(value)
        self._version += 1
        old = self.objects.get((plural, key))
        metadata = {
            "uid": old["metadata"]["uid"] if old else f"uid-{plural}-{key.replace('/', '.')}-{self._version}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{"manager": "test", "fieldsV1": {"f:spec": {}}}],
            **value["metadata"],
            "resourceVersion": str(self._version),
        }
        self.objects[plural, key] = {**value, "metadata": metadata}
        self._note("MODIFIED" if old else "ADDED", plural, self.objects[plural, key])

    def _delete(self, plural: str, key: str) -> None:
        value = self.objects.pop((plural, key))
        self._version += 1
        value["metadata"]["resourceVersion"] = str(self._version)
        self._note("DELETED", plural, value)

    def _note(self, change: str, plural: str, value: Json) -> None:
        self._log.append((self._version, plural, change, json.dumps(value)))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, *arguments: Any) -> None:
        self._sockets: list[socket.socket] = []
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._sockets.append(request)
        super().process_request(request, client_address)

    def close_all(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone away is none of the test's business."""


class _Handler(BaseHTTPRequestHandler):
    api: FakeApi
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65536

    def log_message(self, *_: Any) -> None:
        pass

    def _serve(self) -> None:
        api, parts = self.api, urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with api.lock:
            api.requests[self.command, parts.path] += 1
            fault = next(
                (f for f in api._faults if f.times and f.method == self.command and re.search(f.path, self.path)), None
            )
            if fault:
                fault.times -= 1
        api.before(self.command, parts.path)
        given = (self.headers.get("Authorization") or "").partition(" ")[2]
        if api.tokens is not None and given not in api.tokens:
            self._refuse(401, "Unauthorized")
        elif fault and fault.status:
            self._refuse(fault.status, "a fault", fault.headers)
        elif fault and fault.hang_s:
            with api.lock:
                api.lock.wait_for(lambda: api._stopping, fault.hang_s)
            self.close_connection = True
        elif fault and fault.drop == "before":
            self.close_connection = True
        else:
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            found = NAMED.match(parts.path)
            if parts.path == "/version" and api.version is not None:
                self._answer(200, api.version)
            elif found is None:
                self._refuse(404, "the server could not find the requested resource")
            elif query.get("watch"):
                self._watch(_plural(found), query)
            else:
                status, value = self._carry_out(found, query, _read(body))
                if fault and fault.drop == "after":
                    self.close_connection = True
                else:
                    self._answer(status, value)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _answer(self, status: int, value: Json, headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()

    def _refuse(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        self._answer(status, _status(status, message), headers)

    def _carry_out(self, found: "re.Match[str]", query: dict[str, str], body: Json) -> tuple[int, Json]:
        api, plural, name, sub = self.api, _plural(found), found["name"], found["sub"]
        with api.lock:
            if name is None:
                if self.command == "POST":
                    if (plural, _key(body)) in api.objects:
                        return 409, _status(409, f'{plural} "{_key(body)}" already exists', "AlreadyExists")
                    api._put(plural, body)
                    api.lock.notify_all()
                    return 201, api.objects[plural, _key(body)]
                return self._list(plural, query)
            key = f"{found['ns']}/{name}" if found["ns"] else name
            value = api.objects.get((plural, key))
            if value is None:
                return 404, _status(404, f'{plural} "{name}" not found')
            if self.command == "GET":
                return 200, value
            served = {"POST": self._bind, "PUT": self._replace, "PATCH": self._patch, "DELETE": self._remove}
            status, answer = served[self.command](plural, key, value, sub, body)
            api.lock.notify_all()
            return status, answer

    def _list(self, plural: str, query: dict[str, str]) -> tuple[int, Json]:
        values = [v for (kind, _), v in sorted(self.api.objects.items()) if kind == plural and _selected(v, query)]
        start, limit = int(query.get("continue") or 0), int(query.get("limit") or len(values) or 1)
        if query.get("continue") and self.api._compacted:
            return 410, _status(410, "The provided continue parameter is too old", "Expired")
        page = values[start : start + limit]
        rest = str(start + limit) if start + limit < len(values) else ""
        return 200, {
            "kind": "List",
            "metadata": {"resourceVersion": str(self.api._version), "continue": rest},
            "items": page,
        }

    def _bind(self, plural: str, key: str, value: Json, sub: str, body: Json) -> tuple[int, Json]:
        name, uid = value["metadata"]["name"], body["metadata"].get("uid")
        refused = ""
        if uid and uid != value["metadata"]["uid"]:
            refused = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {value['metadata']['uid']}"
        elif value["metadata"].get("deletionTimestamp"):
            refused = f"pod {name} is being deleted, cannot be assigned to a host"
        elif value["spec"].get("nodeName"):
            refused = f'pod {name} is already assigned to node "{value["spec"]["nodeName"]}"'
        elif value["spec"].get("schedulingGates"):
            refused = f"pod {name} has non-empty .spec.schedulingGates"
        if refused:
            return 409, _status(409, f'Operation cannot be fulfilled on pods/binding "{name}": {refused}', "Conflict")
        self.api._put(plural, {**value, "spec": {**value["spec"], "nodeName": body["target"]["name"]}})
        self.api.bound.append((key, body["target"]["name"]))
        return 201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    def _replace(self, plural: str, key: str, value: Json, sub: str, body: Json) -> tuple[int, Json]:
        if body["metadata"].get("resourceVersion", "") != value["metadata"]["resourceVersion"]:
            return 409, _status(409, "the object has been modified", "Conflict")
        if sub == "status":
            after = {**value, "status": body.get("status", {})}
        else:
            after = {**body, **({"status": value["status"]} if "status" in value else {})}
            after["metadata"] = {**body["metadata"], "uid": value["metadata"]["uid"]}
        self.api._put(plural, after)
        if after["metadata"].get("deletionTimestamp") and not after["metadata"].get("finalizers"):
            self.api._delete(plural, key)
            return 200, after
        return 200, self.api.objects[plural, key]

    def _patch(self, plural: str, key: str, value: Json, sub: str, body: Json) -> tuple[int, Json]:
        given = body.get("metadata", {})
        for field_ in ("uid", "resourceVersion"):
            if field_ in given and given[field_] != value["metadata"][field_]:
                return 409, _status(409, f"the object has been modified: {field_}", "Conflict")
        patched = _merged(value, body)
        if "strategic" in self.headers["Content-Type"] and "conditions" in body.get("status", {}):
            old = {each["type"]: each for each in value.get("status", {}).get("conditions", [])}
            for each in body["status"]["conditions"]:
                old[each["type"]] = {**old.get(each["type"], {}), **each}
            patched["status"]["conditions"] = list(old.values())
        self.api._put(plural, patched)
        return 200, self.api.objects[plural, key]

    def _remove(self, plural: str, key: str, value: Json, sub: str, body: Json) -> tuple[int, Json]:
        uid = body.get("preconditions", {}).get("uid")
        if uid and uid != value["metadata"]["uid"]:
            return 409, _status(409, "Precondition failed: UID in precondition", "Conflict")
        grace_s = body.get("gracePeriodSeconds", value["spec"].get("terminationGracePeriodSeconds", 0))
        if plural == "pods" and grace_s and value["spec"].get("nodeName"):  # its kubelet ends it: `FakeApi.delete`
            if not value["metadata"].get("deletionTimestamp"):
                leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace_s}
                self.api._put(plural, {**value, "metadata": {**value["metadata"], **leaving}})
            return 200, self.api.objects[plural, key]
        if value["metadata"].get("finalizers"):
            self.api._put(
                plural, {**value, "metadata": {**value["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
            )
            return 200, self.api.objects[plural, key]
        self.api._delete(plural, key)
        return 200, value

    # -- watching --------------------------------------------------------------------------------------------------

    def _watch(self, plural: str, query: dict[str, str]) -> None:
        api = self.api
        initial = query.get("sendInitialEvents") == "true"
        if initial and not api.watch_lists:
            self._refuse(422, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch")
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with api.lock:
            seen = {_key(v) for v in self._now(plural, query)}
            at, generation = int(query.get("resourceVersion") or 0), api._generation
            expired = bool(at) and at < api._compacted
            first = []
            if initial:
                at = api._version
                values = [v for (kind, _), v in sorted(api.objects.items()) if kind == plural and _selected(v, query)]
                first = [_frame("ADDED", json.dumps(value)) for value in values]
                first.append(_bookmark(at, ends=True))
        if expired:
            first = [_frame("ERROR", json.dumps(_status(410, f"too old resource version: {at}", "Expired")))]
        self._chunk("".join(first))
        until = time.monotonic() + 60
        while not expired and time.monotonic() < until:
            with api.lock:
                while not (over := api._stopping or api._generation != generation):
                    if (api._log and api._log[-1][0] > at) or not api.lock.wait(5):
                        break
                if over:
                    break
                entries = [entry for entry in api._log if entry[0] > at]
            frames = []
            for version, kind, change, raw in entries:
                at = version
                if change == "BOOKMARK" and api.bookmarks:
                    frames.append(_bookmark(version))
                elif kind == plural:
                    frames += _told(change, raw, query, seen)
            self._chunk("".join(frames))
        self._chunk("", last=True)

    def _now(self, plural: str, query: dict[str, str]) -> list[Json]:
        with self.api.lock:
            return [v for (kind, _), v in self.api.objects.items() if kind == plural and _selected(v, query)]

    def _chunk(self, text: str, *, last: bool = False) -> None:
        raw = text.encode()
        if raw or last:
            self.wfile.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")
            self.wfile.flush()


def _told(change: str, raw: str, query: dict[str, str], seen: set[str]) -> list[str]:
    """A change as a watch with a field selector tells it: what no longer matches is deleted."""
    value = json.loads(raw)
    key = _key(value)
    if change != "DELETED" and _selected(value, query):
        seen.add(key)
        return [_frame(change, raw)]
    if key in seen or change == "DELETED":
        seen.discard(key)
        return [_frame("DELETED", raw)]
    return []


def _selected(value: Json, query: dict[str, str]) -> bool:
    ended = value.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return not (ended and "status.phase" in query.get("fieldSelector", ""))


def _frame(change: str, raw: str) -> str:
    return f'{{"type":"{change}","object":{raw}}}\n'


def _bookmark(version: int, *, ends: bool = False) -> str:
    metadata: Json = {"resourceVersion": str(version), "creationTimestamp": None}
    if ends:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return _frame("BOOKMARK", json.dumps({"kind": "Pod", "metadata": metadata, "spec": {"containers": None}}))


def _merged(value: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(value, dict):
        return patch
    found = {name: item for name, item in value.items() if patch.get(name, item) is not None}
    return found | {name: _merged(value.get(name), item) for name, item in patch.items() if item is not None}


def _read(body: bytes) -> Json:
    if body.startswith(MAGIC):
        return read_binding(body)
    value: Json = json.loads(body) if body else {}
    return value


def _plural(found: "re.Match[str]") -> str:
    """The pod groups of scheduler-plugins are kept apart from those of Kubernetes."""
    plural = str(found["plural"])
    return f"{plural}.{found['api']}" if found["api"] == "scheduling.x-k8s.io" else plural


def _key(value: Json) -> str:
    metadata = value["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def _status(code: int, message: str, reason: str = "") -> Json:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message} | (
        {"reason": reason} if reason else {}
    )
