"""Dividing an amount of one resource among queues that are side by side.

Max-min fairness with weights: nobody gets more than it wants, and what somebody does not want is divided among the
others. Source: Ghodsi et al., Dominant Resource Fairness (NSDI 2011), section 2; Bertsekas and Gallager, Data Networks,
section 6.5.2 (water filling).
"""

from collections.abc import Sequence
from typing import NamedTuple

SLACK = 1e-9
"""By so much of a number two that are equal may differ after they were worked out."""


class Claim(NamedTuple):
    """What a queue asks of a resource.

    Attributes:
        demand: what it would use if there was enough, at most its limit.
        guaranteed: what it may always reach.
        weight: its part of what is beyond guarantees.
    """

    demand: float
    guaranteed: float
    weight: float


def divide(amount: float, claims: Sequence[Claim]) -> list[float]:
    """What each is due of an amount: first what is guaranteed to it, as far as it asks for that, then its part of the
    rest. Where guarantees are more than there is, all get the same part of theirs."""
    granted = [min(claim.demand, claim.guaranteed) for claim in claims]
    promised = sum(granted)
    if promised > amount:
        return fill(amount, granted, granted)
    more = fill(
        amount - promised,
        [claim.demand - grant for claim, grant in zip(claims, granted, strict=True)],
        [claim.weight for claim in claims],
    )
    return [grant + extra for grant, extra in zip(granted, more, strict=True)]


def fill(amount: float, wants: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Parts of an amount, in proportion to weights, but to nobody more than it wants."""
    given = [0.0] * len(wants)
    places = [place for place, want in enumerate(wants) if want > 0 and weights[place] > 0]
    places.sort(key=lambda place: wants[place] / weights[place])
    left, weight = amount, float(sum(weights[place] for place in places))
    for number, place in enumerate(places):
        part = left * weights[place] / weight
        if wants[place] > part:  # and so do all that follow
            for later in places[number:]:
                given[later] = left * weights[later] / weight
            break
        given[place] = wants[place]
        left -= wants[place]
        weight -= weights[place]
    return given


def is_more(one: float, other: float) -> bool:
    """Whether one is more than another by more than what sums may be wrong by."""
    return one > other * (1 + SLACK) + SLACK
