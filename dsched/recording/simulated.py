"""A simulation told as a recording, so that it can be rehearsed as another version.

What the leader would tell of the same: what there is, each decision, what became of it.
"""

from collections.abc import Iterator

from dsched import emulation
from dsched.config import Features, SchedulerConfiguration, shown
from dsched.framework import deferred_resizes
from dsched.framework.interface import ClusterEvent, Registry
from dsched.model import tape
from dsched.model.meta import NodeName, PodUid, key_of
from dsched.model.pod import Pod
from dsched.model.resource_claims import RESOURCE_CLAIM
from dsched.scheduler.decision import Decision, GroupDecision, choice, group_choices, told_by_pod
from dsched.simulation.from_manifests import ManifestCluster
from dsched.simulation.placing import simulate


def lines(
    configured: SchedulerConfiguration,
    plugins: Registry,
    given: ManifestCluster,
    now_ms: int,
    seed: int,
    compared: Features | None = None,
) -> list[tape.Line]:
    """Place the pods that wait, and tell it.

    Args:
        compared: as what it will be rehearsed. Where resizes preempt by it alone, pods whose resize is deferred are
            told as tried first, with nothing decided.

    Raises:
        PluginError: a profile's plugins cannot be built.
    """
    told = _Telling(now_ms)
    told.lines += _beginning(configured, given, now_ms, seed)
    preempt = deferred_resizes.GATE
    if compared is not None and compared.enabled(preempt) and not configured.features.enabled(preempt):
        told.lines += _left_alone(configured, given, now_ms)
    simulate(configured, plugins, given, now_ms, seed, told.hear, told.follow)
    told.settle()
    return told.lines


def _beginning(
    configured: SchedulerConfiguration, given: ManifestCluster, now_ms: int, seed: int
) -> Iterator[tape.Line]:
    version, gates = emulation.written(configured.features)
    yield tape.Began(now_ms, 1, seed, shown(configured), configured.hash, version=version, gates=gates)
    for node in given.nodes:
        yield tape.NodeIs(node)
    for kind, key, value in given.others:
        yield tape.ObjectIs(kind, key, dict(value))
    for pod in given.bound:
        yield tape.PodOn(pod.node_name, pod)
    for turn, pod in enumerate(given.waiting(configured)):
        yield tape.Pending(pod, now_ms * 1000 + turn)
        if pod.status.nominated_node_name and not pod.node_name:
            yield tape.Promised(pod.uid, NodeName(pod.status.nominated_node_name))
    yield tape.Ready()


def _left_alone(configured: SchedulerConfiguration, given: ManifestCluster, now_ms: int) -> Iterator[tape.Line]:
    ours = {profile.scheduler_name for profile in configured.profiles}
    for turn, pod in enumerate(pod for pod in given.resizing if pod.spec.scheduler_name in ours):
        yield tape.Pending(pod, now_ms * 1000 + turn)
        yield tape.Decided(now_ms, (tape.Choice(pod.uid, 1),))
        yield tape.NoLongerPending(pod.uid)


class _Telling:
    """Hears decisions and what becomes of claims, in order."""

    def __init__(self, now_ms: int) -> None:
        self.lines: list[tape.Line] = []
        self._now_ms = now_ms
        self._held: set[PodUid] = set()
        self._placed: dict[PodUid, None] = {}
        """They are bound once their claims are written, as binders do it."""

    def hear(self, decided: Decision | GroupDecision, _version: int) -> None:
        self.settle()
        decisions = told_by_pod([decided])
        for uid in [decision.candidate.info.uid for decision in decisions]:
            if uid in self._held:  # Permit has turned it away
                self._held.discard(uid)
                self.lines.append(tape.Released(uid))
        choices = tuple(choice(decision, decision.message) for decision in decisions)
        self.lines.append(tape.Decided(self._now_ms, choices, groups=group_choices([decided])))
        for decision in decisions:
            if decision.waiting is not None:
                self._held.add(decision.candidate.info.uid)
            elif decision.node is not None:
                self._placed[decision.candidate.info.uid] = None
        self.lines += (tape.PodOff(victim.uid) for decision in decisions for victim in decision.victims)

    def follow(self, event: ClusterEvent) -> None:
        if isinstance(event.old, Pod):  # it could not be bound
            uid = event.old.uid
            self._placed.pop(uid, None)
            self._held.discard(uid)
            self.lines.append(tape.Released(uid))
            return
        key = key_of(event.old if event.new is None else event.new)
        if event.new is None:
            self.lines.append(tape.ObjectGone(RESOURCE_CLAIM, key))
        else:
            self.lines.append(tape.ObjectIs(RESOURCE_CLAIM, key, dict(event.new)))

    def settle(self) -> None:
        """What the last decision brings has been told."""
        for uid in self._placed:
            self.lines += (tape.Bound(uid), tape.NoLongerPending(uid))
        self._placed = {}
