"""Extenders as the engine sees them: webhooks that have a say after the plugins. `dsched.extenders` speaks to them.

What an extender says is about this very pod at this very moment; it is never kept for another.

Source: staging/src/k8s.io/kube-scheduler/framework/extender.go ``Extender``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dsched.framework.pod_info import PodInfo
from dsched.framework.snapshot import Snapshot
from dsched.framework.status import Code, Status
from dsched.framework.validation import PluginFailure
from dsched.model.meta import NodeName
from dsched.model.node import Node

EXTENDER = "Extender"
"""Stands for all extenders among the plugins that rejected a pod; nearly any event queues such a pod again.

Source: pkg/scheduler/framework/types.go ``ExtenderName``.
"""

SCALE = 10
"""Extenders score 0 to 10, plugins 0 to 100.

Source: pkg/scheduler/schedule_one.go ``prioritizeNodes``, ``MaxNodeScore / MaxExtenderPriority``.
"""

ReadObjects = Callable[[str, Sequence[str]], Sequence[Mapping[str, Any] | None]]
"""Objects of a kind by key, as plain JSON objects; None for one that is not there."""


class ExtenderFailure(PluginFailure):
    """An extender failed that must not be ignored; the attempt ends with this status Error."""

    def __init__(self, message: str) -> None:
        super().__init__(EXTENDER, message)
        self.status = Status(Code.ERROR, (message,), EXTENDER)


@dataclass(frozen=True, slots=True)
class Said:
    """What one extender said of a node."""

    extender: str
    status: Status


@dataclass(frozen=True, slots=True)
class AnsweredNode:
    """A node as an extender gave it back: as scheduling reads it, and whole."""

    node: Node
    whole: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Filtering:
    """What the extenders left of some nodes.

    Attributes:
        kept: the nodes that all of them let through, in the order given.
        said: statuses by node name. An extender may speak of nodes that it was not asked about, of nodes that nobody
            knows, and of nodes that it lets through all the same.
        left_out: nodes that were dropped, by the name of the extender that did so; where nothing was said of them,
            preemption cannot help.
        answered: the kept nodes, where an extender gave them back whole; else nothing. Whoever is asked after it, to
            filter or to score, is asked about these.
    """

    kept: tuple[NodeName, ...]
    said: Mapping[str, Said]
    left_out: Mapping[NodeName, str]
    answered: Mapping[NodeName, AnsweredNode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scoring:
    """One extender's scores by node name, before scaling and weight."""

    extender: str
    weight: int
    scores: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Victims:
    """Pods that have to go from a node, most important first, and how many evictions violate disruption budgets."""

    pods: tuple[PodInfo, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class BindFailure:
    """Why an extender did not bind a pod.

    Attributes:
        unclear: there was no answer; the pod may be bound all the same, now or later.
    """

    message: str
    unclear: bool


class Extending(Protocol):
    """The extenders of a configuration."""

    def concerned(self, pod: PodInfo) -> bool:
        """Whether an extender has a say in where this pod goes."""
        ...

    def filter(self, pod: PodInfo, nodes: Sequence[Node]) -> Filtering:
        """Ask one after the other, each about what the one before has left.

        Raises:
            ExtenderFailure: one failed that must not be ignored.
        """
        ...

    def prioritize(
        self, pod: PodInfo, nodes: Sequence[Node], answered: Mapping[NodeName, AnsweredNode]
    ) -> Sequence[Scoring]:
        """Ask all at the same time; who fails has no say.

        Args:
            answered: as `Filtering` has it.
        """
        ...

    def preempt(
        self, pod: PodInfo, candidates: Mapping[NodeName, Victims], snapshot: Snapshot
    ) -> Mapping[NodeName, Victims]:
        """Which of the candidates to go on with, and with which victims.

        Raises:
            ExtenderFailure: one failed that must not be ignored.
        """
        ...

    def binds(self, pod: PodInfo) -> bool:
        """Whether an extender binds this pod."""
        ...

    def bind(self, pods: Sequence[tuple[PodInfo, NodeName]]) -> list[BindFailure | None]:
        """Have pods bound that `binds`, all at the same time: None where the extender says that it is done."""
        ...

    def ignores_failure_to_bind(self, pod: PodInfo) -> bool:
        """Whether the Bind plugins bind the pod when the extender fails."""
        ...

    @property
    def bind_timeout_s(self) -> float:
        """How long binding by an extender may take."""
        ...
