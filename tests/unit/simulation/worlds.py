"""Clusters to simulate and plugins to simulate with, told in few words."""

from collections.abc import Iterable
from typing import Any

from dsched import config
from dsched.config import SchedulerConfiguration
from dsched.framework.interface import Registry
from dsched.leader.cycle import Decision
from dsched.model.node import Node
from dsched.model.pod import Pod
from dsched.plugins import registry
from dsched.simulation.given import Given
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


class Told:
    """A simulation that has run: its outcome, and the decisions in order."""

    def __init__(self, nodes: Iterable[Node], pods: Iterable[Pod], *plugins: type[Any], seed: int = 0) -> None:
        pods = list(pods)
        bound = tuple(pod for pod in pods if pod.node_name)
        given = Given(tuple(nodes), bound, tuple(pod for pod in pods if not pod.node_name))
        self.decisions: list[Decision] = []
        self.outcome: Outcome = simulate(
            configured(*plugins),
            known(*plugins),
            given,
            NOW_MS,
            seed,
            lambda each, _: self.decisions.append(each),
        )

    @property
    def tried(self) -> list[str]:
        """Names of the pods in the order in which they were decided."""
        return [decision.candidate.info.pod.metadata.name for decision in self.decisions]

    def of(self, name: str) -> PodOutcome:
        """What became of a pod."""
        (found,) = (pod for pod in self.outcome.pods if pod.key == f"shop/{name}")
        return found
