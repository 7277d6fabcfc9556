"""What pods may take: looking at the queues first finds whom asking about each pod on a node finds."""

from collections.abc import Iterable
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsched.plugins.default_preemption.victims import Victim, victims_of
from dsched.plugins.fair_share.taking import Taking
from tests.unit.plugins.fair_share.test_reclaim import Asked, generated, pods, queues


class EachAsked(Taking):
    """Asks about each pod on a node as well.

    Attributes:
        answers: what looking at queues first came to, and what this does; of all that there were.
    """

    answers: ClassVar[list[tuple[list[Victim], list[Victim]]]] = []

    def __init__(self, *args: Any) -> None:
        self._each = False
        super().__init__(*args)
        if self.nothing:
            self.answers.append(([], self._asked(range(len(self._snapshot.table)))))

    def candidates(self, rows: Iterable[int]) -> list[Victim]:
        found = super().candidates(rows)
        if not self._each:
            self.answers.append((found, self._asked(rows)))
        return found

    def _asked(self, rows: Iterable[int]) -> list[Victim]:
        self._each = True
        try:
            return self.candidates(rows)
        finally:
            self._each = False

    def _met(self, rows: Iterable[int]) -> list[Victim]:
        return victims_of(self._snapshot, rows) if self._each else super()._met(rows)


@settings(max_examples=150, deadline=None)
@given(queues, pods, pods, st.lists(st.integers(2, 8), min_size=1, max_size=3))
def test_who_may_go_is_as_if_each_pod_on_a_node_was_asked_about(
    asked: Asked, first: list[tuple[str, int, int]], then: list[tuple[str, int, int]], cores: list[int]
) -> None:
    there = generated(asked, cores)
    EachAsked.answers.clear()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("dsched.plugins.fair_share.reclaim.Taking", EachAsked)
        for wave in (first, then):
            there.wait(
                *[there.pod(f"p{number}", name, cpu, priority=high) for number, (name, cpu, high) in enumerate(wave)]
            )
            there.settle()
    for found, wanted in EachAsked.answers:
        assert found == wanted
