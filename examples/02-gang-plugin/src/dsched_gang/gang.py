"""What a gang is: the pods of a namespace that carry the same name in a label.

Labels and not annotations, because dsched decides equal pods together, and annotations do not count when it compares.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic.pod_query import PodQuery
from dsched.framework.table import NodeTable
from dsched.model.pod import Pod
from dsched.model.selectors import labels_equal

GANG = "example.com/gang"
SIZE = "example.com/gang-size"
ONE_ZONE = "example.com/gang-one-zone"


@dataclass(frozen=True, slots=True)
class Gang:
    """A gang as one of its pods describes it; namespace and name make it the same gang.

    Attributes:
        size: how many members are bound together; 0 where the label is no number.
        one_zone: whether all members have to be in one zone.
    """

    namespace: str
    name: str
    size: int = field(compare=False)
    one_zone: bool = field(compare=False)

    @staticmethod
    def of(pod: Pod) -> Gang | None:
        """The gang of a pod, None for a pod that is on its own."""
        labels = pod.metadata.labels
        if GANG not in labels:
            return None
        size = labels.get(SIZE, "")
        return Gang(
            pod.metadata.namespace,
            labels[GANG],
            int(size) if size.isdecimal() else 0,
            labels.get(ONE_ZONE) == "true",
        )

    def on_nodes(self, table: NodeTable) -> NDArray[np.int64]:
        """How many members each node has, by row of the table: bound, or reserved there."""
        members = PodQuery(frozenset({self.namespace}), labels_equal({GANG: self.name}), deleting=False)
        return table.pod_index.matching(members)
