"""Who watches the scheduler: each is told what it overrides, in order, and of the rest nobody."""

import inspect
from typing import Any

import pytest

from dsched.scheduler.observer import Observer, Observers

TOLD = [name for name in vars(Observer) if not name.startswith("_")]


def given(name: str) -> list[Any]:
    """Arguments for a method."""
    return [object() for _ in list(inspect.signature(getattr(Observer, name)).parameters)[1:]]


@pytest.mark.parametrize("name", TOLD)
def test_several_are_told_in_order(name: str) -> None:
    said: list[tuple[str, tuple[Any, ...]]] = []

    def watching(label: str) -> Observer:
        def tell(self: Any, *args: Any) -> None:
            said.append((label, args))

        made: type[Observer] = type(label, (Observer,), {name: tell})
        return made()

    arguments = given(name)
    getattr(Observers(watching("first"), Observer(), watching("second")), name)(*arguments)
    assert said == [("first", tuple(arguments)), ("second", tuple(arguments))]


@pytest.mark.parametrize("name", TOLD)
def test_nobody_needs_to_listen(name: str) -> None:
    getattr(Observers(Observer()), name)(*given(name))
    getattr(Observers(), name)(*given(name))
