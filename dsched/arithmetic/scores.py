"""Scores of nodes as kube-scheduler computes them: int64 with division that truncates, float64 only where it uses it.

Functions over resources take int64 (resources, nodes), a resource of which a node has 0 allocatable being left out for
that node. Amounts are not negative, and sums of them end at 2^63-1. A percentage of a capacity that is too large to be
multiplied by 100 is exact, where Go's wraps around and is refused or is anything.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dsched.model.quantity import LARGEST

MAX_SCORE = 100
MAX_UTILIZATION = 100
SHAPE_SCALE = 10
"""Scores of a shape are 0..10, those of nodes 0..100."""

MIB = 1024 * 1024
MIN_IMAGE_BYTES = 23 * MIB
"""Images on a node count from this sum on."""
MAX_IMAGE_BYTES = 1000 * MIB
"""What counts at most, times the number of images."""

_LARGEST_TIMES_100 = LARGEST // 100
"""So much times 100 is an int64 still."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def least_allocated(requested: Ints, allocatable: Ints, weights: Ints) -> Ints:
    """
    Score nodes higher the emptier they stay: weighted mean of the free percentages, truncated per resource and again
    after dividing by the weights.

    Args:
        requested, allocatable: int64 (resources, nodes), the pod included; CPU in millicores, all others in units.
        weights: int64 (resources,), each 1..100.
    Returns:
        int64 (nodes,), 0..100: 100 with nothing requested, 0 where every request is over capacity or no resource
        counts.
    Source: kubernetes v1.34 pkg/scheduler/framework/plugins/noderesources/least_allocated.go
    """
    counts, capacity = _capacities(allocatable)
    free = _percentages(np.maximum(capacity - requested, 0), capacity)
    return _weighted_mean(free, counts, weights)


def most_allocated(requested: Ints, allocatable: Ints, weights: Ints) -> Ints:
    """
    Score nodes higher the fuller they get: weighted mean of the used percentages, truncated per resource and again
    after dividing by the weights.

    Args:
        requested, allocatable: int64 (resources, nodes), the pod included; CPU in millicores, all others in units.
        weights: int64 (resources,), each 1..100.
    Returns:
        int64 (nodes,), 0..100: 100 where every request reaches capacity, 0 where no resource counts.
    Source: kubernetes v1.34 pkg/scheduler/framework/plugins/noderesources/most_allocated.go
    """
    counts, capacity = _capacities(allocatable)
    used = _percentages(np.minimum(requested, capacity), capacity)
    return _weighted_mean(used, counts, weights)


def requested_to_capacity_ratio(requested: Ints, allocatable: Ints, weights: Ints, line: Ints) -> Ints:
    """
    Score nodes by a broken line over the used percentage: weighted mean over the resources whose score is above zero,
    rounded half away from zero.

    Args:
        requested, allocatable: int64 (resources, nodes), the pod included; CPU in millicores, all others in units.
        weights: int64 (resources,), each 1..100.
        line: int64 (101,), score 0..100 by used percentage, from `broken_line`.
    Returns:
        int64 (nodes,), 0..100: 0 where no resource scores above zero; a resource over capacity counts as fully used.
    Source: kubernetes v1.34 pkg/scheduler/framework/plugins/noderesources/requested_to_capacity_ratio.go
    """
    counts, capacity = _capacities(allocatable)
    scores = line[_percentages(np.minimum(requested, capacity), capacity)]
    total, weight_sum = _weighted_sums(scores, counts & (scores > 0), weights)
    mean = total.astype(np.float64) / np.asarray(weight_sum, dtype=np.float64)
    whole = np.trunc(mean)
    return (whole + (mean - whole >= 0.5)).astype(np.int64)


def broken_line(shape: Sequence[tuple[int, int]]) -> Ints:
    """
    Draw the line through the points of a shape, flat before the first and after the last.

    Args:
        shape: (utilization 0..100, score 0..10) points, utilization strictly increasing, at least one.
    Returns:
        int64 (101,), 0..100: score by used percentage, each segment truncated toward zero from its left point.
    Source: kubernetes v1.34 pkg/scheduler/framework/plugins/helper/shape_score.go ``BuildBrokenLinearFunction``
    """
    points = [(utilization, score * SHAPE_SCALE) for utilization, score in shape]
    return np.array([_on_line(points, percent) for percent in range(MAX_UTILIZATION + 1)], dtype=np.int64)


