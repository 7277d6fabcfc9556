"""Why a version decides otherwise: its changes are taken back one by one until it decides as the other one does.

What can be taken back: a feature gate, one plugin as a whole (its rules and what its arguments are by default), the
lists of plugins (their order and weights), and how pods are counted that are being resized.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

from dsched.clock import Clock
from dsched.config import Features, Profile, SchedulerConfiguration, feature_gates
from dsched.config.feature_gates import ACTED_ON, OWN, VERSIONS, Version
from dsched.engine.select import Selector
from dsched.errors import ConfigError
from dsched.framework.interface import Registry
from dsched.framework.pod_info import PodInfo
from dsched.plugins import profiles
from dsched.recording.following import take_back
from dsched.scheduler.decision import Candidate, Decision, GroupCandidate, candidates, told_by_pod
from dsched.scheduler.memory import Memory
from dsched.simulation.offline_cycle import OfflineCycle

Configured = Callable[[Features], SchedulerConfiguration]
"""The configuration as a version, with these gates, reads it."""
Agrees = Callable[[Decision], bool]


class Kind(StrEnum):
    """What a change of a version is about."""

    GATE = "gate"
    PLUGIN = "plugin"
    PLUGIN_LISTS = "pluginLists"
    RESIZES = "resizes"


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """Something that a version does otherwise.

    Attributes:
        name: of the gate or plugin; empty for the other kinds.
    """

    kind: Kind
    name: str = ""

    def __str__(self) -> str:
        """In words."""
        words = {Kind.PLUGIN_LISTS: "the default plugins", Kind.RESIZES: "what pods being resized count for"}
        return words.get(self.kind) or (f"gate {self.name}" if self.kind is Kind.GATE else self.name)


@dataclass(frozen=True, slots=True)
class Cause:
    """What makes a decision another one.

    Attributes:
        changes: taking back any single one of them is enough, unless ``together``.
        together: only all of them are.
        since: the first version that has it; None where no version between is alike, or only several changes are.
    """

    changes: tuple[Change, ...] = ()
    together: bool = False
    since: Version | None = None

    def names(self, kind: Kind) -> list[str]:
        """Of the changes of a kind."""
        return [change.name for change in self.changes if change.kind is kind]

    def __str__(self) -> str:
        """In words."""
        if not self.changes:
            return "not found"
        told = (" and " if self.together else ", ").join(map(str, self.changes))
        return told if self.since is None else f"{told}, since {self.since}"


class Causes:
    """Finds causes in one cluster, at the moment of a decision.

    Args:
        configured, was, now: of the version that was, and the one that decides otherwise.
        memory: the cluster, counted as ``now`` does; between two calls it is as before.
    """

    def __init__(
        self,
        configured: Configured,
        was: Features,
        now: Features,
        plugins: Registry,
        memory: Memory,
        clock: Clock,
        seed: int,
    ) -> None:
        self._configured = configured
        self._was, self._now = was, now
        self._profiles: dict[Version, dict[str, Profile]] = {}
        self._plugins = plugins
        self._memory = memory
        self._clock = clock
        self._seed = seed
        self._made: dict[tuple[frozenset[Change], Version], OfflineCycle] = {}
        gates = sorted(ACTED_ON | OWN.keys())
        self._gates = [Change(Kind.GATE, gate) for gate in gates if was.enabled(gate) != now.enabled(gate)]
        self._others = [Change(Kind.PLUGIN, name) for name in self._told_the_version()]
        self._others += [Change(Kind.PLUGIN_LISTS), Change(Kind.RESIZES)]

    def _told_the_version(self) -> list[str]:
        """Plugins that are built for a version, and those that it brings."""
        present = _names(self._configured(self._now).profiles)
        told = {name for name in present if getattr(self._plugins.get(name), "takes_features", False)}
        return sorted(told | (present - _names(self._as_of(self._was.version).values())))

    def of(
        self, candidate: Candidate, deciding: Candidate | GroupCandidate | None, next_start: int, agrees: Agrees
    ) -> Cause:
        """The cause of a decision that is not the recorded one.

        Args:
            deciding: the group that the pod was decided with; else the pod, or None.
            next_start: where a search that looks at some of the nodes only begins.
            agrees: whether a decision is the recorded one.
        """

        def decided(changes: Iterable[Change], version: Version | None = None) -> bool:
            to = version or self._was.version
            return agrees(self._decide(frozenset(changes), to, candidate, deciding, next_start))

        gate = self._first(self._gates, decided)
        other = self._first(self._others, decided)
        found = tuple(change for change in (other, gate) if change is not None)
        if found:
            return Cause(found, since=self._since(found[0], decided))
        everything = [*self._gates, *self._others]
        if not decided(everything):
            return Cause()
        needed = everything
        for change in everything:
            fewer = [each for each in needed if each != change]
            if decided(fewer):
                needed = fewer
        return Cause(tuple(needed), together=True)

    def _first(self, changes: list[Change], decided: Callable[..., bool]) -> Change | None:
        """The first that is enough; it will be tried first the next time, for many pods have the same cause."""
        for place, change in enumerate(changes):
            if decided([change]):
                changes.insert(0, changes.pop(place))
                return change
        return None

    def _since(self, change: Change, decided: Callable[..., bool]) -> Version | None:
        """The first version that decides otherwise on account of it."""
        if change.kind is Kind.GATE:
            return self._gate_since(change.name)
        between = [version for version in VERSIONS if self._was.version < version <= self._now.version]
        return next((each for each in between if each == self._now.version or not decided([change], each)), None)

    def _gate_since(self, gate: str) -> Version | None:
        if gate in OWN:
            return None  # it is of no version of kube-scheduler
        for version in VERSIONS:
            spec = feature_gates.spec_at(gate, version)
            if self._was.version < version and spec is not None and spec.on == self._now.enabled(gate):
                return version if version <= self._now.version else None
        return None

    # -- deciding with changes taken back ------------------------------------------------------------------------------

    def _decide(
        self,
        back: frozenset[Change],
        to: Version,
        candidate: Candidate,
        deciding: Candidate | GroupCandidate | None,
        next_start: int,
    ) -> Decision:
        """What is decided with these changes taken back to a version; it has no effect."""
        counted = self._as(to) if Change(Kind.RESIZES) in back else self._flipped(back)
        made = self._cycle(back, to)
        info, nominations = candidate.info, self._memory.snapshot.nominations
        grouped = isinstance(deciding, GroupCandidate) and made.groups.concerns(info.pod)
        with _counting(self._memory, counted, self._now):
            asked = _counted_anew(deciding if grouped and deciding is not None else candidate)
            made.selector.next_start = next_start
            promised = {each.info.uid: nominations.node_of(each.info.uid) for each in candidates([asked])}
            decisions = told_by_pod(made.decide([asked]))
            for decision in reversed(decisions):
                take_back(self._memory, made.waiting, decision, promised[decision.candidate.info.uid])
        return next(each for each in decisions if each.candidate.info.uid == info.uid)

    def _as(self, version: Version) -> Features:
        """The version that was, or one between; with the gates that were set, where it takes them."""
        if version == self._was.version:
            return self._was
        try:
            return feature_gates.features(version, dict(self._was.given))
        except ConfigError:
            return feature_gates.features(version)

    def _as_of(self, version: Version) -> Mapping[str, Profile]:
        """The profiles as a version has them."""
        if version not in self._profiles:
            found = self._configured(self._as(version)).profiles
            self._profiles[version] = {profile.scheduler_name: profile for profile in found}
        return self._profiles[version]

    def _flipped(self, back: frozenset[Change]) -> Features:
        flipped = {change.name for change in back if change.kind is Kind.GATE}
        return replace(self._now, on=self._now.on ^ flipped)

    def _cycle(self, back: frozenset[Change], to: Version) -> OfflineCycle:
        key = back, to
        if key not in self._made:
            before = self._as_of(to)
            configured, plugins = self._configured(self._flipped(back)), dict(self._plugins)
            if Change(Kind.PLUGIN_LISTS) in back:
                configured = _each(configured, lambda it: replace(it, plugins=before[it.scheduler_name].plugins))
            for change in back:
                if change.kind is not Kind.PLUGIN:
                    continue
                if change.name in _names(before.values()):
                    plugins[change.name] = _as_before(plugins[change.name], change.name, before, self._as(to))
                else:
                    configured = _each(configured, partial(_without, change.name))
            selector = Selector(self._seed, tell_best=False)
            self._made[key] = OfflineCycle(configured, plugins, self._memory, selector, self._clock)
        return self._made[key]


def _counted_anew(asked: Candidate | GroupCandidate) -> Candidate | GroupCandidate:
    """With what pods that are being resized count for at present."""
    if isinstance(asked, GroupCandidate):
        return GroupCandidate(asked.group, tuple(_pod_anew(each) for each in asked.pods))
    return _pod_anew(asked)


def _pod_anew(asked: Candidate) -> Candidate:
    info = asked.info
    return Candidate(PodInfo(info.pod) if info.resized else info, asked.attempt)


def _names(profiles: Iterable[Profile]) -> set[str]:
    return {ref.name for profile in profiles for refs in profile.plugins.values() for ref in refs}


def _each(configured: SchedulerConfiguration, changed: Callable[[Profile], Profile]) -> SchedulerConfiguration:
    return replace(configured, profiles=tuple(map(changed, configured.profiles)))


def _without(name: str, profile: Profile) -> Profile:
    kept = {point: tuple(ref for ref in refs if ref.name != name) for point, refs in profile.plugins.items()}
    return replace(profile, plugins=kept)


def _as_before(factory: Any, name: str, before: Mapping[str, Profile], features: Features) -> Any:
    """A plugin as it was, with the arguments that it had: those of the first profile that has some, for all."""
    args = next((profile.args[name] for profile in before.values() if name in profile.args), None)
    told = {"features": features} if getattr(factory, "takes_features", False) else {}

    def begin(self: Any, _args: Any, handle: Any, **_: Any) -> None:
        factory.__init__(self, args, handle, **told)

    return type(factory.__name__, (factory,), {"__init__": begin})


@contextmanager
def _counting(memory: Memory, features: Features, present: Features) -> Iterator[None]:
    """Count what pods take up as with these features, those that are on nodes included."""
    profiles.emulate(present)
    if not profiles.emulate(features):
        yield
        return
    table = memory.snapshot.table
    resized = [(info, node) for node, info in table.placed() if info.resized]
    for info, node in resized:
        table.add_pod(PodInfo(info.pod), node)
    try:
        yield
    finally:
        profiles.emulate(present)
        for info, node in resized:
            table.add_pod(info, node)
