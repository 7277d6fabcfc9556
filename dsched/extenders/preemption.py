"""Preemption as extenders are asked about it, and as they answer.

Source: pkg/scheduler/extender.go ``ProcessPreemption``; framework/preemption/preemption.go ``callExtenders``.
"""

from collections.abc import Mapping

from dsched.extenders import wire
from dsched.extenders.errors import CallFailed, Ending
from dsched.extenders.objects import Objects
from dsched.framework.extender import Victims
from dsched.framework.table import NodeTable
from dsched.log import cut
from dsched.model.meta import NodeName
from dsched.model.pod import Pod


class NoVictims(Exception):
    """An extender that must not be ignored names a node without victims."""


def args(objects: Objects, pod: Pod, candidates: Mapping[NodeName, Victims], *, meta: bool) -> bytes:
    """The question: candidates by node, with their pods or, for ``meta``, with UIDs of these only."""
    if meta:
        named = {node: wire.meta_victims(victims) for node, victims in candidates.items()}
    else:
        named = {
            node: wire.full_victims(objects.pods([victim.pod for victim in victims.pods], node), victims.violations)
            for node, victims in candidates.items()
        }
    return wire.preemption_args(objects.pod(pod), named, meta=meta)


def victims(
    extender: str, answer: Mapping[str, wire.MetaVictims], table: NodeTable, *, ignorable: bool
) -> dict[NodeName, Victims]:
    """The answer as candidates, in the table's order.

    Raises:
        CallFailed: it names nodes or pods that are not there.
        NoVictims: it names a node without victims, and is not ``ignorable``; else such nodes are left out.
    """
    found: dict[int, Victims] = {}
    for name, named in answer.items():
        row = table.index.get(NodeName(name))
        if row is None:
            raise CallFailed(Ending.ERROR, f'nodeinfo not found for node name "{cut(name)}"')
        there = {str(pod.uid): pod for pod in table.info(row).pods}
        for uid in named.uids:
            if uid not in there:
                raise CallFailed(
                    Ending.ERROR,
                    f"extender: {extender} claims to preempt pod (UID: {cut(uid)}) on node: {name}, but the pod is not "
                    "found on that node",
                )
        found[row] = Victims(tuple(there[uid] for uid in named.uids), named.violations)
    for row, named_victims in sorted(found.items()):
        if not named_victims.pods:
            if not ignorable:
                raise NoVictims(f'expected at least one victim pod on node "{table.names[row]}"')
            del found[row]
    return {table.names[row]: each for row, each in sorted(found.items())}