def balanced_allocation(requested: Ints, allocatable: Ints) -> Ints:
    """
    Score nodes higher the closer the used fractions of their resources are to each other: 100 times one less the
    standard deviation of the fractions, truncated. In float64, in the source's order of operations.

    Args:
        requested, allocatable: int64 (resources, nodes), the pod included, in the order of the configuration; CPU in
            millicores, all others in units.
    Returns:
        int64 (nodes,), 50..100: 100 with fewer than two resources; fractions above one count as one.
    Source: kubernetes v1.34 pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go
    """
    counts, capacity = _capacities(allocatable)
    fractions = np.minimum(requested.astype(np.float64) / capacity.astype(np.float64), 1.0)
    if len(fractions) == 2 and _all(counts):
        even: Floats = 1.0 - np.abs((fractions[0] - fractions[1]) / 2.0)
        return (even * MAX_SCORE).astype(np.int64)
    number = counts.sum(axis=0)
    deviation = np.where(number == 2, _half_distance(fractions, counts), 0.0)
    if len(fractions) > 2:
        deviation = np.where(number > 2, _standard_deviation(fractions, counts, number), deviation)
    return ((1.0 - deviation) * MAX_SCORE).astype(np.int64)


def by_used_share(requested: Ints, capacity: Ints, line: Ints) -> Ints:
    """
    Read a broken line at the share of a capacity that is used.

    Args:
        requested, capacity: int64 (nodes,).
        line: int64 (101,), from `broken_line`.
    Returns:
        int64 (nodes,): what the line says of 100 where nothing is there, or less than requested.
    Source: kubernetes v1.37 pkg/scheduler/framework/plugins/volumebinding/scorer.go ``buildScorerFunction``
    """
    fits = (capacity > 0) & (requested <= capacity)
    shares = _percentages(np.where(fits, requested, 1), np.where(fits, capacity, 1))
    return line[np.where(fits, shares, MAX_UTILIZATION)]


def balance_change(with_pod: Ints, without: Ints) -> Ints:
    """
    Score nodes higher the more the pod evens out the use of their resources.

    Args:
        with_pod, without: int64 (nodes,), `balanced_allocation` with and without the pod, 50..100.
    Returns:
        int64 (nodes,), 50..100: 75 where the pod changes nothing.
    Source: kubernetes v1.36 pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go
    ``balancedResourceScorer``
    """
    return MAX_SCORE // 2 + (MAX_SCORE // 2 + with_pod - without) // 2


def spread_image_bytes(size: int, holders: int, nodes: int) -> int:
    """
    What an image on a node is worth: its size, scaled down the fewer nodes hold it.

    Args:
        size: bytes.
        holders: nodes that hold the image.
        nodes: all nodes, at least 1.
    Returns:
        bytes, 0..size.
    Source: kubernetes v1.34 pkg/scheduler/framework/plugins/imagelocality/image_locality.go ``scaledImageScore``
    """
    return int(float(size) * (float(holders) / float(nodes)))


def image_locality(image_bytes: Ints, images: int) -> Ints:
    """
    Score nodes higher the more of the pod's images they hold already.

    Args:
        image_bytes: int64 (nodes,), sum of `spread_image_bytes` over the pod's images on the node.
        images: how many images the pod has, one of two containers counting twice.
    Returns:
        int64 (nodes,), 0..100: 0 up to 23 MiB, 100 from 1000 MiB an image on.
    Source: kubernetes v1.34 pkg/scheduler/framework/plugins/imagelocality/image_locality.go ``calculatePriority``
    """
    most = MAX_IMAGE_BYTES * images
    within = np.where(image_bytes < MIN_IMAGE_BYTES, MIN_IMAGE_BYTES, np.minimum(image_bytes, most))
    return MAX_SCORE * (within - MIN_IMAGE_BYTES) // (most - MIN_IMAGE_BYTES)


