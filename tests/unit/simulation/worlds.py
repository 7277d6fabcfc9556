"""Clusters to simulate and plugins to simulate with, told in few words."""

from collections.abc import Iterable
from typing import Any

from dsched import config
from dsched.config import SchedulerConfiguration
from dsched.framework.interface import Code, PermitResult, PostFilterResult, Registry, Status, unschedulable
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.plugins import registry
from dsched.scheduler.decision import Decision, by_pod
from dsched.simulation.from_manifests import ManifestCluster
from dsched.simulation.outcome import Outcome, PodOutcome
from dsched.simulation.placing import simulate

NOW_MS = 1_700_000_000_000


def plugin(name: str = "Test", **members: Any) -> type[Any]:
    """A plugin class from its methods and attributes."""
    return type(name, (), {"name": name, "__init__": lambda self, args, handle: None, **members})


def known(*plugins: type[Any]) -> Registry:
    """The plugins in tree and these."""
    return {**registry.intree(), **{each.name: each for each in plugins}}


def configured(*plugins: type[Any], more: str = "") -> SchedulerConfiguration:
    """The default profile with plugins of one's own wherever they serve."""
    named = "".join(f"{{name: {each.name}}}, " for each in plugins)
    text = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {{multiPoint: {{enabled: [{named}]}}}}
{more}
"""
    return config.load(text, "test.yaml", plugins=registry.served(known(*plugins)))


class Gang:
    """Permit holds pods back; one named stray fits nowhere and turns those away that wait, as gang schedulers do.

    After a hundred times it lets go, so that a test ends where nothing else ends it.
    """

    name = "Gang"

    def __init__(self, args: Any, handle: Any) -> None:
        self._handle = handle
        self._times = 0

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        return unschedulable("astray") if pod.pod.metadata.name == "stray" else None

    def permit(self, state: Any, pod: Any, node: Any) -> PermitResult:
        if self._times >= 100:
            return PermitResult()
        self._times += 1
        return PermitResult(Status(Code.WAIT), timeout_s=60)

    def post_filter(self, attempt: Any) -> PostFilterResult:
        for waiting in self._handle.waiting_pods():
            waiting.reject(self.name, "the gang is not complete")
        return PostFilterResult(None, unschedulable("nobody to evict"))


class Told:
    """A simulation that has run: its outcome, and the decisions in order."""

    def __init__(self, nodes: Iterable[Node], pods: Iterable[Pod], *plugins: type[Any], seed: int = 0) -> None:
        pods = list(pods)
        bound = tuple(pod for pod in pods if pod.node_name)
        given = ManifestCluster(tuple(nodes), bound, tuple(pod for pod in pods if not pod.node_name))
        self.decisions: list[Decision] = []
        self.outcome: Outcome = simulate(
            configured(*plugins),
            known(*plugins),
            given,
            NOW_MS,
            seed,
            lambda each, _: self.decisions.extend(by_pod([each])),
        )

    @property
    def tried(self) -> list[str]:
        """Names of the pods in the order in which they were decided."""
        return [decision.candidate.info.pod.metadata.name for decision in self.decisions]

    def of(self, name: str) -> PodOutcome:
        """What became of a pod."""
        (found,) = (pod for pod in self.outcome.pods if pod.key == f"shop/{name}")
        return found
