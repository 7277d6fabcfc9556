"""A cluster of each kind, and what happens to it besides what dsched does: a user, other schedulers, another leader."""

import json
import math
import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from dsched.clock import ManualClock
from dsched.cluster.interface import Binding, BindVerdict, Change, Cluster
from dsched.cluster.kubernetes.access import Access
from dsched.cluster.kubernetes.cluster import Kubernetes
from dsched.cluster.standalone import keys as cluster_keys
from dsched.cluster.standalone.applying import Applier
from dsched.cluster.standalone.cluster import StandaloneCluster
from dsched.cluster.standalone.objects import Objects
from dsched.errors import StaleEpoch
from dsched.manifests import kinds
from dsched.model.meta import NodeName, PodKey, PodUid
from dsched.state import client, keys
from dsched.state.client import Store
from tests.integration.cluster.kubernetes.fake_api import FakeApi
from tests.integration.cluster.waiting import wait_until
from tests.integration.cluster.watching import Watcher
from tests.integration.state.support import take_over
from tests.manifests import Json, loaded, pod_manifest

EPOCH = 7
DEADLINE_S = 60.0


class ToldEvent(NamedTuple):
    """An event as ``kubectl describe`` shows it."""

    type: str
    reason: str
    message: str
    count: int


class System(ABC):
    """A cluster under test.

    Attributes:
        cluster: as one process has it.
        kind, checks_reservations: as the cluster has to say them.
        version: of the Kubernetes behind it; empty where there is none.

    What differs between clusters on purpose is one of these, and nothing else.
    """

    cluster: Cluster
    kind: str
    checks_reservations: bool
    version: str
    _marks = 0

    @abstractmethod
    def another(self) -> Cluster:
        """The same cluster, as another process has it."""

    # -- a user ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def put(self, *values: Json) -> None:
        """Create or change objects; where a pod is bound and what is said of it stays."""

    @abstractmethod
    def delete(self, kind: kinds.Kind, key: str) -> None:
        """Delete an object, at once."""

    @abstractmethod
    def amend(self, kind: kinds.Kind, key: str, **fields: Json) -> None:
        """Somebody else writes fields of an object that its user does not write."""

    @abstractmethod
    def read(self, kind: kinds.Kind, key: str) -> Json | None:
        """An object as it is now."""

    @abstractmethod
    def events(self, key: str) -> list[ToldEvent]:
        """What was told of a pod, oldest first."""

    @abstractmethod
    def events_of(self, key: str, uid: str) -> list[ToldEvent]:
        """What was told of the pod of that name that has this uid, oldest first."""

    def there(self, kind: kinds.Kind, key: str) -> Json:
        """An object that is there."""
        found = self.read(kind, key)
        assert found is not None, f"there is no {kind.name} {key}"
        return found

    def uid(self, key: str) -> PodUid:
        """Of a pod that is there."""
        return PodUid(self.there(kinds.POD, key)["metadata"]["uid"])

    def version_of(self, kind: kinds.Kind, key: str) -> str:
        """Of an object that is there."""
        return str(self.there(kind, key)["metadata"]["resourceVersion"])

    # -- others ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def hold(self, pod_uid: str, holder: str, *devices: str) -> None:
        """Have devices reserved for a pod, where the cluster looks whether they are."""

    @abstractmethod
    def binding(self, key: str, node: str = "n1") -> Binding:
        """A binding for a pod that is there, with a reservation that stands, as the leader makes it."""

    @abstractmethod
    def bind_elsewhere(self, key: str, node: str) -> None:
        """Another scheduler binds a pod."""

    @abstractmethod
    def lose_history(self) -> None:
        """What happened so far can be told to nobody any more."""

    @abstractmethod
    def lead(self, profiles: Collection[str] = (), **which: bool) -> None:
        """`cluster` leads from now on."""

    @abstractmethod
    def another_leads(self) -> None:
        """The lease of `cluster` has run out."""

    @abstractmethod
    def refuses(self) -> Any:
        """What is asked of `cluster` within is refused, or waits."""

    @abstractmethod
    def why_deleted(self, uid: str) -> str:
        """The reason for which `Cluster.delete_pods` has deleted a pod."""

    @abstractmethod
    def later(self) -> None:
        """Time passes, where the test has a say in it."""

    def listed(self) -> Watcher:
        """Lists; hears what happens from then on."""
        return Watcher(self.cluster)

    def told_nothing(self, heard: Watcher) -> bool:
        """Whether nothing of pods was told since the last call, but for what this puts there to know how far it is."""
        self._marks += 1
        key = f"default/mark-{self._marks}"
        self.put(pod_manifest(key))
        heard.wait_for(Change.ADDED, "Pod", key)
        told, heard.events = heard.told, []
        return [each for each in told if each[1] == "Pod"] == [(Change.ADDED, "Pod", key)]

    def settle(self) -> None:
        """All that was reported is written."""
        assert self.cluster.drain(DEADLINE_S)

    @abstractmethod
    def close(self) -> None:
        """Nothing goes on any more."""


