"""A page of a place of the scheduling queue."""

from collections.abc import Sequence
from itertools import islice

import msgspec

from dsched.errors import NotFound
from dsched.scheduler.ports import QueueName
from dsched.state.client import Store
from dsched.state.places import ALL, Placed, Places

PAGE = 100
"""Pods on a page."""
SEARCHED = 20_000
"""So many pods of a place, from its beginning, are looked through for a text."""


class QueuePage(msgspec.Struct, frozen=True):
    """
    Attributes:
        count: pods in the place, whatever is looked for.
        pods: of this page, in the order of the place.
        more: whether there is a next page.
        cut: whether only the first `SEARCHED` pods were looked through.
    """

    place: str
    count: int
    page: int
    query: str
    pods: Sequence[Placed]
    more: bool
    cut: bool = False


def place_of(word: str) -> QueueName:
    """
    Raises:
        NotFound: there is no such place.
    """
    found = next((place for place in ALL if place.value == word), None)
    if found is None:
        raise NotFound(f"there is no place {word!r}; places are {', '.join(ALL)}")
    return found


def read(store: Store, place: QueueName, page: int = 1, query: str = "") -> QueuePage:
    """The pods on a page, counted from 1; with a text, those whose name, reason or rejecting plugins have it in them.

    Raises:
        RedisUnavailable: Redis does not answer.
        StateError: what stands there cannot be read.
    """
    places, skip, wanted = Places(store), (page - 1) * PAGE, query.strip().casefold()
    count = places.counts()[place]
    if wanted:
        looked_through = places.pods(place, SEARCHED)
        pods = list(islice((pod for pod in looked_through if _has(pod, wanted)), skip, skip + PAGE + 1))
    else:
        pods = list(places.pods(place, PAGE + 1, skip=skip))
    return QueuePage(place.value, count, page, query, pods[:PAGE], len(pods) > PAGE, bool(wanted) and count > SEARCHED)


def _has(pod: Placed, wanted: str) -> bool:
    return any(wanted in text.casefold() for text in (pod.key, pod.message, pod.node, pod.profile, *pod.plugins))


def counts(store: Store) -> dict[str, int]:
    """Pods in each place.

    Raises:
        RedisUnavailable: Redis does not answer.
    """
    return {place.value: count for place, count in Places(store).counts().items()}
