"""Pods that are turned away again and again, by Permit, by their bind, or as those for whom they are to make room are
still there: when trying them once more can bring nothing new.

A pod that is turned away gives its room back, which helps itself and those that had no room, so all are tried again. A
plugin that turns waiting pods away because others fit nowhere, as gang schedulers do from PostFilter, then turns it
away again. In a leader pauses lie between, and meanwhile the cluster changes; where time stands still it never ends.
"""

from collections import Counter

from dsched.clock import Clock
from dsched.model.meta import PodUid

MOST = 10
"""After so many times a pod has had its turns: enough for plugins that let the order of attempts decide."""


class TurnedAway:
    """How often each pod was turned away since time last passed or a pod was last placed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at_ms = clock.now_ms()
        self._times: Counter[PodUid] = Counter()

    def add(self, uid: PodUid) -> None:
        """The pod was turned away once more."""
        self._look()
        self._times[uid] += 1

    def placed(self) -> None:
        """A pod is bound: for all others this is another cluster."""
        self._times.clear()

    def too_often(self, uid: PodUid) -> bool:
        """Whether the pod is not to be tried again as things are."""
        self._look()
        return self._times[uid] >= MOST

    def _look(self) -> None:
        now_ms = self._clock.now_ms()
        if now_ms != self._at_ms:
            self._at_ms = now_ms
            self._times.clear()