class Standalone(System):
    kind = "standalone"
    checks_reservations = True
    version = ""

    def __init__(self, redis_url: str, folder: Path) -> None:
        self._url, self._name = redis_url, f"test-{uuid.uuid4().hex}"
        self._stores: list[Store] = []
        self.store = self._connected()
        self.clock = ManualClock()
        self._folder = folder
        self._applier = Applier(self.store, self.clock)
        self.cluster = self.another()

    def _connected(self) -> Store:
        self._stores.append(client.connect(self._url, self._name))
        return self._stores[-1]

    def another(self) -> StandaloneCluster:
        return StandaloneCluster(self._connected(), self.clock)

    def put(self, *values: Json) -> None:
        self._applier.apply(loaded(self._folder, *values))

    def delete(self, kind: kinds.Kind, key: str) -> None:
        assert self._applier.delete(kind, [key]) == [True]

    def amend(self, kind: kinds.Kind, key: str, **fields: Json) -> None:
        name = self.store.key(cluster_keys.objects(kind).name)
        value = msgspec.json.decode(self.store.redis.hget(name, key))
        self.store.redis.hset(name, key, msgspec.json.encode({**value, **fields}))

    def read(self, kind: kinds.Kind, key: str) -> Json | None:
        found: Json | None = Objects(self.store).get(kind, [key])[0]
        return found

    def events(self, key: str) -> list[ToldEvent]:
        found = Objects(self.store).events(PodKey(key))
        return [ToldEvent(each.type, each.reason, each.message, each.count) for each in reversed(found)]

    def events_of(self, key: str, uid: str) -> list[ToldEvent]:
        return self.events(key)

    def hold(self, pod_uid: str, holder: str, *devices: str) -> None:
        given = {f"gpu.example.com/n1/{each}": "1" for each in devices}
        self.store.redis.hset(self.store.key("devices"), pod_uid, json.dumps({holder: given} if given else {}))

    def binding(self, key: str, node: str = "n1") -> Binding:
        uid = self.uid(key)
        name = self.store.key(keys.RESERVATIONS.name)
        self.store.redis.hset(name, uid, f"{key} {node} {EPOCH} binding 1 1700000000000")
        return Binding(PodKey(key), uid, NodeName(node), EPOCH)

    def bind_elsewhere(self, key: str, node: str) -> None:
        """There is nothing but dsched: it is a binder of an earlier leader."""
        binding = self.binding(key, node)
        (outcome,) = self.another().bind([binding])
        assert outcome.verdict is BindVerdict.BOUND, outcome
        self.store.redis.hdel(self.store.key(keys.RESERVATIONS.name), binding.uid)

    def lose_history(self) -> None:
        self.store.redis.delete(self.store.key(cluster_keys.LOG.name))

    def lead(self, profiles: Collection[str] = (), **which: bool) -> None:
        self.cluster.lead(take_over(self.store), lambda: True, profiles, **which)

    def another_leads(self) -> None:
        take_over(self.store)

    @contextmanager
    def refuses(self) -> Iterator[None]:
        with pytest.raises(StaleEpoch):
            yield

    def why_deleted(self, uid: str) -> str:
        for _, fields in reversed(self.store.redis.xrange(self.store.key(cluster_keys.LOG.name))):
            if fields[b"change"] == b"DELETED" and fields[b"uid"] == uid.encode():
                return str(fields[b"reason"].decode())
        raise AssertionError(f"pod {uid} was not deleted")

    def later(self) -> None:
        self.clock.advance(60)

    def close(self) -> None:
        for each in self._stores:
            each.close()


