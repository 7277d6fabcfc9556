"""What `dsched.arithmetic.scores` says of many nodes at once, said of a few nodes in plain integers: an operation on
arrays costs as much for a handful of nodes as for a thousand.

Amounts are not negative; a sum of them may be greater than an int64, which is greater than any capacity. A resource of
which a node has 0 allocatable is left out for that node. CPU is in millicores, all others in units.
"""

import math
from collections.abc import Sequence

from dsched.arithmetic.scores import MAX_SCORE, MAX_UTILIZATION
from dsched.model.quantity import LARGEST, SMALLEST

Column = Sequence[int]
"""A number by row."""
Resource = tuple[Column, Column, int]
"""Requested and allocatable, and how much of it the pod adds to what is requested."""


def least_allocated(resources: Sequence[Resource], weights: Sequence[int], rows: Sequence[int]) -> list[int]:
    """`dsched.arithmetic.scores.least_allocated`; a weight for each resource."""
    weighted = [(*resource, weight) for resource, weight in zip(resources, weights, strict=True)]
    scores = []
    for row in rows:
        total = weight_sum = 0
        for requested, allocatable, added, weight in weighted:
            capacity = allocatable[row]
            if not capacity:
                continue
            weight_sum += weight
            used = requested[row] + added
            if used < capacity:
                total += (capacity - used) * MAX_SCORE // capacity * weight
        scores.append(total // (weight_sum or 1))
    return scores


def most_allocated(resources: Sequence[Resource], weights: Sequence[int], rows: Sequence[int]) -> list[int]:
    """`dsched.arithmetic.scores.most_allocated`; a weight for each resource."""
    scores = []
    for row in rows:
        total = weight_sum = 0
        for (requested, allocatable, added), weight in zip(resources, weights, strict=True):
            if capacity := allocatable[row]:
                weight_sum += weight
                total += min(requested[row] + added, capacity) * MAX_SCORE // capacity * weight
        scores.append(total // (weight_sum or 1))
    return scores


def requested_to_capacity_ratio(
    resources: Sequence[Resource], weights: Sequence[int], rows: Sequence[int], line: Sequence[int]
) -> list[int]:
    """`dsched.arithmetic.scores.requested_to_capacity_ratio`; a weight for each resource."""
    scores = []
    for row in rows:
        total = weight_sum = 0
        for (requested, allocatable, added), weight in zip(resources, weights, strict=True):
            capacity = allocatable[row]
            if not capacity:
                continue
            score = line[min(requested[row] + added, capacity) * MAX_UTILIZATION // capacity]
            if score > 0:
                total += score * weight
                weight_sum += weight
        scores.append(rounded(total / (weight_sum or 1)))
    return scores


def rounded(number: float) -> int:
    """One that is not negative, to the nearest integer; halves go up (Go's ``math.Round``)."""
    whole = math.trunc(number)
    return whole + (number - whole >= 0.5)


def balanced_allocation(resources: Sequence[Resource], rows: Sequence[int]) -> list[int]:
    """`dsched.arithmetic.scores.balanced_allocation`."""
    scores = []
    for row in rows:
        fractions = []
        for requested, allocatable, added in resources:
            if capacity := allocatable[row]:
                # Each is rounded to float64 before they are divided, as in the source; an int by an int is not.
                fraction = float(requested[row] + added) / float(capacity)
                fractions.append(fraction if fraction < 1.0 else 1.0)
        deviation = 0.0
        if len(fractions) == 2:
            deviation = abs((fractions[0] - fractions[1]) / 2.0)
        elif len(fractions) > 2:
            deviation = _standard_deviation(fractions)
        scores.append(int((1.0 - deviation) * MAX_SCORE))
    return scores


def balance_change(resources: Sequence[Resource], rows: Sequence[int]) -> list[int]:
    """`dsched.arithmetic.scores.balance_change`."""
    without = balanced_allocation([(requested, allocatable, 0) for requested, allocatable, _ in resources], rows)
    half, with_pod = MAX_SCORE // 2, balanced_allocation(resources, rows)
    return [half + (half + after - before) // 2 for after, before in zip(with_pod, without, strict=True)]


def normalized(scores: Sequence[int], *, highest: int, reverse: bool) -> list[int]:
    """`dsched.arithmetic.scores.normalized`."""
    scaled = [_wrapped(MAX_SCORE * score) // highest for score in scores] if highest else [0] * len(scores)
    return [MAX_SCORE - score for score in scaled] if reverse else scaled


def _wrapped(number: int) -> int:
    """What int64 makes of a number."""
    return number if SMALLEST <= number <= LARGEST else (number - SMALLEST) % 2**64 + SMALLEST


def _standard_deviation(fractions: Sequence[float]) -> float:
    mean = _added_up(fractions) / len(fractions)
    distances = [fraction - mean for fraction in fractions]
    return math.sqrt(_added_up([distance * distance for distance in distances]) / len(fractions))


def _added_up(numbers: Sequence[float]) -> float:
    """One after the other; from Python 3.12 on, ``sum`` makes up for what rounding loses."""
    total = 0.0
    for number in numbers:
        total += number
    return total
