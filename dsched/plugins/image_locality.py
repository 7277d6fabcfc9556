"""ImageLocality: nodes that hold the pod's images already are liked more.

Image volumes count since v1.36 like the images of containers, in what is divided by only since v1.37.

Source: pkg/scheduler/framework/plugins/imagelocality/image_locality.go.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsched.arithmetic import matching, scores
from dsched.config import Features
from dsched.config.feature_gates import UNSAID
from dsched.framework import interface
from dsched.framework.cycle_state import CycleState
from dsched.framework.interface import Normalization, Rows, Scope
from dsched.framework.pod_info import PodInfo
from dsched.framework.table import NodeTable


class ImageLocality:
    name = "ImageLocality"
    label_blind = True
    claim_blind = True
    takes_features = True
    score_scope = Scope.NODES
    """What an image is worth depends on how many of all nodes hold it."""
    normalization = Normalization.NONE

    def __init__(self, args: Any, handle: interface.Handle, features: Features = UNSAID) -> None:
        self._volumes = features.since(36)
        self._volumes_divide = features.since(37)

    def score_table(self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows) -> NDArray[np.int64]:
        spec = pod.pod.spec
        references = [container.image for container in (*spec.init_containers, *spec.containers)]
        divided_by = len(references)
        if self._volumes:
            references += [volume.image.reference for volume in spec.volumes if volume.image is not None]
        if self._volumes_divide:
            divided_by = len(references)
        # More than that does not count, and sums of it cannot wrap around.
        most = scores.MAX_IMAGE_BYTES * divided_by
        worth = np.zeros(matching.count(rows), dtype=np.int64)
        for reference in references:
            known = table.images.get(normalized_name(reference))
            if known is not None:
                value = min(scores.spread_image_bytes(known.size, len(known.sizes), len(table)), most)
                worth += value * _are_in(known.sizes, table.serials, rows)
        return scores.image_locality(worth, divided_by)

    def alike(self, pod: PodInfo, other: PodInfo) -> bool:
        """Whether both have the same containers, images among it, and the same volumes."""
        return pod.requests_key == other.requests_key and pod.pod.spec.volumes == other.pod.spec.volumes


def normalized_name(image: str) -> str:
    """The image's name as nodes report it: with the tag ``latest`` where it has no tag and no digest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _are_in(holders: Collection[int], serials: NDArray[np.int64], rows: Rows) -> NDArray[np.bool_]:
    """Which of the rows are of nodes whose serials are among these."""
    if not isinstance(rows, slice) and len(rows) < len(holders):
        return np.fromiter((each in holders for each in serials[rows].tolist()), dtype=np.bool_, count=len(rows))
    flags = np.zeros(len(serials), dtype=np.bool_)
    flags[serials.searchsorted(np.fromiter(holders, dtype=np.int64, count=len(holders)))] = True
    return flags[rows]


_role: type[interface.TableScorePlugin] = ImageLocality
_alike: type[interface.Alike] = ImageLocality