class AtAnApiServer(System):
    kind = "kubernetes"
    checks_reservations = False
    version = "1.37"

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.opened: list[Kubernetes] = []
        self._leads = True
        self._asked = 0
        self.cluster = self.another()

    def another(self) -> Kubernetes:
        self.opened.append(Kubernetes(Access(self.api.kubeconfig()), events_a_second=math.inf))
        return self.opened[-1]

    def put(self, *values: Json) -> None:
        for value in values:
            kind, metadata = kinds.BY_NAME[value["kind"]], value["metadata"]
            if kind.namespaced:
                metadata = {"namespace": "default", **metadata}
            there = self.read(kind, kind.key(metadata.get("namespace", ""), metadata["name"]))
            given = {**value, "metadata": metadata}
            self.api.put(kind.plural, given if there is None else _changed(there, given))

    def delete(self, kind: kinds.Kind, key: str) -> None:
        self.api.delete(kind.plural, key)

    def amend(self, kind: kinds.Kind, key: str, **fields: Json) -> None:
        self.api.put(kind.plural, {**self.there(kind, key), **fields})

    def read(self, kind: kinds.Kind, key: str) -> Json | None:
        with self.api.lock:
            return self.api.get(kind.plural, key) if (kind.plural, key) in self.api.objects else None

    def events(self, key: str) -> list[ToldEvent]:
        return [event for pod, _, event in self._told() if pod == key]

    def events_of(self, key: str, uid: str) -> list[ToldEvent]:
        return [event for pod, its, event in self._told() if (pod, its) == (key, uid)]

    def _told(self) -> Iterator[tuple[str, str, ToldEvent]]:
        """Events, each with the pod that it is about."""
        self.settle()
        for each in self.api.all("events"):
            pod, count = each["regarding"], each.get("series", {}).get("count", 1)
            told = ToldEvent(each["type"], each["reason"], each["note"], count)
            yield f"{pod['namespace']}/{pod['name']}", pod["uid"], told

    def hold(self, pod_uid: str, holder: str, *devices: str) -> None:
        """An API server knows nothing of it."""

    def binding(self, key: str, node: str = "n1") -> Binding:
        return Binding(PodKey(key), self.uid(key), NodeName(node), EPOCH)

    def bind_elsewhere(self, key: str, node: str) -> None:
        pod = self.there(kinds.POD, key)
        self.api.put("pods", {**pod, "spec": {**pod["spec"], "nodeName": node}})

    def lose_history(self) -> None:
        self.api.end_watches()
        self.api.compact()

    def lead(self, profiles: Collection[str] = (), **which: bool) -> None:
        self._leads = True
        self.cluster.lead(1, self._holds, profiles, **which)

    def another_leads(self) -> None:
        self._leads = False

    def _holds(self) -> bool:
        self._asked += 1
        return self._leads

    @contextmanager
    def refuses(self) -> Iterator[None]:
        before = self._asked
        yield
        wait_until("it was looked whether the lease is good", lambda: self._asked > before)

    def why_deleted(self, uid: str) -> str:
        with self.api.lock:
            told = [json.loads(raw) for _, _, change, raw in self.api._log if change == Change.DELETED.value]
        (pod,) = [each for each in told if each["metadata"]["uid"] == uid]
        (condition,) = [each for each in pod["status"]["conditions"] if each["type"] == "DisruptionTarget"]
        return str(condition["reason"])

    def later(self) -> None:
        """The clock of an API server is its own."""

    def close(self) -> None:
        for each in self.opened:
            each.close()


def _changed(there: Json, value: Json) -> Json:
    """An object as it is after somebody has changed what he may."""
    node = there.get("spec", {}).get("nodeName")
    spec = {"spec": {**value["spec"], "nodeName": node}} if node else {}
    status = {"status": there["status"]} if "status" in there and value["kind"] != "Node" else {}
    return {**status, **value, **spec}


KINDS = ("standalone", "kubernetes")


@contextmanager
def opened(kind: str, redis_url: str, folder: Path) -> Iterator[System]:
    """A cluster of its own."""
    if kind == "standalone":
        found = Standalone(redis_url, folder)
        yield found
        found.close()
        return
    api = FakeApi(folder)
    api.start()
    other = AtAnApiServer(api)
    yield other
    other.close()
    api.stop()