def normalized(scores: Ints, *, highest: int | None = None, reverse: bool = False) -> Ints:
    """
    Scale scores so that the highest becomes 100, truncating; reversed, the lowest raw score comes out highest.

    Args:
        scores: int64 (nodes,), not negative.
        highest: the highest score of all feasible nodes, by default that of ``scores``.
        reverse: take the result from 100.
    Returns:
        int64 (nodes,), 0..100; when the highest is 0, all 0, or reversed all 100.
    Source: kubernetes v1.34 pkg/scheduler/framework/plugins/helper/normalize_score.go ``DefaultNormalizeScore``
    """
    if highest is None:
        highest = int(scores.max(initial=0))
    scaled = np.zeros_like(scores) if highest == 0 else MAX_SCORE * scores // highest
    return MAX_SCORE - scaled if reverse else scaled


def _capacities(allocatable: Ints) -> tuple[Flags, Ints]:
    """Which resources count, and allocatable with 1 for those that do not, to divide by."""
    counts = allocatable != 0
    return counts, allocatable if _all(counts) else np.where(counts, allocatable, 1)


def _all(flags: Flags) -> bool:
    """What ``flags.all()`` says, at a quarter of its cost where there are few."""
    return bool(np.count_nonzero(flags) == flags.size)


def _percentages(parts: Ints, capacity: Ints) -> Ints:
    """How many whole hundredths of the capacity each part is, 0..100.

    Args:
        parts: 0 up to the capacity.
        capacity: above zero.
    """
    found = parts * 100 // capacity
    if capacity.max(initial=0) > _LARGEST_TIMES_100:
        large = np.nonzero(capacity > _LARGEST_TIMES_100)
        pairs = zip(parts[large].tolist(), capacity[large].tolist(), strict=True)
        found[large] = [100 * part // whole for part, whole in pairs]
    return found


def _weighted_sums(scores: Ints, counts: Flags, weights: Ints) -> tuple[Ints, Ints | int]:
    """Sum of weighted scores, and of the weights that count, 1 where none does: by node, or one for all."""
    if _all(counts):
        return weights @ scores, max(sum(weights.tolist()), 1)
    column = np.where(counts, weights[:, np.newaxis], 0)
    weight_sum = column.sum(axis=0)
    return (scores * column).sum(axis=0), np.where(weight_sum == 0, 1, weight_sum)


def _weighted_mean(scores: Ints, counts: Flags, weights: Ints) -> Ints:
    total, weight_sum = _weighted_sums(scores, counts, weights)
    return total // weight_sum


def _on_line(points: Sequence[tuple[int, int]], percent: int) -> int:
    right = next((place for place, (utilization, _) in enumerate(points) if percent <= utilization), None)
    if right is None:
        return points[-1][1]
    if right == 0:
        return points[0][1]
    (start, low), (end, high) = points[right - 1], points[right]
    rise = (high - low) * (percent - start)
    slope = rise // (end - start) if rise >= 0 else -(-rise // (end - start))
    return low + slope


def _half_distance(fractions: Floats, counts: Flags) -> Floats:
    """Half the distance between two fractions."""
    if len(fractions) < 2:
        return np.zeros(fractions.shape[1:], dtype=np.float64)
    highest = fractions.max(axis=0, where=counts, initial=-np.inf)
    lowest = fractions.min(axis=0, where=counts, initial=np.inf)
    distance: Floats = np.abs((highest - lowest) / 2.0)
    return distance


def _standard_deviation(fractions: Floats, counts: Flags, number: Ints) -> Floats:
    """Root of the mean squared distance from the mean, added up one resource after the other."""
    divisor = np.maximum(number, 1).astype(np.float64)
    total = np.zeros(fractions.shape[1:], dtype=np.float64)
    for fraction, count in zip(fractions, counts, strict=True):
        total += np.where(count, fraction, 0.0)
    mean = total / divisor
    squares = np.zeros_like(total)
    for fraction, count in zip(fractions, counts, strict=True):
        distance = fraction - mean
        squares += np.where(count, distance * distance, 0.0)
    return np.sqrt(squares / divisor)
