"""Whatever happens in whatever order: the queue of the leader, over Redis, and that of a simulation stay the same."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsched.manifests import kinds
from dsched.scheduler.ports import QueueName
from dsched.state.client import Store
from tests.contract.queueing import CONFIGURATION, DIVIDED, GROUPED, Both, Door, make
from tests.integration.leader.rig import Rig
from tests.manifests import Json, group_manifest, queue_manifest

GROUPS = ("train", "serve")
QUEUES = ("left", "right")
MOST = 30
"""Operations of a sequence."""


class Sequence:
    """Operations, each chosen of those that there can be."""

    def __init__(self, both: Both, data: st.DataObject, *, divided: bool) -> None:
        self.both = both
        self.data = data
        self.divided = divided
        self.pods: dict[str, Json] = {}
        self.groups: set[str] = set()
        self.flying: list[tuple[str, int]] = []
        self.made = 0

    def one(self, *choices: Any) -> Any:
        return self.data.draw(st.sampled_from(choices))

    def step(self) -> None:
        """One operation; that of popping is the likeliest."""
        self.OPERATIONS[self.data.draw(st.sampled_from(self.NAMES))](self)

    def come(self) -> None:
        group = self.one("", "", *GROUPS)
        name = f"p{self.made}"
        self.made += 1
        gates = self.one((), (), (), ("later",))
        queue = self.one(*QUEUES, "") if self.divided else ""
        priority = 0 if group else self.one(0, 0, 5)
        made = make(name, self.one("a", "b"), priority, gates=gates, group=group, queue=queue)
        self.both.put(made)
        self.pods[f"default/{name}"] = made

    def pop(self) -> None:
        """Where queues divide the cluster, once all pauses are over. Before that a leader that has nobody else tries
        whose pause ends first, and a simulation, where time may stand still, has all of them compete."""
        if self.divided:
            self.both.passed(60)
        turn = self.both.pop()
        if turn is not None:
            self.flying.append(turn)

    def end(self) -> None:
        if not self.flying:
            self.pop()
        if not self.flying:
            return
        turn = self.flying.pop(0)
        pods = self.both.pods(turn)
        if any(key not in self.pods for key in pods):
            return
        how = self.one("rejected", "rejected", "pending", "error", "placed")
        plugins = self.one(("Size",), ("Shape",), ("Size", "Shape"))
        if how == "placed":
            but = self.data.draw(st.integers(0, len(pods) - 1)) if turn[0].startswith("podgroup/") else 0
            self.both.placed(turn, "n1", but, *plugins)
            for key in pods[: len(pods) - but]:
                del self.pods[key]
        elif how == "error":
            self.both.failed(turn, error="no answer")
        else:
            self.both.failed(turn, *plugins, waiting=["Size"] if how == "pending" else ())

    def settle(self) -> None:
        """Everybody has his turns, until nobody has any while time stands still; who is left is helped, and waits."""
        for name in ("Size", "Shape", "Door"):
            for _ in range(2 * len(self.pods)):
                self.pop()
                if not self.flying:
                    break
                self.end()
            self.both.helped(**{name: "all"})
        self.wait()

    def help(self) -> None:
        self.both.helped(**{self.one("Size", "Shape", "Door"): self.one("a", "b", "all")})

    def activate(self) -> None:
        if self.pods:
            self.both.activate(self.one(*sorted(self.pods)))

    def wait(self) -> None:
        self.both.passed(self.one(0.001, 0.4, 1, 2.5, 7, 30))

    def turn_door(self) -> None:
        """Nobody hears of it by itself."""
        Door.shut ^= {self.one("a", "b")}

    def change(self) -> None:
        if not self.pods:
            return
        key = self.one(*sorted(self.pods))
        pod = self.pods[key]
        labels = {**pod["metadata"]["labels"], "team": self.one("a", "b", "c")}
        spec = {field: value for field, value in pod["spec"].items() if field != "schedulingGates"}
        changed = {**pod, "metadata": {**pod["metadata"], "labels": labels}, "spec": spec}
        if changed != pod:  # else the cluster tells nothing
            self.both.change(changed)
            self.pods[key] = changed

    def go(self) -> None:
        idle = [key for key, place in self.both.places().items() if key in self.pods and place != QueueName.INFLIGHT]
        if idle:
            key = self.one(*sorted(idle))
            self.both.gone(key)
            del self.pods[key]

    def group(self) -> None:
        """A group comes, changes, or goes."""
        name = self.one(*GROUPS)
        if name in self.groups and self.one(True, False, False):
            if f"podgroup/default/{name}" not in [key for key, _ in self.flying]:
                self.both.object_gone(kinds.POD_GROUP, f"default/{name}")
                self.groups.discard(name)
            return
        self.both.object(kinds.POD_GROUP, group_manifest(f"default/{name}", self.one(1, 2, 3)))
        self.groups.add(name)

    def queue(self) -> None:
        """A queue comes, or its limit changes."""
        if self.divided:
            limit = self.one({}, {"resources": {"cpu": {"limit": self.one("100m", "200m", "400m")}}})
            self.both.object(kinds.QUEUE, queue_manifest(self.one(*QUEUES), weight=self.one(1, 2), **limit))

    def give_back(self) -> None:
        if self.both.running:
            self.both.ends(self.one(*sorted(self.both.running)))

    OPERATIONS: ClassVar[dict[str, Callable[["Sequence"], None]]] = {
        "come": come,
        "pop": pop,
        "end": end,
        "help": help,
        "activate": activate,
        "wait": wait,
        "turn the door": turn_door,
        "change": change,
        "go": go,
        "group": group,
        "queue": queue,
        "give back": give_back,
    }
    NAMES: ClassVar[list[str]] = [*OPERATIONS, "come", "come", "pop", "end", "end", "end", "help", "wait"]


@pytest.mark.parametrize("divided", [False, True])
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_any_sequence_comes_to_the_same(
    connect: Callable[[str], Store],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    data: st.DataObject,
    *,
    divided: bool,
) -> None:
    rig = Rig(connect(f"test-{uuid.uuid4().hex}"), tmp_path, monkeypatch)
    both = Both(rig, DIVIDED if divided else CONFIGURATION, GROUPED)
    both.node("n1", cpu="300m")
    sequence = Sequence(both, data, divided=divided)
    try:
        for _ in range(MOST):
            sequence.step()
        sequence.settle()
    finally:
        rig.over()
