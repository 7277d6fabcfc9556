"""An arena whose nodes and pods are in the system's own Redis."""

import json
import threading
from pathlib import Path
from typing import Any

from dsched.cluster.standalone.applying import Applier
from dsched.errors import DschedError
from dsched.manifests import kinds
from dsched.state import client
from tests.faults.arena import Arena, Standing
from tests.faults.history import PREFIX, Follower
from tests.manifests import loaded

Json = dict[str, Any]

EVENTS = "cluster:events:"


class NotNow(Exception):
    """The cluster does not take changes at the moment."""


class Standalone(Arena):
    """Nodes and pods are applied as ``dsched apply`` does, past the proxy."""

    kind = "standalone"

    def __init__(self, folder: Path, *options: str, **variables: str) -> None:
        super().__init__(folder, *options, **variables)
        self.follower = Follower(self.server.url, self.history)
        self._putting = threading.Lock()
        self._store: client.Store | None = None
        self._applier: Applier | None = None

    def start(self) -> None:
        super().start()
        self.follower.start()

    def stop(self) -> None:
        self.follower.stop()
        super().stop()
        if self._store is not None:
            self._store.close()

    def connect(self, url: str) -> None:
        super().connect(url)
        if self._store is not None:
            self._store.close()
        self._store = client.connect(url)
        self._applier = Applier(self._store)
        self.follower.retarget(url)

    def put(self, kind: str, *objects: Json) -> None:
        assert self._applier is not None
        try:
            with self._putting:
                self._applier.apply(loaded(self.folder, *objects))
        except (DschedError, *client.UNAVAILABLE) as error:
            raise NotNow(str(error)) from error

    def delete(self, kind: str, *keys: str) -> None:
        assert self._applier is not None
        try:
            self._applier.delete(kinds.BY_NAME[kind], keys)
        except (DschedError, *client.UNAVAILABLE) as error:
            raise NotNow(str(error)) from error

    def objects(self, kind: str) -> list[Json]:
        try:
            if kind == "Node":
                return [json.loads(text) for text in self.redis.hvals(PREFIX + "cluster:nodes")]
            pipe = self.redis.pipeline(transaction=True)
            for name in ("cluster:pods", "cluster:pods:state", "cluster:pods:status"):
                pipe.hgetall(PREFIX + name)
            pods, states, statuses = pipe.execute()
        except client.UNAVAILABLE as error:
            raise NotNow(str(error)) from error
        return [_pod(json.loads(text), states[key], statuses.get(key)) for key, text in pods.items()]

    def scheduled_events(self) -> dict[str, int]:
        prefix = PREFIX + EVENTS
        names = list(self.redis.scan_iter(match=prefix.replace("{", "\\{").replace("}", "\\}") + "*", count=1000))
        pipe = self.redis.pipeline(transaction=False)
        for name in names:
            pipe.lrange(name, 0, -1)
        told: dict[str, int] = {}
        for name, lines in zip(names, pipe.execute(), strict=True):
            counts = [int(line.split(" ")[2]) for line in lines if line.startswith("Normal Scheduled ")]
            told[name.removeprefix(prefix)] = sum(counts)
        return told

    def went_back(self) -> None:
        self.follower.lost(int(self.redis.get(PREFIX + "cluster:version") or 0))

    def caught_up(self, standing: Standing) -> bool:
        version = int(self.redis.get(PREFIX + "cluster:version") or 0)
        return self.follower.caught_up() and standing.intake >= version


def _pod(pod: Json, state: str, status: str | None) -> Json:
    """A pod with what is kept beside it."""
    node = state.split(" ")[1]
    spec = pod["spec"] if node == "-" else {**pod["spec"], "nodeName": node}
    said = json.loads(status) if status and node == "-" else {}
    return {**pod, "spec": spec, "status": {**pod.get("status", {}), **said}}
