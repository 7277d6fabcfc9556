"""How a leader process is getting on, for its health checks: what it does, whether its loop turns, whether it keeps its
lease. Written by the loop and the lease's thread, read by whoever asks over HTTP."""

from collections.abc import Callable
from enum import StrEnum

from dsched.clock import Clock
from dsched.observe.health import Check

STUCK_AFTER_S = 60.0
"""A loop that has not turned for so long is stuck: a batch is meant to take 50 ms, and an extender or a plugin that
hangs is given up on long before."""
LONGEST_TAKEOVER_S = 600.0
"""Taking over reads the whole cluster."""
LEASE_OVERDUE_S = 20.0
"""A leader that goes on this long after its lease ran out is stuck. Source: cmd/kube-scheduler/app/server.go
``NewLeaderHealthzAdaptor``."""


class Stage(StrEnum):
    """What the process does."""

    STANDBY = "standing by"
    TAKEOVER = "taking over"
    LEADING = "leading"


class LeaderHealth:
    """
    Attributes:
        stage: what the process does now.
        epoch: under which it leads or takes over, 0 while it stands by.
        trouble: why it cannot stand by or lead at present, empty when it can.
        entered: called by the loop when the process does something else.
    """

    def __init__(self, clock: Clock) -> None:
        self.stage = Stage.STANDBY
        self.epoch = 0
        self.trouble = ""
        self.entered: Callable[[], None] = lambda: None
        self._clock = clock
        self._turned = clock.monotonic()
        self._lease_until = 0.0

    def enter(self, stage: Stage, epoch: int = 0) -> None:
        """The process does something else from now on."""
        self.stage, self.epoch, self._turned = stage, epoch, self._clock.monotonic()
        self.entered()

    def turn(self) -> None:
        """The loop has turned."""
        self._turned = self._clock.monotonic()

    def renewed(self, until_s: float) -> None:
        """The lease is good until then (monotonic clock)."""
        self._lease_until = until_s

    def holds(self) -> bool:
        """Whether the lease is good now, for all that this process knows."""
        return self._clock.monotonic() < self._lease_until

    @property
    def age_s(self) -> float:
        """How long ago the loop last turned."""
        return max(0.0, self._clock.monotonic() - self._turned)

    def stuck(self) -> str:
        """Why the loop does not go on, empty when it does."""
        allowed_s = LONGEST_TAKEOVER_S if self.stage is Stage.TAKEOVER else STUCK_AFTER_S
        age_s = self.age_s
        return f"{self.stage}, and nothing has moved for {age_s:.0f} s" if age_s > allowed_s else ""

    def overdue(self) -> str:
        """Why the lease is not in order: a leader that has lost it has to stop leading."""
        late_s = self._clock.monotonic() - self._lease_until
        if self.stage is Stage.STANDBY or late_s <= LEASE_OVERDUE_S:
            return ""
        return f"{self.stage}, but the lease ran out {late_s:.0f} s ago"

    def unready(self) -> str:
        """Why the process could not do its work now; standing by is its work too."""
        if self.stage is Stage.TAKEOVER:
            return f"taking over as epoch {self.epoch}"
        return self.trouble

    def checks(self) -> dict[str, list[Check]]:
        """By page."""
        return {
            "livez": [Check("loop", self.stuck), Check("lease", self.overdue)],
            "readyz": [Check("leader", self.unready)],
        }
