"""A whole recording, decision by decision."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsched.engine.select import nodes_to_find
from dsched.errors import NothingRecorded, RecordingError
from dsched.judging import verdicts
from dsched.judging.cluster import ToldCluster
from dsched.judging.program import Program
from dsched.judging.verdicts import Verdict
from dsched.model import tape
from dsched.model.meta import NodeName, PodKey
from dsched.model.pod import Pod
from dsched.scheduler.nominations import Nomination

EXTENDERS = "extenders have a say in it, and they are not asked again"
GROUPED = "it was decided with its pod group, which is not judged"
UNKNOWN_POD = "the recording does not say what pod it is"
EVERY_NODE = 100
"""Percent of the nodes that dsched looks at where nothing else is configured."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A decision that kube-scheduler would not have made.

    Attributes:
        line: of the recording, where the batch stands.
        node: where the pod was placed, ``""`` for nowhere; then ``message`` says why, and ``nominated`` names the node
            that preemption promised it.
        upstream: what kube-scheduler says.
    """

    line: int
    pod: PodKey
    attempt: int
    node: NodeName
    message: str
    nominated: NodeName
    upstream: str


@dataclass(slots=True)
class Judgement:
    """What judging a recording came to.

    Attributes:
        decisions: that were recorded; agreed: those that kube-scheduler could have made.
        placed, refused, preempted: the decisions, by what they were.
        unjudged: why to how many decisions nothing can be said about.
    """

    decisions: int = 0
    agreed: int = 0
    placed: int = 0
    refused: int = 0
    preempted: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)
    unjudged: Counter[str] = field(default_factory=Counter)


class Judging:
    """Walks through a recording.

    Attributes:
        found: what it has come to so far.
    """

    def __init__(self, program: Program) -> None:
        self.found = Judgement()
        self._program = program
        self._cluster: ToldCluster | None = None
        self._percentages: Mapping[str, int] = {}
        self._extended = False
        self._ready = False

    def run(self, lines: Iterable[tape.Line], at: Callable[[], int] = lambda: 0) -> None:
        """
        Args:
            at: says the number of the line that was read last.

        Raises:
            NothingRecorded: there is no whole beginning.
            RecordingError: something stands before the first one.
            JudgeError: the program failed.
        """
        for line in lines:
            if isinstance(line, tape.Began):
                self._begin(line)
            elif self._cluster is None:
                raise RecordingError(
                    f"line 2: a recording begins with everything there is, not with {type(line).__name__}"
                )
            elif isinstance(line, tape.Decided):
                self._decided(self._cluster, line, at())
            else:
                self._ready = self._ready or isinstance(line, tape.Ready)
                self._cluster.apply(line)
        if not self._ready:
            raise NothingRecorded("nothing was recorded: no leader has told all that it has")

    def _begin(self, began: tape.Began) -> None:
        """A leader tells everything anew."""
        profiles = began.config.get("profiles") or []
        self._percentages = {
            profile.get("schedulerName", ""): _percentage(profile, began.config) for profile in profiles
        }
        self._extended = bool(began.config.get("extenders"))
        heads = {name: began.config[name] for name in ("apiVersion", "kind")}
        self._cluster = ToldCluster(self._program, {**heads, "profiles": profiles})

    def _decided(self, cluster: ToldCluster, line: tape.Decided, at: int) -> None:
        asked: list[tuple[Pod, tape.Choice]] = []
        together = {
            choice.uid for group in line.groups for choice in line.choices[group.first : group.first + group.pods]
        }
        for choice in line.choices:
            pod = cluster.pending.get(choice.uid)
            if pod is None:
                self._count(choice)
                self.found.unjudged[UNKNOWN_POD] += 1
                continue
            cluster.ask(pod, choice)
            cluster.decided(pod, choice)
            asked.append((pod, choice))
        for (pod, choice), answer in zip(asked, self._program.answers(len(asked)), strict=True):
            self._count(choice)
            verdict = self._verdict(cluster, pod, choice, answer, line.at_ms)
            if choice.uid in together:
                verdict = Verdict(unjudged=GROUPED)
            if verdict.unjudged:
                self.found.unjudged[verdict.unjudged] += 1
            elif verdict.differs:
                nominated = choice.nominated or NodeName("")
                self.found.mismatches.append(
                    Mismatch(at, pod.key, choice.attempt, choice.node, choice.message, nominated, verdict.differs)
                )
            else:
                self.found.agreed += 1

    def _verdict(
        self, cluster: ToldCluster, pod: Pod, choice: tape.Choice, answer: dict[str, Any], at_ms: int
    ) -> Verdict:
        if self._extended:
            return Verdict(unjudged=EXTENDERS)
        if choice.failed and pod.node_name and answer.get("feasible"):
            return verdicts.AGREED  # a deferred resize that fits: kube-scheduler's cache has the pod already
        preempting = Nomination.of_fields(choice.preempting or {})
        if not choice.node and (preempting.stopped_until_ms > at_ms or preempting.avoids(at_ms)):
            return Verdict(unjudged=verdicts.STOPPED)
        percentage = self._percentages.get(pod.spec.scheduler_name, EVERY_NODE)
        sampled = nodes_to_find(percentage, len(cluster.nodes)) < len(cluster.nodes)
        return verdicts.verdict(choice, answer, cluster.keys, cluster.equals, sampled=sampled)

    def _count(self, choice: tape.Choice) -> None:
        self.found.decisions += 1
        if choice.node:
            self.found.placed += 1
        elif choice.nominated:
            self.found.preempted += 1
        else:
            self.found.refused += 1


def _percentage(profile: Mapping[str, Any], configuration: Mapping[str, Any]) -> int:
    for given in (profile, configuration):
        percentage = given.get("percentageOfNodesToScore")
        if percentage is not None:
            return int(percentage)
    return EVERY_NODE
