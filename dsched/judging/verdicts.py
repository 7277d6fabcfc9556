"""Whether a recorded decision is one that kube-scheduler could have made.

The rules are those of the conformance vectors: kube-scheduler throws dice among the best nodes, and among equally good
candidates of preemption, so each of them is right.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from dsched.model import tape
from dsched.model.meta import NO_NODE, PodKey, PodUid

SAMPLED = "kube-scheduler looks at some of the nodes here (percentageOfNodesToScore), at which is chance"
SAMPLED_PREEMPTION = "preemption looks at some of the nodes here (minCandidateNodes…), at which is chance"
FAILED = "the attempt ended in an error of a plugin"
EQUALS = "which of equally important pods has to go is an accident of the order that kube-scheduler has them in"
STOPPED = "preemption was stopped, or kept away from a node, by limits that only dsched has"
_BEST_SHOWN = 3
_PLUGINS_SHOWN = 3

Answer = Mapping[str, Any]
Equals = Callable[[AbstractSet[str], AbstractSet[str]], bool]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What there is to say about a decision; nothing where kube-scheduler could have made it.

    Attributes:
        differs: what kube-scheduler would have done instead, and why.
        unjudged: why that cannot be said.
    """

    differs: str = ""
    unjudged: str = ""


AGREED = Verdict()


def verdict(
    choice: tape.Choice, answer: Answer, keys: Mapping[PodUid, PodKey], equals: Equals, *, sampled: bool
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
        return AGREED if "error" in answer else Verdict(unjudged=FAILED)
    if "error" in answer:
        return Verdict(f"kube-scheduler's attempt ends in an error: {_error(answer['error'])}")
    if "preEnqueue" in answer:
        return Verdict(f"kube-scheduler does not try the pod: {_status(answer['preEnqueue'])}")
    if choice.node:
        return _placed(choice, answer, sampled)
    return _refused(choice, answer, keys, equals)


def _placed(choice: tape.Choice, answer: Answer, sampled: bool) -> Verdict:
    asked = answer["asked"]
    if asked.get("best"):
        return AGREED
    if not answer["feasible"]:
        return Verdict(f"kube-scheduler finds no node: {answer.get('message', '')}")
    if "rejected" in asked:
        return Verdict(f"kube-scheduler rejects {choice.node}: {_status(asked['rejected'])}")
    if sampled:
        return Verdict(unjudged=SAMPLED)
    instead = answer["instead"]
    if "scores" not in asked:
        return Verdict(f"kube-scheduler takes {instead['node']}, which was promised to the pod")
    return Verdict(
        f"kube-scheduler takes {_best(answer)}: total {instead.get('total', 0)} against {asked.get('total', 0)} "
        f"of {choice.node}{_apart(asked, instead)}"
    )


def _apart(asked: Answer, instead: Answer) -> str:
    """The plugins that see the two nodes most differently."""
    left, right = asked.get("scores") or {}, instead.get("scores") or {}
    apart = [(right.get(name, 0) - left.get(name, 0), name) for name in left.keys() | right.keys()]
    apart = sorted((each for each in apart if each[0]), key=lambda each: (-abs(each[0]), each[1]))[:_PLUGINS_SHOWN]
    words = ", ".join(f"{name} {right.get(name, 0)} against {left.get(name, 0)}" for _, name in apart)
    return f" ({words})" if words else ""


def _best(answer: Answer) -> str:
    shown = answer["best"][:_BEST_SHOWN]
    more = answer["equals"] - len(shown)
    return ", ".join(shown) + (f" or {more} more" if more else "")


def _refused(choice: tape.Choice, answer: Answer, keys: Mapping[PodUid, PodKey], equals: Equals) -> Verdict:
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
    if message != choice.message and _in_order(message) != _in_order(choice.message):
        return Verdict(f"kube-scheduler says: {message}")
    return Verdict(unjudged=SAMPLED_PREEMPTION) if found.get("sampled") else AGREED


def _in_order(message: str) -> str:
    """With the errors of several nodes in order: which of them kube-scheduler meets first is chance."""
    before, listed, errors = message.partition("preemption: [")
    return before + listed + ", ".join(sorted(errors.removesuffix("]").split(", "))) if listed else message


def _nominations(possible: Mapping[str, Any]) -> str:
    shown = sorted(possible)[:_BEST_SHOWN]
    more = f" or {len(possible) - _BEST_SHOWN} more" if len(possible) > _BEST_SHOWN else ""
    return ", ".join(f"{node} (deleting {_pods(possible[node])})" if node else "no node" for node in shown) + more


def _pods(keys: Any) -> str:
    return ", ".join(keys) if keys else "nobody"


def _status(status: Answer) -> str:
    return f"{status.get('plugin') or status.get('code')}: {', '.join(status.get('reasons') or ())}"


def _error(error: Answer) -> str:
    messages = sorted(set((error.get("messages") or {}).values()))
    return f"{error.get('plugin') or error.get('stage')}: {messages[0] if messages else ''}"
