"""Recordings written by hand: pods of queues that come, begin and end at given seconds."""

from typing import Any

import msgspec

from dsched import config, emulation
from dsched.config import shown
from dsched.config.feature_gates import DEFAULT, Features
from dsched.model import tape
from dsched.model.meta import NO_NODE, NodeName, PodUid
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.plugins import registry
from dsched.recording.division import Divided
from dsched.recording.division_outcome import DividedQueue, Division
from dsched.recording.history import History, HistoryReader
from tests.manifests import Json, guaranteed, node_manifest, queue_manifest
from tests.unit.plugins.fair_share.divided import CONFIGURATION
from tests.unit.scheduler.quota.divided import make_pod

NOW_MS = 1_700_000_000_000
NODE = NodeName("n1")
A, B = queue_manifest("a"), queue_manifest("b")


class ByHand:
    """A recording of one node; what happens, happens at `at`.

    Attributes:
        at: seconds since the beginning.
        timed: whether lines say when they were heard.
    """

    def __init__(
        self,
        *queues: Json,
        cores: int = 4,
        there: tuple[Pod, ...] = (),
        timed: bool = True,
        features: Features = DEFAULT,
    ) -> None:
        configured = config.load(
            CONFIGURATION, plugins=registry.served(registry.intree(), features.version), features=features
        )
        self.configured = configured
        self.at = 0.0
        self.timed = timed
        version, gates = emulation.written(features)
        began = tape.Began(NOW_MS, 1, 7, shown(configured), configured.hash, version=version, gates=gates)
        self.lines: list[tape.Line] = [began]
        node = node_manifest(NODE, cpu=str(cores), pods="1000")
        self.lines += [tape.NodeIs(msgspec.convert(node, Node))]
        self.lines += [tape.ObjectIs("Queue", each["metadata"]["name"], each) for each in queues]
        self.lines += [tape.PodOn(NODE, pod.on(NODE)) for pod in there]
        self.lines.append(tape.Ready())

    @property
    def now_ms(self) -> int:
        return NOW_MS + round(self.at * 1000)

    def told(self, line: Any) -> None:
        self.lines.append(msgspec.structs.replace(line, at_ms=self.now_ms) if self.timed else line)

    def comes(self, name: str, queue: str, cpu: int = 1, owner: str = "", **spec: Any) -> None:
        """A pod that is to be placed."""
        self.told(tape.Pending(pod(name, queue, cpu, owner, **spec), self.now_ms * 1000))

    def decided(self, name: str, *victims: str, node: NodeName = NO_NODE) -> None:
        gone = tuple(PodUid(victim) for victim in victims)
        choice = tape.Choice(PodUid(name), 1, node, victims=gone)
        self.lines.append(tape.Decided(self.now_ms, (choice,)))

    def begins(self, *names: str) -> None:
        """Pods are placed and bound."""
        for name in names:
            self.decided(name, node=NODE)
            self.lines.append(tape.Bound(PodUid(name)))
            self.told(tape.NoLongerPending(PodUid(name)))

    def ends(self, *names: str) -> None:
        """Pods that ran are gone."""
        for name in names:
            self.told(tape.PodOff(PodUid(name)))

    def deleted(self, name: str) -> None:
        """A pod that waited is gone."""
        self.told(tape.NoLongerPending(PodUid(name)))

    def history(self, ended: float = 0) -> History:
        reading = HistoryReader()
        for line in self.lines:
            reading.add(line)
        return reading.conclude(NOW_MS + round(ended * 1000) if ended else 0)

    def divided(self, *queues: Json, ended: float = 0) -> Division:
        """What other queues come to."""
        named = {each["metadata"]["name"]: each for each in queues}
        return Divided(self.history(ended), self.configured, registry.intree(), named).run()


def pod(name: str, queue: str, cpu: int = 1, owner: str = "", **spec: Any) -> Pod:
    """A pod ``shop/name``; without the part of its name behind a slash, which tells pods of one name apart."""
    made = make_pod(name.partition("/")[0], queue, cpu, schedulerName="default-scheduler", **spec).pod
    owners: list[Json] = [{"kind": "Job", "name": owner, "uid": owner, "controller": True}] if owner else []
    metadata = msgspec.to_builtins(made.metadata) | {"uid": name, "ownerReferences": owners}
    return msgspec.structs.replace(made, metadata=msgspec.convert(metadata, type(made.metadata)))


def queue(found: Division, name: str) -> DividedQueue:
    (one,) = [each for each in found.queues if each.name == name]
    return one


def waits(found: Division) -> dict[str, tuple[float | None, float | None]]:
    """Pod to how many seconds it waited then and here."""

    def seconds(wait: Any) -> float | None:
        return None if wait is None else wait.ms / 1000

    return {each.pod.removeprefix("shop/"): (seconds(each.recorded), seconds(each.replayed)) for each in found.pods}


def keeps(name: str, cores: int) -> Json:
    return queue_manifest(name, resources=guaranteed(cpu=cores))


def full_of_a(owner: str = "") -> ByHand:
    """Pods of a have all four cores for ten seconds; two of b come after one second, and wait until these end."""
    made = ByHand(keeps("a", 4), B)
    for number in range(4):
        made.comes(f"a{number}", "a", owner=owner)
        made.begins(f"a{number}")
    made.at = 1
    made.comes("b0", "b")
    made.comes("b1", "b")
    made.decided("b0")
    made.decided("b1")
    made.at = 10
    made.ends("a0", "a1", "a2", "a3")
    made.begins("b0", "b1")
    made.at = 15
    made.ends("b0", "b1")
    return made
