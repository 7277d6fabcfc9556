"""A simulation told as a recording, so that it can be rehearsed as another version.

What the leader would tell of the same: what there is, each decision, what became of it.
"""

from collections.abc import Iterator

from dsched import emulation
from dsched.config import SchedulerConfiguration
from dsched.framework.interface import Registry
from dsched.leader.observers.recording import choice, shown
from dsched.model import tape
from dsched.model.meta import NodeName, PodUid
from dsched.scheduler.decision import Decision
from dsched.simulation.from_manifests import ManifestCluster
from dsched.simulation.placing import simulate


def lines(
    configured: SchedulerConfiguration, plugins: Registry, given: ManifestCluster, now_ms: int, seed: int
) -> list[tape.Line]:
    """Place the pods that wait, and tell it.

    Raises:
        PluginError: a profile's plugins cannot be built.
    """
    told = _Telling(now_ms)
    told.lines += _beginning(configured, given, now_ms, seed)
    simulate(configured, plugins, given, now_ms, seed, told.hear)
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
    for turn, pod in enumerate(given.pending):
        yield tape.Pending(pod, now_ms * 1000 + turn)
        if pod.status.nominated_node_name:
            yield tape.Promised(pod.uid, NodeName(pod.status.nominated_node_name))
    yield tape.Ready()


class _Telling:
    """Hears decisions, in order."""

    def __init__(self, now_ms: int) -> None:
        self.lines: list[tape.Line] = []
        self._now_ms = now_ms
        self._held: set[PodUid] = set()

    def hear(self, decision: Decision, _version: int) -> None:
        uid = decision.candidate.info.uid
        if uid in self._held:  # Permit has turned it away
            self._held.discard(uid)
            self.lines.append(tape.Released(uid))
        self.lines.append(tape.Decided(self._now_ms, (choice(decision, decision.message),)))
        if decision.waiting is not None:
            self._held.add(uid)
        elif decision.node is not None:
            self.lines += (tape.Bound(uid), tape.NoLongerPending(uid))
        self.lines += (tape.PodOff(victim.uid) for victim in decision.victims)
