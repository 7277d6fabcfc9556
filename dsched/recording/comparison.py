"""A whole recording run again, and what came out otherwise."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from dsched import config, emulation
from dsched.config import Features, SchedulerConfiguration, other_version
from dsched.emulation import NOTHING, Asked
from dsched.errors import NothingRecorded, RecordingError
from dsched.framework.interface import Registry
from dsched.framework.pod_info import PodInfo
from dsched.model import tape
from dsched.model.meta import NO_NODE, NodeName, PodKey, PodUid
from dsched.plugins import registry
from dsched.recording import measures
from dsched.recording.measures import Amounts, Mean, Workload
from dsched.recording.replaying import Replay
from dsched.recording.world import Fate
from dsched.scheduler.decision import Decision

NO_REASON = "never tried"
RECORDED = "the recorded configuration"
Configured = Callable[[Features], SchedulerConfiguration]


@dataclass(frozen=True, slots=True)
class Change:
    """A pod that ended otherwise: its node and why it has none, as recorded and in the replay.

    Attributes:
        evicted: whether it was evicted in the replay.
    """

    pod: PodKey
    recorded: NodeName
    replayed: NodeName
    recorded_message: str = ""
    replayed_message: str = ""
    evicted: bool = False


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """A resource at the end, as recorded and in the replay.

    Attributes:
        mean: how full it was over time, None where no time has passed.
        fragmentation: see `measures`; None where it is not defined.
    """

    resource: str
    allocatable: int
    recorded: int
    replayed: int
    recorded_mean: float | None
    replayed_mean: float | None
    recorded_fragmentation: float | None
    replayed_fragmentation: float | None


@dataclass(slots=True)
class Comparison:
    """What a replay came to.

    Attributes:
        beginnings: how often a leader told everything anew; each is replayed by itself.
        began_ms, ended_ms: the first beginning and the last decision.
        decisions, same: recorded ones, and those that the replay took, too.
        not_tried: recorded attempts of pods that had a node in the replay, or that no profile was for.
        extra: attempts of the replay that were not recorded.
        pods: pods that were tried.
        moved: pods with another node; gained, lost: those with a node only in the replay, only in the recording;
            reasons: those without a node in both, for another reason.
        recorded_unschedulable, replayed_unschedulable: messages to how many pods ended with them.
        recorded_evicted, replayed_evicted: pods that were evicted.
        first: the first decision that is another one, in words.
    """

    beginnings: int = 0
    began_ms: int = 0
    ended_ms: int = 0
    decisions: int = 0
    same: int = 0
    not_tried: int = 0
    extra: int = 0
    pods: int = 0
    moved: list[Change] = field(default_factory=list)
    gained: list[Change] = field(default_factory=list)
    lost: list[Change] = field(default_factory=list)
    reasons: list[Change] = field(default_factory=list)
    recorded_unschedulable: Counter[str] = field(default_factory=Counter)
    replayed_unschedulable: Counter[str] = field(default_factory=Counter)
    recorded_evicted: int = 0
    replayed_evicted: int = 0
    resources: list[ResourceChange] = field(default_factory=list)
    first: str = ""

    @property
    def equal(self) -> bool:
        """Whether every decision is the recorded one."""
        return self.same == self.decisions and not self.extra


class Comparing:
    """Replays lines in order; `conclude` says what came out.

    Args:
        configured: reads another configuration than that of the recording, for what is emulated; None for that of the
            recording.
        seed: None for that of the recording.
        asked: a version and feature gates to emulate instead of those of the recording.

    Attributes:
        replay: of the last beginning, whole or not.
    """

    def __init__(
        self, configured: Configured | None, plugins: Registry, seed: int | None = None, asked: Asked = NOTHING
    ) -> None:
        self.result = Comparison()
        self._configured = configured
        self._plugins = plugins
        self._seed = seed
        self._asked = asked
        self.replay: Replay | None = None
        self._ready = False
        self._whole: Replay | None = None
        self._workload = Workload()
        self._known: set[str] = set()
        self._means = (Mean(), Mean())
        self._filled: tuple[dict[str, Amounts], dict[str, Amounts]] = ({}, {})
        self._at_ms = 0
        self._fates: dict[str, tuple[Fate, Fate]] = {}

    def run(self, lines: Iterable[tape.Line], moved: Callable[[], None] = lambda: None) -> None:
        """Replay everything.

        Args:
            moved: is called after each line.

        Raises:
            NothingRecorded: there is no whole beginning.
            RecordingError: something stands before the first one.
            ConfigError, PluginError: the recorded configuration cannot be used here.
        """
        for line in lines:
            if isinstance(line, tape.Began):
                self._end()
                self._begin(line)
            elif self.replay is None:
                raise RecordingError(
                    f"line 2: a recording begins with everything there is, not with {type(line).__name__}"
                )
            else:
                self._ready = self._ready or isinstance(line, tape.Ready)
                self._apply(self.replay, line)
            moved()
        if self.replay is None:
            raise NothingRecorded("nothing was recorded: no leader told anything while the recorder ran")
        self._end()
        if self._whole is None:
            raise NothingRecorded("nothing was recorded: it ends before the leader had told all that it has")

    def _begin(self, began: tape.Began) -> None:
        features = self._asked.instead_of(emulation.read(began.version, began.gates))
        given = self._configured
        configured = recorded_configuration(began, self._plugins, features) if given is None else given(features)
        seed = began.seed if self._seed is None else self._seed
        self.replay = Replay(configured, self._plugins, began, seed, self._compared)
        self._ready = False
        self.result.beginnings += 1
        self.result.began_ms = self.result.began_ms or began.at_ms
        self._at_ms = began.at_ms

    def _apply(self, replay: Replay, line: tape.Line) -> None:
        if isinstance(line, tape.Decided):
            self._time_passes(line.at_ms)
            for choice in line.choices:
                pod = replay.recorded.pending.get(choice.uid)
                if pod is not None and choice.uid not in self._known:
                    self._known.add(choice.uid)
                    self._workload.add(PodInfo(pod))
        replay.apply(line)
        if isinstance(line, tape.Decided | tape.Ready):
            self._filled = measures.fill(replay.recorded.table), measures.fill(replay.memory.snapshot.table)

    def _time_passes(self, at_ms: int) -> None:
        for mean, filled in zip(self._means, self._filled, strict=True):
            mean.add(filled, at_ms - self._at_ms)
        self._at_ms = self.result.ended_ms = at_ms

    def _compared(self, decision: Decision | None, choice: tape.Choice, same: bool) -> None:
        self.result.decisions += 1
        self.result.same += same
        self.result.not_tried += decision is None
        if not same and not self.result.first:
            self.result.first = self._difference(decision, choice)

    def _difference(self, decision: Decision | None, choice: tape.Choice) -> str:
        pod = None if self.replay is None else self.replay.recorded.pending.get(choice.uid)
        name = choice.uid if pod is None else pod.key
        was = _told(choice.node, choice.message, choice.nominated, choice.victims)
        if decision is None:
            return f"pod {name}, attempt {choice.attempt}: recorded {was}, not tried in the replay"
        victims = [victim.uid for victim in decision.victims]
        now = _told(decision.node or NO_NODE, decision.message, decision.nominated, victims)
        return f"pod {name}, attempt {choice.attempt}: recorded {was}, replayed {now}"

    def _end(self) -> None:
        """A beginning that was not told whole is of no use: nothing was decided after it."""
        replay = self.replay
        if replay is None or not self._ready:
            return
        self._whole = replay
        replay.finish()
        self.result.extra += replay.extra
        self._filled = measures.fill(replay.recorded.table), measures.fill(replay.memory.snapshot.table)
        for uid, recorded in replay.recorded.fates.items():
            self._fates[uid] = recorded, replay.fates.get(uid, Fate(recorded.key, message=NO_REASON))
        for uid, replayed in replay.fates.items():
            if uid not in replay.recorded.fates:
                node = replay.recorded.table.node_of(uid) or NO_NODE
                self._fates[uid] = Fate(replayed.key, node, "" if node else NO_REASON), replayed

    # -- what it came to -------------------------------------------------------------------------------------------

    def conclude(self, ended_ms: int = 0) -> Comparison:
        """What it came to.

        Args:
            ended_ms: when the recording ended, 0 for with the last decision.
        """
        if ended_ms:
            self._time_passes(ended_ms)
        self.result.pods = len(self._fates)
        for recorded, replayed in self._fates.values():
            self._compare(recorded, replayed)
        if self._whole is not None:
            self._resources(self._whole)
        return self.result

    def _compare(self, recorded: Fate, replayed: Fate) -> None:
        result = self.result
        result.recorded_evicted += recorded.evicted
        result.replayed_evicted += replayed.evicted
        if not recorded.node and not recorded.gone:
            result.recorded_unschedulable[recorded.message] += 1
        if not replayed.node and not replayed.gone:
            result.replayed_unschedulable[replayed.message] += 1
        change = Change(
            recorded.key, recorded.node, replayed.node, recorded.message, replayed.message, replayed.evicted
        )
        if recorded.node != replayed.node:
            which = result.moved if recorded.node and replayed.node else result.lost if recorded.node else result.gained
            which.append(change)
        elif recorded.message != replayed.message:
            result.reasons.append(change)

    def _resources(self, replay: Replay) -> None:
        tables = replay.recorded.table, replay.memory.snapshot.table
        fragments = [self._workload.fragmentation(table) for table in tables]
        before, after = self._filled
        for name in dict.fromkeys([*before, *after]):
            was, now = before.get(name, Amounts(0, 0)), after.get(name, Amounts(0, 0))
            if not (was.allocatable or was.requested or now.allocatable or now.requested):
                continue
            self.result.resources.append(
                ResourceChange(
                    name,
                    max(was.allocatable, now.allocatable),
                    was.requested,
                    now.requested,
                    *(mean.of(name) for mean in self._means),
                    *(fragment.get(name) for fragment in fragments),
                )
            )
        self.result.resources.sort(key=lambda each: each.resource == "pods")


def recorded_configuration(began: tape.Began, plugins: Registry, features: Features) -> SchedulerConfiguration:
    """The configuration of a recording as a version reads it that may be another one than the recorded leader emulated:
    what was default then is as by default.

    Raises:
        ConfigError: it cannot be used here.
    """
    served = registry.served(plugins, features.version)
    document, was = began.config, emulation.read(began.version, began.gates)
    if features != was:
        document = other_version.carried_over(document, was, features)
    return config.load(msgspec.json.encode(document), RECORDED, plugins=served, features=features)


def _told(node: NodeName, message: str, nominated: NodeName | None, victims: Iterable[PodUid]) -> str:
    """A decision in words; what preemption came to, where it was asked."""
    if node:
        return node
    gone = sorted(victims)
    evicting = f" evicting {', '.join(gone)}" if gone else ""
    promise = "" if nominated is None else f"; promised {nominated or 'nothing'}{evicting}"
    return f"no node ({message}{promise})"
