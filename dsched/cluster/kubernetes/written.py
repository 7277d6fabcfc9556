"""What this process has written of objects itself: the watch may not have told of it yet."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dsched.cluster.kubernetes import resources
from dsched.cluster.kubernetes.http import client
from dsched.cluster.kubernetes.http.client import Outcome
from dsched.cluster.kubernetes.http.exchange import Answer

REMEMBERED = 10_000

PlainObject = Mapping[str, Any]
KnownObject = Callable[[str], PlainObject | None]
"""What the watch knows of an object, by key; None for nothing."""


class Written:
    """The newest of what was written and what is known; used from one thread."""

    def __init__(self, known: KnownObject) -> None:
        self._known = known
        self._written: dict[str, PlainObject] = {}

    def newest(self, key: str) -> PlainObject | None:
        """The object as this process knows it."""
        known, written = self._known(key), self._written.get(key)
        if written is None or (known is not None and _version(known) >= _version(written)):
            self._written.pop(key, None)
            return known
        return written

    def remember(self, key: str, value: PlainObject | None) -> None:
        """The object as the API server answered that it is now."""
        if value is not None:
            self._written[key] = value
            while len(self._written) > REMEMBERED:
                del self._written[next(iter(self._written))]


def decoded(outcome: Outcome) -> PlainObject | None:
    """The object that an answer holds; None where it holds none."""
    if not isinstance(outcome, Answer) or not client.succeeded(outcome):
        return None
    value: PlainObject = msgspec.json.decode(outcome.body, type=dict[str, Any])
    return value


def _version(value: PlainObject) -> int:
    return resources.number(str(value["metadata"].get("resourceVersion", "")))
