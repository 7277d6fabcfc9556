"""Garbage cycles are looked for seldom, but they are."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from dsched import garbage


class Knot:
    """An object that holds itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


def test_cycles_go_once_there_are_many_objects() -> None:
    garbage.look_seldom()
    gc.collect()
    gone = weakref.ref(Knot())
    kept: list[list[int]] = []
    while gone() is not None and len(kept) <= 2 * garbage.YOUNG:
        kept.append([])
    assert gone() is None
    assert len(kept) > garbage.YOUNG // 2
