"""I1 to I6, read off Redis and the cluster alone: shares nothing with the code that keeps them but the arithmetic of
requests."""

from collections import Counter, defaultdict
from typing import Any

from dsched.framework import deferred_resizes
from dsched.framework.pod_info import PodInfo
from dsched.model.pod import Pod
from dsched.state import keys
from dsched.state.reservations import read_reservations
from dsched.state.usage import read_names, read_usage
from tests.integration.leader.rig import Rig

_ZSETS = {"backoff": keys.BACKOFF, "unschedulable": keys.UNSCHEDULABLE, "gated": keys.GATED, "waiting": keys.WAITING}
_GROUP = "podgroup/"
"""Begins the keys of pod groups, which stand in the queue as pods do."""


class Checker:
    """Checks a system again and again; remembers attempts, which must not go back."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._redis: Any = rig.store.redis
        self._attempts: dict[str, int] = {}

    def always(self) -> None:
        """What holds at any moment, whoever was killed."""
        records = self._records()
        assert self._standing() == {key: [fields["queue"]] for key, fields in records.items() if _in_queue(fields)}
        reservations = {found.uid: found for found in read_reservations(self._rig.store)}
        held = {fields["uid"]: key for key, fields in records.items() if fields["queue"] in ("reserved", "waiting")}
        assert {uid: found.key for uid, found in reservations.items()} == held
        for uid, found in reservations.items():
            fields = records[found.key]
            assert (found.state == "waiting") == (fields["queue"] == "waiting"), (uid, found, fields)
            assert fields["node"] == found.node
            assert int(fields["attempts"]) == found.attempt
        for key, fields in records.items():
            if key.startswith(_GROUP):  # what is counted of a group begins anew once it was placed
                continue
            attempts = int(fields.get("attempts", "0"))
            assert attempts >= self._attempts.get(fields["uid"], 0), f"{key}: attempts went back"
            self._attempts[fields["uid"]] = attempts
        self._bound_once()

    def settled(self) -> None:
        """What holds once the leader has taken everything in and is between two turns."""
        self.always()
        pods = {pod.key: pod for pod in self._rig.cluster.list().pods}
        records = self._records()
        resizes = self._rig.configuration.features.enabled(deferred_resizes.GATE)
        pending = {
            key: pod.uid
            for key, pod in pods.items()
            if (not pod.node_name or (resizes and pod.resize_deferred)) and not pod.finished
        }
        recorded = {key: fields["uid"] for key, fields in records.items() if not key.startswith(_GROUP)}
        # One that is being deleted leaves the queue when its turn comes.
        assert recorded == {key: uid for key, uid in pending.items() if key in recorded or not pods[key].deleting}
        groups = {fields["group"] for fields in records.values() if fields["queue"] == "group"}
        assert {key.removeprefix(_GROUP) for key in records if key.startswith(_GROUP)} == groups
        self._usage(pods)

    def at_rest(self) -> None:
        """What holds when there is nothing left to do."""
        self.settled()
        assert read_reservations(self._rig.store) == []
        queues = Counter(fields["queue"] for fields in self._records().values())
        assert set(queues) <= {"unschedulable", "gated", "backoff", "group"}, queues
        assert self._redis.xlen(self._rig.store.key(keys.RESULTS.name)) == 0

    # -- reading ---------------------------------------------------------------------------------------------------

    def _records(self) -> dict[str, dict[str, str]]:
        prefix = self._rig.store.key(keys.POD.name)
        found = {}
        for name in self._redis.scan_iter(match=prefix + "*", count=10_000):
            fields = self._redis.hgetall(name)
            key = name.decode()[len(prefix) :]
            found[key] = {field.decode(): value.decode() for field, value in fields.items()}
        return found

    def _standing(self) -> dict[str, list[str]]:
        """Pod to the queues that it really stands in."""
        found: dict[str, list[str]] = defaultdict(list)
        for member in self._redis.zrange(self._rig.store.key(keys.ACTIVE.name), 0, -1):
            found[member.decode().rpartition(" ")[2]].append("active")
        for queue, key in _ZSETS.items():
            for member in self._redis.zrange(self._rig.store.key(key.name), 0, -1):
                found[member.decode()].append(queue)
        for member in self._redis.hkeys(self._rig.store.key(keys.INFLIGHT.name)):
            found[member.decode()].append("inflight")
        for member in self._redis.zrange(self._rig.store.key(keys.GROUP.name), 0, -1):
            found[member.decode().rpartition(" ")[2]].append("group")
        return dict(found)

    def _bound_once(self) -> None:
        times = Counter(uid for _, uid, _ in self._rig.binds())
        assert [uid for uid, count in times.items() if count > 1] == []
        for pod in self._rig.cluster.list().pods:
            scheduled = [count for reason, count in self._rig.events(pod.key) if reason == "Scheduled"]
            assert scheduled == ([1] if times[pod.uid] else []), pod.key

    def _usage(self, pods: dict[str, Pod]) -> None:
        """I3: what is charged is what is bound and reserved, and no more than there is."""
        charged: dict[str, Counter[str]] = defaultdict(Counter)
        ports: Counter[Any] = Counter()
        homes = {pod.uid: pod.node_name for pod in pods.values() if pod.node_name and not pod.finished}
        homes |= {found.uid: found.node for found in read_reservations(self._rig.store)}
        for pod in pods.values():
            if pod.uid in homes:
                demand = PodInfo(pod).demand
                charged[homes[pod.uid]].update({**demand.requests, "pods": 1})
                ports.update((homes[pod.uid], port) for port in demand.ports)
        nodes = {node.name for node in self._rig.cluster.list().nodes}
        assert set(read_names(self._rig.store)) == nodes
        for node in nodes:
            fields = read_usage(self._rig.store, node)
            used = {name[5:]: int(text) for name, text in fields.items() if name.startswith("used.") and int(text)}
            assert used == dict(charged[node]), node
            asking = {homes[pod.uid] for pod in pods.values() if pod.uid in homes and pod.resize_deferred}
            for resource, amount in used.items() if node not in asking else ():
                assert amount <= int(fields.get(f"allocatable.{resource}", "0")), (node, resource)
        assert [port for port, count in ports.items() if count > 1] == []


def _in_queue(fields: dict[str, str]) -> bool:
    return fields["queue"] != "reserved"
