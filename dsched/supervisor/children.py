"""What to start, start again and stop, and when: pure; `supervise` carries it out.

A child's way::

    waiting ──start──► running ──stop──► stopping ──grace over──► (killed)
       ▲                  │                  │                       │
       └──── pause ───────┘ died             └───────► stopped ◄─────┘

Starting again waits 0.2 s after the first death, twice as long after each further one up to 10 s; a child that ran
well for 30 s starts from 0.2 s again. Stopping goes by `Spec.stop_order`: the next rank is asked to stop once all of
the rank before it has ended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from dsched import backoff
from dsched.clock import Clock

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0
RAN_WELL_S = 30.0
HURRIED_GRACE_S = 3.0


@dataclass(frozen=True, slots=True)
class Spec:
    """One child.

    Attributes:
        name: unique; also the name of its log file.
        command: the program and its arguments.
        stop_order: children with a lower number are stopped, and have ended, before those with a higher one.
        grace_s: seconds from the request to stop until it is killed.
        unhurried: asked to stop even when the user is in a hurry, because being killed could lose data.
        environment: what this child finds in its environment besides what all find.
    """

    name: str
    command: tuple[str, ...]
    stop_order: int = 0
    grace_s: float = 10.0
    unhurried: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


class State(Enum):
    """Where a child is on its way."""

    WAITING = "waiting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


class Step(Enum):
    """What has to be done with a child now."""

    START = "start"
    TERMINATE = "terminate"
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do now."""

    step: Step
    spec: Spec


@dataclass(slots=True)
class Child:
    """A child as it is now: ``pid`` 0 while it does not run, ``started_at_ms`` wall-clock time of the last start."""

    spec: Spec
    state: State = State.WAITING
    pid: int = 0
    restarts: int = 0
    started_at_ms: int = 0
    due: float = 0.0
    """Monotonic time of the next step: of the start while waiting, of the kill while stopping."""
    running_since: float = 0.0
    deaths: int = 0
    """Since it last ran well."""


class Fleet:
    """All children of a supervisor. Not thread-safe."""

    def __init__(self, specs: Sequence[Spec], clock: Clock) -> None:
        """All children wait to be started at once.

        Raises:
            ValueError: two children have one name.
        """
        self.children = {spec.name: Child(spec, due=clock.monotonic()) for spec in specs}
        if len(self.children) != len(specs):
            raise ValueError("two children have one name: " + ", ".join(spec.name for spec in specs))
        self._clock = clock
        self._stopping = False
        self._hurried = False

    @property
    def stopping(self) -> bool:
        return self._stopping

    @property
    def done(self) -> bool:
        """Everything was to stop, and has."""
        return self._stopping and all(child.state is State.STOPPED for child in self.children.values())

    def started(self, name: str, pid: int) -> None:
        """The child runs now."""
        child = self.children[name]
        child.state = State.RUNNING
        child.pid = pid
        child.running_since = self._clock.monotonic()
        child.started_at_ms = self._clock.now_ms()

    def ended(self, name: str) -> float | None:
        """The child does not run any more, or could not be started; the pause in seconds until it is started again,
        None where it is not to be."""
        child = self.children[name]
        now = self._clock.monotonic()
        ran_well = child.pid != 0 and now - child.running_since >= RAN_WELL_S
        child.pid = 0
        if self._stopping:
            child.state = State.STOPPED
            return None
        child.deaths = 1 if ran_well else child.deaths + 1
        pause = pause_after(child.deaths)
        child.state = State.WAITING
        child.restarts += 1
        child.due = now + pause
        return pause

    def stop(self) -> None:
        """Everything is to stop; asked a second time, in a hurry."""
        self._hurried = self._stopping
        self._stopping = True
        for child in self.children.values():
            if child.state is State.WAITING:
                child.state = State.STOPPED
            elif child.state is State.STOPPING and self._hurried:
                left = HURRIED_GRACE_S if child.spec.unhurried else 0.0
                child.due = min(child.due, self._clock.monotonic() + left)

    def next_actions(self) -> list[Action]:
        """What to do now; asking counts as doing, so each start and each request to stop is named once."""
        now = self._clock.monotonic()
        if not self._stopping:
            return [Action(Step.START, child.spec) for child in self._in(State.WAITING) if child.due <= now]
        return [action for child in self._rank() if (action := self._stop_step(child, now)) is not None]

    def wait_s(self) -> float | None:
        """Seconds until there is something to do unless a child ends before, None if there is nothing to wait for."""
        awaited = self._in(State.STOPPING if self._stopping else State.WAITING)
        if not awaited:
            return None
        return max(0.0, min(child.due for child in awaited) - self._clock.monotonic())

    def _in(self, state: State) -> list[Child]:
        return [child for child in self.children.values() if child.state is state]

    def _rank(self) -> list[Child]:
        """The children whose turn it is to stop: in a hurry, everyone that may be killed."""
        alive = self._in(State.RUNNING) + self._in(State.STOPPING)
        if self._hurried and (hurried := [child for child in alive if not child.spec.unhurried]):
            return hurried
        first = min((child.spec.stop_order for child in alive), default=0)
        return [child for child in alive if child.spec.stop_order == first]

    def _stop_step(self, child: Child, now: float) -> Action | None:
        if child.state is State.RUNNING:
            child.state = State.STOPPING
            if self._hurried and not child.spec.unhurried:
                child.due = now + HURRIED_GRACE_S
                return Action(Step.KILL, child.spec)
            child.due = now + (HURRIED_GRACE_S if self._hurried else child.spec.grace_s)
            return Action(Step.TERMINATE, child.spec)
        if child.due > now:
            return None
        # A killed process can take a moment to be gone; ask again later rather than in a busy loop.
        child.due = now + HURRIED_GRACE_S
        return Action(Step.KILL, child.spec)


def pause_after(deaths: int) -> float:
    """Seconds to wait before a child is started again that has died ``deaths`` (1 or more) times in a row."""
    return backoff.doubled(FIRST_PAUSE_S, deaths - 1, LONGEST_PAUSE_S)
