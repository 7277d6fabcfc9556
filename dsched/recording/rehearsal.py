"""What another version would decide differently, decision by decision, each from the state that was recorded.

Two clusters follow the recording to the letter (`Following`): one as the version that was recorded, one as the other.
Where they do not agree, `Causes` takes the changes between the two back until they do.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from dsched import emulation
from dsched.config import Features
from dsched.emulation import Asked
from dsched.errors import NothingRecorded, RecordingError
from dsched.framework.interface import Registry
from dsched.model import tape
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.plugins import profiles
from dsched.recording.causes import Cause, Causes
from dsched.recording.comparison import Configured, recorded_configuration
from dsched.recording.following import Following
from dsched.recording.replaying import alike, does_the_same
from dsched.scheduler.decision import Candidate, Decision


class Kind(StrEnum):
    """In what a decision is another one."""

    MOVES = "moves"
    """Another node."""
    WAITS = "waits"
    """No node instead of one."""
    PLACED = "placed"
    """A node instead of none."""
    PREEMPTS = "preempts"
    """None in both, and other victims, or another node to be freed."""
    TOLD = "told"
    """None in both, and another reason is given."""


WORDS = {
    Kind.MOVES: "go to another node",
    Kind.WAITS: "wait instead of being placed",
    Kind.PLACED: "be placed instead of waiting",
    Kind.PREEMPTS: "preempt otherwise",
    Kind.TOLD: "wait as before, for a reason that is told otherwise",
}
"""What pods would do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a decision came to.

    Attributes:
        node: ``""`` for nowhere; then ``message`` says why, ``nominated`` which node preemption promised (None where it
            said nothing) and ``victims`` who has to go for it.
    """

    node: NodeName = NO_NODE
    message: str = ""
    nominated: NodeName | None = None
    victims: tuple[PodKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """A decision that is another one.

    Attributes:
        line: of the recording.
        chance: the recorded node is one of the other version's best as well: dice were thrown among more or fewer.
    """

    kind: Kind
    line: int
    pod: PodKey
    attempt: int
    before: Outcome
    after: Outcome
    cause: Cause
    chance: bool = False


@dataclass(slots=True)
class Rehearsed:
    """What a rehearsal came to.

    Attributes:
        was, now: the version that was recorded, and the other one; None before the first line.
        decisions: recorded ones that were decided anew.
        not_reproduced: of these, those that come out otherwise as the recorded version, too: nothing is said of them.
    """

    was: Features | None = None
    now: Features | None = None
    decisions: int = 0
    not_reproduced: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def counts(self) -> Counter[Kind]:
        """Differences by kind."""
        return Counter(each.kind for each in self.differences)

    @property
    def causes(self) -> list[tuple[Cause, Counter[Kind]]]:
        """Causes and how many differences of which kind they have, the most frequent first."""
        found: dict[Cause, Counter[Kind]] = {}
        for each in self.differences:
            found.setdefault(each.cause, Counter())[each.kind] += 1
        return sorted(found.items(), key=lambda entry: -entry[1].total())

    @property
    def decides_otherwise(self) -> bool:
        """Whether anything but what is told would be otherwise."""
        return any(each.kind is not Kind.TOLD for each in self.differences)


class Rehearsal:
    """Goes through a recording.

    Args:
        asked: the other version, and gates.
        configured: reads another configuration than the recorded one, as both versions; None for the recorded one.

    Attributes:
        found: what it has come to so far.
    """

    def __init__(self, plugins: Registry, asked: Asked, configured: Configured | None = None) -> None:
        self.found = Rehearsed()
        self._plugins = plugins
        self._asked = asked
        self._configured = configured
        self._pair: _Pair | None = None
        self._ready = False

    def run(
        self,
        lines: Iterable[tape.Line],
        at: Callable[[], int] = lambda: 0,
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            at: says the number of the line that was read last.
            moved: is called after each line.

        Raises:
            NothingRecorded: there is no whole beginning.
            RecordingError: something stands before the first one.
            ConfigError, PluginError: the configuration cannot be used here, or not as that version.
        """
        for line in lines:
            if isinstance(line, tape.Began):
                self._pair = _Pair(self._plugins, self._asked, self._configured, line, self.found)
            elif self._pair is None:
                raise RecordingError(
                    f"line 2: a recording begins with everything there is, not with {type(line).__name__}"
                )
            else:
                self._ready = self._ready or isinstance(line, tape.Ready)
                self._pair.apply(line, at())
            moved()
        if not self._ready:
            raise NothingRecorded("nothing was recorded: no leader has told all that it has")


class _Pair:
    """One beginning, followed as both versions."""

    def __init__(
        self, plugins: Registry, asked: Asked, configured: Configured | None, began: tape.Began, found: Rehearsed
    ) -> None:
        self.was = emulation.read(began.version, began.gates)
        self.now = asked.on(self.was.version)
        given = configured or (lambda features: recorded_configuration(began, plugins, features))
        found.was, found.now = self.was, self.now
        self._found = found
        self._line = 0
        self._decided: dict[PodUid, bool] = {}
        self._before = Following(given(self.was), plugins, began, self._as_recorded, began.seed)
        self._after = Following(given(self.now), plugins, began, self._as_other, began.seed)
        self._causes = Causes(given, self.was, self.now, plugins, self._after.memory, self._after.clock, began.seed)

    def apply(self, line: tape.Line, at: int) -> None:
        self._line = at
        self._after.selector.next_start = self._before.selector.next_start
        profiles.emulate(self.was)
        self._before.apply(line)
        profiles.emulate(self.now)
        self._after.apply(line)

    def _as_recorded(self, candidate: Candidate, decision: Decision, choice: tape.Choice) -> None:
        self._decided[choice.uid] = alike(decision, choice)

    def _as_other(self, candidate: Candidate, decision: Decision, choice: tape.Choice) -> None:
        found = self._found
        found.decisions += 1
        if not self._decided.pop(choice.uid, False):
            found.not_reproduced += 1
            return
        if alike(decision, choice):
            return
        kind = _kind(decision, choice)
        agrees = alike if kind is Kind.TOLD else does_the_same
        found.differences.append(
            Difference(
                kind,
                self._line,
                candidate.info.key,
                choice.attempt,
                self._recorded(choice),
                _outcome(decision),
                self._causes.of(
                    candidate, self._after.deciding, self._after.started_at, lambda other: agrees(other, choice)
                ),
                choice.node in decision.best,
            )
        )

    def _recorded(self, choice: tape.Choice) -> Outcome:
        table = self._after.memory.snapshot.table
        victims = [victim.key for uid in choice.victims if (victim := table.pod(uid)) is not None]
        return Outcome(choice.node, choice.message, choice.nominated, tuple(sorted(victims)))


def _kind(decision: Decision, choice: tape.Choice) -> Kind:
    if choice.node:
        return Kind.WAITS if decision.node is None else Kind.MOVES
    if decision.node is not None:
        return Kind.PLACED
    return Kind.TOLD if does_the_same(decision, choice) else Kind.PREEMPTS


def _outcome(decision: Decision) -> Outcome:
    victims = tuple(sorted(victim.key for victim in decision.victims))
    return Outcome(decision.node or NO_NODE, decision.message, decision.nominated, victims)
