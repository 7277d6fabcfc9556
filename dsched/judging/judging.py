"""A whole recording, decision by decision: whether each is one that kube-scheduler could have made.

The rules are those of the conformance vectors: kube-scheduler throws dice among the best nodes, and among equally good
candidates of preemption, so each of them is right.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from dsched.engine.select import nodes_to_find
from dsched.errors import NothingRecorded, RecordingError
from dsched.judging.cluster import ToldCluster
from dsched.judging.program import Program
from dsched.model import tape
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.model.pod import Pod
from dsched.scheduler.nominations import Nomination

_SAMPLED = "kube-scheduler looks at some of the nodes here (percentageOfNodesToScore), at which is chance"
_SAMPLED_PREEMPTION = "preemption looks at some of the nodes here (minCandidateNodes…), at which is chance"
FAILED = "the attempt ended in an error of a plugin"
EQUALS = "which of equally important pods has to go is an accident of the order that kube-scheduler has them in"
_STOPPED = "preemption was stopped, or kept away from a node, by limits that only dsched has"
_PREEMPTION = "preemption: "
_NO_DRIVER = re.compile(r"(?:, )?(\d+) \S+ CSI driver is not installed on the node")
_BEST_SHOWN = 3
_PLUGINS_SHOWN = 3

_Answer = Mapping[str, Any]
_Equals = Callable[[AbstractSet[str], AbstractSet[str]], bool]
EXTENDERS = "extenders have a say in it, and they are not asked again"
GROUPED = "it was decided with its pod group, which is not judged"
UNKNOWN_POD = "the recording does not say what pod it is"
EVERY_NODE = 100
"""Percent of the nodes that dsched looks at where nothing else is configured."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What there is to say about a decision; nothing where kube-scheduler could have made it.

    Attributes:
        differs: what kube-scheduler would have done instead, and why.
        unjudged: why that cannot be said.
    """

    differs: str = ""
    unjudged: str = ""


_AGREED = Verdict()


def _verdict(
    choice: tape.Choice, answer: _Answer, keys: Mapping[PodUid, PodKey], equals: _Equals, *, sampled: bool
) -> Verdict:
    """
    Args:
        answer: what the program said about the pod.
        keys: of the victims.
        equals: says of two sets of victims whether they are equally important.
        sampled: whether the search may have stopped before it had seen all nodes.
    """
    if "unjudged" in answer:
        return Verdict(unjudged=str(answer["unjudged"]))
    if choice.failed:
        return _AGREED if "error" in answer else Verdict(unjudged=FAILED)
    if "error" in answer:
        return Verdict(f"kube-scheduler's attempt ends in an error: {_error(answer['error'])}")
    if "preEnqueue" in answer:
        return Verdict(f"kube-scheduler does not try the pod: {_status(answer['preEnqueue'])}")
    if choice.node:
        return _placed(choice, answer, sampled)
    return _refused(choice, answer, keys, equals)


def _placed(choice: tape.Choice, answer: _Answer, sampled: bool) -> Verdict:
    asked = answer["asked"]
    if asked.get("best"):
        return _AGREED
    if not answer["feasible"]:
        return Verdict(f"kube-scheduler finds no node: {answer.get('message', '')}")
    if "rejected" in asked:
        return Verdict(f"kube-scheduler rejects {choice.node}: {_status(asked['rejected'])}")
    if sampled:
        return Verdict(unjudged=_SAMPLED)
    instead = answer["instead"]
    if "scores" not in asked:
        return Verdict(f"kube-scheduler takes {instead['node']}, which was promised to the pod")
    return Verdict(
        f"kube-scheduler takes {_best(answer)}: total {instead.get('total', 0)} against {asked.get('total', 0)} "
        f"of {choice.node}{_apart(asked, instead)}"
    )


def _apart(asked: _Answer, instead: _Answer) -> str:
    """The plugins that see the two nodes most differently."""
    left, right = asked.get("scores") or {}, instead.get("scores") or {}
    apart = [(right.get(name, 0) - left.get(name, 0), name) for name in left.keys() | right.keys()]
    apart = sorted((each for each in apart if each[0]), key=lambda each: (-abs(each[0]), each[1]))[:_PLUGINS_SHOWN]
    words = ", ".join(f"{name} {right.get(name, 0)} against {left.get(name, 0)}" for _, name in apart)
    return f" ({words})" if words else ""


def _best(answer: _Answer) -> str:
    shown = answer["best"][:_BEST_SHOWN]
    more = answer["equals"] - len(shown)
    return ", ".join(shown) + (f" or {more} more" if more else "")


def _refused(choice: tape.Choice, answer: _Answer, keys: Mapping[PodUid, PodKey], equals: _Equals) -> Verdict:
    if answer["feasible"]:
        return Verdict(f"kube-scheduler places the pod: {answer['feasible']} nodes are feasible, best {_best(answer)}")
    found = answer.get("preemption") or {}
    possible = found.get("nominated") or {"": []}
    node = choice.nominated or NO_NODE
    victims = sorted(str(keys.get(uid, uid)) for uid in choice.victims)
    if node not in possible:
        return Verdict(f"kube-scheduler nominates {_nominations(possible)}, not {node or 'no node'}")
    expected = set(possible[node] or ())
    if expected != set(victims):
        if expected and victims and equals(expected.difference(victims), set(victims) - expected):
            return Verdict(unjudged=EQUALS)
        return Verdict(
            f"kube-scheduler deletes {_pods(possible[node])} on {node}, recorded was {_pods(victims)}",
        )
    message = str((answer.get("messages") or {}).get(node, answer.get("message", "")))
    if message != choice.message and _without_chance(message) != _without_chance(choice.message):
        return Verdict(f"kube-scheduler says: {message}")
    return Verdict(unjudged=_SAMPLED_PREEMPTION) if found.get("sampled") else _AGREED


def _without_chance(message: str) -> str:
    """With the errors of several nodes in order, and without names of drivers: which of them kube-scheduler meets first
    is chance."""
    said = [_count_once(part) for part in message.split(_PREEMPTION)]
    if said[-1].startswith("["):
        said[-1] = ", ".join(sorted(said[-1].removesuffix("]").split(", ")))
    return _PREEMPTION.join(said)


def _count_once(said: str) -> str:
    """What is said of nodes where some driver is missing, as if it were the same one everywhere."""
    nodes = sum(int(count) for count in _NO_DRIVER.findall(said))
    return f"{_NO_DRIVER.sub('', said)}{nodes} without a driver" if nodes else said


def _nominations(possible: Mapping[str, Any]) -> str:
    shown = sorted(possible)[:_BEST_SHOWN]
    more = f" or {len(possible) - _BEST_SHOWN} more" if len(possible) > _BEST_SHOWN else ""
    return ", ".join(f"{node} (deleting {_pods(possible[node])})" if node else "no node" for node in shown) + more


def _pods(keys: Any) -> str:
    return ", ".join(keys) if keys else "nobody"


def _status(status: _Answer) -> str:
    return f"{status.get('plugin') or status.get('code')}: {', '.join(status.get('reasons') or ())}"


def _error(error: _Answer) -> str:
    messages = sorted(set((error.get("messages") or {}).values()))
    return f"{error.get('plugin') or error.get('stage')}: {messages[0] if messages else ''}"


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
            return _AGREED  # a deferred resize that fits: kube-scheduler's cache has the pod already
        preempting = Nomination.of_fields(choice.preempting or {})
        if not choice.node and (preempting.stopped_until_ms > at_ms or preempting.avoids(at_ms)):
            return Verdict(unjudged=_STOPPED)
        percentage = self._percentages.get(pod.spec.scheduler_name, EVERY_NODE)
        sampled = nodes_to_find(percentage, len(cluster.nodes)) < len(cluster.nodes)
        return _verdict(choice, answer, cluster.keys, cluster.equals, sampled=sampled)

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
