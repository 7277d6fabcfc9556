"""What a cluster tells, with pods and groups of scheduler-plugins read as those of Kubernetes.

Where there is a PodGroup of each API with one name, that of Kubernetes counts.
"""

from collections.abc import Callable, Sequence

import msgspec

from dsched.cluster.interface import Event, Listing
from dsched.model import coscheduling, meta
from dsched.model.pod import Pod
from dsched.model.pod_groups import POD_GROUP

FOREIGN = "CoschedulingPodGroup"
"""What dsched calls the kind of the other PodGroups, which have the same name, on their way here."""


def listing(found: Listing) -> Listing:
    """A listing as the scheduler is to see it."""
    others = {kind: values for kind, values in found.others.items() if kind != FOREIGN}
    foreign = found.others.get(FOREIGN, ())
    if foreign:
        own = {meta.key_of(each) for each in others.get(POD_GROUP, ())}
        others[POD_GROUP] = [
            *others.get(POD_GROUP, ()),
            *(each for each in foreign if meta.key_of(each) not in own),
        ]
    return Listing(found.version, [coscheduling.grouped(pod) for pod in found.pods], found.nodes, others)


def events(found: Sequence[Event], known: Callable[[str], bool] = lambda key: False) -> Sequence[Event]:
    """Changes as the scheduler is to see them.

    Args:
        known: whether there is a PodGroup of Kubernetes by this key.
    """
    told: list[Event] = []
    for event in found:
        if event.kind == FOREIGN:
            if not known(event.key):
                told.append(msgspec.structs.replace(event, kind=POD_GROUP))
        elif isinstance(event.object, Pod):
            told.append(msgspec.structs.replace(event, object=coscheduling.grouped(event.object)))
        else:
            told.append(event)
    return told
