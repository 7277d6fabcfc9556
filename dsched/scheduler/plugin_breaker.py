"""Evaluations that it is dangerous to repeat: a plugin took too long, or the process that evaluated was lost.

What happened is kept by class of pods: a plugin that hangs on one pod hangs on all that are like it. Such a class is
not evaluated again for a while, twice as long each time, and its pods fail at once with what happened. When several
classes of a profile in a row end like that, the plugin is at fault rather than they, and the whole profile waits. An
evaluation that goes well ends both. This memory is the leader's; the pods' own counts of lost processes are in their
records.
"""

from dataclasses import dataclass

from dsched.clock import Clock
from dsched.framework.interface import Code, Hazard, Status
from dsched.lru import LRU

FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 300.0
IN_A_ROW = 3
"""After so many different classes of a profile, the profile waits."""
MOST_KEPT = 10_000

Class = tuple[str, bytes]
"""Profile and class key."""


@dataclass(slots=True)
class Hold:
    """A class, or a profile, that is not evaluated until a time.

    Attributes:
        until: monotonic clock.
        elsewhere: an evaluator met with it, so that it is not evaluated in this process.
    """

    status: Status
    until: float
    pause_s: float
    elsewhere: bool = False


class PluginBreaker:
    """Of one epoch.

    Attributes:
        classes: those that were met with, mostly none: then there is nothing to ask.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.classes: LRU[Class, Hold] = LRU(MOST_KEPT)
        self._profiles: dict[str, Hold] = {}
        self._in_a_row: dict[str, set[Class]] = {}

    def held(self, profile: str, key: bytes) -> Status | None:
        """Why pods of a class are not evaluated now; None when they are."""
        now = self._clock.monotonic()
        for hold in (self._profiles.get(profile), self.classes.get((profile, key))):
            if hold is not None and now < hold.until:
                text = f"{hold.status.message}; not asked again for {hold.until - now:.0f} s"
                return Status(Code.ERROR, (text,), hold.status.plugin)
        return None

    def only_elsewhere(self, profile: str, key: bytes) -> Status | None:
        """What an evaluator met with when it evaluated a class, which is therefore not evaluated in this process."""
        hold = self.classes.get((profile, key))
        return hold.status if hold is not None and hold.elsewhere else None

    def met(self, profile: str, key: bytes, status: Status) -> None:
        """An evaluation of a class ended badly, here or in an evaluator."""
        one = (profile, key)
        before = self.classes.get(one)
        elsewhere = status.hazard is not Hazard.OVERRAN
        self.classes[one] = self._longer(before, status, elsewhere or (before is not None and before.elsewhere))
        row = self._in_a_row.setdefault(profile, set())
        row.add(one)
        if len(row) >= IN_A_ROW:
            self._profiles[profile] = self._longer(self._profiles.get(profile), status, False)

    def well(self, profile: str, key: bytes) -> None:
        """A class was evaluated, and all went well."""
        self.classes.pop((profile, key), None)
        self._profiles.pop(profile, None)
        self._in_a_row.pop(profile, None)

    def _longer(self, before: Hold | None, status: Status, elsewhere: bool) -> Hold:
        pause_s = FIRST_PAUSE_S if before is None else min(2 * before.pause_s, LONGEST_PAUSE_S)
        return Hold(status, self._clock.monotonic() + pause_s, pause_s, elsewhere)


def overrun(plugin: str) -> Status:
    """A plugin took too long, and that was no error of the attempt."""
    return Status(Code.ERROR, (f'running plugin "{plugin}": took too long',), plugin, Hazard.OVERRAN)


def dangerous(status: Status | None) -> bool:
    """Whether an attempt ended so that it had better not be repeated at once."""
    return status is not None and status.hazard is not Hazard.NONE
