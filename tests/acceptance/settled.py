"""What must hold of a system at rest, whatever it has been through."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tests.acceptance import checker
from tests.acceptance.history import History
from tests.acceptance.system import System

Json = Mapping[str, Any]


def all_well(system: System, history: History, applied: Iterable[Json]) -> None:
    """Nothing was lost, nothing done twice, nothing put where it does not fit, and no trace of work is left.

    Args:
        applied: the pods that were applied, none of which was deleted by hand.
    """
    pods = system.get("pods")
    judged = checker.check(system.get("nodes"), pods)
    assert not judged.problems, "\n".join(judged.problems[:20])
    _bound_once(pods, history, {pod["metadata"]["name"] for pod in applied})
    state = system.status()["state"]
    at_rest = dict.fromkeys(state["queues"], 0) | {"unschedulable": judged.pending}
    assert state["queues"] == at_rest, state
    assert state["reservations"] == 0, state
    assert system.ask("fsck").startswith("clean: ")


def _bound_once(pods: Iterable[Json], history: History, applied: set[str]) -> None:
    """Every pod is there, or was evicted after it had been bound; each was bound once, to the node it has."""
    found = {pod["metadata"]["uid"]: pod for pod in pods}
    binds, evicted = history.binds(), history.evicted()
    twice = [uid for uid, times in Counter(bound.uid for bound in binds).items() if times > 1]
    assert not twice, f"bound more than once: {twice}"
    bound = {each.uid: each for each in binds}
    too_soon = [uid for uid, version in evicted.items() if uid not in bound or bound[uid].version > version]
    assert not too_soon, f"evicted before they were bound: {too_soon}"
    names = [pod["metadata"]["name"] for pod in found.values()]
    gone = [bound[uid].key.partition("/")[2] for uid in evicted]
    assert Counter(names + gone) == Counter(applied), "pods were lost"
    nodes = {uid: pod["spec"]["nodeName"] for uid, pod in found.items() if "nodeName" in pod["spec"]}
    assert {uid: each.node for uid, each in bound.items() if uid not in evicted} == nodes
    told = Counter(each.key for uid, each in bound.items() if uid not in evicted)
    assert history.scheduled_events() == told, "pods were told other than once that they were scheduled"
