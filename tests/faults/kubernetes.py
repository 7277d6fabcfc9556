"""An arena whose nodes and pods are behind an API server: the one of the tests, in this process, with its history."""

import copy
import time
from pathlib import Path
from typing import Any

from tests.faults.arena import Arena, Standing
from tests.faults.history import ADDED, BOUND, DELETED, MODIFIED, Entry, History
from tests.integration.cluster.kubernetes.fake_api import FakeApi

Json = dict[str, Any]

PLURALS = {"Node": "nodes", "Pod": "pods"}
KINDS = {plural: kind for kind, plural in PLURALS.items()}
QUIET_S = 0.4


class RecordedApi(FakeApi):
    """Writes down each change of nodes and pods while it makes it, and who asked for a deletion.

    Attributes:
        changed_at: when an object was changed last.
        silent: watches are told nothing of what is changed; they miss it for good.
    """

    def __init__(self, folder: Path, history: History) -> None:
        super().__init__(folder)
        self.changed_at = time.monotonic()
        self.silent = False
        self._history = history

    def _note(self, change: str, plural: str, value: Json) -> None:
        if not self.silent:
            super()._note(change, plural, value)

    def _put(self, plural: str, value: Json) -> None:
        old = self.objects.get((plural, _key(value)))
        super()._put(plural, value)
        if plural in KINDS:
            self._record(plural, old, self.objects[plural, _key(value)])

    def _delete(self, plural: str, key: str) -> None:
        value = self.objects[plural, key]
        super()._delete(plural, key)
        if plural in KINDS:
            self.changed_at = time.monotonic()
            uid = value["metadata"]["uid"]
            self._history.add(Entry(self.changed_at, self._version, DELETED, KINDS[plural], key, uid))

    def _record(self, plural: str, old: Json | None, new: Json) -> None:
        now = self.changed_at = time.monotonic()
        kind, key, uid = KINDS[plural], _key(new), new["metadata"]["uid"]
        node = new["spec"].get("nodeName", "") if kind == "Pod" else ""
        before = (old or {}).get("spec", {}).get("nodeName", "") if kind == "Pod" else ""
        value = copy.deepcopy(new)
        if old is not None and node and not before:
            self._history.add(Entry(now, self._version, BOUND, kind, key, uid, None, node))
            return
        named = node if old is None else ""
        self._history.add(Entry(now, self._version, MODIFIED if old else ADDED, kind, key, uid, value, named))


class Kubernetes(Arena):
    """Nodes and pods are written to the API server.

    Attributes:
        api: the server; its `fault`, `compact`, `end_watches` and `before` are there to be used.
    """

    kind = "kubernetes"

    def __init__(self, folder: Path, *options: str, **variables: str) -> None:
        super().__init__(folder, *options, **variables)
        self.api = RecordedApi(folder, self.history)

    def start(self) -> None:
        self.api.start()
        self.options = ("--cluster", "kubernetes", "--kubeconfig", self.api.kubeconfig(), *self.options)
        self.system.environment["KUBECONFIG"] = self.api.kubeconfig()  # for dsched fsck
        super().start()

    def stop(self) -> None:
        try:
            super().stop()
        finally:
            self.api.stop()

    def put(self, kind: str, *objects: Json) -> None:
        for value in objects:
            with self.api.lock:
                old = self.api.objects.get((PLURALS[kind], _key(value)))
                if old is not None:
                    value = {**old, **value, "metadata": {**old["metadata"], **value["metadata"]}}
                    if kind == "Pod" and old["spec"].get("nodeName"):
                        value["spec"] = {**value["spec"], "nodeName": old["spec"]["nodeName"]}
                self.api.put(PLURALS[kind], value)

    def delete(self, kind: str, *keys: str) -> None:
        for key in keys:
            with self.api.lock:
                if (PLURALS[kind], key) in self.api.objects:
                    self.api.delete(PLURALS[kind], key)

    def objects(self, kind: str) -> list[Json]:
        with self.api.lock:
            return copy.deepcopy(self.api.all(PLURALS[kind]))

    def scheduled_events(self) -> dict[str, int]:
        told: dict[str, int] = {}
        with self.api.lock:
            for event in self.api.all("events"):
                if event.get("reason") == "Scheduled":
                    uid = (event.get("regarding") or event.get("involvedObject") or {}).get("uid", "")
                    times = (event.get("series") or {}).get("count", 1)
                    told[uid] = told.get(uid, 0) + int(times)
        return told

    def went_back(self) -> None:
        """The cluster is elsewhere."""

    def caught_up(self, standing: Standing) -> bool:
        """The leader does not say how far it is; that nothing has changed for a while has to do."""
        return time.monotonic() - self.api.changed_at > QUIET_S


def _key(value: Json) -> str:
    metadata = value["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])
