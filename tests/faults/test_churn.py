"""Tests of what the churn tells the judge."""

import random
from typing import Any

from tests.faults.churn import Churn
from tests.faults.history import ADDED, Entry, History


class _Late:
    """An arena whose history has not heard of the last pod yet, as under load."""

    def __init__(self, known: str, there: str) -> None:
        self.history = History()
        self.history.add(Entry(0.0, 1, ADDED, "Pod", "default/a", known, _pod(known)))
        self._there = [_pod(there)]

    def objects(self, kind: str) -> list[Any]:
        return self._there

    def delete(self, kind: str, *keys: str) -> None:
        self._there = []


def _pod(uid: str) -> dict[str, Any]:
    return {"metadata": {"namespace": "default", "name": "a", "uid": uid}}


def test_whose_deletion_was_asked_for_is_the_pod_that_is_there():
    arena = _Late(known="the first", there="its successor")
    churn = Churn(arena, random.Random(1), "tag")
    churn.delete_pods("default/a")
    assert churn.deleted == {"its successor"}
    churn.delete_pods("default/a")
    assert churn.deleted == {"its successor"}
